//! What is wrong with the options of a probe, or with a plan.

/// What is wrong with the options of a probe, or with a plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The period is 0 or above an hour.
    #[error("the period must be longer than 0 and at most 1h, e.g. 1ms")]
    Period,
    /// The noise probe would not run at all, or longer than its period.
    #[error("the noise probe runs for a part of each period, e.g. a runtime of 95ms in a period of 100ms")]
    Runtime,
    /// A real-time thread that spins would leave too little of its CPU to the rest of the machine.
    #[error(
        "a real-time thread that never sleeps hangs the machine: let it sleep for 5 % of each period and run for at most \
         950ms at a time, e.g. a period of 1s and a runtime of 950ms; or choose the policy other"
    )]
    NoRest,
    /// The kernel takes the CPU from a deadline thread that spins.
    #[error(
        "the noise probe cannot run under a deadline policy, because the end of its budget would be a gap: choose the policy \
         fifo:90 or other"
    )]
    NoiseDeadline,
    /// Two threads have the same name.
    #[error("two threads are called `{0}`: give each thread its own name")]
    SameName(String),
    /// The time to wait for an answer is 0 or too long.
    #[error("the timeout must be longer than 0 and at most 1m, e.g. 1s")]
    Timeout,
    /// The datagram is larger than one frame.
    #[error("{bytes} bytes do not fit into one Ethernet frame: use a size of {max} or less, or set allow-fragments")]
    Fragments {
        /// Payload asked for, bytes.
        bytes: usize,
        /// Largest payload of one frame, bytes.
        max: usize,
    },
    /// More datagrams a second than allowed.
    #[error(
        "a datagram every {period_ns} ns is more than {max} a second: use a longer period, or raise max-rate to {needed}"
    )]
    Rate {
        /// The period asked for, ns.
        period_ns: u64,
        /// Most datagrams a second.
        max: u64,
        /// What `max` must be for this period.
        needed: u64,
    },
    /// A real-time thread that spins would hang its CPU.
    #[error(
        "a real-time thread that never sleeps hangs its CPU: receive with the policy other, on a CPU of its own, or without \
         spin"
    )]
    SpinningReceiver,
    /// The virtual cable has no network card.
    #[error(
        "the virtual cable of --self has no network card that could stamp: use --stamps all, or a peer on another machine"
    )]
    CardOfOwnPeer,
    /// The probe uses no interface.
    #[error("this probe uses no network interface: leave out --nic and --irq-priority, or measure over a network card")]
    NoInterface,
    /// A talker would wake earlier than it may.
    #[error(
        "the wake-up offset must leave the talker {percent} % of each period to sleep, or a real-time thread hangs its CPU: \
         use a shorter offset, or a longer period"
    )]
    WakeupOffset {
        /// The part of the period that the talker must sleep, per cent.
        percent: u64,
    },
    /// The kernel pins no deadline thread.
    #[error(
        "both ends of a stream are pinned to their CPUs, which the kernel refuses to deadline threads: choose the policy fifo:90"
    )]
    StreamDeadline,
    /// The observer would see no frame.
    #[error(
        "a capture on this machine would see no frame: --receive xdp takes frames before the capture, and with bypass and xdp \
         the sending interface does not show them: use --mode send and --receive socket, or capture with a tap"
    )]
    CaptureHidden,
    /// The captures of two phases would be in one file.
    #[error("one file contains the capture of one phase: run the phases one by one")]
    CaptureOfPhases,
    /// No card plays so.
    #[error("{0}")]
    Audio(String),
    /// The stamps of a card are of one clock only.
    #[error(
        "a sound card stamps the monotonic clock, so the deadlines must be of that clock: leave out the clock, or choose monotonic"
    )]
    CardClock,
    /// Launch times are of one clock only.
    #[error("launch times are of CLOCK_TAI, so the slots must be, too: leave out the clock, or choose tai")]
    LaunchClock,
    /// The probe makes system calls, which threads of the EVL core cannot.
    #[error(
        "threads of the EVL core can wait and play, but neither send nor spin: use them with `measure timer`, `threads` or `audio`"
    )]
    EvlProbe,
    /// The drivers of sound cards are Linux's.
    #[error(
        "threads of the EVL core cannot wait for a sound card, whose driver is Linux's: leave out --core evl, or --device"
    )]
    EvlCard,
    /// The EVL core waits in its own way, on its own clock.
    #[error(
        "the EVL core waits in its own way, on the monotonic clock: leave out --clock, --wait and --timerlat with --core evl"
    )]
    EvlWait,
    /// The EVL core has no such policy.
    #[error(
        "the EVL core schedules by priority, first in, first out: choose a policy from fifo:1 to fifo:99, e.g. fifo:90"
    )]
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
            Self::Period | Self::Rate { .. } => Some("period"),
            Self::Runtime | Self::NoRest => Some("runtime"),
            Self::SameName(_) => Some("threads"),
            Self::Timeout => Some("timeout"),
            Self::Fragments { .. } => Some("size"),
            Self::SpinningReceiver => Some("spin"),
            Self::CardOfOwnPeer => Some("stamps"),
            Self::WakeupOffset { .. } => Some("wakeup_offset"),
            Self::CaptureHidden | Self::CaptureOfPhases => Some("capture"),
            Self::CardClock | Self::LaunchClock => Some("clock"),
            Self::Audio(_) => Some("frames"),
            Self::NoiseDeadline
            | Self::NoInterface
            | Self::StreamDeadline
            | Self::EvlProbe
            | Self::EvlCard
            | Self::EvlWait
            | Self::EvlPolicy
            | Self::Length => None,
        }
    }
}
