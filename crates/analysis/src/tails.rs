//! Larger values than a run measured, by extreme-value statistics of the largest values of windows.

use extremes::Refusal;
use record::{LevelInterval, Record, Series, Tail, TailBlocks, TailLevel, TailLimit, TailPeaks, TailRefusal};

use crate::float::{to_i64, to_u64};

const HOUR_NS: u64 = 3_600_000_000_000;
/// A year of 365.25 days, ns.
pub const YEAR_NS: u64 = 8766 * HOUR_NS;
/// The times whose levels are of interest, with their names.
pub const TIMES: [(&str, u64); 3] = [("an hour", HOUR_NS), ("a day", 24 * HOUR_NS), ("a year", YEAR_NS)];
/// Statements are made about at most so many times the length of the run.
pub const FURTHEST: u64 = 10_000;

/// The tails of a valid run: one for the threads of each role in each phase.
#[must_use]
pub fn tails(record: &Record) -> Vec<Tail> {
    if !record.validity.valid || record.published.is_some() || !record.cells.is_empty() {
        return Vec::new();
    }
    let mut limits_ns: Vec<i64> = record.uses.iter().map(|of| of.limit_ns).collect();
    limits_ns.sort_unstable();
    limits_ns.dedup();
    groups(&record.series).iter().map(|group| of_group(group, &limits_ns)).collect()
}

/// The tail of the phase of a valid run so far, of the probe's threads that were latest; `None` before the first samples.
/// Takes 0.1 s for each role of threads.
#[must_use]
pub fn tail_so_far(record: &Record, phase: &str, limits_ns: &[i64]) -> Option<Tail> {
    if !record.validity.reasons.is_empty() {
        return None;
    }
    let running = record.probe_series().filter(|series| series.phase == phase);
    let latest = groups(running).into_iter().max_by_key(|group| group.iter().map(|series| series.max_ns).max())?;
    Some(of_group(&latest, limits_ns))
}

/// The series with samples, grouped by phase, role, host, kind and period.
fn groups<'a>(all: impl IntoIterator<Item = &'a Series>) -> Vec<Vec<&'a Series>> {
    let mut groups: Vec<Vec<&Series>> = Vec::new();
    for series in all.into_iter().filter(|series| series.max_ns.is_some()) {
        match groups.iter_mut().find(|group| is_alike(group[0], series)) {
            Some(group) => group.push(series),
            None => groups.push(vec![series]),
        }
    }
    groups
}

fn is_alike(a: &Series, b: &Series) -> bool {
    let of = |series: &Series| (series.kind.name(), series.period_ns, series.maxima.window_ns);
    (&a.phase, &a.role, &a.host, of(a)) == (&b.phase, &b.role, &b.host, of(b))
}

/// The tail of the largest values of all series of a group, which has at least one.
fn of_group(group: &[&Series], limits_ns: &[i64]) -> Tail {
    let first = group[0];
    // The last window can be shorter than the others.
    let windows = group.iter().map(|series| series.maxima.max_ns.len()).min().unwrap_or(0).saturating_sub(1);
    let largest = |window: usize| group.iter().filter_map(|series| series.maxima.max_ns[window]).max();
    let windows: Vec<Option<f64>> = (0..windows).map(|window| Some(largest(window)? as f64)).collect();
    let mut tail = Tail {
        phase: first.phase.clone(),
        role: first.role.clone(),
        host: first.host.clone(),
        threads: group.len() as u64,
        period_ns: first.period_ns,
        windows: windows.iter().flatten().count() as u64,
        window_ns: first.maxima.window_ns,
        max_ns: group.iter().filter_map(|series| series.max_ns).max().unwrap_or_default(),
        from_causes_ns: bound_ns(group),
        ..Tail::default()
    };
    match extremes::tail(&windows) {
        Err(refusal) => tail.refused = Some(refused(refusal)),
        Ok(fitted) => {
            let limits_ns = if group.iter().any(|series| lacks_values(series)) { &[] } else { limits_ns };
            fill(&mut tail, &fitted, limits_ns);
        }
    }
    tail
}

/// True if answers, frames or interrupts are missing, or their times unknown. Each counts as later than any limit.
fn lacks_values(series: &Series) -> bool {
    let kind = &series.kind;
    kind.lost().is_some_and(|lost| lost > 0)
        || kind.responses().is_some_and(|responses| responses.unknown() > 0)
        || kind.interrupts().is_some_and(|interrupts| interrupts.overruns > 0)
        || kind.round_trip().is_some_and(|trip| trip.send_failed > 0)
        || kind.talker().is_some_and(|talker| talker.most_refused() > 0)
}

