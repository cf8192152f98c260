//! The verdict on round trips.

use record::{Losses, Outcome, Record, RoundTrip, Series, UseVerdict, grouped};

use crate::{
    duration::{format_exact, format_ns, format_unsigned_ns},
    profile::Profile,
    rules::{
        FAR, Obstacles, Shown, duration_needed, excellent, load_options, measure_longer, of_emulation, profile_option,
        repeated, shown, weakest,
    },
    stalls::{self, Missing},
    statistics::Exposure,
    summary::{unsure_maximum, when},
};

/// Judges whether round trips hold the limits of `profile`, from the scheduled send time of each datagram.
///
/// The first rule that applies decides:
/// 1. INVALID if the record is invalid or contradicts itself; the figures are still filled in.
/// 2. INCONCLUSIVE if no round trip was measured, or the figures were published elsewhere.
/// 3. FAIL if there were more stalls than the profile tolerates in that time: round trips longer than the limit, and
///    datagrams that had no answer or were refused by the kernel, because a missing answer is later than any limit. If
///    the far end was lost, those after its last answer do not count. Slots that a late sender missed count through the round trip
///    that delayed them; others can have been late.
/// 4. INCONCLUSIVE if the run ended early, a load did not run, the measured period is more than 8 times the use's, or the
///    run was too short to show the tolerated rate.
/// 5. PASS.
pub(crate) fn judge(record: &Record, profile: &Profile) -> UseVerdict {
    let all: Vec<(&Series, &RoundTrip)> = round_trips(record).collect();
    let exposures = exposures(record, profile);
    let command = command_to_measure(record, profile, all.first().copied(), &exposures);
    let mut obstacles = Obstacles::of(record, |_| command.clone());
    obstacles.no_pass = obstacles
        .no_pass
        .or_else(|| too_coarse(profile, &all, &command))
        .or_else(|| all.iter().find_map(|(series, _)| unsure_maximum(series)));
    let (outcome, reason) = decide(record, profile, &all, &exposures, &obstacles, &command);
    let worst = all.iter().max_by_key(|(series, _)| series.max_ns);
    UseVerdict {
        worst_ns: worst.and_then(|(series, _)| series.max_ns),
        worst_where: worst.map(|(series, _)| when(series)).unwrap_or_default(),
        samples: all.iter().map(|(series, _)| series.samples).sum(),
        over_limit: all.iter().map(|(series, _)| stalls::late_wake_ups(series, profile.limit_ns)).sum(),
        missed: all.iter().map(|(_, trip)| absent(trip)).fold(0, u64::saturating_add),
        statement: weakest(&exposures).map_or_else(String::new, |exposure| exposure.statement(profile.limit_ns)),
        clean_so_far: outcome == Outcome::Inconclusive
            && obstacles.no_pass.is_none()
            && worst.is_some()
            && exposures.iter().all(|exposure| exposure.late.stalls.total == 0),
        ..profile.verdict(outcome, reason)
    }
}

fn round_trips(record: &Record) -> impl Iterator<Item = (&Series, &RoundTrip)> {
    record.series.iter().filter_map(|series| Some((series, series.kind.round_trip()?)))
}

/// The cycles of the use that each series of round trips covered.
pub(crate) fn exposures(record: &Record, profile: &Profile) -> Vec<Exposure> {
    let any_time = record.scenario.until_decided;
    // If the far end was lost, that is the reason for the last missing answers.
    let far_lost = record.far.as_ref().is_some_and(|far| far.lost.is_some());
    let of = |(series, trip): (&Series, &RoundTrip)| match far_lost {
        true => {
            let losses = before_last_answer(series);
            exposure(series, Missing::anywhere(losses.total()), &losses, profile)
        }
        false => exposure(series, missing(trip), &series.losses, profile),
    };
    round_trips(record).map(of).map(|exposure| Exposure { any_time, ..exposure }).collect()
}

