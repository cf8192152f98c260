//! Options of `measure stream`, and those that it shares with `pair`.

use std::path::PathBuf;

use campaign::probe::{
    Definition, StreamProbe,
    stream::{ListenXdp, QUEUE_MAX, WakeupOffset, parse_stream_id},
};
use clap::{Args, ValueEnum};
use probes::{ReceiveWait, stream::transmit::TransmitMode};
use sys::sched::Policy;

use super::{Common, Nic, Placement, WakeUps, duration, period};

/// Options of `measure stream`.
#[derive(Debug, Args)]
pub struct Stream {
    /// Which end of the stream this machine is.
    #[arg(required_unless_present = "own", requires = "interface")]
    pub side: Option<Side>,
    /// The wired interface that it goes over. Nothing is sent on any other.
    #[arg(value_name = "IF")]
    pub interface: Option<String>,
    /// Be both ends: in two network namespaces on this machine, joined by a virtual cable. Takes root.
    #[arg(long = "self", conflicts_with_all = ["side", "interface", "nic", "irq_priority"])]
    pub own: bool,
    /// With --self, the CPU of the listener [default: another one than the talker's].
    #[arg(long, value_name = "CPU", requires = "own")]
    pub listen_cpu: Option<u32>,
    /// Listener: the stream to follow, 16 hexadecimal digits [default: the first that comes].
    #[arg(long, value_name = "ID", value_parser = parse_stream_id)]
    pub stream_id: Option<u64>,
    /// Listener: what it takes frames from [default: socket].
    #[arg(long, value_name = "FROM")]
    pub receive: Option<Receive>,
    /// With xdp: the queue of the interface that it has [default: 0].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=i64::from(QUEUE_MAX)))]
    pub queue: Option<u32>,
    /// Capture the stream's frames into this pcapng file meanwhile, and tell what `punctual capture` tells of it: where they come
    /// in, or with `talk` where they leave.
    #[arg(long, value_name = "FILE")]
    pub capture: Option<PathBuf>,
    /// What the stream is, and how its ends work.
    #[command(flatten)]
    pub how: Streaming,
}

/// What a stream is, and how its ends work.
#[derive(Debug, Args)]
pub struct Streaming {
    /// Stream reservation class: A is a frame every 125 us (priority 3, VLAN 2), B every 250 us (priority 2, VLAN 2).
    #[arg(long, value_name = "CLASS", default_value = "A", ignore_case = true)]
    pub class: Class,
    /// Time between two frames, where it is not that of the class.
    #[arg(long, value_name = "TIME", value_parser = period)]
    pub period: Option<u64>,
    /// What frames look like: AAF (32-bit integers, 48 kHz, stereo) or IEC 61883-6.
    #[arg(long, default_value = "aaf")]
    pub format: Format,
    /// Talker: wake so long before each slot, and spin until it; `auto` takes what this machine needs from 5 s of wake-ups
    /// [default: 0us].
    #[arg(long, value_name = "TIME|auto")]
    pub wakeup_offset: Option<WakeupOffset>,
    /// Talker: how frames go out [default: send].
    #[arg(long, value_name = "MODE")]
    pub mode: Option<Mode>,
    /// Talker: the number that tells its stream from others of the same address [default: 0].
    #[arg(long, value_name = "N")]
    pub unique_id: Option<u16>,
    /// CPU to be pinned to [default: the quietest that is known].
    #[arg(long, value_name = "CPU")]
    pub cpu: Option<u32>,
    /// fifo:1-99, rr:1-99 or other.
    #[arg(long, default_value_t = StreamProbe::default().policy(None))]
    pub policy: Policy,
    /// Listener: ask for frames again and again instead of sleeping.
    #[arg(long, conflicts_with = "busy_poll")]
    pub spin: bool,
    /// Listener: have the kernel ask the driver for so long before it sleeps.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub busy_poll: Option<u64>,
    /// How the interface is set for the run.
    #[command(flatten)]
    pub nic: Nic,
    /// Where things run.
    #[command(flatten)]
    pub placement: Placement,
    /// What each measurement of wake-ups has.
    #[command(flatten)]
    pub wake_ups: WakeUps,
    /// What every measurement has.
    #[command(flatten)]
    pub common: Common,
}

/// Which end of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Side {
    /// Send frames.
    Talk,
    /// Receive them; ends when the talker has been silent for 2 s.
    Listen,
}

