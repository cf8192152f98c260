//! What the ends say to each other: one JSON document a line, over the input and output of the ssh connection.
//!
//! The far end greets. The near end asks for its clock, and then for what is to be measured; the far end says when it is
//! ready. At the end the near end says so, and the far end tells what it saw. In between each says now and then that it is
//! still there.

use std::net::SocketAddr;

use record::{Answered, ClockTie, Clocks, Machine, Record};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

/// Version of what is said here. Both ends must have the same.
pub const PROTOCOL: u32 = 1;

/// What the near end says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToFar {
    /// What does your clock say?
    Clock,
    /// Measure this.
    Measure(Ask),
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
    /// Policy of the answering thread, as on the command line.
    pub policy: String,
    /// Its CPU; any if absent.
    pub cpu: Option<u32>,
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
    /// Policy of the listening thread, as on the command line.
    pub policy: String,
    /// Its CPU; the quietest that is known if absent.
    pub cpu: Option<u32>,
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
    fn what_is_said_is_heard_and_noise_is_not() {
        let ask = Ask::Echo(AskEcho { bind: ([192, 0, 2, 1], 7125).into(), policy: "fifo:97".into(), cpu: Some(3) });
        for said in [ToFar::Clock, ToFar::Measure(ask), ToFar::End { sent: Some(7) }, ToFar::Alive] {
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
