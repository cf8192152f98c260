//! The series of a noise probe.

use std::sync::atomic::Ordering::Relaxed;

use record::{Noise, SERIES_ENDS, Series, SeriesKind, grouped};

use super::settings::{FLOORS, Spin};
use crate::{
    guard,
    probe_threads::Overdue,
    timer::{
        settings::{End, Settings},
        shared::Shared,
    },
};

/// Converts a series of wake-ups, whose raw histogram contains the gaps, to a series of gaps: without deadlines there
/// are no missed ones, and nothing is omitted.
pub(crate) fn to_gaps(
    series: Series,
    spin: &Spin,
    settings: &Settings,
    shared: &Shared,
    overdue: Option<Overdue>,
) -> Series {
    let overdue_ns = overdue.map_or(0, |overdue| overdue.lateness_ns.cast_unsigned());
    let counters = &shared.noise;
    let noise = Noise {
        runtime_ns: spin.runtime_ns,
        counter: spin.counter.name().to_owned(),
        threshold_ns: counters.threshold_ns.load(Relaxed),
        observed_ns: counters.observed_ns.load(Relaxed) + overdue_ns,
        latest_start_ns: Some(counters.latest_start_ns.load(Relaxed)),
        lost_ns: counters.lost_ns.load(Relaxed) + overdue_ns,
        iterations: counters.iterations.load(Relaxed),
        strikes_of_all: None,
        extra: record::Extra::new(),
    };
    let mut notes = notes(&noise, settings, shared, series.floor_ns);
    if overdue_ns > 0 {
        notes.push(format!(
            "when the run was stopped, the thread had not run for {} ms: this counts as a gap, but its end is pending",
            overdue_ns / 1_000_000
        ));
    }
    Series {
        missed: 0,
        jitter_ns: 0,
        corrected: series.raw.clone(),
        kind: SeriesKind::Gaps(Box::new(noise)),
        notes,
        ..series
    }
}

fn notes(noise: &Noise, settings: &Settings, shared: &Shared, floor_ns: u64) -> Vec<String> {
    let mut notes = Vec::new();
    match shared.end() {
        // Only the clock sets its deadlines.
        None | Some(End::Planned | End::StoppedOn | End::PacerFailed) => {}
        Some(End::LeftCpu) => notes.push(format!(
            "the thread left CPU {}: {SERIES_ENDS} there, and its last period was on another CPU",
            settings.cpu.unwrap_or_default()
        )),
        Some(End::Starved) => notes
            .push(format!("the guard ended the run: ordinary threads had not run for {} s", guard::STARVED_LIMIT_S)),
        Some(End::ClockFailed) => notes.push(format!("the kernel refused to wait on this clock: {SERIES_ENDS} there")),
    }
    if noise.threshold_ns > settings.threshold_ns.unsigned_abs() {
        notes.push(format!(
            "without interruption two readings of the clock are {floor_ns} ns apart: the threshold for gaps is {} ns, \
             {FLOORS} times that, instead of {} ns",
            noise.threshold_ns, settings.threshold_ns
        ));
    }
    let unsteady = shared.noise.unsteady.load(Relaxed);
    if unsteady > 0 {
        notes.push(format!(
            "the CPU's counter did not keep time with the clock in {unsteady} periods: lengths of gaps there may be wrong \
             by more than one part in a thousand"
        ));
    }
    let lost = shared.lost.load(Relaxed);
    if lost > 0 {
        notes.push(format!(
            "{} gaps came too fast to be recorded one by one: they are counted, but may be missing from the spikes",
            grouped(lost)
        ));
    }
    notes
}
