//! Compares a run with another record: matching figures, differences in conditions, and ratios.

mod differences;
mod figures;
mod nearest;

use record::{Caveat, ComparedPair, Comparison, Figures, IMPORTED, PUBLISHED, Ratios, Record};

use differences::differences;
pub use figures::figures;
pub(crate) use figures::{Group, groups};
pub use nearest::is_response;
use nearest::nearest;
pub(crate) use nearest::{Distance, distance_of_conditions};

/// Compares `record` with `other`, which is called `name`.
///
/// Each group of threads of `record` is paired with the nearest figures of `other` from the same kind of probe. The
/// distance depends, in this order, on: the role; the loads, then the name of the phase; isolation of the CPU; sharing
/// of a CPU between threads; the ratio of the periods.
#[must_use]
pub fn compare(record: &Record, other: &Record, name: &str) -> Comparison {
    let published = other.published.as_ref();
    let candidates = figures(other);
    let (mut pairs, mut alone) = (Vec::new(), Vec::new());
    for ours in figures(record) {
        match nearest(&ours, &candidates) {
            Some(theirs) => pairs.push(pair(ours, theirs.clone())),
            None => alone.push(name_of(&ours)),
        }
    }
    Comparison {
        name: published.map_or_else(|| name.to_owned(), |published| published.name.clone()),
        on: published.map_or_else(|| machine_of(other), |published| published.on.clone()),
        source: published.map(record::Published::source).unwrap_or_default(),
        pairs,
        alone,
        caveats: run_caveat(other).into_iter().chain(imported_caveats(other)).collect(),
    }
}

/// The kind of the caveat of a run that was not as requested or ended early.
pub const NOT_AS_REQUESTED: &str = "run";

/// The caveat of a measured run that supports no good result.
fn run_caveat(record: &Record) -> Option<Caveat> {
    // Nobody knows this about runs of other tools.
    let obstacle = record.obstacle().filter(|_| record.published.is_none())?;
    let text = format!("its figures are no measure of the machine, because {obstacle}");
    Some(Caveat { kind: NOT_AS_REQUESTED.to_owned(), text })
}

/// The caveats of an imported or published record about its figures; none of one that punctual measured.
pub(crate) fn imported_caveats(record: &Record) -> Vec<Caveat> {
    let caveats = record.caveats.iter().filter(|caveat| ![IMPORTED, PUBLISHED].contains(&&*caveat.kind));
    if record.published.is_some() { caveats.cloned().collect() } else { Vec::new() }
}

fn pair(ours: Figures, theirs: Figures) -> ComparedPair {
    // A time before the deadline has no ratio.
    let ratio = |ours: Option<f64>, theirs: Option<f64>| {
        Some(ours.filter(|&ours| ours >= 0.0)? / theirs.filter(|&theirs| theirs > 0.0)?)
    };
    let of =
        |pick: fn(&Figures) -> Option<i64>| ratio(pick(&ours).map(|ns| ns as f64), pick(&theirs).map(|ns| ns as f64));
    let ratios = Ratios {
        max: of(|figures| figures.max_ns),
        p99: of(|figures| figures.p99_ns),
        p50: of(|figures| figures.p50_ns),
        mean: ratio(ours.mean_ns, theirs.mean_ns),
        jitter: ratio(ours.jitter_ns.map(|ns| ns as f64), theirs.jitter_ns.map(|ns| ns as f64)),
        max_gap: ratio(ours.max_gap_ns.map(|ns| ns as f64), theirs.max_gap_ns.map(|ns| ns as f64)),
    };
    ComparedPair { differs: differences(&ours, &theirs), ours, theirs, ratios }
}

/// Phase, role, begin of the times and CPUs of a group, for readers.
pub fn name_of(figures: &Figures) -> String {
    let cpus = if figures.cpus.is_empty() { String::new() } else { format!("CPUs {}", figures.cpus) };
    let way = if figures.from_kernel == Some(true) { "from the kernel's stamp" } else { "" };
    let parts = [figures.phase.as_str(), figures.role.as_str(), way, cpus.as_str()];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
}

/// The machine of a record that was not published, in a few words.
fn machine_of(record: &Record) -> String {
    let machine = &record.machine;
    let kernel = machine.kernel.as_ref().map(|kernel| format!("Linux {kernel}"));
    let name = machine.hostname.as_ref().or(machine.model.as_ref());
    let parts = [name.cloned(), kernel, machine.preempt.clone()];
    match parts.into_iter().flatten().collect::<Vec<_>>().join(", ") {
        known if known.is_empty() => "an unnamed machine".to_owned(),
        known => known,
    }
}

#[cfg(test)]
mod tests;
