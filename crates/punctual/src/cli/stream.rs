//! Options of `measure stream`, and those that it shares with `pair stream`.

use std::path::PathBuf;

use campaign::probe::{
    Definition, StreamProbe,
    stream::{STREAMS_MAX, WakeupOffset, parse_stream_id},
    xdp::{QUEUE_MAX, XdpMode},
};
use clap::{Args, ValueEnum};
use probes::{ReceiveWait, stream::transmit::TransmitMode};
use sys::{packet::SentStamps, sched::Policy};

use super::{Common, Nic, Placement, Rounds, WakeUps, duration, period};

/// Options of `measure stream`.
#[derive(Debug, Args)]
pub struct Stream {
    /// Send the stream (talk) or receive it (listen).
    #[arg(required_unless_present = "own", requires = "interface")]
    pub side: Option<Side>,
    /// Wired interface of the stream.
    #[arg(value_name = "IF")]
    pub interface: Option<String>,
    /// Run both ends here, joined by a veth pair; needs root.
    #[arg(long = "self", conflicts_with_all = ["side", "interface", "nic", "irq_priority"])]
    pub own: bool,
    /// With --self, run the listener on this CPU.
    ///
    /// The default is another one than the talker's.
    #[arg(long, value_name = "CPU", requires = "own", conflicts_with = "side")]
    pub listen_cpu: Option<u32>,
    /// Receive this stream [default: first of its period].
    ///
    /// The stream ID has 16 hexadecimal digits, e.g. 30:64:3e:54:ee:01:0001. An option of the listener. If no stream
    /// has the period of --class or --period within 200 periods (at least 1 s), the first to arrive is received, and
    /// the answer names all.
    #[arg(long, value_name = "ID", value_parser = parse_stream_id)]
    pub stream_id: Option<u64>,
    /// From xdp, xdp-zerocopy, xdp-generic [default: socket].
    ///
    /// An option of the listener.
    #[arg(long, value_name = "FROM")]
    pub receive: Option<Receive>,
    /// With xdp, use this interface queue [default: 0].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=i64::from(QUEUE_MAX)))]
    pub queue: Option<u32>,
    /// Capture frames to this pcapng file, and analyse it.
    ///
    /// It is analysed as `punctual capture` does. The listener captures received frames, the talker sent frames.
    #[arg(long, value_name = "FILE")]
    pub capture: Option<PathBuf>,
    /// Wait until the clock is this close to PTP time.
    ///
    /// It waits up to 60 s for ptp4l, and for phc2sys if the card has a clock. Slots are then on CLOCK_TAI. Losses of
    /// synchronisation are reported, and frames sent meanwhile have the bit tu.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub require_sync: Option<u64>,
    /// Options shared with `pair stream`.
    #[command(flatten)]
    pub shared: StreamOptions,
}

/// Options of a stream and its ends, for `measure stream` and `pair stream`.
#[derive(Debug, Args)]
pub struct StreamOptions {
    /// Use class A (125 us) or B (250 us) [default: A].
    ///
    /// The time is that between two frames. Class A has priority 3, class B priority 2; both use VLAN 2.
    #[arg(long, value_name = "CLASS", ignore_case = true)]
    pub class: Option<Class>,
    /// Use this frame interval [default: that of the class].
    #[arg(long, value_name = "TIME", value_parser = period)]
    pub period: Option<u64>,
    /// Use format aaf or 61883-6 (IEC) [default: aaf].
    ///
    /// Both are 48 kHz, stereo; aaf has 32-bit integers.
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<Format>,
    /// Wake up this long before a slot [default: auto].
    ///
    /// The thread then spins until the slot. auto measures wake-ups first, for a quarter of the run, at most 5 s. knee
    /// does the same, but accepts a few late frames if that saves much CPU time. 0us wakes at the slot. An option of the
    /// talker.
    #[arg(long, value_name = "TIME|auto|knee")]
    pub wakeup_offset: Option<WakeupOffset>,
    /// Send by bypass, tx-ring, txtime, xdp, xdp-zerocopy [default: send].
    ///
    /// An option of the talker.
    #[arg(long, value_name = "MODE")]
    pub mode: Option<Mode>,
    /// Use timestamps none, all, hardware [default: none].
    ///
    /// They show when a sent frame reached the driver and left the network card. Each costs the talker about 0.5 us. An
    /// option of the talker, with the mode send, bypass or txtime.
    #[arg(long, value_name = "WHICH")]
    pub stamps: Option<SentStampsChoice>,
    /// End the stream ID with this number [default: 0].
    ///
    /// It is the last two bytes of the ID. An option of the talker.
    #[arg(long, value_name = "N")]
    pub unique_id: Option<u16>,
    /// Claim destination addresses with MAAP, and defend them.
    ///
    /// This delays the start by about 1.7 s, and more after a conflict with another device. Without it, addresses are
    /// computed from the interface's address. An option of the talker.
    #[arg(long)]
    pub maap: bool,
    /// Send N streams, or those of a TOML file [default: 1].
    ///
    /// N is 1 to 64. The unique ids of N streams and their destination addresses are consecutive; one thread sends a frame
    /// of each in every slot. A file has one table `stream` for each, with name, class or period, vlan, priority,
    /// destination, format, channels and samples; streams of the same class, period and priority share a thread. An option
    /// of the talker.
    #[arg(long, value_name = "N|FILE", value_parser = streams)]
    pub streams: Option<Streams>,
    /// Run on this CPU [default: last isolated, or last].
    #[arg(long, value_name = "CPU")]
    pub cpu: Option<u32>,
    /// Use policy fifo:N, rr:N or other.
    ///
    /// The priority N is 1 to 99.
    #[arg(long, default_value_t = StreamProbe::default().policy(None))]
    pub policy: Policy,
    /// Poll for frames instead of sleeping.
    ///
    /// An option of the listener.
    #[arg(long, conflicts_with = "busy_poll")]
    pub spin: bool,
    /// Poll the device for this long before sleeping.
    ///
    /// An option of the listener. The default is no polling.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub busy_poll: Option<u64>,
    /// Settings of the interface.
    #[command(flatten)]
    pub nic: Nic,
    /// Placement of threads.
    #[command(flatten)]
    pub placement: Placement,
    /// Options of measurements with deadlines.
    #[command(flatten)]
    pub wake_ups: WakeUps,
    /// The number of rounds.
    #[command(flatten)]
    pub rounds: Rounds,
    /// Options of all measurements.
    #[command(flatten)]
    pub common: Common,
}

