//! The settings of a measuring thread, and how it may end.

use std::{fs::File, io, sync::Arc};

use sys::{
    clock::{Clock, Wait},
    evl::EvlError,
    sched::Policy,
};

use super::grid::Fraction;
use crate::noise::settings::Spin;

/// The settings of one measuring thread.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Role of the thread in the record: `timer`, `base`, `servo`.
    pub role: String,
    /// True if the role is a name of the thread's own; false for one of several equal threads, one on each CPU.
    pub has_own_role: bool,
    /// CPU to pin the thread to; `None` for any CPU.
    pub cpu: Option<u32>,
    /// Scheduling policy.
    pub policy: Policy,
    /// Clock of the deadlines.
    pub clock: Clock,
    /// Method of waiting; not used with the EVL core, which has only one.
    pub wait: Wait,
    /// Scheduler of the thread. With the EVL core the clock is the monotonic one and the policy is `fifo`.
    pub core: Core,
    /// Time between two deadlines, ns; 1 to 3.6e12.
    pub period_ns: u64,
    /// Fraction of a ns that is added to each period.
    pub fraction: Fraction,
    /// Number of wake-ups after which the thread ends; `None` for no limit.
    pub samples: Option<u64>,
    /// Lateness above which a wake-up is a spike, ns.
    pub threshold_ns: i64,
    /// Number of worst spikes to keep.
    pub spikes_kept: usize,
    /// Lateness of a wake-up that ends the run; `None` for no limit.
    pub stop_on: Option<StopOn>,
    /// Settings to search for gaps without sleeping (noise probe); `None` for a timer.
    pub spin: Option<Spin>,
}

/// The condition to end the run early, and the trace to freeze then.
#[derive(Debug, Clone)]
pub struct StopOn {
    /// Lateness above which the thread ends, ns.
    pub lateness_ns: i64,
    /// The file `tracing_on` of the kernel trace; the thread writes `0` to freeze the trace.
    pub freeze: Arc<File>,
}

/// The scheduler of a measuring thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Core {
    /// Linux.
    Linux,
    /// The EVL core (Xenomai 4), out-of-band: Linux cannot delay the thread.
    Evl,
}

/// An error in creating a measuring thread.
#[derive(Debug, thiserror::Error)]
pub enum TimerError {
    /// No thread can be created.
    #[error("cannot start a measuring thread: {0}; close other programs, or measure fewer CPUs with --cpus")]
    Spawn(io::Error),
    /// This clock does not support this method of waiting.
    #[error("cannot wait on the {0} clock with {1}: use --wait nanosleep")]
    Wait(Clock, Wait),
    /// The EVL core cannot schedule the thread.
    #[error(transparent)]
    Evl(#[from] EvlError),
}

/// The reason why a measuring thread ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Duration or number of samples reached, or stopped.
    Planned,
    /// The thread was found on another CPU: it was moved, or its own CPU went offline.
    LeftCpu,
    /// The guard found that the machine is starving.
    Starved,
    /// The kernel can no longer wait on the clock.
    ClockFailed,
    /// The sound card that set the deadlines stopped for good.
    PacerFailed,
    /// A wake-up was later than the limit that ends the run.
    StoppedOn,
}
