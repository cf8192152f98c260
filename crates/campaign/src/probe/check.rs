//! Errors in the options of a probe or in a plan.

use analysis::{format_exact, format_unsigned_ns};
use probes::stream::transmit::TransmitMode;

use super::round_trip::CLASSES_MAX;

/// The largest number of threads. Each has a priority above all ordinary work, so more of them leave it no time.
pub const THREADS_MAX: usize = 256;

/// An error in the options of a probe or in a plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The period, in ns, is 0 or above an hour.
    #[error("the period must be 1us to 1h, e.g. 1ms (got {})", format_unsigned_ns(*.0))]
    Period(u64),
    /// A run that ends when its verdict is decided has several phases.
    #[error("--until-decided measures in one go, but this run has {0} parts: measure them one by one")]
    UntilDecided(usize),
    /// The noise probe would not run at all, or longer than its period.
    #[error("the noise probe runs for a part of each period, e.g. a runtime of 95ms in a period of 100ms")]
    Runtime,
    /// A real-time thread that spins would leave too little of its CPU to the rest of the machine.
    #[error(
        "a real-time thread that never sleeps hangs the machine: let it sleep for 5 % of each period and run for at \
         most 950ms at a time, e.g. a period of 1s and a runtime of 950ms; or choose the policy other"
    )]
    NoRest,
    /// The kernel takes the CPU from a deadline thread that spins.
    #[error(
        "the noise probe cannot run under a deadline policy, because the end of its budget would be a gap: choose the \
         policy fifo:90 or other"
    )]
    NoiseDeadline,
    /// Two threads have the same name.
    #[error("two threads are called `{0}`: give each thread its own name")]
    SameName(String),
    /// More threads than a run can start and end in a useful time.
    #[error("at most {THREADS_MAX} threads can be measured at once (got {0}): measure fewer")]
    TooManyThreads(usize),
    /// Two traffic classes have the same name, or one has the name of another's sending thread.
    #[error(
        "two traffic classes are named `{0}` (`NAME-sender` is the sending thread of NAME): give each its own name"
    )]
    SameClass(String),
    /// More traffic classes than one measurement can have.
    #[error("at most {CLASSES_MAX} traffic classes can be measured at once (got {0}): measure fewer")]
    TooManyClasses(usize),
    /// The timeout of an answer, in ns, is 0 or too long.
    #[error("the timeout must be longer than 0 and at most 1m, e.g. 1s (got {})", format_unsigned_ns(*.0))]
    Timeout(u64),
    /// The datagram is larger than one frame.
    #[error("{bytes} bytes do not fit into one Ethernet frame: use a size of {max} or less, or set allow-fragments")]
    Fragments {
        /// Requested payload, bytes.
        bytes: usize,
        /// Largest payload of one frame, bytes.
        max: usize,
    },
    /// The payload is larger than that of an Ethernet frame, which cannot be fragmented.
    #[error("{bytes} bytes do not fit into one Ethernet frame: use a size of {max} or less")]
    FrameSize {
        /// Requested payload, bytes.
        bytes: usize,
        /// Largest payload, bytes.
        max: usize,
    },
    /// More datagrams a second than allowed.
    #[error(
        "a request every {period_ns} ns is more than {max} a second: use a longer period, or raise max-rate to \
         {needed}"
    )]
    Rate {
        /// Requested period, ns.
        period_ns: u64,
        /// Most datagrams a second.
        max: u64,
        /// Smallest `max` for this period.
        needed: u64,
    },
    /// A real-time thread that spins would hang its CPU.
    #[error(
        "a real-time thread that never sleeps hangs its CPU: receive with the policy other, on a CPU of its own, or \
         without spin"
    )]
    SpinningReceiver,
    /// An option that AF_XDP does not support.
    #[error("{what} and xdp exclude each other, because {why}: leave out one of the two")]
    NotWithXdp {
        /// The option in words.
        what: &'static str,
        /// The key of a campaign file.
        key: &'static str,
        /// The reason.
        why: &'static str,
    },
    /// The veth pair has no network card.
    #[error("the veth pair of --self has no hardware timestamps: use --stamps all, or a peer on another machine")]
    CardOfOwnPeer,
    /// The kernel does not stamp these frames, or returns them changed.
    #[error(
        "frames sent with mode {0} have no timestamps: use mode send, bypass or txtime, or leave out the timestamps"
    )]
    StampsOfMode(TransmitMode),
    /// The probe uses no interface.
    #[error("this probe uses no network interface: leave out --nic and --irq-priority, or measure over a network card")]
    NoInterface,
    /// A talker would wake earlier than it may.
    #[error(
        "the wake-up offset must leave the talker {percent} % of each period to sleep, or a real-time thread hangs its \
         CPU: use a shorter offset, or a longer period"
    )]
    WakeupOffset {
        /// The part of the period that the talker must sleep, per cent.
        percent: u64,
    },
    /// PTP time is on CLOCK_TAI.
    #[error("PTP time is on CLOCK_TAI, so the slots must be, too: leave out the clock, or choose tai")]
    SyncClock,
    /// The knee weighs the CPU time of spinning, and with launch times nothing spins.
    #[error("knee saves the CPU time of spinning, but with mode txtime the talker does not spin: use auto")]
    KneeOfLaunchTimes,
    /// The kernel does not pin deadline threads.
    #[error(
        "both ends of a stream are pinned to CPUs, but the kernel does not pin deadline threads: choose the policy \
         fifo:90"
    )]
    StreamDeadline,
    /// The last stream would have no unique id.
    #[error(
        "{streams} streams from unique id {first} on exceed the largest unique id, 65535: begin with a smaller one"
    )]
    UniqueIds {
        /// The unique id of the first stream.
        first: u16,
        /// Number of streams.
        streams: usize,
    },
    /// No stream has an address that MAAP allocates.
    #[error(
        "MAAP has no address to claim: each stream has a given destination outside of 91:e0:f0:00:00:00 to \
         91:e0:f0:00:fd:ff, so leave out maap, or a destination"
    )]
    NoAddressToClaim,
    /// The frames of a slot would leave a spinning talker too little time to wake early.
    #[error(
        "{streams} streams need about {} of each {} to send: use {most} or fewer, a longer period (class B has 250us), \
         or the mode txtime",
        format_unsigned_ns(*.sending_ns), format_unsigned_ns(*.period_ns)
    )]
    TooManyStreams {
        /// Number of streams.
        streams: usize,
        /// Time that their frames after the first take, ns.
        sending_ns: u64,
        /// The period, ns.
        period_ns: u64,
        /// Most streams at this period.
        most: u64,
    },
    /// More streams of one thread than one system call sends.
    #[error(
        "{streams} streams of one class and priority are more than the {most} of a thread: give some another priority"
    )]
    StreamsOfThread {
        /// Number of streams.
        streams: usize,
        /// Most streams of a thread.
        most: u16,
    },
    /// Several threads would send on one queue of AF_XDP.
    #[error("the streams need {0} threads, but only one can send on a queue by xdp: use one class, or --mode send")]
    TalkersOfQueue(usize),
    /// There are fewer CPUs than talkers.
    #[error("the streams need {0} threads, each on a CPU of its own, and there are fewer: use fewer classes")]
    TalkersOfCpu(usize),
    /// The observer would see no frame.
    #[error(
        "a capture on this machine would see no frame: --receive xdp takes frames before the capture, and with bypass \
         and xdp the sending interface does not show them: use --mode send and --receive socket, or capture with a tap"
    )]
    CaptureHidden,
    /// The captures of two phases would be in one file.
    #[error("a capture file can hold only one phase: run the phases one by one")]
    CaptureOfPhases,
    /// The settings of the sound card are out of range.
    #[error("{0}")]
    Audio(String),
    /// Sound cards report times only of the monotonic clock.
    #[error(
        "a sound card reports times of the monotonic clock, so the deadlines must use it, too: leave out the clock, or \
         choose monotonic"
    )]
    CardClock,
    /// The HPET has no such period, ns.
    #[error(
        "the HPET raises a whole number of interrupts a second, 1 to 100000: choose a period such as 1ms, 2ms or 125us \
         (got {})", format_unsigned_ns(*.0)
    )]
    HpetPeriod(u64),
    /// The period of edges that this machine makes is too short, ns.
    #[error("each edge takes several system calls: choose a period of 20us or more (got {})", format_unsigned_ns(*.0))]
    DrivenPeriod(u64),
    /// Only a line can be driven by another line.
    #[error("--drive makes edges for a GPIO line: use --source gpio:CHIP/LINE, or leave out --drive")]
    DriveWithoutLine,
    /// An output line, of this option, cannot be its own input.
    #[error("--source and --{0} name the same line: use two lines, connected by a wire or by the judge")]
    SameLine(&'static str),
    /// Only a line that nothing else drives can receive the questions of a judge.
    #[error("a judge asks on a GPIO line: use --source gpio:CHIP/LINE, and leave out --drive")]
    JudgeWithoutLine,
    /// The judge has no such period.
    #[error("the judge asks every {periods}: choose such a period (got {})", format_exact(*.period_ns))]
    JudgePeriod {
        /// The requested period, ns.
        period_ns: u64,
        /// The periods that it has, in words.
        periods: &'static str,
    },
    /// Interrupts are stamped on the monotonic clock.
    #[error("interrupts have times of the monotonic clock: leave out the clock, or choose monotonic")]
    InterruptClock,
    /// Launch times are only of CLOCK_TAI.
    #[error("launch times use CLOCK_TAI, so the slots must, too: leave out the clock, or choose tai")]
    LaunchClock,
    /// The probe makes Linux system calls, which threads of the EVL core must not make.
    #[error(
        "threads of the EVL core cannot send or spin: use --core evl with `measure timer`, `threads`, `audio` or `interrupt`"
    )]
    EvlProbe,
    /// Drivers of Linux report the interrupts of other sources.
    #[error("the EVL core waits only for GPIO lines: use --source gpio:CHIP/LINE, or leave out --core")]
    EvlSource,
    /// Only the timer probe has one equal thread on each CPU.
    #[error("only `measure timer` measures with both cores: choose --core linux or --core evl")]
    BothCores,
    /// Sound cards have only Linux drivers.
    #[error(
        "threads of the EVL core cannot wait for a sound card, which has a Linux driver: leave out --core evl, or \
         --device"
    )]
    EvlCard,
    /// The EVL core has its own wait function and clock.
    #[error(
        "the EVL core has its own wait function, on the monotonic clock: leave out --clock, --wait and --timerlat with \
         --core evl"
    )]
    EvlWait,
    /// The EVL core does not support the policy.
    #[error("the EVL core supports only first in, first out: choose a policy from fifo:1 to fifo:99, e.g. fifo:90")]
    EvlPolicy,
    /// The length of a phase is 0.
    #[error("the run would end before its first sample: choose e.g. a duration of 10s, or 10000 samples")]
    Length,
}