/// The streams of a talker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Streams {
    /// This number of equal streams.
    Number(u16),
    /// The streams of this file.
    File(PathBuf),
}

/// Reads the number of streams, or the name of their file.
fn streams(text: &str) -> Result<Streams, String> {
    if text.parse::<f64>().is_err() {
        return Ok(Streams::File(PathBuf::from(text)));
    }
    let number = text.parse().ok().filter(|number| (1..=STREAMS_MAX).contains(number));
    number.map(Streams::Number).ok_or_else(|| format!("must be 1 to {STREAMS_MAX}, or a TOML file"))
}

/// An end of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Side {
    /// Send frames.
    Talk,
    /// Receive frames; stops when none has arrived for 2 s.
    Listen,
}

/// A stream reservation class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Class {
    /// One frame every 125 us.
    #[default]
    #[value(name = "A")]
    A,
    /// One frame every 250 us.
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

/// A stream format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Format {
    /// AAF.
    #[default]
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

/// A method of sending.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// Through the queueing discipline of the interface.
    Send,
    /// Directly to the driver, bypassing the queueing discipline.
    Bypass,
    /// Through the queueing discipline, from a ring shared with the kernel.
    TxRing,
    /// With launch times: the queueing discipline ETF holds each frame until its slot.
    Txtime,
    /// AF_XDP; copies frames if the driver has no zero-copy.
    Xdp,
    /// AF_XDP with zero-copy only; few drivers support it.
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

/// Timestamps of sent frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SentStampsChoice {
    /// No timestamps.
    None,
    /// When the driver took each frame.
    All,
    /// Also when the network card sent it; needs root and hardware support.
    Hardware,
}

impl SentStampsChoice {
    /// The timestamps to request; `None` for none.
    pub fn requested(self) -> Option<SentStamps> {
        match self {
            Self::None => None,
            Self::All => Some(SentStamps::Driver),
            Self::Hardware => Some(SentStamps::Card),
        }
    }
}

/// A method of receiving.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Receive {
    /// Packet socket.
    Socket,
    /// AF_XDP, bypassing the network stack; copies frames if the driver has no zero-copy.
    Xdp,
    /// AF_XDP with zero-copy only; few drivers support it.
    XdpZerocopy,
    /// AF_XDP in generic mode, for drivers without AF_XDP support.
    XdpGeneric,
}

impl Receive {
    /// AF_XDP mode of the listener; `None` for a socket.
    pub fn xdp(self) -> Option<XdpMode> {
        match self {
            Self::Socket => None,
            Self::Xdp => Some(XdpMode::AsOffered),
            Self::XdpZerocopy => Some(XdpMode::ZeroCopy),
            Self::XdpGeneric => Some(XdpMode::Generic),
        }
    }
}

impl Stream {
    /// An error if an option of the other end is given.
    pub fn option_of_other_end(&self) -> Option<String> {
        let talker_options = vec![
            ("--wakeup-offset", self.shared.wakeup_offset.is_some()),
            ("--mode", self.shared.mode.is_some()),
            ("--unique-id", self.shared.unique_id.is_some()),
            ("--stamps", self.shared.stamps.is_some()),
            ("--maap", self.shared.maap),
            ("--streams", self.shared.streams.is_some()),
        ];
        let listener_options = vec![
            ("--stream-id", self.stream_id.is_some()),
            ("--spin", self.shared.spin),
            ("--busy-poll", self.shared.busy_poll.is_some()),
            ("--receive", self.receive.is_some()),
        ];
        let (options, other) = match self.side? {
            Side::Talk => (listener_options, "listener"),
            Side::Listen => (talker_options, "talker"),
        };
        let (name, _) = options.into_iter().find(|(_, given)| *given)?;
        Some(format!("{name} applies to the {other} only: leave it out"))
    }

    /// True if an end uses AF_XDP.
    pub fn uses_xdp(&self) -> bool {
        self.xdp().is_some() || self.shared.mode.is_some_and(|mode| TransmitMode::from(mode).is_xdp())
    }

    /// AF_XDP mode of the listener; `None` for a socket.
    pub fn xdp(&self) -> Option<XdpMode> {
        self.receive.and_then(Receive::xdp)
    }
}

impl StreamOptions {
    /// The wait method of the listener.
    pub fn wait(&self) -> ReceiveWait {
        ReceiveWait::of(self.spin, self.busy_poll)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn receive_methods_are_named_as_in_the_request_to_a_far_end() {
        for receive in Receive::value_variants() {
            let name = receive.to_possible_value().map(|value| value.get_name().to_owned());
            assert_eq!(name, receive.xdp().map(|xdp| xdp.to_string()).or(Some("socket".to_owned())));
        }
    }

    #[test]
    fn send_methods_are_named_as_in_the_record() {
        for mode in Mode::value_variants() {
            let name = mode.to_possible_value().map(|value| value.get_name().to_owned());
            assert_eq!(name, Some(TransmitMode::from(*mode).to_string()));
        }
    }
}
