//! The verdict on a watched program by the limits of a use.

use record::{Cycle, Outcome, ProcessThread, Record, Series, UseVerdict};

use super::{Limits, cycle, exceeded, incomplete, threads, too_few};
use crate::{
    duration::{format_ns, format_unsigned_ns},
    events::Events,
    profile::Profile,
    rules::{Obstacles, Shown, duration_needed, excellent, measure_longer, of_emulation, shown, weakest},
    stalls::{self, Missing},
    statistics::Exposure,
    summary::max_of,
};

/// Judges whether the selected threads hold `profile`: each waits for a CPU at most the limit after a wake-up, and each of
/// its cycles takes at most the period.
///
/// The first rule that applies decides:
/// 1. INVALID if the record is invalid or contradicts itself; the figures are still filled in.
/// 2. FAIL if a thread had more stalls than the profile tolerates in the observed time: later wake-ups, or longer cycles.
/// 3. INCONCLUSIVE if figures are missing, or the starts of cycles are unknown, or the run was too short to show the
///    tolerated rate.
/// 4. PASS.
pub(crate) fn judge(record: &Record, profile: &Profile) -> UseVerdict {
    let threads = threads(record);
    let limits = Limits {
        latency_ns: Some(profile.limit_ns.unsigned_abs()),
        missed: None,
        response_ns: Some(profile.period_ns),
    };
    let exposures: Vec<Exposure> = threads.iter().map(|thread| exposure(thread, profile)).collect();
    let obstacles = Obstacles::of(record, |load| format!("the same command with --load {load}"));
    let (outcome, reason) = decide(record, profile, &threads, limits, &exposures, &obstacles);
    let weakest = weakest(&exposures);
    let latest = threads.first().map(|(series, _)| *series).filter(|series| max_of(series).is_some());
    UseVerdict {
        worst_ns: latest.and_then(max_of),
        worst_where: latest.map(|series| series.role.clone()).unwrap_or_default(),
        samples: threads.iter().map(|(series, _)| series.samples).sum(),
        over_limit: threads.iter().map(|(series, _)| stalls::late_wake_ups(series, profile.limit_ns)).sum(),
        statement: weakest.map_or_else(String::new, |exposure| exposure.statement(profile.limit_ns)),
        ..profile.verdict(outcome, reason)
    }
}

/// The cycles of the use in the time of a thread, and its stalls. A thread with fewer cycles of its own shows no more than
/// these.
fn exposure((series, thread): &(&Series, &ProcessThread), profile: &Profile) -> Exposure {
    let period_ns = profile.period_ns.max(1);
    let known_ns = thread.times.total_ns().saturating_sub(thread.times.unknown_ns);
    let cycles = (known_ns / period_ns).min(thread.cycles);
    let late = stalls::late(series, period_ns, profile.limit_ns).with(too_long(thread, period_ns));
    let exposure = Exposure::of(cycles, late.count(), period_ns, period_ns);
    // A thread with few cycles of its own was watched for longer.
    Exposure { lasted_ns: exposure.lasted_ns.max(known_ns), ..exposure }
}

/// The cycles that took longer than the period. Of cycles that may contain the wait for the next one, only those count that
/// are certainly too long.
fn too_long(thread: &ProcessThread, period_ns: u64) -> Events {
    let is_too_long = |cycle: &&Cycle| cycle::certain_ns(thread, cycle) > period_ns;
    let ended = if cycle::may_contain_idle_time(thread) {
        thread.worst_cycles.iter().filter(is_too_long).count() as u64
    } else if thread.longest.iter().any(|longest| is_too_long(&longest)) {
        thread.response.count_above(i64::try_from(period_ns).unwrap_or(i64::MAX)).max(1)
    } else {
        0
    };
    let open = u64::from(thread.open.iter().any(|open| is_too_long(&open)));
    stalls::of_missing(Missing::anywhere(ended.saturating_add(open)), period_ns, period_ns)
}