/// The datagrams without an answer in the windows before that of the last answer.
fn before_last_answer(series: &Series) -> Losses {
    let Losses { window_ns, counts } = &series.losses;
    let last = series.maxima.max_ns.iter().rposition(Option::is_some).unwrap_or(0) as u64;
    let until_ns = last.saturating_mul(series.maxima.window_ns);
    let is_before = |number: u64| number.saturating_add(1).saturating_mul(*window_ns) <= until_ns;
    let counts = counts.iter().copied().filter(|(number, _)| is_before(*number)).collect();
    Losses { window_ns: *window_ns, counts }
}

/// Datagrams without an answer, and those that the kernel refused.
fn absent(round_trip: &RoundTrip) -> u64 {
    round_trip.lost.saturating_add(round_trip.send_failed)
}

/// The datagrams without an answer, of which the longest run is known.
fn missing(round_trip: &RoundTrip) -> Missing {
    let total = absent(round_trip);
    Missing::with_longest(total, round_trip.lost_in_a_row)
}

/// The cycles of the use that a series covered. A datagram without an answer is a late cycle.
fn exposure(series: &Series, missing: Missing, losses: &Losses, profile: &Profile) -> Exposure {
    let late = stalls::late(series, profile.period_ns, profile.limit_ns);
    let late = late.with(stalls::of_losses(missing, losses, series.period_ns, profile.period_ns));
    let late = late.with(stalls::possibly_late(series, profile.period_ns, profile.limit_ns));
    // A datagram that the kernel refused counts among the missing ones and among the slots that were not sent.
    let refused = series.kind.round_trip().map_or(0, |trip| trip.send_failed);
    let overrun = series.missed.saturating_sub(refused);
    let deadlines = series.samples.saturating_add(missing.total).saturating_add(overrun);
    Exposure::of(deadlines, late.count(), series.period_ns, profile.period_ns)
}

/// The outcome with its reason.
fn decide(
    record: &Record,
    profile: &Profile,
    all: &[(&Series, &RoundTrip)],
    exposures: &[Exposure],
    obstacles: &Obstacles,
    command: &str,
) -> (Outcome, String) {
    let limit = format_ns(profile.limit_ns);
    if record.published.is_some() {
        return (Outcome::Inconclusive, format!("published elsewhere, not measured by punctual: run `{command}`"));
    }
    if let Some(why) = &obstacles.invalid {
        return (Outcome::Invalid, format!("{why}, so it does not show whether {limit} holds for round trips"));
    }
    let Some(max_ns) = all.iter().filter_map(|(series, _)| series.max_ns).max() else {
        return (
            Outcome::Inconclusive,
            format!("the profile is about round trips, but none was measured: run `{command}`"),
        );
    };
    match (shown(profile, exposures), &obstacles.no_pass) {
        (Shown::Exceeded, _) => (Outcome::Fail, fail(profile, all, exposures)),
        (Shown::Kept | Shown::Open, Some(reason)) => (Outcome::Inconclusive, reason.clone()),
        (Shown::Open, None) => {
            let run = format!("run `{command}`");
            let why = |weakest: Exposure| measure_longer(profile, &weakest, "round trips", &run);
            (Outcome::Inconclusive, weakest(exposures).map_or_else(|| run.clone(), why))
        }
        (Shown::Kept, None) => {
            let lost = all.iter().map(|(_, trip)| absent(trip)).fold(0, u64::saturating_add);
            let kept = match lost {
                0 if max_ns <= profile.limit_ns => "within".to_owned(),
                0 => "rarely above".to_owned(),
                _ => format!("{} without an answer, rarely above", grouped(lost)),
            };
            let (excellent, emulated) = (excellent(profile, max_ns), of_emulation(record));
            let bound = weakest(exposures).map_or_else(String::new, |weakest| weakest.bound_per_span());
            let (longest, tolerates) = (format_ns(max_ns), profile.tolerates);
            let text = format!(
                "at most {longest} for a round trip, {kept} the limit of {limit}{excellent}; {bound}, {tolerates} is \
                 tolerated{emulated}"
            );
            (Outcome::Pass, text)
        }
    }
}