impl PlanError {
    /// The option of a probe that is wrong, as a key of a campaign file; `None` for errors of the whole plan.
    #[must_use]
    pub fn key(&self) -> Option<&'static str> {
        match self {
            Self::Period(_) | Self::Rate { .. } | Self::HpetPeriod(_) | Self::DrivenPeriod(_) => Some("period"),
            Self::JudgePeriod { .. } => Some("period"),
            Self::DriveWithoutLine => Some("drive"),
            Self::SameLine(option) => Some(option),
            Self::JudgeWithoutLine => Some("judge"),
            Self::Runtime | Self::NoRest => Some("runtime"),
            Self::SameName(_) | Self::TooManyThreads(_) => Some("threads"),
            Self::SameClass(_) | Self::TooManyClasses(_) => Some("classes"),
            Self::Timeout(_) => Some("timeout"),
            Self::Fragments { .. } | Self::FrameSize { .. } => Some("size"),
            Self::SpinningReceiver => Some("spin"),
            Self::NotWithXdp { key, .. } => Some(key),
            Self::CardOfOwnPeer | Self::StampsOfMode(_) => Some("stamps"),
            Self::WakeupOffset { .. } | Self::KneeOfLaunchTimes => Some("wakeup_offset"),
            Self::UniqueIds { .. } => Some("unique_id"),
            Self::NoAddressToClaim => Some("maap"),
            Self::TooManyStreams { .. }
            | Self::StreamsOfThread { .. }
            | Self::TalkersOfQueue(_)
            | Self::TalkersOfCpu(_) => Some("streams"),
            Self::CaptureHidden | Self::CaptureOfPhases => Some("capture"),
            Self::CardClock | Self::LaunchClock | Self::SyncClock | Self::InterruptClock => Some("clock"),
            Self::Audio(_) => Some("frames"),
            Self::NoiseDeadline
            | Self::NoInterface
            | Self::StreamDeadline
            | Self::EvlProbe
            | Self::EvlSource
            | Self::BothCores
            | Self::EvlCard
            | Self::EvlWait
            | Self::EvlPolicy
            | Self::UntilDecided(_)
            | Self::Length => None,
        }
    }
}
