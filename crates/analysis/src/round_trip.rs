//! The verdict on round trips.

use record::{Outcome, Record, RoundTrip, Series, UseVerdict};

use crate::{
    duration::{format_exact, format_ns, format_unsigned_ns},
    profile::Profile,
    rules::{FAR, cut_short, excellent, far_load, invalid_ids, load_options, seconds_needed},
    statistics::Exposure,
};

/// Judges whether round trips hold the limits of `profile`, from the scheduled send time of each datagram.
///
/// The first rule that applies decides:
/// 1. INVALID if the record is invalid, unless it was published elsewhere; the figures are still filled in.
/// 2. INCONCLUSIVE if no round trip was measured.
/// 3. FAIL if a round trip was longer than the limit.
/// 4. FAIL if a datagram had no answer or was refused by the kernel, because a missing answer counts as later than any
///    limit. Slots that a late sender missed count through the round trip that delayed them.
/// 5. INCONCLUSIVE if the run ended early, a load did not run, the measured period is more than 8 times the use's, or the profile needs
///    more.
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
        let why = invalid_ids(record);
        let text = format!(
            "the run did not go as requested ({why}), so it does not show whether {limit} holds for round trips"
        );
        return (Outcome::Invalid, text);
    }
    let command = command_to_measure(record, profile, all.first().copied());
    let Some((worst, max_ns)) =
        all.iter().filter_map(|(series, _)| Some((series, series.max_ns?))).max_by_key(|of| of.1)
    else {
        return (
            Outcome::Inconclusive,
            format!("the profile is about round trips, but none was measured: run `{command}`"),
        );
    };
    if max_ns > profile.limit_ns {
        let text = format!("a round trip of {} ({}), above the limit of {limit}", format_ns(max_ns), worst.phase);
        return (Outcome::Fail, text);
    }
    if let Some((series, trip)) = all.iter().find(|(_, trip)| absent(trip) > 0) {
        let (phase, slots) = (&series.phase, trip.slots);
        let absent =
            format!("{} of {slots} datagrams lost, {} refused by the kernel ({phase})", trip.lost, trip.send_failed);
        return (Outcome::Fail, format!("{absent}: a missing answer counts as later than any limit"));
    }
    if let Some(reason) = not_enough(record, profile, all, &command) {
        return (Outcome::Inconclusive, reason);
    }
    let excellent = excellent(profile, max_ns);
    (Outcome::Pass, format!("at most {} for a round trip, within the limit of {limit}{excellent}", format_ns(max_ns)))
}

fn not_enough(record: &Record, profile: &Profile, all: &[(&Series, &RoundTrip)], command: &str) -> Option<String> {
    if let Some(load) = record.phases.iter().flat_map(|phase| &phase.loads).find(|load| !load.ran) {
        return Some(format!("the load {} did not run to its end: repeat with `{command}`", load.spec));
    }
    if let Some(reason) = cut_short(record).or_else(|| far_load(record)) {
        return Some(reason);
    }
    let slowest = all.iter().map(|(series, _)| series.period_ns).max()?;
    if slowest > FAR.saturating_mul(profile.period_ns) {
        let (measured, needed) = (format_unsigned_ns(slowest), format_unsigned_ns(profile.period_ns));
        return Some(format!("measured every {measured}, too coarse for a use every {needed}: run `{command}`"));
    }
    let covered = |series: &Series| Exposure::of(series.samples, 0, series.period_ns, profile.period_ns).cycles;
    let fewest = all.iter().map(|(series, _)| covered(series)).min()?;
    let (needed, period) = (profile.samples_needed, format_unsigned_ns(profile.period_ns));
    (fewest < needed).then(|| format!("{fewest} of {needed} round trips every {period} needed: run `{command}`"))
}

/// The command that measures enough for `profile`, with the same peer and loads.
fn command_to_measure(record: &Record, profile: &Profile, like: Option<(&Series, &RoundTrip)>) -> String {
    let peer = match like {
        Some((_, trip)) if !trip.own_peer && !trip.peer.is_empty() => trip.peer.as_str(),
        _ => "--self",
    };
    let phase = like.and_then(|(series, _)| record.phase(&series.phase));
    let loads = phase.map_or(&[][..], |phase| &phase.asked_loads);
    format!(
        "punctual measure udp {peer} --period {} --duration {}s --profile {}{}",
        format_exact(profile.period_ns),
        seconds_needed(profile),
        profile.name,
        load_options(loads)
    )
}

#[cfg(test)]
mod tests {
    use record::{Histogram, Phase, ROUND_TRIP, SeriesKind};

    use super::*;
    use crate::profiles;

    /// A record with answers after 100 us, and one after `max_ns`.
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
        let profile = profiles().iter().find(|profile| profile.name == "udp-control-1ms").unwrap();
        let verdict = crate::judge(record, profile);
        assert_eq!((verdict.outcome, verdict.reason.as_str()), (outcome, reason));
        verdict
    }

    #[test]
    fn judges_by_the_longest_round_trip() {
        judged(
            &record(5_000, 1_000_000, |_| ()),
            Outcome::Pass,
            "at most 1 ms for a round trip, within the limit of 1 ms",
        );
        let long = record(5_000, 1_000_001, |_| ());
        let verdict = judged(&long, Outcome::Fail, "a round trip of 1.00 ms (load), above the limit of 1 ms");
        assert_eq!((verdict.over_limit, verdict.worst_ns), (1, Some(1_000_001)));
    }

    #[test]
    fn missing_answers_fail() {
        let lossy = record(5_000, 200_000, |series| {
            series.missed = 7;
            let SeriesKind::RoundTrips(round_trip) = &mut series.kind else { panic!("round trips") };
            (round_trip.lost, round_trip.send_failed) = (3, 2);
        });
        let verdict = judged(
            &lossy,
            Outcome::Fail,
            "3 of 5000 datagrams lost, 2 refused by the kernel (load): a missing answer counts as later than any limit",
        );
        assert_eq!(verdict.missed, 5);
    }

    #[test]
    fn inconclusive_without_enough_round_trips() {
        let again =
            "run `punctual measure udp 192.0.2.7:7125 --period 1ms --duration 6s --profile udp-control-1ms --load cpu`";
        judged(
            &record(4_999, 200_000, |_| ()),
            Outcome::Inconclusive,
            &format!("4999 of 5000 round trips every 1 ms needed: {again}"),
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
            "the profile is about round trips, but none was measured: run `punctual measure udp --self --period 1ms \
             --duration 6s --profile udp-control-1ms`",
        );
        other.validity.valid = false;
        judged(
            &other,
            Outcome::Invalid,
            "the run did not go as requested (no reason given), so it does not show whether 1 ms holds for round trips",
        );
    }
}