/// The reason for FAIL, from the series that had more stalls than tolerated.
fn fail(profile: &Profile, all: &[(&Series, &RoundTrip)], exposures: &[Exposure]) -> String {
    let exceeds = |exposure: &Exposure| exposure.exceeds(profile.tolerates, exposures.len());
    let exceeding = all.iter().copied().zip(exposures).filter(|(_, exposure)| exceeds(exposure)).map(|(of, _)| of);
    let exceeding: Vec<(&Series, &RoundTrip)> = exceeding.collect();
    let longest = exceeding.iter().filter_map(|(series, _)| Some((series, series.max_ns?))).max_by_key(|of| of.1);
    match longest.filter(|&(_, max_ns)| max_ns > profile.limit_ns) {
        Some((series, max_ns)) => {
            let (longest, limit) = (format_ns(max_ns), format_ns(profile.limit_ns));
            format!("a round trip of {longest} ({}), above the limit of {limit}", when(series))
        }
        None => lost(&exceeding),
    }
}

/// The reason for FAIL if no round trip was too long, but answers are missing.
fn lost(all: &[(&Series, &RoundTrip)]) -> String {
    let Some((series, trip)) = all.iter().max_by_key(|(_, trip)| absent(trip)) else { return String::new() };
    let phase = when(series);
    let [lost, slots, refused] = [trip.lost, trip.slots, trip.send_failed].map(grouped);
    format!(
        "{lost} of {slots} datagrams lost, {refused} refused by the kernel ({phase}): a missing answer counts as later than any limit"
    )
}

/// The reason why the run cannot support PASS, however long it was.
fn too_coarse(profile: &Profile, all: &[(&Series, &RoundTrip)], command: &str) -> Option<String> {
    let (slowest, _) = all.iter().max_by_key(|(series, _)| series.period_ns)?;
    let (measured, needed) = (format_unsigned_ns(slowest.period_ns), format_unsigned_ns(profile.period_ns));
    let too_coarse = slowest.period_ns > FAR.saturating_mul(profile.period_ns);
    too_coarse.then(|| match slowest.traffic_class() {
        // The command repeats the classes with their periods.
        Some(name) => format!(
            "class {name} measured every {measured}, too coarse for a use every {needed}: shorten its period, or leave it out"
        ),
        None => format!("measured every {measured}, too coarse for a use every {needed}: run `{command}`"),
    })
}

/// The command that measures enough for `profile`, with the same peer and loads.
fn command_to_measure(
    record: &Record,
    profile: &Profile,
    like: Option<(&Series, &RoundTrip)>,
    exposures: &[Exposure],
) -> String {
    let peer = match like {
        Some((_, trip)) if !trip.own_peer && !trip.peer.is_empty() => trip.peer.as_str(),
        _ => "--self",
    };
    let phase = like.and_then(|(series, _)| record.phase(&series.phase));
    let loads = phase.map_or(&[][..], |phase| &phase.asked_loads);
    let duration = duration_needed(profile, weakest(exposures).as_ref());
    let period = profile.period_ns;
    // Another kind of run measured no round trips.
    let own = like.and_then(|_| repeated(record, profile, &duration, Some(period), loads));
    own.unwrap_or_else(|| {
        let (period, profile, loads) = (format_exact(period), profile_option(profile), load_options(loads));
        format!("punctual measure udp {peer} --period {period} --duration {duration}{profile}{loads}")
    })
}

