//! The messages between both ends: one JSON document per line, over the ssh connection.
//!
//! The far end sends a greeting. The near end requests its clock and then a measurement; the far end reports when it is
//! ready. At the end the near end sends `End`, and the far end sends its results. Both ends send keep-alive messages.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket},
};

use record::{Answered, ClockTie, Clocks, FarAsked, Machine, Reason, Record, bounded};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

/// Version of the protocol. Both ends must use the same one.
pub const PROTOCOL: u32 = 3;
/// The memory that reading a message may take in addition to four times its size, bytes.
const PARSE_BYTES: usize = 8 << 20;

/// Messages to the far end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToFar {
    /// Requests the far end's clock.
    Clock,
    /// Requests a measurement.
    Measure {
        /// The measurement.
        what: Task,
        /// The settings and loads of the far machine.
        asked: Box<FarAsked>,
    },
    /// The run of the near end is over, or shall end.
    End {
        /// Id and number of sent frames of each of its streams; empty if they are unknown.
        sent: Vec<(u64, u64)>,
    },
    /// The outside judge at the near end asks no more questions.
    JudgeIsOver,
    /// Keep-alive.
    Alive,
}

/// Messages to the near end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToNear {
    /// The greeting, the first message.
    Hello(Box<Hello>),
    /// CLOCK_MONOTONIC of the far machine, ns.
    Clock(i64),
    /// The measurement is running.
    Ready {
        /// The address at which it answers datagrams.
        address: Option<SocketAddr>,
        /// The settings that were refused.
        refused: Vec<Reason>,
    },
    /// The measurement of interrupts is over, so that the outside judge at the near end must end. Its questions are
    /// answered until it has.
    JudgeShallEnd,
    /// The request failed for this reason.
    Failed(String),
    /// The results.
    #[serde(rename = "saw")]
    Results(Box<Results>),
    /// Keep-alive.
    Alive,
}

/// The greeting of the far end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hello {
    /// [`PROTOCOL`].
    pub protocol: u32,
    /// Its version of punctual.
    pub version: String,
    /// Facts about its machine. Boot id and clocks determine the relation between both machines' clocks.
    #[serde(default)]
    pub machine: Machine,
    /// Messages about settings that an earlier killed run had left there and that were restored.
    #[serde(default)]
    pub restored: Vec<String>,
}

/// A measurement on the far end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Task {
    /// Answer datagrams.
    Echo(EchoTask),
    /// Listen to a stream.
    Listen(ListenTask),
    /// Measure interrupts.
    Interrupt(Box<InterruptTask>),
}

/// Parameters for answering datagrams.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EchoTask {
    /// The address to bind; if the port is in use, another port.
    pub bind: SocketAddr,
    /// The near end's address. The interface on the route to it is the one to configure.
    pub asking: IpAddr,
}

impl EchoTask {
    /// Answers at `bind` for datagrams from this machine.
    ///
    /// # Errors
    /// If there is no route to the address.
    pub fn at(bind: SocketAddr) -> io::Result<Self> {
        let any = if bind.is_ipv4() { IpAddr::from(Ipv4Addr::UNSPECIFIED) } else { Ipv6Addr::UNSPECIFIED.into() };
        // Connecting sends nothing; it makes the kernel select the route and the source address.
        let socket = UdpSocket::bind((any, 0))?;
        socket.connect(bind)?;
        Ok(Self { bind, asking: socket.local_addr()?.ip() })
    }
}

/// Parameters for listening to a stream until its talker ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListenTask {
    /// The receiving interface.
    pub interface: String,
    /// The stream id.
    pub stream_id: u64,
    /// Streams of a file, each with its own series; empty for the stream `stream_id` alone.
    pub named: Vec<NamedTask>,
    /// Interval between frames, ns; the shortest of several streams.
    pub period_ns: u64,
    /// True for class B, which determines priority and VLAN.
    pub class_b: bool,
    /// True to poll for frames continuously instead of sleeping.
    pub spin: bool,
    /// Busy polling time of the kernel before sleeping, ns.
    pub busy_poll_ns: Option<u64>,
    /// The clock to read, as on the command line.
    pub clock: String,
    /// The relation of that clock to the talker's.
    pub tie: ClockTie,
}

/// A stream with a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedTask {
    /// Its name.
    pub name: String,
    /// Its id.
    pub stream_id: u64,
    /// Interval between frames, ns.
    pub period_ns: u64,
    /// Longest time from the slot to the presentation time, ns.
    pub transit_ns: u64,
}

