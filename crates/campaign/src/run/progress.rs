//! How far a run has got, and how long it is still to take.

use crate::plan::Plan;

/// How far a run has got.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// Index of the phase under way in [`Record::phases`](record::Record::phases).
    pub phase_index: usize,
    /// Number of phases that the run is to have.
    pub phase_count: usize,
    /// Time since the run began, ns.
    pub elapsed_ns: u64,
    /// How long the run is to take, ns; `None` when the user ends it.
    pub total_ns: Option<u64>,
}

impl Progress {
    /// That of a run that has done `planned_ns` of what was planned in `elapsed_ns`. Making threads and starting loads
    /// takes time as well, in each phase; the phases to come will take it, too.
    pub(super) fn of(plan: &Plan, phase_index: usize, planned_ns: u64, elapsed_ns: u64) -> Self {
        let phase_count = plan.steps();
        let each_ns = elapsed_ns.saturating_sub(planned_ns) / (phase_index as u64 + 1);
        let around_ns = each_ns * phase_count as u64;
        let total_ns = plan.total_ns().map(|total_ns| total_ns.saturating_add(around_ns));
        Self { phase_index, phase_count, elapsed_ns, total_ns }
    }
}
