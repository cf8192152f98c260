//! The verdict on a thread that never sleeps: a gap is time in which something else used its CPU.

use record::{Outcome, Record, Series, UseVerdict, shell::with_options};

use crate::{
    duration::{format_exact, format_ns, format_unsigned_ns},
    profile::Profile,
    rules::{
        Obstacles, Shown, duration_observed, excellent, given_options, load_options, measure_longer, of_emulation,
        profile_option, shown, thread_options, weakest,
    },
    stalls,
    statistics::Exposure,
    summary::{max_of, unsure_maximum, when},
};

/// True if the record contains gaps and no wake-ups.
pub(crate) fn is_about(record: &Record) -> bool {
    let mut series = record.probe_series().peekable();
    series.peek().is_some() && series.all(|series| series.kind.noise().is_some())
}

/// Judges whether a thread that polls instead of sleeping would hold the limit of `profile`.
///
/// The first rule that applies decides:
/// 1. INVALID if the record is invalid or contradicts itself; the figures are still filled in.
/// 2. INCONCLUSIVE if nothing was observed.
/// 3. FAIL if there were more stalls than the profile tolerates in the observed time: gaps longer than the limit.
/// 4. INCONCLUSIVE if gaps longer than the limit may be hidden, the run ended early, a load did not run, or the run was
///    too short to show the tolerated rate.
/// 5. PASS.
pub(crate) fn judge(record: &Record, profile: &Profile) -> UseVerdict {
    let all: Vec<&Series> = record.probe_series().collect();
    let exposures = exposures(record, profile);
    let command = command_to_measure(record, profile, &exposures);
    let mut obstacles = Obstacles::of(record, |_| command.clone());
    obstacles.no_pass = obstacles
        .no_pass
        .or_else(|| hidden(record, profile.limit_ns))
        .or_else(|| all.iter().find_map(|series| unsure_maximum(series)));
    let worst = all.iter().copied().max_by_key(|series| max_of(series));
    let (outcome, reason) = decide(record, profile, &exposures, worst, &obstacles, &command);
    let weakest = weakest(&exposures);
    UseVerdict {
        worst_ns: worst.and_then(max_of),
        worst_where: worst.map(place).unwrap_or_default(),
        samples: all.iter().map(|series| series.samples).sum(),
        over_limit: all.iter().map(|series| stalls::late_wake_ups(series, profile.limit_ns)).sum(),
        statement: weakest.map_or_else(String::new, |exposure| exposure.statement(profile.limit_ns)),
        clean_so_far: outcome == Outcome::Inconclusive
            && obstacles.no_pass.is_none()
            && exposures.iter().all(|exposure| exposure.cycles > 0 && exposure.late.stalls.total == 0),
        ..profile.verdict(outcome, reason)
    }
}

/// Why gaps longer than the limit may have been missed.
pub(crate) fn hidden(record: &Record, limit_ns: i64) -> Option<String> {
    let limit = format_ns(limit_ns);
    let limit_ns = limit_ns.max(0).unsigned_abs();
    record.probe_series().find_map(|series| {
        let noise = series.kind.noise()?;
        if noise.threshold_ns > limit_ns {
            let threshold = format_unsigned_ns(noise.threshold_ns);
            let again = with_options(&record.command, &[("--threshold", &format_exact(limit_ns))]);
            return Some(format!("gaps up to {threshold} were not counted, but the limit is {limit}: run `{again}`"));
        }
        let Some(latest_start_ns) = noise.latest_start_ns else {
            let place = place(series);
            return Some(format!("the record does not contain how late the thread began to observe ({place})"));
        };
        (latest_start_ns > limit_ns).then(|| {
            let late = format_unsigned_ns(latest_start_ns);
            format!(
                "the thread began to observe up to {late} late ({}), above the limit of {limit}: what delayed it may be a \
                 gap that was not counted; see it with `punctual measure timer`",
                place(series)
            )
        })
    })
}

/// The cycles of the use in the observed time of each series. A gap longer than the limit makes cycles late.
pub(crate) fn exposures(record: &Record, profile: &Profile) -> Vec<Exposure> {
    let any_time = record.scenario.until_decided;
    let exposure = |series: &Series| {
        let observed_ns = series.kind.noise().map_or(0, |noise| noise.observed_ns);
        let late = stalls::late(series, profile.period_ns, profile.limit_ns);
        let cycles = observed_ns / profile.period_ns.max(1);
        Exposure { any_time, ..Exposure::of(cycles, late.count(), profile.period_ns, profile.period_ns) }
    };
    record.probe_series().map(exposure).collect()
}

