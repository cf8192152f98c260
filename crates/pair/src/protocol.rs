//! What the ends say to each other: one JSON document a line, over the input and output of the ssh connection.
//!
//! The far end greets. The near end asks for its clock, and then for what is to be measured; the far end says when it is
//! ready. At the end the near end says so, and the far end tells what it saw. In between each says now and then that it is
//! still there.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket},
};

use record::{Answered, ClockTie, Clocks, FarAsked, Machine, Reason, Record};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

/// Version of what is said here. Both ends must have the same.
pub const PROTOCOL: u32 = 2;

/// What the near end says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToFar {
    /// What does your clock say?
    Clock,
    /// Measure.
    Measure {
        /// What.
        what: Ask,
        /// What to be, and to do beside it.
        asked: Box<FarAsked>,
    },
    /// The near end has ended.
    End {
        /// Frames that its talker has sent.
        sent: Option<u64>,
    },
    /// It is still there.
    Alive,
}

/// What the far end says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToNear {
    /// The first that it says.
    Hello(Box<Hello>),
    /// What its clock says: CLOCK_MONOTONIC, ns.
    Clock(i64),
    /// It measures.
    Ready {
        /// Where it answers.
        address: Option<SocketAddr>,
        /// What it was refused.
        refused: Vec<Reason>,
    },
    /// It cannot do what was asked, because of this.
    Failed(String),
    /// What it saw.
    Saw(Box<Saw>),
    /// It is still there.
    Alive,
}

/// What a far end is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hello {
    /// [`PROTOCOL`].
    pub protocol: u32,
    /// Its version of punctual.
    pub version: String,
    /// Its machine, whose boot and clocks tell how the two stand to each other.
    #[serde(default)]
    pub machine: Machine,
    /// What it has put back that a killed run had left changed there, a sentence each.
    #[serde(default)]
    pub restored: Vec<String>,
}

/// What is to be measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ask {
    /// Answer datagrams.
    Echo(AskEcho),
    /// Listen to a stream.
    Listen(AskListen),
}

/// Answer datagrams.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskEcho {
    /// Where; another port where this one is taken.
    pub bind: SocketAddr,
    /// Who asks: the interface that leads there is the one to be set.
    pub asking: IpAddr,
}

impl AskEcho {
    /// To answer there what comes from this machine.
    ///
    /// # Errors
    /// When no way leads there.
    pub fn at(bind: SocketAddr) -> io::Result<Self> {
        let any = if bind.is_ipv4() { IpAddr::from(Ipv4Addr::UNSPECIFIED) } else { Ipv6Addr::UNSPECIFIED.into() };
        // Nothing is sent: the kernel looks for a way.
        let socket = UdpSocket::bind((any, 0))?;
        socket.connect(bind)?;
        Ok(Self { bind, asking: socket.local_addr()?.ip() })
    }
}

/// Listen to a stream until its talker has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskListen {
    /// The interface that it comes in on.
    pub interface: String,
    /// Which one.
    pub stream_id: u64,
    /// Time between two frames, ns.
    pub period_ns: u64,
    /// Priority and VLAN of its class.
    pub class_b: bool,
    /// Whether it asks for frames again and again instead of sleeping.
    pub spin: bool,
    /// For how long the kernel asks the driver before it sleeps, ns.
    pub busy_poll_ns: Option<u64>,
    /// The clock to read, as on the command line.
    pub clock: String,
    /// What ties it to the talker's.
    pub tie: ClockTie,
}

/// What the far end saw.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Saw {
    /// Machine, findings, series, what was refused: a record of its own.
    pub record: Record,
    /// What it answered.
    pub answered: Option<Answered>,
    /// What its clocks follow, when all is over.
    pub clocks: Option<Clocks>,
}

/// A document that says that the other end is still there, and nothing else.
pub trait Says: Serialize + DeserializeOwned + Send + 'static {
    /// That document.
    fn alive() -> Self;
    /// Whether it is that.
    fn is_alive(&self) -> bool;
}

impl Says for ToFar {
    fn alive() -> Self {
        Self::Alive
    }

    fn is_alive(&self) -> bool {
        *self == Self::Alive
    }
}

impl Says for ToNear {
    fn alive() -> Self {
        Self::Alive
    }

    fn is_alive(&self) -> bool {
        *self == Self::Alive
    }
}

/// The line that says it.
pub(crate) fn line<T: Serialize>(said: &T) -> Vec<u8> {
    let mut line = serde_json::to_vec(said).expect("what is said has no map with keys that are not strings");
    line.push(b'\n');
    line
}

/// What a line says; `None` for noise of a shell, which is no JSON.
///
/// # Errors
/// What is wrong with it, for a line that only an end of another version writes.
pub(crate) fn parse<T: DeserializeOwned>(line: &[u8]) -> Result<Option<T>, String> {
    if !matches!(line.first(), Some(b'{' | b'"')) {
        return Ok(None);
    }
    serde_json::from_slice(line).map(Some).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_asking_end_knows_how_it_is_seen() {
        let ask = AskEcho::at(([127, 0, 0, 1], 7125).into()).unwrap();
        assert_eq!(ask.asking, IpAddr::from(Ipv4Addr::LOCALHOST));
    }

    #[test]
    fn what_is_said_is_heard_and_noise_is_not() {
        let what = Ask::Echo(AskEcho { bind: ([192, 0, 2, 1], 7125).into(), asking: [192, 0, 2, 2].into() });
        let asked = FarAsked { loads: vec!["cpu".into()], nic: Some("eee=off".into()), ..FarAsked::default() };
        let measure = ToFar::Measure { what, asked: Box::new(asked) };
        for said in [ToFar::Clock, measure, ToFar::End { sent: Some(7) }, ToFar::Alive] {
            let line = line(&said);
            assert_eq!(line.iter().filter(|&&byte| byte == b'\n').count(), 1);
            assert_eq!(parse(&line), Ok(Some(said)));
        }
        assert_eq!(String::from_utf8_lossy(&line(&ToFar::Clock)), "\"clock\"\n");
        let saw = ToNear::Saw(Box::default());
        assert_eq!(parse(&line(&saw)), Ok(Some(saw)));
        for noise in ["", "\n", "Welcome to board-b!\n", "[1] 4711\n"] {
            assert_eq!(parse::<ToNear>(noise.as_bytes()), Ok(None));
        }
        for strange in ["{\"jump\":1}\n", "\"jump\"\n", "{"] {
            assert!(parse::<ToNear>(strange.as_bytes()).is_err(), "{strange}");
        }
    }
}
