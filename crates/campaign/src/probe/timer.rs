//! Wake-ups of one thread on each CPU.

use std::path::{Path, PathBuf};

use probes::{probe_threads::ProbeThreads, timer::Fraction};
use sys::sched::Policy;

use super::{
    check::PlanError,
    definition::{
        Definition, Network, PhaseContext, PlacementContext, PlacementRule, PrepareError, RunShape, THRESHOLD_NS,
        ThreadPlan,
    },
};

/// Options of the timer probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimerProbe {
    /// Time between two deadlines, ns; 1 to [`PERIOD_MAX_NS`](super::definition::PERIOD_MAX_NS).
    pub period_ns: u64,
}

impl Default for TimerProbe {
    fn default() -> Self {
        Self { period_ns: 1_000_000 }
    }
}

/// Default policy of the measuring threads.
pub(super) const POLICY: Policy = Policy::Fifo(90);
/// Remedies after the guard ended the run, and after it throttled a thread.
pub(super) const GUARD_REMEDIES: [&str; 2] = [
    "use a longer --period or a lower priority, or leave a CPU unmeasured with --cpus",
    "use a longer --period; this one is too short for this machine",
];

/// The placement rule of probes with one thread on each CPU.
pub(super) fn one_on_each_cpu() -> PlacementRule {
    PlacementRule {
        by_thread: None,
        threads: "one on each CPU".to_owned(),
        remedy: "write as many `threads` of kind = \"threads\", or cpus = \"each\"",
        takes_best_cpu: false,
        measured: usize::MAX,
    }
}

impl Definition for TimerProbe {
    fn name(&self) -> &'static str {
        "timer"
    }

    fn policy(&self, requested: Option<Policy>) -> Policy {
        requested.unwrap_or(POLICY)
    }

    fn period_ns(&self) -> u64 {
        self.period_ns
    }

    fn threshold_ns(&self, period_ns: u64) -> u64 {
        period_ns.min(THRESHOLD_NS)
    }

    fn fraction(&self, _period_ns: u64) -> Fraction {
        Fraction::default()
    }

    fn roles(&self) -> Vec<String> {
        Vec::new()
    }

    fn placement(&self) -> PlacementRule {
        one_on_each_cpu()
    }

    fn place(&mut self, cpus: Vec<u32>, _machine: &PlacementContext<'_>) -> Vec<u32> {
        cpus
    }

    fn threads(&self, _policy: Policy) -> Vec<ThreadPlan> {
        Vec::new()
    }

    fn network(&self) -> Network {
        Network::None
    }

    fn interface_name(&self) -> Result<Option<String>, PrepareError> {
        Ok(None)
    }

    fn spin_ns(&self, _period_ns: u64) -> Option<u64> {
        None
    }

    fn has_late_wake_ups(&self) -> bool {
        true
    }

    fn files(&self, _record_path: Option<&Path>) -> Vec<PathBuf> {
        Vec::new()
    }

    fn check_evl(&self) -> Result<(), PlanError> {
        Ok(())
    }

    fn check(&self) -> Result<(), PlanError> {
        Ok(())
    }

    fn check_run(&self, _run: &RunShape<'_>) -> Result<(), PlanError> {
        Ok(())
    }

    fn prepare(&self, _context: &PhaseContext<'_>) -> Result<Option<Box<dyn ProbeThreads>>, PrepareError> {
        Ok(None)
    }

    fn guard_remedies(&self) -> [&'static str; 2] {
        GUARD_REMEDIES
    }
}
