//! Finds the published figures nearest to measured ones.

use record::{Figures, INTERRUPT, RESPONSE, TIMERLAT_THREAD, WAKE_UP_PROBES};

use crate::float::to_u64;

/// Distance of a load that only one side has.
const ANOTHER_LOAD: u64 = 4;
/// Distance of the same load with other options.
const OTHER_OPTIONS: u64 = 1;
/// Distance if only one side was at rest.
const REST_AND_LOAD: u64 = 100;
/// Distance if the load of one side is unknown.
const UNKNOWN: u64 = 1000;

/// The nearest of `candidates` from the same kind of probe with a figure in common; the first of several at the same
/// distance.
pub(super) fn nearest<'a>(ours: &Figures, candidates: &'a [Figures]) -> Option<&'a Figures> {
    candidates.iter().filter(|theirs| comparable(ours, theirs)).min_by_key(|theirs| distance(ours, theirs))
}

/// The distance of the conditions of two groups; `None` if they are of different kinds of measurements.
pub fn distance_of_conditions(ours: &Figures, theirs: &Figures) -> Option<Distance> {
    is_same_kind(ours, theirs).then(|| distance(ours, theirs))
}

fn is_same_kind(ours: &Figures, theirs: &Figures) -> bool {
    let is_same_way = ours.from_kernel.zip(theirs.from_kernel).is_none_or(|(ours, theirs)| ours == theirs);
    kind(&ours.probe) == kind(&theirs.probe) && is_response(ours) == is_response(theirs) && is_same_way
}

fn comparable(ours: &Figures, theirs: &Figures) -> bool {
    let time = |pick: fn(&Figures) -> Option<i64>| pick(ours).is_some() && pick(theirs).is_some();
    let in_common = time(|figures| figures.max_ns.or(figures.max_above_ns))
        || time(|figures| figures.p99_ns)
        || time(|figures| figures.p50_ns)
        || (ours.mean_ns.is_some() && theirs.mean_ns.is_some())
        || (ours.jitter_ns.is_some() && theirs.jitter_ns.is_some())
        || (ours.max_gap_ns.is_some() && theirs.max_gap_ns.is_some());
    is_same_kind(ours, theirs) && in_common
}

/// True if an outside judge measured the figures. The way to the thread is only a part of its times.
#[must_use]
pub fn is_response(figures: &Figures) -> bool {
    figures.probe == INTERRUPT && figures.role == RESPONSE
}

/// The kind of measurement: all probes of wake-ups are comparable.
fn kind(probe: &str) -> &str {
    if WAKE_UP_PROBES.contains(&probe) { record::TIMER } else { probe }
}

/// The distances of conditions, the most important one first.
pub type Distance = (u8, u64, bool, u8, u8, u64, u8);

fn distance(ours: &Figures, theirs: &Figures) -> Distance {
    (
        roles(&ours.role, &theirs.role),
        loads(ours.loads.as_deref(), theirs.loads.as_deref()),
        ours.phase != theirs.phase,
        flags(ours.isolated, theirs.isolated),
        flags(ours.together, theirs.together),
        periods(ours.period_ns, theirs.period_ns),
        policies(&ours.policy, &theirs.policy),
    )
}

/// The distance of roles. Wake-ups of a thread are most like those of the thread of timerlat: its interrupt is a part of them.
fn roles(ours: &str, theirs: &str) -> u8 {
    match (ours, theirs) {
        _ if ours == theirs => 0,
        ("", TIMERLAT_THREAD) | (TIMERLAT_THREAD, "") => 1,
        _ => 2,
    }
}

fn loads(ours: Option<&[String]>, theirs: Option<&[String]>) -> u64 {
    let (Some(ours), Some(theirs)) = (ours, theirs) else { return UNKNOWN };
    let rest = if ours.is_empty() == theirs.is_empty() { 0 } else { REST_AND_LOAD };
    let missing = theirs.iter().filter(|load| !ours.iter().any(|other| name(other) == name(load))).count() as u64;
    let each = ours.iter().map(|load| {
        let mut same = theirs.iter().filter(|other| name(other) == name(load)).map(|other| bare(other) == bare(load));
        match same.next() {
            None => ANOTHER_LOAD,
            Some(exactly) if exactly || same.any(|exactly| exactly) => 0,
            Some(_) => OTHER_OPTIONS,
        }
    });
    rest + missing * ANOTHER_LOAD + each.sum::<u64>()
}

/// A load without its CPUs.
pub(super) fn bare(load: &str) -> &str {
    load.split('@').next().unwrap_or(load)
}

/// A load without options.
fn name(load: &str) -> &str {
    bare(load).split(':').next().unwrap_or(load)
}

fn flags(ours: Option<bool>, theirs: Option<bool>) -> u8 {
    match (ours, theirs) {
        (Some(ours), Some(theirs)) if ours == theirs => 0,
        (None, None) => 0,
        (Some(_), Some(_)) => 2,
        _ => 1,
    }
}

fn policies(ours: &str, theirs: &str) -> u8 {
    match (ours, theirs) {
        _ if ours == theirs => 0,
        ("", _) | (_, "") => 1,
        _ => 2,
    }
}

/// The distance of periods: the logarithm of their ratio in millionths.
fn periods(ours: Option<u64>, theirs: Option<u64>) -> u64 {
    match (ours, theirs) {
        (None, None) => 0,
        (Some(ours), Some(theirs)) => to_u64((ours as f64 / theirs as f64).ln().abs() * 1e6),
        _ => u64::MAX,
    }
}
