//! Rules that the verdicts on wake-ups, round trips and captures share.

use record::{Emulation, Outcome, Record, State};

use crate::{
    duration::{format_duration, format_ns},
    profile::Profile,
    statistics::Exposure,
};

/// A measured period this many times longer than the use's cannot support PASS, because it misses too much between two
/// wake-ups. A period this many times shorter lets CPUs enter less deep idle states than the use does.
pub(crate) const FAR: u64 = 8;

/// The order of outcomes: the largest one decides.
pub(crate) fn severity(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::Pass => 0,
        Outcome::Inconclusive => 1,
        Outcome::Fail => 2,
        Outcome::Invalid => 3,
    }
}

/// The suffix of the reason for PASS if the worst case is excellent for the use.
pub(crate) fn excellent(profile: &Profile, worst_ns: i64) -> String {
    match profile.excellent_ns {
        Some(excellent_ns) if worst_ns < excellent_ns => format!(", excellent (under {})", format_ns(excellent_ns)),
        _ => String::new(),
    }
}

/// The ids of the reasons why a record is invalid.
pub(crate) fn invalid_ids(record: &Record) -> String {
    let ids: Vec<_> = record.validity.reasons.iter().map(|reason| reason.id.as_str()).collect();
    if ids.is_empty() { "no reason given".to_owned() } else { ids.join(", ") }
}

/// The reason why a run that ended early supports no PASS: a verdict needs all that was planned. A phase without a planned
/// length lasts until somebody ends it.
pub(crate) fn cut_short(record: &Record) -> Option<String> {
    // A run that ends itself has evidence that holds at every moment.
    if record.state == State::Complete || record.scenario.until_decided {
        return None;
    }
    let last = record.phases.last()?;
    let when = match (last.planned_ns, last.planned_samples) {
        (Some(planned_ns), _) => {
            format!("after {} of {}", format_duration(last.duration_ns.min(planned_ns)), format_duration(planned_ns))
        }
        (None, Some(samples)) => format!("before the last of {samples} samples"),
        (None, None) => return None,
    };
    Some(format!("the run ended early, {when} in the phase `{}`: run it to its end", last.name))
}

/// The note about a load at the far end that did not run.
pub(crate) fn far_load(record: &Record) -> Option<String> {
    let far = record.far.as_ref()?;
    let load = far.loads.iter().find(|load| !load.ran)?;
    Some(format!("the load {} did not run to its end on {}: run it again", load.spec, far.host))
}

/// The decision on the stalls of one or more series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    /// No series had more than tolerated, at 95 %.
    Kept,
    /// A series had more than tolerated.
    Exceeded,
    /// Neither.
    Open,
}

/// Decides whether stalls are as rare as `profile` tolerates.
///
/// A run with a planned length exceeds it if more stalls were counted than are tolerated in that time. A run that ends
/// as soon as it is decided must show either at 95 %, whenever it looks.
pub(crate) fn shown(profile: &Profile, exposures: &[Exposure]) -> Shown {
    if exposures.iter().any(|exposure| exposure.exceeds(profile.tolerates, exposures.len())) {
        Shown::Exceeded
    } else if exposures.iter().all(|exposure| exposure.shows(profile.tolerates)) {
        Shown::Kept
    } else {
        Shown::Open
    }
}

/// The reason why `exposure` shows too little for PASS: `none late so far`, or the stalls, and the bound.
pub(crate) fn too_short(profile: &Profile, exposure: &Exposure, place: &str) -> String {
    let so_far = match exposure.late.stalls.total {
        0 => "none late so far".to_owned(),
        1 => "1 stall so far".to_owned(),
        stalls => format!("{stalls} stalls so far"),
    };
    let (bound, tolerated) = (exposure.bound_per_span(), profile.tolerates);
    format!("{so_far}, {bound} ({place}), but {tolerated} is tolerated")
}

/// The suffix of the reason for PASS in an emulated guest.
pub(crate) fn of_emulation(record: &Record) -> &'static str {
    match record.machine.emulation {
        None => "",
        Some(Emulation::VirtualTime) => {
            "; measured in virtual time: this is about the paths of the kernel, not about hardware"
        }
        Some(Emulation::Software) => "; measured on emulated CPUs: this is not about hardware",
    }
}

/// The `--duration` of a run without a stall that shows the tolerated rate: a tenth more than needed, because of
/// missed deadlines.
pub(crate) fn duration_needed(profile: &Profile) -> String {
    let seconds = profile.tolerates.time_ns(3.3).max(profile.period_ns).div_ceil(1_000_000_000);
    match seconds {
        ..600 => format!("{seconds}s"),
        600..36_000 => format!("{}m", seconds.div_ceil(60)),
        36_000..864_000 => format!("{}h", seconds.div_ceil(3600)),
        _ => format!("{}d", seconds.div_ceil(86_400)),
    }
}

/// The `--load` options for `loads`, each after a space.
pub(crate) fn load_options(loads: &[String]) -> String {
    loads.iter().map(|load| format!(" --load {}", record::shell::command(&[load]))).collect()
}