/// Parameters for measuring interrupts. The words are those of the command line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterruptTask {
    /// The source.
    pub source: String,
    /// The output line on which the far end makes the edges.
    pub drive: Option<String>,
    /// The line on which the far end answers an outside judge at the near end; `None` without a judge.
    pub answer: Option<AnswerTask>,
    /// Time between two interrupts, ns; `None` for the default of the source.
    pub period_ns: Option<u64>,
    /// Length of the run, ns.
    pub duration_ns: u64,
    /// Lateness above which a wake-up is a spike, ns; `None` for the default.
    pub threshold_ns: Option<u64>,
    /// CPU of the interrupts of the source; `None` leaves them where they are.
    pub irq_cpu: Option<u32>,
    /// The command of the near end, which remedies repeat with other options.
    #[serde(default)]
    pub command: Vec<String>,
}

/// Parameters for answering an outside judge at the near end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnswerTask {
    /// The output line.
    pub line: String,
    /// True if questions and answers are falling edges.
    pub is_falling: bool,
}

/// The results of the far end.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Results {
    /// Machine, findings, series and refusals, as a record.
    pub record: Record,
    /// Counters of the answering end.
    pub answered: Option<Answered>,
    /// The clock synchronisation state after the run.
    pub clocks: Option<Clocks>,
}

/// A message type with a keep-alive message.
pub trait Message: Serialize + DeserializeOwned + Send + 'static {
    /// The keep-alive message.
    fn alive() -> Self;
    /// True if this is the keep-alive message.
    fn is_alive(&self) -> bool;
}

impl Message for ToFar {
    fn alive() -> Self {
        Self::Alive
    }

    fn is_alive(&self) -> bool {
        *self == Self::Alive
    }
}

impl Message for ToNear {
    fn alive() -> Self {
        Self::Alive
    }

    fn is_alive(&self) -> bool {
        *self == Self::Alive
    }
}

/// Encodes a message as a line.
///
/// # Panics
/// Never: messages have no maps whose keys are not strings.
#[must_use]
pub fn line<T: Serialize>(message: &T) -> Vec<u8> {
    let mut line = serde_json::to_vec(message).expect("messages have no maps with non-string keys");
    line.push(b'\n');
    line
}

/// Decodes a line; `None` for shell output that is not JSON.
///
/// # Errors
/// A description of the mistake in a JSON line, which comes from an end of another version.
pub fn parse<T: DeserializeOwned>(line: &[u8]) -> Result<Option<T>, String> {
    if !matches!(line.first(), Some(b'{' | b'"')) {
        return Ok(None);
    }
    bounded::from_slice(line, PARSE_BYTES).map(Some).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn determines_the_own_address() {
        let task = EchoTask::at(([127, 0, 0, 1], 7125).into()).unwrap();
        assert_eq!(task.asking, IpAddr::from(Ipv4Addr::LOCALHOST));
    }

    #[test]
    fn messages_round_trip_and_shell_output_is_ignored() {
        let what = Task::Echo(EchoTask { bind: ([192, 0, 2, 1], 7125).into(), asking: [192, 0, 2, 2].into() });
        let asked = FarAsked { loads: vec!["cpu".into()], nic: Some("eee=off".into()), ..FarAsked::default() };
        let measure = ToFar::Measure { what, asked: Box::new(asked) };
        for message in [ToFar::Clock, measure, ToFar::End { sent: vec![(0x3064_3e54_ee01_0001, 7)] }, ToFar::Alive] {
            let line = line(&message);
            assert_eq!(line.iter().filter(|&&byte| byte == b'\n').count(), 1);
            assert_eq!(parse(&line), Ok(Some(message)));
        }
        assert_eq!(String::from_utf8_lossy(&line(&ToFar::Clock)), "\"clock\"\n");
        let results = ToNear::Results(Box::default());
        assert_eq!(parse(&line(&results)), Ok(Some(results)));
        for output in ["", "\n", "Welcome to board-b!\n", "[1] 4711\n"] {
            assert_eq!(parse::<ToNear>(output.as_bytes()), Ok(None));
        }
        for invalid in ["{\"jump\":1}\n", "\"jump\"\n", "{"] {
            assert!(parse::<ToNear>(invalid.as_bytes()).is_err(), "{invalid}");
        }
    }
}
