//! The verdict on round trips: whether answers come back in time for a use.

use record::{Outcome, Record, RoundTrip, Series, UseVerdict};

use crate::{
    duration::{format_exact, format_ns},
    judge::{FAR, far_load},
    profile::Profile,
    statistics::Exposure,
};

/// Whether round trips hold the limits of `profile`, from when each datagram was to be sent.
///
/// The first rule that applies decides:
/// 1. INVALID when the record is; the figures are filled in all the same.
/// 2. INCONCLUSIVE when no round trip was measured.
/// 3. FAIL when one was longer than the limit.
/// 4. FAIL when a datagram had no answer, or the kernel refused it: what never comes is later than any limit. Slots that a
///    late sender ran over count by the round trip that ran over them.
/// 5. INCONCLUSIVE when a load did not run, the measured period is more than 8 times the use's, or the profile needs more.
/// 6. PASS.
pub(crate) fn judge(record: &Record, profile: &Profile) -> UseVerdict {
    let all: Vec<(&Series, &RoundTrip)> =
        record.series.iter().filter_map(|series| Some((series, series.kind.round_trip()?))).collect();
    let (outcome, reason) = decide(record, profile, &all);
    let worst = all.iter().max_by_key(|(series, _)| series.max_ns);
    let over_limit = |series: &Series| match series.max_ns {
        Some(max_ns) if max_ns > profile.limit_ns => series.raw.count_above(profile.limit_ns).max(1),
        _ => 0,
    };
    UseVerdict {
        profile: profile.name.clone(),
        title: profile.title.clone(),
        outcome,
        reason,
        period_ns: profile.period_ns,
        limit_ns: profile.limit_ns,
        worst_ns: worst.and_then(|(series, _)| series.max_ns),
        worst_where: worst.map(|(series, _)| series.phase.clone()).unwrap_or_default(),
        samples: all.iter().map(|(series, _)| series.samples).sum(),
        over_limit: all.iter().map(|(series, _)| over_limit(series)).sum(),
        missed: all.iter().map(|(_, trip)| absent(trip)).sum(),
        statement: worst.map_or_else(String::new, |(series, trip)| {
            let absent = absent(trip);
            let (cycles, over) = (series.samples + absent, over_limit(series) + absent);
            Exposure::of(cycles, over, series.period_ns, profile.period_ns).statement(profile.limit_ns)
        }),
        ..UseVerdict::default()
    }
}

/// Datagrams without an answer, and those that the kernel refused.
fn absent(round_trip: &RoundTrip) -> u64 {
    round_trip.lost + round_trip.send_failed
}

fn decide(record: &Record, profile: &Profile, all: &[(&Series, &RoundTrip)]) -> (Outcome, String) {
    let limit = format_ns(profile.limit_ns);
    if !record.validity.valid && record.published.is_none() {
        let ids: Vec<_> = record.validity.reasons.iter().map(|reason| reason.id.as_str()).collect();
        let why = if ids.is_empty() { "no reason given".to_owned() } else { ids.join(", ") };
        let text = format!(
            "what was asked for is not what ran ({why}), so this cannot tell whether {limit} of round trip holds"
        );
        return (Outcome::Invalid, text);
    }
    let command = measure(record, profile, all.first().copied());
    let Some((worst, max_ns)) =
        all.iter().filter_map(|(series, _)| Some((series, series.max_ns?))).max_by_key(|of| of.1)
    else {
        return (Outcome::Inconclusive, format!("it is about round trips, and none was measured: run `{command}`"));
    };
    if max_ns > profile.limit_ns {
        let text = format!("a round trip of {} ({}), above the limit of {limit}", format_ns(max_ns), worst.phase);
        return (Outcome::Fail, text);
    }
    if let Some((series, trip)) = all.iter().find(|(_, trip)| absent(trip) > 0) {
        let (phase, slots) = (&series.phase, trip.slots);
        let absent =
            format!("{} of {slots} datagrams lost, {} refused by the kernel ({phase})", trip.lost, trip.send_failed);
        return (Outcome::Fail, format!("{absent}: an answer that never comes is later than any limit"));
    }
    if let Some(reason) = not_enough(record, profile, all, &command) {
        return (Outcome::Inconclusive, reason);
    }
    let excellent = match profile.excellent_ns {
        Some(excellent_ns) if max_ns < excellent_ns => format!(", excellent (under {})", format_ns(excellent_ns)),
        _ => String::new(),
    };
    (Outcome::Pass, format!("at most {} there and back, within the limit of {limit}{excellent}", format_ns(max_ns)))
}

fn not_enough(record: &Record, profile: &Profile, all: &[(&Series, &RoundTrip)], command: &str) -> Option<String> {
    if let Some(load) = record.phases.iter().flat_map(|phase| &phase.loads).find(|load| !load.ran) {
        return Some(format!("the load {} did not run to its end: repeat with `{command}`", load.spec));
    }
    if let Some(reason) = far_load(record) {
        return Some(reason);
    }
    let slowest = all.iter().map(|(series, _)| series.period_ns).max()?;
    if slowest > FAR.saturating_mul(profile.period_ns) {
        let (measured, needed) = (format_ns(slowest as i64), format_ns(profile.period_ns as i64));
        return Some(format!("measured every {measured}, too coarse for a use every {needed}: run `{command}`"));
    }
    let fewest = all.iter().map(|(series, _)| series.samples).min()?;
    let needed = profile.samples_needed;
    (fewest < needed).then(|| format!("{fewest} of {needed} round trips needed: run `{command}`"))
}