/// The largest bound from causes; `None` if a series has none.
fn bound_ns(group: &[&Series]) -> Option<u64> {
    let bounds_ns = group.iter().map(|series| series.cause_bound.as_ref()?.bound_ns);
    bounds_ns.collect::<Option<Vec<u64>>>()?.into_iter().max()
}

/// Stores the fitted distributions and their levels.
fn fill(tail: &mut Tail, fitted: &extremes::Tail, limits_ns: &[i64]) {
    let blocks = &fitted.blocks;
    tail.blocks = Some(TailBlocks {
        count: blocks.count() as u64,
        block_ns: tail.window_ns.saturating_mul(fitted.windows_per_block as u64),
        location_ns: blocks.law.location,
        scale_ns: blocks.law.scale,
        shape: blocks.law.shape,
    });
    tail.peaks = fitted.peaks.as_ref().map(|peaks| TailPeaks {
        count: peaks.excesses.count() as u64,
        threshold_ns: peaks.threshold,
        scale_ns: peaks.excesses.law.scale,
        shape: peaks.excesses.law.shape,
    });
    let run_ns = tail.windows.saturating_mul(tail.window_ns);
    let furthest_ns = run_ns.saturating_mul(FURTHEST);
    let is_given = |time_ns: &u64| (run_ns..=furthest_ns).contains(time_ns);
    let level = |once_in_ns: u64| {
        let windows = once_in_ns as f64 / tail.window_ns as f64;
        TailLevel {
            once_in_ns,
            by_blocks: interval(fitted.level(windows)),
            by_peaks: fitted.level_by_peaks(windows).map(interval),
        }
    };
    tail.levels = TIMES.into_iter().map(|(_, time_ns)| time_ns).filter(is_given).map(level).collect();
    let limit = |&limit_ns: &i64| {
        let (estimate, least) = fitted.windows_between(limit_ns as f64)?;
        let time_ns = |windows: f64| to_u64(windows * tail.window_ns as f64);
        let once_in_ns = Some(time_ns(estimate)).filter(|once_in_ns| *once_in_ns <= furthest_ns);
        Some(TailLimit { limit_ns, once_in_ns, at_least_ns: time_ns(least).min(furthest_ns) })
    };
    tail.limits = limits_ns.iter().filter(|&&limit_ns| limit_ns > tail.max_ns).filter_map(limit).collect();
}

fn interval(level: extremes::Level) -> LevelInterval {
    LevelInterval {
        estimate_ns: to_i64(level.estimate.round()),
        low_ns: to_i64(level.low.floor()),
        high_ns: level.high.map(|high| to_i64(high.ceil())),
    }
}

