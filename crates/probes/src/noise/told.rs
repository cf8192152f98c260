//! What the loop saw, as a series of a record.

use std::sync::atomic::Ordering::Relaxed;

use record::{Noise, Series, SeriesKind};

use super::{FLOORS, Spin};
use crate::{
    guard,
    timer::{End, Settings, shared::Shared},
};

/// Makes the series of wake-ups, whose raw histogram is that of the gaps, one of a loop that never slept: there were no
/// deadlines, and nothing is omitted while it looks.
pub(crate) fn tell(series: Series, spin: &Spin, settings: &Settings, shared: &Shared) -> Series {
    let looked = &shared.looked;
    let noise = Noise {
        runtime_ns: spin.runtime_ns,
        counter: spin.counter.name().to_owned(),
        threshold_ns: looked.threshold_ns.load(Relaxed),
        observed_ns: looked.observed_ns.load(Relaxed),
        lost_ns: looked.lost_ns.load(Relaxed),
        iterations: looked.iterations.load(Relaxed),
        strikes_of_all: None,
        extra: record::Extra::new(),
    };
    let notes = notes(&noise, settings, shared, series.floor_ns);
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
        // Nothing but the clock paces it.
        None | Some(End::Planned | End::StoppedOn | End::PacerFailed) => {}
        Some(End::CpuGone) => notes.push(format!(
            "CPU {} went offline: the series ends there, and its last period was on another CPU",
            settings.cpu.unwrap_or_default()
        )),
        Some(End::Starved) => notes
            .push(format!("the guard ended the run: ordinary threads had not run for {} s", guard::STARVED_LIMIT_S)),
        Some(End::ClockFailed) => notes.push("the kernel refused to wait on this clock: the series ends there".into()),
    }
    if noise.threshold_ns > settings.threshold_ns.unsigned_abs() {
        notes.push(format!(
            "two readings of the clock are {floor_ns} ns apart where nothing happens: gaps are told from {} ns on, \
             {FLOORS} times that, instead of {} ns",
            noise.threshold_ns, settings.threshold_ns
        ));
    }
    let unsteady = shared.looked.unsteady.load(Relaxed);
    if unsteady > 0 {
        notes.push(format!(
            "the CPU's counter did not keep time with the clock in {unsteady} periods: lengths may be wrong by more than \
             one part in a thousand there"
        ));
    }
    let lost = shared.lost.load(Relaxed);
    if lost > 0 {
        notes.push(format!(
            "{lost} gaps came too fast to be told one by one: they are counted, but may be missing among the spikes"
        ));
    }
    notes
}
