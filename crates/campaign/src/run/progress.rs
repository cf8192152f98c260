//! Progress of a run, and its estimated duration.

use crate::plan::Plan;

/// Progress of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// Index of the running phase in [`Record::phases`](record::Record::phases).
    pub phase_index: usize,
    /// Planned number of phases.
    pub phase_count: usize,
    /// Time since the run began, ns.
    pub elapsed_ns: u64,
    /// Estimated duration of the run, ns; `None` if the user ends it.
    pub total_ns: Option<u64>,
    /// True if the run ends earlier than planned: after this time the verdict is decided, unless something is late.
    pub decides: bool,
}

impl Progress {
    /// Progress after `elapsed_ns`, when `planned_ns` of the planned time have been measured. The estimate includes the
    /// overhead of each phase, such as creating threads and starting loads.
    pub(super) fn of(plan: &Plan, phase_index: usize, planned_ns: u64, elapsed_ns: u64) -> Self {
        let phase_count = plan.steps();
        let each_ns = elapsed_ns.saturating_sub(planned_ns) / (phase_index as u64 + 1);
        let overhead_ns = each_ns * phase_count as u64;
        let total_ns = plan.total_ns().map(|total_ns| total_ns.saturating_add(overhead_ns));
        Self { phase_index, phase_count, elapsed_ns, total_ns, decides: false }
    }

    /// The progress of a part that another part of `rest_ns` follows; `None` for a rest of unknown duration.
    pub(super) fn before(self, rest_ns: Option<u64>) -> Self {
        let total_ns = self.total_ns.zip(rest_ns).map(|(total_ns, rest_ns)| total_ns.saturating_add(rest_ns));
        Self { total_ns, ..self }
    }

    /// The progress of a part that another part of `before_ns` preceded.
    pub(super) fn after(self, before_ns: u64) -> Self {
        let total_ns = self.total_ns.map(|total_ns| total_ns.saturating_add(before_ns));
        Self { elapsed_ns: self.elapsed_ns.saturating_add(before_ns), total_ns, ..self }
    }

    /// The progress of a run that ends itself, probably after `left_ns`. `None` changes nothing.
    pub(super) fn until_decided(self, left_ns: Option<u64>) -> Self {
        let Some(left_ns) = left_ns else { return self };
        let decided_ns = self.elapsed_ns.saturating_add(left_ns);
        match self.total_ns {
            // The longest time is too short for PASS.
            Some(total_ns) if total_ns < decided_ns => self,
            Some(_) | None => Self { total_ns: Some(decided_ns), decides: true, ..self },
        }
    }
}