fn decide(
    record: &Record,
    profile: &Profile,
    threads: &[(&Series, &ProcessThread)],
    limits: Limits,
    exposures: &[Exposure],
    obstacles: &Obstacles,
) -> (Outcome, String) {
    if let Some(why) = &obstacles.invalid {
        return (Outcome::Invalid, format!("{why}, so it does not show whether the program holds the limits"));
    }
    if threads.is_empty() {
        return (Outcome::Inconclusive, "none of the selected threads ran, so nothing was measured".to_owned());
    }
    let shown = shown(profile, exposures);
    if shown == Shown::Exceeded {
        return (Outcome::Fail, exceeded(threads, limits).join("; "));
    }
    let missing = obstacles.no_pass.clone().or_else(|| incomplete(record, limits));
    if let Some(why) = missing.or_else(|| too_few(threads, limits)) {
        return (Outcome::Inconclusive, why);
    }
    match weakest(exposures).filter(|_| shown == Shown::Open) {
        Some(weakest) => (Outcome::Inconclusive, open(profile, threads, exposures, &weakest)),
        None => (Outcome::Pass, pass(record, profile, threads, exposures)),
    }
}

/// Names the thread that showed least.
fn open(
    profile: &Profile,
    threads: &[(&Series, &ProcessThread)],
    exposures: &[Exposure],
    weakest: &Exposure,
) -> String {
    let place = exposures.iter().position(|exposure| exposure == weakest).and_then(|index| threads.get(index));
    let role = place.map_or("", |(series, _)| series.role.as_str());
    if weakest.cycles == 0 {
        return format!("no cycle of {role} was measured: select the threads of the use with --thread");
    }
    let duration = duration_needed(profile, Some(weakest));
    let longer = format!("measure for {duration} or longer, or select the threads of the use with --thread");
    measure_longer(profile, weakest, role, &longer)
}

fn pass(record: &Record, profile: &Profile, threads: &[(&Series, &ProcessThread)], exposures: &[Exposure]) -> String {
    let latest_ns = threads.iter().filter_map(|(series, _)| max_of(series)).max().unwrap_or(0);
    let longest_ns = threads.iter().filter_map(|(_, thread)| Some(thread.longest.as_ref()?.response_ns())).max();
    let longest = longest_ns.map_or_else(String::new, |ns| format!(", cycles took at most {}", format_unsigned_ns(ns)));
    let bound = weakest(exposures).map_or_else(String::new, |exposure| exposure.bound_per_span());
    format!(
        "the threads waited at most {} for a CPU after a wake-up (limit {}){}{longest} (period {}); {bound}, {} is \
         tolerated; a late timer counts only in the length of its cycle{}",
        format_ns(latest_ns),
        format_ns(profile.limit_ns),
        excellent(profile, latest_ns),
        format_unsigned_ns(profile.period_ns),
        profile.tolerates,
        of_emulation(record)
    )
}

#[cfg(test)]
mod tests {
    use record::{Histogram, Phase, Program, Release, SeriesKind, State, ThreadTimes, Validity};

    use super::*;
    use crate::find_profile;

    /// A thread of 100 000 cycles of 1 ms in which wake-ups were up to `late_ns` late and cycles took up to `longest_ns`.
    fn record(late_ns: i64, longest_ns: u64) -> Record {
        let (mut series, mut thread) = (Series::default(), ProcessThread::default());
        thread.cycles = 100_000;
        thread.release = Release::AbsoluteSleep;
        thread.times = ThreadTimes { blocked_ns: 100_000_000_000, ..ThreadTimes::default() };
        series.raw.add(5_000, 99_999);
        series.raw.add(late_ns, 1);
        thread.response.add(50_000, 99_999);
        thread.response.add(longest_ns.cast_signed(), 1);
        let times = ThreadTimes { running_ns: longest_ns, ..ThreadTimes::default() };
        thread.longest = Some(Cycle { times, ..Cycle::default() });
        (series.role, series.phase) = ("servo/7".into(), "run".into());
        (series.samples, series.max_ns) = (100_000, Some(late_ns));
        series.kind = SeriesKind::Process(Box::new(thread));
        let validity = Validity { valid: true, ..Validity::default() };
        let phases = vec![Phase { name: "run".into(), duration_ns: 100_000_000_000, ..Phase::default() }];
        let (program, state) = (Some(Program::default()), State::Complete);
        Record { program, state, phases, series: vec![series], validity, ..Record::default() }
    }

