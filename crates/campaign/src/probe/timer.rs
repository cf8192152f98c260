//! Wake-ups of one thread on each CPU.

use std::path::{Path, PathBuf};

use probes::probe_threads::ProbeThreads;
use sys::sched::Policy;

use super::{
    check::PlanError,
    definition::{
        Definition, Network, PhaseContext, PlacementContext, PlacementRule, PrepareError, Properties, RunShape,
        ThreadPlan, Timing,
    },
};

/// Options of the timer probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimerProbe {
    /// Time between two deadlines, ns; see [`PERIOD_MIN_NS`](super::definition::PERIOD_MIN_NS).
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
        roles: Vec::new(),
        by_thread: None,
        threads: "one on each CPU".to_owned(),
        remedy: "write as many `threads` of kind = \"threads\", or cpus = \"each\"",
        takes_best_cpu: false,
        measured: usize::MAX,
    }
}

impl Definition for TimerProbe {
    fn properties(&self) -> Properties {
        Properties {
            name: record::TIMER,
            network: Network::None,
            has_late_wake_ups: true,
            measures_trace_cost: true,
            guard_remedies: GUARD_REMEDIES,
            awaits_device: false,
            pacer_failed: None,
            evl: Ok(()),
        }
    }

    fn policy(&self, requested: Option<Policy>) -> Policy {
        requested.unwrap_or(POLICY)
    }

    fn period_ns(&self) -> u64 {
        self.period_ns
    }

    fn timing(&self, period_ns: u64) -> Timing {
        Timing::of_sleeper(period_ns)
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

    fn interface_name(&self) -> Result<Option<String>, PrepareError> {
        Ok(None)
    }

    fn files(&self, _record_path: Option<&Path>) -> Vec<PathBuf> {
        Vec::new()
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
}