fn decide(
    record: &Record,
    profile: &Profile,
    exposures: &[Exposure],
    worst: Option<&Series>,
    obstacles: &Obstacles,
    command: &str,
) -> (Outcome, String) {
    let limit = format_ns(profile.limit_ns);
    if let Some(why) = &obstacles.invalid {
        return (Outcome::Invalid, format!("{why}, so it does not show whether {limit} holds for a polling thread"));
    }
    let Some(weakest) = weakest(exposures).filter(|exposure| exposure.cycles > 0) else {
        return (Outcome::Inconclusive, format!("no cycle of the use was observed: run `{command}`"));
    };
    let longest = worst.and_then(|series| Some((series, max_of(series)?)));
    let of_longest = longest.map_or_else(
        || "no gap in a polling thread".to_owned(),
        |(series, max_ns)| format!("the longest gap in a polling thread was {} ({})", format_ns(max_ns), place(series)),
    );
    match (shown(profile, exposures), &obstacles.no_pass) {
        (Shown::Exceeded, _) => (Outcome::Fail, format!("{of_longest}, above the limit of {limit}")),
        (Shown::Kept | Shown::Open, Some(reason)) => (Outcome::Inconclusive, reason.clone()),
        (Shown::Open, None) => {
            let run = format!("run `{command}`");
            (Outcome::Inconclusive, measure_longer(profile, &weakest, "a polling thread", &run))
        }
        (Shown::Kept, None) => {
            let max_ns = longest.map_or(0, |(_, max_ns)| max_ns);
            let kept = if max_ns > profile.limit_ns { "rarely above" } else { "within" };
            let (excellent, emulated) = (excellent(profile, max_ns), of_emulation(record));
            let (bound, tolerates) = (weakest.bound_per_span(), profile.tolerates);
            let text = format!(
                "{of_longest}, {kept} the limit of {limit}{excellent}; {bound}, {tolerates} is tolerated; wake-ups were \
                 not measured{emulated}"
            );
            (Outcome::Pass, text)
        }
    }
}

fn place(series: &Series) -> String {
    series.cpu.map_or_else(|| when(series), |cpu| format!("CPU {cpu}, {}", when(series)))
}

/// The command that observes enough for `profile` under the same loads.
fn command_to_measure(record: &Record, profile: &Profile, exposures: &[Exposure]) -> String {
    let loads = record.phases.last().map_or(&[][..], |phase| &phase.asked_loads);
    let duration = duration_observed(profile, weakest(exposures).as_ref(), observed_share(record));
    let loads = load_options(loads);
    let (threads, profile) = (thread_options(record), profile_option(profile));
    let threads = threads + &given_options(record, &["--period", "--runtime"]);
    format!("punctual measure noise{threads} --duration {duration}{profile}{loads}")
}

/// The smallest share of a period that a thread observes: its `--runtime`. Above 0 and at most 1.
fn observed_share(record: &Record) -> f64 {
    let share = |series: &Series| {
        let noise = series.kind.noise()?;
        let share = noise.runtime_ns as f64 / series.period_ns as f64;
        (share > 0.0 && share < 1.0).then_some(share)
    };
    record.series.iter().filter_map(share).fold(1.0, f64::min)
}

#[cfg(test)]
mod tests {
    use record::{Histogram, Noise, Phase, SeriesKind, State, Validity};

    use super::*;
    use crate::profiles;

    const HOUR_NS: u64 = 3_600_000_000_000;

    /// Ten hours without sleep, with a hundred gaps of 5 us and one of `longest_ns`.
    fn record(longest_ns: i64, observed_ns: u64) -> Record {
        let mut raw = Histogram::default();
        raw.add(5_000, 100);
        raw.add(longest_ns, 1);
        let noise = Noise { observed_ns, threshold_ns: 1_000, latest_start_ns: Some(9_000), ..Noise::default() };
        let series = Series {
            phase: "rest".to_owned(),
            role: record::NOISE.to_owned(),
            cpu: Some(3),
            period_ns: 1_000_000_000,
            samples: 101,
            max_ns: Some(longest_ns),
            raw,
            kind: SeriesKind::Gaps(Box::new(noise)),
            ..Series::default()
        };
        let validity = Validity { valid: true, reasons: Vec::new() };
        let phases = vec![Phase { name: "rest".to_owned(), duration_ns: observed_ns, ..Phase::default() }];
        Record { state: State::Complete, validity, phases, series: vec![series], ..Record::default() }
    }

