//! One part of a run: its measuring threads, its loads, and when it ends.

use crate::probe::ThreadPlan;
use loads::LoadSpec;

/// One part of a run.
#[derive(Debug, Clone)]
pub struct PhasePlan {
    /// Name, unique in the run: `rest`, `load`.
    pub name: String,
    /// Time between two deadlines, ns.
    pub period_ns: u64,
    /// When it ends.
    pub length: Length,
    /// The loads that run at the same time.
    pub loads: Vec<LoadSpec>,
    /// The measuring threads, each with its own CPU and period; empty for one on every measured CPU.
    pub threads: Vec<ThreadPlan>,
}

/// When a phase ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// After this time, ns.
    Duration(u64),
    /// After this number of wake-ups of each thread.
    Samples(u64),
    /// When the user ends it.
    UntilStopped,
}

impl Default for Length {
    /// The default length of a measurement: 10 s.
    fn default() -> Self {
        Self::Duration(10_000_000_000)
    }
}

impl PhasePlan {
    /// Duration of the phase, ns; `None` if the user ends it.
    #[must_use]
    pub fn duration_ns(&self) -> Option<u64> {
        match self.length {
            Length::Duration(duration_ns) => Some(duration_ns),
            Length::Samples(samples) => samples.checked_mul(self.period_ns),
            Length::UntilStopped => None,
        }
    }
}