fn refused(refusal: Refusal) -> TailRefusal {
    match refusal {
        Refusal::TooFew => TailRefusal::TooShort,
        Refusal::FewValues => TailRefusal::FewValues,
        Refusal::NotStationary => TailRefusal::NotStationary,
        Refusal::NotIndependent => TailRefusal::NotIndependent,
        Refusal::DoesNotFit => TailRefusal::DoesNotFit,
        Refusal::SecondCause => TailRefusal::SecondCause,
        Refusal::TooHeavy => TailRefusal::TooHeavy,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use extremes::Random;
    use record::{CauseBound, Histogram, UseVerdict, Validity};

    /// Windows of a second with the largest of 1000 exponential values, whose mean is 5 us.
    fn series(cpu: u32, seconds: u64, seed: u64) -> Series {
        let mut series = Series { phase: "load".into(), role: "timer".into(), cpu: Some(cpu), ..Series::default() };
        let mut random = Random(seed);
        let mut raw = Histogram::default();
        for second in 0..seconds {
            let late_ns = to_i64(-5_000.0 * (-(random.uniform().ln() / 1000.0).exp_m1()).ln());
            series.maxima.add(second * 1_000_000_000, late_ns);
            raw.record(late_ns);
            series.max_ns = series.max_ns.max(Some(late_ns));
        }
        Series { raw, samples: seconds, ..series }
    }

    fn run(series: Vec<Series>, limits_ns: &[i64]) -> Record {
        let of = |&limit_ns: &i64| UseVerdict { limit_ns, ..UseVerdict::default() };
        Record {
            validity: Validity { valid: true, ..Validity::default() },
            series,
            uses: limits_ns.iter().map(of).collect(),
            ..Record::default()
        }
    }

    #[test]
    fn a_run_has_levels_of_times_that_it_can_speak_of() {
        let tails = tails(&run(vec![series(0, 181, 1)], &[200_000, 200_000, 10_000]));
        let [tail] = &tails[..] else { panic!("{tails:?}") };
        assert_eq!((tail.refused, tail.windows, tail.threads), (None, 180, 1));
        let times: Vec<u64> = tail.levels.iter().map(|level| level.once_in_ns / HOUR_NS).collect();
        assert_eq!(times, [1, 24], "a year is more than 10 000 times as long");
        let day = tail.levels[1].by_blocks;
        assert!(tail.max_ns < day.estimate_ns && day.low_ns < day.estimate_ns, "{tail:?}");
        assert!(day.high_ns.is_some_and(|high_ns| high_ns > day.estimate_ns), "{tail:?}");
        let [limit] = tail.limits[..] else { panic!("{tail:?}") };
        assert_eq!(limit.limit_ns, 200_000, "10 us was exceeded, and the other is asked for twice");
        assert!(limit.once_in_ns.is_none_or(|once_in_ns| once_in_ns > limit.at_least_ns), "{tail:?}");
        assert!((HOUR_NS / 2..=180 * FURTHEST * 1_000_000_000).contains(&limit.at_least_ns), "{tail:?}");
    }

    #[test]
    fn a_missing_answer_is_later_than_any_limit() {
        let limits = |lost: u64| {
            let trip = record::RoundTrip { lost, ..record::RoundTrip::default() };
            let kind = record::SeriesKind::RoundTrips(Box::new(trip));
            tails(&run(vec![Series { kind, ..series(0, 181, 1) }], &[200_000]))[0].limits.len()
        };
        assert_eq!((limits(0), limits(1)), (1, 0));
    }

    #[test]
    fn the_threads_of_a_role_count_together() {
        let (a, b) = (series(0, 181, 1), series(1, 181, 2));
        let listener = Series { role: "listener".into(), ..series(0, 30, 3) };
        let together = tails(&run(vec![a.clone(), b.clone(), listener], &[]));
        assert_eq!(together.iter().map(|tail| tail.threads).collect::<Vec<_>>(), [2, 1]);
        assert_eq!(together[0].max_ns, a.max_ns.max(b.max_ns).unwrap());
        assert_eq!(together[1].refused, Some(TailRefusal::TooShort));
        let alone = tails(&run(vec![a], &[]));
        assert!(alone[0].levels[0].by_blocks.low_ns < together[0].levels[0].by_blocks.estimate_ns);
    }

    #[test]
    fn the_largest_bound_counts_if_all_threads_have_one() {
        let bounded = |cpu, bound_ns| {
            let bound = CauseBound { bound_ns, ..CauseBound::default() };
            Series { cause_bound: Some(bound), ..series(cpu, 60, 1) }
        };
        let of = |series| tails(&run(series, &[]))[0].from_causes_ns;
        assert_eq!(of(vec![bounded(0, Some(70_000)), bounded(1, Some(90_000))]), Some(90_000));
        assert_eq!(of(vec![bounded(0, Some(70_000)), bounded(1, None)]), None);
        assert_eq!(of(vec![bounded(0, Some(70_000)), series(1, 60, 1)]), None);
    }

    #[test]
    fn an_unfinished_run_shows_the_latest_threads_of_its_phase() {
        let talker = Series { role: "talker".into(), ..series(1, 181, 2) };
        let early = Series { phase: "rest".into(), ..series(0, 181, 1) };
        let late = Series { max_ns: Some(1_000_000), ..series(0, 60, 3) };
        let mut run = run(vec![early, talker, late], &[]);
        let of = |run: &Record, phase| tail_so_far(run, phase, &[2_000_000]);
        let tail = of(&run, "load").unwrap();
        assert_eq!((tail.max_ns, tail.windows), (1_000_000, 59));
        assert_eq!(tail.limits.iter().map(|limit| limit.limit_ns).collect::<Vec<_>>(), [2_000_000]);
        assert_eq!(of(&run, "rest").unwrap().phase, "rest");
        assert_eq!(of(&run, "later"), None);
        run.validity.reasons.push(record::Reason::default());
        assert_eq!(of(&run, "load"), None);
    }

    #[test]
    fn windows_of_any_length_are_accepted() {
        for window_ns in [0, 1, u64::MAX] {
            let mut run = run(vec![series(0, 300, 1)], &[200_000]);
            run.series[0].maxima.window_ns = window_ns;
            assert_eq!(tails(&run)[0].window_ns, window_ns);
        }
    }

    #[test]
    fn an_invalid_run_says_nothing() {
        let invalid = Record { validity: Validity::default(), ..run(vec![series(0, 181, 1)], &[]) };
        assert!(tails(&invalid).is_empty());
    }
}