    fn judged(record: &Record) -> UseVerdict {
        let profile = profiles().iter().find(|profile| profile.name == "avb-class-a").unwrap();
        crate::judge(record, profile)
    }

    #[test]
    fn gaps_above_the_limit_fail_and_rare_short_ones_pass() {
        let passed = judged(&record(12_000, 10 * HOUR_NS));
        assert_eq!((passed.outcome, passed.over_limit), (Outcome::Pass, 0), "{}", passed.reason);
        assert!(passed.reason.contains("wake-ups were not measured"), "{}", passed.reason);
        let failed = judged(&record(400_000, HOUR_NS / 60));
        assert_eq!((failed.outcome, failed.over_limit), (Outcome::Fail, 1), "{}", failed.reason);
        assert!(failed.reason.contains("400 us (CPU 3, at rest), above the limit of 50"), "{}", failed.reason);
    }

    #[test]
    fn gaps_that_may_be_hidden_support_no_pass() {
        let with = |change: fn(&mut Noise), longest_ns, minutes| {
            let mut record = record(longest_ns, minutes * HOUR_NS / 60);
            record.command = ["punctual", "measure", "noise", "--threshold", "60us"].map(str::to_owned).to_vec();
            let SeriesKind::Gaps(noise) = &mut record.series[0].kind else { unreachable!() };
            change(noise);
            let profile = profiles().iter().find(|profile| profile.name == "avb-class-a").unwrap();
            (judged(&record).outcome, judged(&record).reason, crate::so_far(&record, profile))
        };
        let (outcome, reason, so_far) = with(|noise| noise.threshold_ns = 50_001, 12_000, 600);
        assert_eq!((outcome, so_far), (Outcome::Inconclusive, crate::SoFar::Nothing));
        assert_eq!(
            reason,
            "gaps up to 50.0 us were not counted, but the limit is 50 us: run `punctual measure noise --threshold 50us`"
        );
        let (outcome, reason, _) = with(|noise| noise.latest_start_ns = Some(50_001), 12_000, 600);
        assert_eq!(outcome, Outcome::Inconclusive);
        assert!(
            reason.starts_with("the thread began to observe up to 50.0 us late (CPU 3, at rest), above"),
            "{reason}"
        );
        assert_eq!(with(|noise| noise.latest_start_ns = Some(50_000), 12_000, 600).0, Outcome::Pass);
        assert_eq!(with(|noise| noise.latest_start_ns = None, 12_000, 600).0, Outcome::Inconclusive, "version 0.1");
        assert_eq!(with(|noise| noise.threshold_ns = 90_000, 400_000, 1).0, Outcome::Fail, "longer gaps count");
    }

    #[test]
    fn a_short_time_decides_nothing() {
        let open = judged(&record(12_000, HOUR_NS / 60));
        assert_eq!(open.outcome, Outcome::Inconclusive, "{}", open.reason);
        assert!(open.clean_so_far && open.reason.contains("punctual measure noise --duration"), "{}", open.reason);
        // A thread that observes a tenth of its time needs ten times as long.
        let mut sleeps = record(5_000, 1_000_000_000);
        let duration = |record: &Record| {
            let reason = judged(record).reason;
            let duration =
                reason.split("--duration ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap_or_default();
            crate::duration::parse_ns(duration).unwrap()
        };
        let whole_ns = duration(&sleeps);
        let period_ns = sleeps.series[0].period_ns;
        if let SeriesKind::Gaps(noise) = &mut sleeps.series[0].kind {
            noise.runtime_ns = period_ns / 10;
        }
        assert!((9 * whole_ns..=11 * whole_ns).contains(&duration(&sleeps)), "{whole_ns}");
        let nothing = judged(&record(12_000, 0));
        assert!(nothing.reason.contains("no cycle of the use was observed"), "{}", nothing.reason);
    }
}
