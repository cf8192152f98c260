//! The comparable figures of a record: published ones, or those of its series in groups.

use import::is_same_kind;
use record::{ALL_THREADS, Figures, Histogram, Maxima, Record, Responses, Series, SeriesKind, TIMER};

use crate::{Summary, cpu_list, stream, summary::max_of};

/// The figures of `record`: published ones, or one set per phase, role and kind of CPU, summed over CPUs. For a matrix,
/// one set per load, role, and placement of the threads on one or on separate CPUs.
///
/// Percentiles of measured figures are corrected; other figures are raw. A talker's figures are its send times. A
/// sender's wake-ups are left out because they are part of its round trips.
#[must_use]
pub fn figures(record: &Record) -> Vec<Figures> {
    groups(record).into_iter().map(|group| group.figures).collect()
}

/// The figures of a group of threads, and what they come from.
pub struct Group {
    pub figures: Figures,
    /// The samples with known values; empty if unknown.
    pub histogram: Histogram,
    /// Number of samples above those of the histogram.
    pub beyond: u64,
    /// The largest value of each window of the time; empty if unknown.
    pub maxima: Maxima,
    /// Number of samples whose value is not known: results of a judge that were lost on its line.
    pub unknown: u64,
    /// Answers, interrupts or frames that never came.
    pub lost: u64,
}

impl Group {
    /// Figures without series.
    fn of(figures: Figures) -> Self {
        let samples = figures.samples_with_beyond().map(|(histogram, beyond)| (histogram.clone(), beyond));
        let (histogram, beyond) = samples.unwrap_or_default();
        Self { figures, histogram, beyond, maxima: Maxima::default(), unknown: 0, lost: 0 }
    }
}

/// The same figures, with the samples that they come from.
pub fn groups(record: &Record) -> Vec<Group> {
    if let Some(published) = &record.published {
        return published
            .figures
            .iter()
            .filter(|one| !is_pooled(one, &published.figures))
            .cloned()
            .map(Group::of)
            .collect();
    }
    let mut groups: Vec<(Figures, Vec<&Series>)> = Vec::new();
    let sent = stream::as_sent(record);
    let round_trips = record.series.iter().any(|series| series.kind.round_trip().is_some());
    let of_main_kind = |series: &&Series| series.samples > 0 && series.kind.round_trip().is_some() == round_trips;
    for series in sent.probe_series().filter(of_main_kind) {
        let conditions = conditions(record, series);
        match groups.iter_mut().find(|(known, _)| *known == conditions) {
            Some((_, all)) => all.push(series),
            None => groups.push((conditions, vec![series])),
        }
    }
    let of_groups = groups.into_iter().map(|(conditions, all)| with_measured(record, conditions, &all));
    let of_listeners = record.series.iter().filter_map(|series| of_listener(record, series));
    of_groups.chain(of_listeners).collect()
}

/// True for the figures of a thread that those of all threads of its kind contain. An import has both, and the groups of a
/// measured record are of all CPUs, too.
fn is_pooled(one: &Figures, all: &[Figures]) -> bool {
    one.phase != ALL_THREADS && all.iter().any(|sum| sum.phase == ALL_THREADS && is_same_kind(one, sum))
}

/// The figures of a listener: publications usually give the largest time between two frames.
fn of_listener(record: &Record, series: &Series) -> Option<Group> {
    let listener = series.kind.listener().filter(|listener| listener.frames > 0)?;
    let figures = Figures {
        cpus: cpu_list::format(series.cpu.into_iter().collect()),
        samples: Some(listener.frames),
        max_gap_ns: listener.max_gap_ns,
        ..conditions(record, series)
    };
    Some(Group { lost: listener.lost, ..Group::of(figures) })
}

/// The conditions of a series.
fn conditions(record: &Record, series: &Series) -> Figures {
    let loads = record.phase(&series.phase).map(|phase| phase.asked_loads.clone()).unwrap_or_default();
    // A matrix has a phase for each pair of CPUs and round.
    let name = match &loads[..] {
        _ if record.cells.is_empty() => series.phase.clone(),
        [] => "idle".to_owned(),
        loads => loads.join(", "),
    };
    Figures {
        probe: record.scenario.probe.clone(),
        phase: name,
        loads: Some(loads),
        // The role of a single thread adds nothing to the probe.
        role: if series.role == TIMER { String::new() } else { series.role.clone() },
        from_kernel: series.kind.interrupts().map(|interrupts| interrupts.zero.is_in_kernel()),
        isolated: isolated(record, series),
        together: together(record, series),
        policy: series.granted.policy.clone(),
        period_ns: Some(series.period_ns).filter(|&period_ns| period_ns > 0),
        ..Figures::default()
    }
}

