//! Groups the series of a record that are relevant for a use.

use record::{Phase, Record, Series};

/// Series under the same loads: those with the period nearest to a use's, and faster ones.
#[derive(Debug, Default)]
pub(crate) struct Group<'a> {
    /// The requested loads, sorted; empty at rest.
    pub loads: Vec<String>,
    /// The phases of the series.
    pub phases: Vec<&'a Phase>,
    /// Period of the series, ns.
    pub period_ns: u64,
    /// The series of all CPUs with that period, at least one.
    pub series: Vec<&'a Series>,
    /// Series under the same loads with a shorter period. CPUs enter less deep idle states between their wake-ups than
    /// the use allows, so they can show that a limit does not hold, but not that it holds.
    pub faster: Vec<&'a Series>,
}

impl<'a> Group<'a> {
    /// All series that count against a limit.
    pub fn considered(&self) -> impl Iterator<Item = &'a Series> {
        self.series.iter().chain(&self.faster).copied()
    }
}

/// One group per set of loads in `record`, in the order of the run.
///
/// Series without a period, gaps and round trips are left out because they have no wake-up deadlines, and so are those
/// of the kernel's timerlat tracer. Of two periods equally near, the longer one is used: it allows as deep idle states
/// as the use does.
pub(crate) fn groups(record: &Record, period_ns: u64) -> Vec<Group<'_>> {
    let mut groups: Vec<Group> = Vec::new();
    for series in record.probe_series().filter(|series| series.period_ns > 0 && is_judged(record, series)) {
        let phase = record.phase(&series.phase);
        let loads = loads_of(record, series);
        let found = groups.iter().position(|group| group.loads == loads);
        let index = found.unwrap_or_else(|| {
            groups.push(Group { loads, period_ns: series.period_ns, ..Group::default() });
            groups.len() - 1
        });
        let group = &mut groups[index];
        if nearer(series.period_ns, group.period_ns, period_ns) {
            group.period_ns = series.period_ns;
            group.phases.clear();
            group.series.clear();
        }
        if series.period_ns == group.period_ns {
            group.series.push(series);
            group.phases.extend(phase.filter(|phase| !group.phases.iter().any(|known| known.name == phase.name)));
        }
    }
    for group in &mut groups {
        group.faster =
            record.probe_series().filter(|series| counts_against(record, group, series, period_ns)).collect();
    }
    groups
}

/// True if a limit applies to `series`. The way from the kernel's stamp to the thread is a part of the way from the question
/// of an outside judge to the answer, so the judge's times replace it.
fn is_judged(record: &Record, series: &Series) -> bool {
    let has_judge =
        || record.series.iter().any(|other| other.phase == series.phase && other.kind.responses().is_some());
    series.kind.properties().judged_as_wake_ups && (series.kind.interrupts().is_none() || !has_judge())
}

/// True if `series` has the group's loads and is faster than both the group's period and the use.
fn counts_against(record: &Record, group: &Group, series: &Series, period_ns: u64) -> bool {
    is_judged(record, series)
        && (1..group.period_ns.min(period_ns)).contains(&series.period_ns)
        && loads_of(record, series) == group.loads
}

/// The loads during a series, sorted.
fn loads_of(record: &Record, series: &Series) -> Vec<String> {
    let mut loads = record.phase(&series.phase).map(|phase| phase.asked_loads.clone()).unwrap_or_default();
    loads.sort();
    loads
}

/// True if `a` is nearer to `target` than `b` by ratio, or equally near and longer.
fn nearer(a: u64, b: u64, target: u64) -> bool {
    let distance = |period: u64| {
        let (short, long) = (period.min(target), period.max(target));
        (u128::from(long), u128::from(short))
    };
    let ((a_long, a_short), (b_long, b_short)) = (distance(a), distance(b));
    match (a_long * b_short).cmp(&(b_long * a_short)) {
        std::cmp::Ordering::Less => true,
        std::cmp::Ordering::Equal => a > b,
        std::cmp::Ordering::Greater => false,
    }
}

#[cfg(test)]
mod tests {
    use record::SeriesKind;

    use super::*;

    /// Name, loads, and CPU and period of each series of a phase.
    type TestPhase<'a> = (&'a str, &'a [&'a str], &'a [(u32, u64)]);

    fn record(phases: &[TestPhase]) -> Record {
        let mut record = Record::default();
        for (name, loads, series) in phases {
            let asked_loads = loads.iter().map(|&load| load.to_owned()).collect();
            record.phases.push(Phase { name: (*name).to_owned(), asked_loads, ..Phase::default() });
            for &(cpu, period_ns) in *series {
                let (phase, cpu) = ((*name).to_owned(), Some(cpu));
                record.series.push(Series { phase, cpu, period_ns, ..Series::default() });
            }
        }
        record
    }

    fn found(record: &Record, period_ns: u64) -> Vec<(usize, u64, Vec<&str>)> {
        let describe = |group: Group<'_>| {
            let phases = group.phases.iter().map(|phase| record.phase(&phase.name).unwrap().name.as_str()).collect();
            (group.series.len(), group.period_ns, phases)
        };
        groups(record, period_ns).into_iter().map(describe).collect()
    }

    #[test]
    fn groups_by_loads_with_the_nearest_period() {
        let record = record(&[
            ("rest", &[], &[(0, 1_000), (1, 1_000)]),
            ("rest-slow", &[], &[(0, 1_000_000), (1, 1_000_000)]),
            ("load", &["cpu", "cache"], &[(0, 1_000)]),
            ("load-again", &["cache", "cpu"], &[(0, 1_000)]),
        ]);
        assert_eq!(
            found(&record, 400_000),
            [(2, 1_000_000, vec!["rest-slow"]), (2, 1_000, vec!["load", "load-again"])]
        );
        assert_eq!(found(&record, 2_000)[0], (2, 1_000, vec!["rest"]));
    }

    #[test]
    fn faster_series_count_against_a_limit() {
        let record = record(&[
            ("rest", &[], &[(0, 1_000_000)]),
            ("rest-fast", &[], &[(0, 125_000), (1, 125_000)]),
            ("load", &["cpu"], &[(0, 125_000)]),
        ]);
        let faster = |period_ns| groups(&record, period_ns).iter().map(|group| group.faster.len()).collect::<Vec<_>>();
        assert_eq!(faster(10_000_000), [2, 0]);
        assert_eq!(faster(125_000), [0, 0]);
        assert_eq!(groups(&record, 10_000_000)[0].considered().count(), 3);
    }

    #[test]
    fn ignores_series_of_timerlat() {
        let mut record = record(&[("rest", &[], &[(0, 1_000_000), (0, 1_000_000), (0, 100_000), (0, 100_000)])]);
        let kernel = [SeriesKind::TimerlatIrq, SeriesKind::TimerlatThread, SeriesKind::TimerlatThread];
        for (series, kind) in record.series[1..].iter_mut().zip(kernel) {
            series.kind = kind;
        }
        assert_eq!(found(&record, 100_000), [(1, 1_000_000, vec!["rest"])]);
        assert_eq!(groups(&record, 1_000_000)[0].considered().count(), 1);
    }

    #[test]
    fn prefers_the_longer_of_equally_near_periods() {
        for order in [[500, 2_000], [2_000, 500]] {
            let record = record(&[("rest", &[], &[(0, order[0]), (0, order[1])])]);
            assert_eq!(found(&record, 1_000), [(1, 2_000, vec!["rest"])]);
        }
    }

    #[test]
    fn ignores_series_without_deadlines() {
        assert!(groups(&record(&[("rest", &[], &[(0, 0)])]), 1_000).is_empty());
    }
}
