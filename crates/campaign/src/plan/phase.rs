//! One part of a run: its measuring threads, and when it ends.

use loads::LoadSpec;
use sys::sched::Policy;

/// One part of a run.
#[derive(Debug, Clone)]
pub struct PhasePlan {
    /// Name, unique in the run: `rest`, `load`.
    pub name: String,
    /// Time between two deadlines, ns.
    pub period_ns: u64,
    /// When it ends.
    pub length: Length,
    /// What runs beside the probe.
    pub loads: Vec<LoadSpec>,
    /// The measuring threads, each with its own place and period; empty for one on every measured CPU.
    pub threads: Vec<ThreadPlan>,
}

/// A measuring thread that is not like the others. Its CPU is one of [`Plan::cpus`](super::Plan::cpus).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadPlan {
    /// What it is called in the record: `base`, `servo`.
    pub role: String,
    /// CPU it is pinned to.
    pub cpu: u32,
    /// Its policy.
    pub policy: Policy,
    /// Time between its deadlines, ns; 1 to [`PERIOD_MAX_NS`](super::PERIOD_MAX_NS).
    pub period_ns: u64,
}

/// When a phase ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// After so many ns.
    Duration(u64),
    /// After so many wake-ups a thread.
    Samples(u64),
    /// When the user ends it.
    UntilStopped,
}

impl PhasePlan {
    /// How long the phase takes, ns, where its length says so.
    #[must_use]
    pub fn duration_ns(&self) -> Option<u64> {
        match self.length {
            Length::Duration(duration_ns) => Some(duration_ns),
            Length::Samples(samples) => samples.checked_mul(self.period_ns),
            Length::UntilStopped => None,
        }
    }
}
