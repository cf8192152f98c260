//! The verdict on a largest latency, by the rule of OpenShift's latency tests: a run fails at the first latency that
//! reaches the limit, and passes after any time without one. The reason of a PASS states the rate that its time leaves
//! possible.

use record::{Obstacle, Outcome, Record, Series, Verdict, counted, grouped};

use crate::{duration::format_ns, float::to_u64, gaps, stalls, summary::unsure_maximum};

/// Events that remain possible at 95 % if none was observed.
const POSSIBLE_EVENTS: f64 = 3.0;

/// The verdict for the limit that no latency may reach; `None` without such a limit.
pub fn verdict(record: &Record) -> Option<Verdict> {
    let limit_ns = record.scenario.limit_ns?;
    let (outcome, reason) = judge(record, i64::try_from(limit_ns).unwrap_or(i64::MAX));
    Some(Verdict { outcome, reason })
}

fn judge(record: &Record, limit_ns: i64) -> (Outcome, String) {
    let limit = format!("the limit of {}", format_ns(limit_ns));
    let obstacle = record.obstacle();
    if let Some(invalid @ Obstacle::Invalid(_)) = &obstacle {
        return (Outcome::Invalid, format!("{invalid}, so the run does not show whether {limit} holds"));
    }
    let Some((worst, worst_ns)) = worst(record) else {
        return (Outcome::Inconclusive, "nothing was measured".to_owned());
    };
    let unmeasured = record.probe_series().find(|series| latency(series).is_none());
    let worst = format!("the largest latency was {} ({})", format_ns(worst_ns), worst.place());
    if worst_ns >= limit_ns {
        return (Outcome::Fail, format!("{worst}, not below {limit}"));
    }
    if let Some(obstacle) = obstacle {
        return (Outcome::Inconclusive, format!("{obstacle}; {worst}"));
    }
    if let Some(series) = unmeasured {
        return (Outcome::Inconclusive, format!("nothing was measured on {}; {worst}", series.place()));
    }
    if let Some(why) = incomplete(record, limit_ns) {
        return (Outcome::Inconclusive, format!("{why}; {worst}"));
    }
    let measured_ns = record.phases.iter().map(|phase| phase.duration_ns).fold(0, u64::saturating_add);
    let per_hour = POSSIBLE_EVENTS * 3600e9 / measured_ns.max(1) as f64;
    let per_hour = match per_hour {
        ..10.0 => ((per_hour * 10.0).ceil() / 10.0).to_string(),
        _ => grouped(to_u64(per_hour.ceil())),
    };
    (Outcome::Pass, format!("{worst}, below {limit}; at 95 %, fewer than {per_hour} an hour reach it on each CPU"))
}

/// The reason why the record can lack a latency that reached the limit.
fn incomplete(record: &Record, limit_ns: i64) -> Option<String> {
    let without_wake_up = |series: &Series| {
        let missed = stalls::without_late_wake_up(series);
        let reaches = missed > 0 && missed.saturating_mul(series.period_ns) >= limit_ns.max(0).unsigned_abs();
        reaches.then(|| format!("{} passed without a late wake-up on {}", counted(missed, "deadline"), series.place()))
    };
    let of_series = |series: &Series| unsure_maximum(series).or_else(|| without_wake_up(series));
    record.probe_series().find_map(of_series).or_else(|| gaps::hidden(record, limit_ns))
}

/// The series with the largest latency.
fn worst(record: &Record) -> Option<(&Series, i64)> {
    record.probe_series().filter_map(|series| Some((series, latency(series)?))).max_by_key(|&(_, ns)| ns)
}

/// The largest latency of a series, ns; 0 for one without any gap, and `None` if nothing was measured.
fn latency(series: &Series) -> Option<i64> {
    let is_observed = series.kind.noise().is_some_and(|noise| noise.observed_ns > 0);
    series.max_ns.or_else(|| is_observed.then_some(0))
}

#[cfg(test)]
mod tests {
    use record::{Phase, Reason};

    use super::*;

    /// A run of 600 s whose largest latency is 17 us.
    fn measured() -> Record {
        let (mut record, duration_ns) = (Record::default(), 600_000_000_000);
        record.state = record::State::Complete;
        record.validity.valid = true;
        record.phases = vec![Phase { duration_ns, planned_ns: Some(duration_ns), ..Phase::default() }];
        let mut series = Series { cpu: Some(3), samples: 600_000, period_ns: 1_000_000, ..Series::default() };
        series.max_ns = Some(17_000);
        series.raw.add(17_000, 600_000);
        record.series = vec![series];
        record
    }

    #[test]
    fn a_latency_as_large_as_the_limit_fails() {
        assert_eq!(judge(&measured(), 17_000).0, Outcome::Fail);
        let (outcome, reason) = judge(&measured(), 18_000);
        assert_eq!(outcome, Outcome::Pass);
        assert!(reason.contains("was 17 us (CPU 3)") && reason.contains("fewer than 18 an hour"), "{reason}");
    }

    #[test]
    fn only_a_valid_and_complete_run_passes() {
        let mut invalid = measured();
        invalid.validity.valid = false;
        invalid.validity.reasons = vec![Reason { text: "no real-time priority".to_owned(), ..Reason::default() }];
        assert_eq!(judge(&invalid, 18_000).0, Outcome::Invalid);
        let mut partial = measured();
        partial.state = record::State::Interrupted;
        assert_eq!(judge(&partial, 18_000).0, Outcome::Inconclusive);
        assert_eq!(judge(&partial, 17_000).0, Outcome::Fail);
        let mut idle = measured();
        idle.series.push(Series { cpu: Some(4), ..Series::default() });
        let (outcome, reason) = judge(&idle, 18_000);
        assert!(outcome == Outcome::Inconclusive && reason.starts_with("nothing was measured on CPU 4"), "{reason}");
        let mut empty = measured();
        empty.series.clear();
        assert_eq!(judge(&empty, 18_000).0, Outcome::Inconclusive);
    }

    #[test]
    fn a_record_that_can_lack_a_latency_does_not_pass() {
        let outcome = |change: fn(&mut Series)| {
            let mut record = measured();
            change(&mut record.series[0]);
            judge(&record, 18_000).0
        };
        assert_eq!(outcome(|_| ()), Outcome::Pass);
        assert_eq!(outcome(|series| series.missed = 1), Outcome::Inconclusive, "a deadline passed without a wake-up");
        let noise = |latest_start_ns| record::Noise { latest_start_ns, observed_ns: 9, ..record::Noise::default() };
        let gaps = |latest_start_ns| record::SeriesKind::Gaps(Box::new(noise(latest_start_ns)));
        let mut of_gaps = measured();
        of_gaps.series[0].kind = gaps(Some(5_000));
        assert_eq!(judge(&of_gaps, 18_000).0, Outcome::Pass);
        of_gaps.series[0].max_ns = None;
        assert_eq!(judge(&of_gaps, 18_000).0, Outcome::Inconclusive, "gaps without the longest");
        of_gaps.series[0].max_ns = Some(17_000);
        of_gaps.series[0].kind = gaps(Some(19_000));
        assert_eq!(judge(&of_gaps, 18_000).0, Outcome::Inconclusive, "a gap can be hidden");
    }
}