/// True if the CPU of the series was isolated at boot or shielded for the run. `None` if unknown, and for a matrix,
/// whose pairs are summed.
fn isolated(record: &Record, series: &Series) -> Option<bool> {
    let cpu = series.cpu.filter(|_| record.cells.is_empty())?;
    let at_boot = record.machine.cpus_isolated.as_ref().map(|list| cpu_list::contains(list, cpu));
    let shielded = record.shielding.as_ref().is_some_and(|shield| cpu_list::contains(&shield.cpus, cpu));
    if shielded { Some(true) } else { at_boot }
}

/// True if the threads of the phase share a CPU; `None` for a single role.
fn together(record: &Record, series: &Series) -> Option<bool> {
    let mut others = record.probe_series().filter(|other| other.phase == series.phase && other.role != series.role);
    let first = others.next()?;
    Some(others.chain([first]).all(|other| other.cpu == series.cpu))
}

/// Adds the measured figures of `all`, summed, to `conditions`.
fn with_measured(record: &Record, conditions: Figures, all: &[&Series]) -> Group {
    let mut sum = Series::default();
    for series in all {
        sum.samples += series.samples;
        sum.missed += series.missed;
        sum.max_ns = sum.max_ns.max(max_of(series));
        sum.corrected.merge(&series.corrected);
        sum.maxima.merge(&series.maxima);
    }
    let weighted = all.iter().filter_map(|series| Some(series.mean_ns? * series.samples as f64)).sum::<f64>();
    let summary = Summary::of(&sum);
    let responses = || all.iter().filter_map(|series| series.kind.responses());
    let unknown = responses().map(Responses::without_known_time).fold(0, u64::saturating_add);
    let (histogram, beyond) = match responses().any(|responses| responses.clamped > 1) {
        true => without_largest(&sum.corrected),
        false => (sum.corrected, 0),
    };
    let total = histogram.total().saturating_add(beyond).saturating_add(unknown);
    let percentile = |of_all: Option<i64>, percent: f64| match beyond.max(unknown) {
        0 => of_all,
        _ => histogram.percentile_among(total, percent),
    };
    let phases = record.phases.iter().filter(|phase| all.iter().any(|series| series.phase == phase.name));
    let of_capture = match &record.capture {
        Some(capture) if all.iter().any(|series| series.kind == SeriesKind::Capture) => capture.lost_frames(),
        _ => Some(0),
    };
    let figures = Figures {
        cpus: cpu_list::format(all.iter().filter_map(|series| series.cpu).collect()),
        duration_ns: Some(phases.map(|phase| phase.duration_ns).sum()),
        samples: Some(sum.samples),
        missed: of_capture.map(|_| sum.missed),
        min_ns: all.iter().filter_map(|series| series.min_ns).min(),
        mean_ns: all.iter().all(|series| series.mean_ns.is_some()).then(|| weighted / sum.samples as f64),
        p50_ns: percentile(summary.p50_ns, 50.0),
        p99_ns: percentile(summary.p99_ns, 99.0),
        max_ns: sum.max_ns.filter(|_| unknown == 0),
        max_above_ns: sum.max_ns.filter(|_| unknown > 0),
        jitter_ns: all.iter().filter_map(|series| series.jitter()).max(),
        late: all.iter().filter_map(|series| Some(series.kind.talker()?.late)).reduce(|a, b| a + b),
        ..conditions
    };
    let lost = all.iter().filter_map(|series| series.kind.lost()).fold(of_capture.unwrap_or(0), u64::saturating_add);
    Group { figures, histogram, beyond, maxima: sum.maxima, unknown, lost }
}

/// The histogram without its last bucket, and the number of values there: those beyond the last cell of latmon count as the largest
/// one.
fn without_largest(histogram: &Histogram) -> (Histogram, u64) {
    let Some((largest_ns, beyond)) = histogram.iter().next_back() else { return Default::default() };
    (Histogram::from_buckets(histogram.iter().filter(|(ns, _)| *ns != largest_ns)), beyond)
}