#[cfg(test)]
mod tests {
    use record::{Far, Histogram, LoadProof, Phase, ROUND_TRIP, SeriesKind, State};

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
        let loads = vec![LoadProof { spec: "cpu".to_owned(), ran: true, ..LoadProof::default() }];
        let asked_loads = vec!["cpu".to_owned()];
        let duration_ns = series.samples.saturating_mul(series.period_ns);
        let phase = Phase { name: "load".to_owned(), asked_loads, loads, duration_ns, ..Phase::default() };
        let mut record =
            Record { state: State::Complete, phases: vec![phase], series: vec![series], ..Record::default() };
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
            &record(10_800_000, 1_000_000, |_| ()),
            Outcome::Pass,
            "at most 1 ms for a round trip, within the limit of 1 ms; at 95 % fewer than 24 stalls a day, 1 per hour is \
             tolerated",
        );
        let long = record(5_000, 1_000_001, |_| ());
        let verdict = judged(&long, Outcome::Fail, "a round trip of 1.00 ms (under load), above the limit of 1 ms");
        assert_eq!((verdict.over_limit, verdict.worst_ns), (1, Some(1_000_001)));
    }

    #[test]
    fn slots_that_the_sender_missed_are_in_the_measured_time() {
        let late_sender = record(5_000, 200_000, |series| series.missed = 1_000);
        let profile = profiles().iter().find(|profile| profile.name == "udp-control-1ms").unwrap();
        assert_eq!(exposures(&late_sender, profile)[0].cycles, 6_000);
        let refused = record(5_000, 200_000, |series| {
            let SeriesKind::RoundTrips(round_trip) = &mut series.kind else { panic!("round trips") };
            (round_trip.send_failed, round_trip.slots, round_trip.sent) = (3, 6_000, 5_000);
            series.missed = round_trip.not_sent();
        });
        assert_eq!(exposures(&refused, profile)[0].cycles, 6_000, "a refused one counts once");
    }

    #[test]
    fn missing_answers_fail() {
        let lossy = record(5_000, 200_000, |series| {
            series.missed = 7;
            let SeriesKind::RoundTrips(round_trip) = &mut series.kind else { panic!("round trips") };
            (round_trip.lost, round_trip.send_failed, round_trip.slots) = (3, 2, 5_012);
        });
        let verdict = judged(
            &lossy,
            Outcome::Fail,
            "3 of 5,012 datagrams lost, 2 refused by the kernel (under load): a missing answer counts as later than any limit",
        );
        assert_eq!(verdict.missed, 5);
    }

    /// 2.5 s without an answer, in a run of 22 s.
    #[test]
    fn an_outage_is_few_stalls() {
        let outage = record(20_000, 200_000, |series| {
            let SeriesKind::RoundTrips(round_trip) = &mut series.kind else { panic!("round trips") };
            (round_trip.lost, round_trip.lost_in_a_row, round_trip.slots) = (2_500, 2_499, 22_500);
        });
        let profile = profiles().iter().find(|profile| profile.name == "udp-control-1ms").unwrap();
        let verdict = crate::judge(&outage, profile);
        assert_eq!(verdict.outcome, Outcome::Fail);
        assert!(
            verdict.statement.starts_with("2,500 of 22,500 cycles later than 1 ms, in 3 to 4 stalls"),
            "{verdict:?}"
        );
        let tolerant = Profile { tolerates: "1 per second".parse().unwrap(), ..profile.clone() };
        assert_eq!(crate::judge(&outage, &tolerant).outcome, Outcome::Pass);
        let mut far_lost = outage;
        let lost = Some("the connection ended".to_owned());
        far_lost.far = Some(Box::new(Far { host: "board-b".to_owned(), lost, ..Far::default() }));
        judged(&far_lost, Outcome::Inconclusive, "the far end on board-b was lost: the connection ended: run it again");
        // Answers came until the end, and a datagram was lost every 2 s before.
        let series = &mut far_lost.series[0];
        (series.maxima.max_ns, series.losses.counts) = (vec![Some(0); 20], (0..9).map(|n| (n * 2, 1)).collect());
        assert_eq!(crate::judge(&far_lost, profile).outcome, Outcome::Fail);
    }

    #[test]
    fn inconclusive_without_enough_round_trips() {
        let again = "run `punctual measure udp 192.0.2.7:7125 --period 1ms --duration 198m --profile udp-control-1ms --load cpu`";
        judged(
            &record(4_999, 200_000, |_| ()),
            Outcome::Inconclusive,
            &format!(
                "none late so far, at 95 % fewer than 2,170 stalls an hour (round trips), but 1 per hour is tolerated: {again}"
            ),
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
             --duration 198m --profile udp-control-1ms`",
        );
        other.validity.valid = false;
        judged(
            &other,
            Outcome::Invalid,
            "the run did not go as requested (no reason given), so it does not show whether 1 ms holds for round trips",
        );
    }
}
