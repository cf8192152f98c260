//! Adds the results of a running phase to the record.

use std::time::Duration;

use record::{Record, Series, Validity};

use super::now;
use crate::{
    phase::{PhaseRun, elapsed_ns},
    plan::{PhasePlan, Plan},
    record_budget::RecordBudget,
    validity,
};

/// The part of the record that belongs to the running phase.
pub(super) struct PhaseRecord<'a> {
    plan: &'a Plan,
    phase: &'a PhasePlan,
    /// Index of the phase in [`Record::phases`].
    index: usize,
    /// Number of series of the phases before it.
    series_before: usize,
    memory_locked: bool,
    how_awake: Option<&'a str>,
    /// The validity before the phase began to measure.
    validity_before: Validity,
}

impl<'a> PhaseRecord<'a> {
    /// Adds a phase whose threads are created and checked. `start` is the time since the run began.
    pub fn begin(
        record: &mut Record,
        plan: &'a Plan,
        phase: &'a PhasePlan,
        start: Duration,
        memory_locked: bool,
        how_awake: Option<&'a str>,
    ) -> Self {
        let (index, series_before) = (record.phases.len(), record.series.len());
        record.phases.push(phase.to_record(start));
        let validity_before = record.validity.clone();
        Self { plan, phase, index, series_before, memory_locked, how_awake, validity_before }
    }

    /// Updates the results of the phase.
    pub fn refresh(&self, record: &mut Record, phase_run: &PhaseRun, budget: RecordBudget) {
        record.series.truncate(self.series_before);
        for mut series in phase_run.series(self.phase) {
            series.granted.memory_locked = self.memory_locked;
            series.granted.cpu_awake = self.how_awake.map(str::to_owned);
            record.series.push(series);
        }
        record.series.extend(phase_run.timerlat_series(self.plan, self.phase));
        budget.limit_time_lines(self.series(record));
        record.validity.clone_from(&self.validity_before);
        let of_probe = phase_run.probe_threads.iter().flat_map(|probe_threads| probe_threads.reasons());
        validity::add_all(record, phase_run.supervisor.reasons().iter().cloned().chain(of_probe));
        validity::name_phase(record, self.validity_before.reasons.len(), self.plan, &self.phase.name);
        record.phases[self.index].duration_ns = elapsed_ns(phase_run.began);
        record.written_at = now();
    }

    /// The series of the phase.
    pub fn series<'r>(&self, record: &'r mut Record) -> &'r mut [Series] {
        &mut record.series[self.series_before..]
    }
}