/// A stream reservation class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Class {
    /// A frame every 125 us.
    #[value(name = "A")]
    A,
    /// A frame every 250 us.
    #[value(name = "B")]
    B,
}

impl From<Class> for frames::Class {
    fn from(class: Class) -> Self {
        match class {
            Class::A => Self::A,
            Class::B => Self::B,
        }
    }
}

/// What frames look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// AAF.
    Aaf,
    /// IEC 61883-6.
    #[value(name = "61883-6")]
    Iec61883,
}

impl From<Format> for frames::Format {
    fn from(format: Format) -> Self {
        match format {
            Format::Aaf => Self::Aaf,
            Format::Iec61883 => Self::Iec61883,
        }
    }
}

/// How frames go out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// Through the queueing discipline of the interface.
    Send,
    /// Past it, straight to the driver.
    Bypass,
    /// Through it, from memory shared with the kernel.
    TxRing,
    /// With launch times: the queueing discipline ETF keeps each frame until its slot.
    Txtime,
    /// By AF_XDP, past it; frames are copied where the driver cannot do without.
    Xdp,
    /// By AF_XDP, and frames are never copied; few drivers can.
    XdpZerocopy,
}

impl From<Mode> for TransmitMode {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Send => Self::Send,
            Mode::Bypass => Self::Bypass,
            Mode::TxRing => Self::TxRing,
            Mode::Txtime => Self::Txtime,
            Mode::Xdp => Self::Xdp,
            Mode::XdpZerocopy => Self::XdpZerocopy,
        }
    }
}

/// What a listener takes frames from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Receive {
    /// A socket, through the network stack.
    Socket,
    /// AF_XDP, past the network stack; frames are copied where the driver cannot do without.
    Xdp,
    /// AF_XDP, and frames are never copied; few drivers can.
    XdpZerocopy,
    /// AF_XDP behind the driver, for drivers that know nothing of it.
    XdpGeneric,
}

impl Receive {
    /// How the listener has AF_XDP; `None` for a socket.
    pub fn xdp(self) -> Option<ListenXdp> {
        match self {
            Self::Socket => None,
            Self::Xdp => Some(ListenXdp::AsOffered),
            Self::XdpZerocopy => Some(ListenXdp::ZeroCopy),
            Self::XdpGeneric => Some(ListenXdp::Generic),
        }
    }
}

impl Stream {
    /// Options given that the end asked for has no use for.
    pub fn useless(&self) -> Option<String> {
        let of_the_talker = vec![
            ("--wakeup-offset", self.how.wakeup_offset.is_some()),
            ("--mode", self.how.mode.is_some()),
            ("--unique-id", self.how.unique_id.is_some()),
        ];
        let of_the_listener = vec![
            ("--stream-id", self.stream_id.is_some()),
            ("--spin", self.how.spin),
            ("--busy-poll", self.how.busy_poll.is_some()),
            ("--receive", self.receive.is_some()),
        ];
        let (options, other) = match self.side? {
            Side::Talk => (of_the_listener, "listener"),
            Side::Listen => (of_the_talker, "talker"),
        };
        let (name, _) = options.into_iter().find(|(_, given)| *given)?;
        Some(format!("{name} is for the {other} of a stream: leave it out"))
    }

    /// Whether an end has AF_XDP.
    pub fn has_xdp(&self) -> bool {
        self.xdp().is_some() || self.how.mode.is_some_and(|mode| TransmitMode::from(mode).is_xdp())
    }

    /// How the listener has AF_XDP.
    pub fn xdp(&self) -> Option<ListenXdp> {
        self.receive.and_then(Receive::xdp)
    }
}

impl Streaming {
    /// How the listener waits.
    pub fn wait(&self) -> ReceiveWait {
        ReceiveWait::of(self.spin, self.busy_poll)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_elsewhere_is_told_in_the_same_words() {
        for receive in Receive::value_variants() {
            let name = receive.to_possible_value().map(|value| value.get_name().to_owned());
            assert_eq!(name, receive.xdp().map(|xdp| xdp.to_string()).or(Some("socket".to_owned())));
        }
    }

    #[test]
    fn modes_are_named_as_in_the_record() {
        for mode in Mode::value_variants() {
            let name = mode.to_possible_value().map(|value| value.get_name().to_owned());
            assert_eq!(name, Some(TransmitMode::from(*mode).to_string()));
        }
    }
}