    fn thread(record: &mut Record) -> &mut ProcessThread {
        match &mut record.series[0].kind {
            SeriesKind::Process(thread) => thread,
            _ => unreachable!("the series is one of a program"),
        }
    }

    /// A control loop of 1 ms that tolerates two stalls a minute, of wake-ups that are more than 100 us late.
    fn profile() -> Profile {
        let control = find_profile("control-1khz").unwrap();
        Profile { limit_ns: 100_000, tolerates: "2 per minute".parse().unwrap(), ..control }
    }

    #[test]
    fn wake_ups_and_cycles_must_both_be_on_time() {
        let of = |record: &Record| judge(record, &profile());
        let verdict = of(&record(50_000, 400_000));
        assert_eq!(verdict.outcome, Outcome::Pass, "{}", verdict.reason);
        assert_eq!((verdict.worst_ns, verdict.worst_where.as_str()), (Some(50_000), "servo/7"));
        let mut late = record(150_000, 400_000);
        late.series[0].raw.add(150_000, 9_000);
        late.series[0].samples += 9_000;
        let verdict = of(&late);
        assert_eq!(verdict.outcome, Outcome::Fail);
        assert_eq!(verdict.reason, "servo/7 waited 150 us for a CPU after a wake-up (limit 100 us)");
        let mut slow = record(50_000, 1_500_000);
        thread(&mut slow).response.add(1_500_000, 9_000);
        thread(&mut slow).cycles += 9_000;
        let longest = thread(&mut slow).longest.clone().unwrap();
        thread(&mut slow).worst_cycles = vec![longest];
        let verdict = of(&slow);
        assert_eq!(verdict.outcome, Outcome::Fail);
        assert_eq!(verdict.reason, "a cycle of servo/7 took 1.5 ms (limit 1 ms)");
    }

    #[test]
    fn a_pass_needs_known_and_enough_cycles() {
        let mut short = record(50_000, 400_000);
        thread(&mut short).cycles = 5_000;
        thread(&mut short).response = Histogram::default();
        thread(&mut short).response.add(50_000, 5_000);
        let verdict = judge(&short, &profile());
        assert_eq!(verdict.outcome, Outcome::Inconclusive);
        assert!(
            verdict.reason.starts_with("none late so far, ") && verdict.reason.contains("(servo/7)"),
            "{}",
            verdict.reason
        );
        for release in [Release::Mixed, Release::AnyEvent] {
            let mut unclear = record(50_000, 400_000);
            thread(&mut unclear).release = release;
            let verdict = judge(&unclear, &profile());
            assert_eq!(verdict.outcome, Outcome::Inconclusive, "{release:?}");
            assert!(verdict.reason.contains("which wait starts a cycle of servo/7"), "{}", verdict.reason);
        }
        let mut lost = record(50_000, 400_000);
        lost.series[0].kind =
            SeriesKind::Process(Box::new(ProcessThread { switches_missing: 5_000, ..thread(&mut lost).clone() }));
        assert_eq!(judge(&lost, &profile()).outcome, Outcome::Inconclusive);
        let mut invalid = record(50_000, 400_000);
        invalid.validity.valid = false;
        assert_eq!(judge(&invalid, &profile()).outcome, Outcome::Invalid);
        assert_eq!(judge(&Record { series: vec![], ..record(5, 5) }, &profile()).outcome, Outcome::Inconclusive);
    }
}
