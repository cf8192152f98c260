//! Rules that the verdicts on wake-ups, round trips and captures share.

use record::{Outcome, Record, State};

use crate::{
    duration::{format_duration, format_ns},
    profile::Profile,
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
    if record.state == State::Complete {
        return None;
    }
    let last = record.phases.last()?;
    let planned_ns = last.planned_ns?;
    let (ran, planned) = (format_duration(last.duration_ns.min(planned_ns)), format_duration(planned_ns));
    Some(format!("the run ended early, after {ran} of {planned} in the phase `{}`: run it to its end", last.name))
}

/// The note about a load at the far end that did not run.
pub(crate) fn far_load(record: &Record) -> Option<String> {
    let far = record.far.as_ref()?;
    let load = far.loads.iter().find(|load| !load.ran)?;
    Some(format!("the load {} did not run to its end on {}: run it again", load.spec, far.host))
}

/// The `--duration` that measures enough samples for `profile`, s: a tenth more than needed, because of missed
/// deadlines.
pub(crate) fn seconds_needed(profile: &Profile) -> u128 {
    (u128::from(profile.period_ns) * u128::from(profile.samples_needed) * 11).div_ceil(10_000_000_000).max(1)
}

/// The `--load` options for `loads`, each after a space.
pub(crate) fn load_options(loads: &[String]) -> String {
    loads.iter().map(|load| format!(" --load {}", record::shell::command(&[load]))).collect()
}
