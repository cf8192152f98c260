//! The figures of a record that can be compared: those that were published, or those of its series in groups.

use record::{Figures, Record, Series};

use crate::{Summary, judge::cpu_list, stream, summary::max_of};

/// The figures of `record`: as published, or one for each phase, role and kind of CPU, all CPUs of it together. Of a
/// matrix, one for each load, role, and threads on one CPU or on a CPU each.
///
/// Percentiles of own figures are corrected; all else is raw. A talker's are of when it sent; of round trips the sender's
/// wake-ups, which are a part of them, are left out.
#[must_use]
pub fn figures(record: &Record) -> Vec<Figures> {
    if let Some(published) = &record.published {
        return published.figures.clone();
    }
    let mut groups: Vec<(Figures, Vec<&Series>)> = Vec::new();
    let sent = stream::as_sent(record);
    let round_trips = record.series.iter().any(|series| series.kind.round_trip().is_some());
    let of_its_kind = |series: &&Series| series.samples > 0 && series.kind.round_trip().is_some() == round_trips;
    for series in sent.of_the_probe().filter(of_its_kind) {
        let conditions = conditions(record, series);
        match groups.iter_mut().find(|(known, _)| *known == conditions) {
            Some((_, all)) => all.push(series),
            None => groups.push((conditions, vec![series])),
        }
    }
    let of_groups = groups.into_iter().map(|(conditions, all)| with_measured(record, conditions, &all));
    of_groups.chain(record.series.iter().filter_map(|series| listened(record, series))).collect()
}

/// What a listener got: the largest time between two frames is what others publish of it.
fn listened(record: &Record, series: &Series) -> Option<Figures> {
    let listener = series.kind.listener().filter(|listener| listener.frames > 0)?;
    Some(Figures {
        cpus: cpu_list(series.cpu.into_iter().collect()),
        samples: Some(listener.frames),
        max_gap_ns: listener.max_gap_ns,
        ..conditions(record, series)
    })
}

/// What a series was measured under.
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
        // The role of a thread that is alone says no more than the probe.
        role: if series.role == "timer" { String::new() } else { series.role.clone() },
        isolated: isolated(record, series),
        together: together(record, series),
        policy: series.granted.policy.clone(),
        period_ns: Some(series.period_ns).filter(|&period_ns| period_ns > 0),
        ..Figures::default()
    }
}

/// Whether the CPU of the series was isolated at boot, or shielded for the run; `None` where the record does not say, and
/// in a matrix, whose pairs are taken together.
fn isolated(record: &Record, series: &Series) -> Option<bool> {
    let cpu = series.cpu.filter(|_| record.cells.is_empty())?;
    let at_boot = record.machine.cpus_isolated.as_ref().map(|list| holds(list, cpu));
    let shielded = record.shielding.as_ref().is_some_and(|shield| holds(&shield.cpus, cpu));
    if shielded { Some(true) } else { at_boot }
}

/// Whether the threads of the phase share a CPU; `None` where each role has its own measurement.
fn together(record: &Record, series: &Series) -> Option<bool> {
    let mut others = record.of_the_probe().filter(|other| other.phase == series.phase && other.role != series.role);
    let first = others.next()?;
    Some(others.chain([first]).all(|other| other.cpu == series.cpu))
}

/// Whether a list as the kernel writes it holds `cpu`.
fn holds(list: &str, cpu: u32) -> bool {
    list.trim().split(',').any(|part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        matches!((first.parse::<u32>(), last.parse::<u32>()), (Ok(first), Ok(last)) if (first..=last).contains(&cpu))
    })
}

/// The figures of all these series together.
fn with_measured(record: &Record, conditions: Figures, all: &[&Series]) -> Figures {
    let mut sum = Series::default();
    for series in all {
        sum.samples += series.samples;
        sum.missed += series.missed;
        sum.max_ns = sum.max_ns.max(max_of(series));
        sum.corrected.merge(&series.corrected);
    }
    let weighted = all.iter().filter_map(|series| Some(series.mean_ns? * series.samples as f64)).sum::<f64>();
    let summary = Summary::of(&sum);
    let phases = record.phases.iter().filter(|phase| all.iter().any(|series| series.phase == phase.name));
    Figures {
        cpus: cpu_list(all.iter().filter_map(|series| series.cpu).collect()),
        duration_ns: Some(phases.map(|phase| phase.duration_ns).sum()),
        samples: Some(sum.samples),
        missed: Some(sum.missed),
        min_ns: all.iter().filter_map(|series| series.min_ns).min(),
        mean_ns: all.iter().all(|series| series.mean_ns.is_some()).then(|| weighted / sum.samples as f64),
        p50_ns: summary.p50_ns,
        p99_ns: summary.p99_ns,
        max_ns: sum.max_ns,
        jitter_ns: all.iter().map(|series| series.jitter_ns).max(),
        late: all.iter().filter_map(|series| Some(series.kind.talker()?.late)).reduce(|a, b| a + b),
        ..conditions
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_the_kernels_holds_its_cpus() {
        let held = |list: &str| (0..8).filter(|&cpu| holds(list, cpu)).collect::<Vec<_>>();
        assert_eq!(held("1,3-5\n"), [1, 3, 4, 5]);
        assert_eq!(held(""), [0; 0]);
        assert_eq!(held("7"), [7]);
    }
}