/// The command that gives `profile` what it needs, to the same peer under the same loads.
fn measure(record: &Record, profile: &Profile, like: Option<(&Series, &RoundTrip)>) -> String {
    let Profile { name, period_ns, samples_needed, .. } = profile;
    // A tenth more than needed, in whole seconds.
    let seconds = (u128::from(*period_ns) * u128::from(*samples_needed) * 11).div_ceil(10_000_000_000).max(1);
    let peer = match like {
        Some((_, trip)) if !trip.own_peer && !trip.peer.is_empty() => trip.peer.as_str(),
        _ => "--self",
    };
    let mut command = format!(
        "punctual measure udp {peer} --period {} --duration {seconds}s --profile {name}",
        format_exact(*period_ns)
    );
    let phase = like.and_then(|(series, _)| record.phase(&series.phase));
    for load in phase.map_or(&[][..], |phase| &phase.asked_loads) {
        command.push_str(&format!(" --load {}", record::shell::command(&[load])));
    }
    command
}

#[cfg(test)]
mod tests {
    use record::{Histogram, Phase, ROUND_TRIP, SeriesKind};

    use super::*;
    use crate::builtin;

    /// Answers of 100 us, and one of `max_ns`.
    fn record(answers: u64, max_ns: i64, change: impl FnOnce(&mut Series)) -> Record {
        let mut raw = Histogram::default();
        raw.add(100_000, answers - 1);
        raw.record(max_ns);
        let round_trip = RoundTrip { peer: "192.0.2.7:7125".to_owned(), slots: answers, ..RoundTrip::default() };
        let mut series = Series {
            role: ROUND_TRIP.to_owned(),
            phase: "load".to_owned(),
            period_ns: 1_000_000,
            samples: answers,
            max_ns: Some(max_ns),
            corrected: raw.clone(),
            raw,
            kind: SeriesKind::RoundTrips(Box::new(round_trip)),
            ..Series::default()
        };
        change(&mut series);
        let phase = Phase { name: "load".to_owned(), asked_loads: vec!["cpu".to_owned()], ..Phase::default() };
        let mut record = Record { phases: vec![phase], series: vec![series], ..Record::default() };
        record.validity.valid = true;
        record
    }

    #[track_caller]
    fn judged(record: &Record, outcome: Outcome, reason: &str) -> UseVerdict {
        let profile = builtin().iter().find(|profile| profile.name == "udp-control-1ms").unwrap();
        let verdict = crate::judge(record, profile);
        assert_eq!((verdict.outcome, verdict.reason.as_str()), (outcome, reason));
        verdict
    }

    #[test]
    fn the_longest_round_trip_decides() {
        judged(
            &record(5_000, 1_000_000, |_| ()),
            Outcome::Pass,
            "at most 1 ms there and back, within the limit of 1 ms",
        );
        let long = record(5_000, 1_000_001, |_| ());
        let verdict = judged(&long, Outcome::Fail, "a round trip of 1.00 ms (load), above the limit of 1 ms");
        assert_eq!((verdict.over_limit, verdict.worst_ns), (1, Some(1_000_001)));
    }

    #[test]
    fn what_never_comes_fails() {
        let lossy = record(5_000, 200_000, |series| {
            series.missed = 7;
            let SeriesKind::RoundTrips(round_trip) = &mut series.kind else { panic!("round trips") };
            (round_trip.lost, round_trip.send_failed) = (3, 2);
        });
        let verdict = judged(
            &lossy,
            Outcome::Fail,
            "3 of 5000 datagrams lost, 2 refused by the kernel (load): an answer that never comes is later than any limit",
        );
        assert_eq!(verdict.missed, 5);
    }

    #[test]
    fn too_little_or_nothing_is_inconclusive_and_says_what_to_run() {
        let again =
            "run `punctual measure udp 192.0.2.7:7125 --period 1ms --duration 6s --profile udp-control-1ms --load cpu`";
        judged(
            &record(4_999, 200_000, |_| ()),
            Outcome::Inconclusive,
            &format!("4999 of 5000 round trips needed: {again}"),
        );
        let coarse = record(5_000, 200_000, |series| series.period_ns = 10_000_000);
        judged(
            &coarse,
            Outcome::Inconclusive,
            &format!("measured every 10 ms, too coarse for a use every 1 ms: {again}"),
        );
        let mut other = record(5_000, 200_000, |series| series.kind = SeriesKind::WakeUps);
        judged(
            &other,
            Outcome::Inconclusive,
            "it is about round trips, and none was measured: run `punctual measure udp --self --period 1ms --duration 6s \
             --profile udp-control-1ms`",
        );
        other.validity.valid = false;
        judged(
            &other,
            Outcome::Invalid,
            "what was asked for is not what ran (no reason given), so this cannot tell whether 1 ms of round trip holds",
        );
    }
}
