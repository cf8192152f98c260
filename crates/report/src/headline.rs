//! The answer of a run in one sentence, for each kind of run.

use analysis::{audio::outcome_of_search, cores, format_duration, format_ns, matrix::why_none, on_short_ladder, when};
use record::{
    Capture, Listener, Noise, Outcome, ReceivedStream, Record, RoundTrip, Series, SeriesKind, Stream, Talker,
    UseVerdict, counted, grouped, stream_name,
};

use crate::{
    audio,
    blame::{ledger_total_ns, percent, unsigned},
    interrupt, response, sound_loop,
    style::Ink,
    words::{Words, reason_sentence, sentence},
};

/// The answer: its colour, and one sentence.
pub(crate) struct Headline {
    pub(crate) ink: Ink,
    pub(crate) text: String,
}

/// The answer of a run. A verdict on requested profiles comes first, then that of the kind of run.
pub(crate) fn headline(record: &Record) -> Headline {
    if let Some(verdict) = &record.verdict {
        let (ink, name) = (ink_of(verdict.outcome), verdict.outcome.name());
        return Headline { ink, text: format!("{name}  {}", reason_sentence(record, &verdict.reason)) };
    }
    if let Some(advice) = &record.recommendation {
        let ink = if advice.certain { Ink::Good } else { Ink::Doubt };
        return Headline { ink, text: sentence(&advice.text) };
    }
    if !record.cells.is_empty() {
        let text = format!("No pair can be recommended, because {}.", why_none(record));
        return Headline { ink: Ink::Doubt, text };
    }
    if let Some(search) = &record.buffer {
        let ink = outcome_of_search(record).map_or(Ink::Good, ink_of);
        let on_clock =
            record.series.iter().filter_map(|series| series.kind.audio()).all(|audio| audio.pacer == "clock");
        let clock = if on_clock { " The clock set the pace, no sound card." } else { "" };
        let text = audio::found(record, search).into_iter().next().unwrap_or_default();
        return Headline { ink, text: text + clock };
    }
    let shown = shown_uses(record);
    if !shown.is_empty() {
        return of_uses(record, &shown);
    }
    if let Some(capture) = record.capture.as_ref().filter(|capture| capture.observer.is_none()) {
        return plain(of_capture(capture));
    }
    if record.program.is_some() {
        return plain(analysis::process::in_short(record));
    }
    if let Some(sound_loop) = &record.sound_loop {
        let ink = if sound_loop.round_trip_samples.is_some() { Ink::Title } else { Ink::Bad };
        let round_trip = sound_loop::lines(sound_loop).into_iter().next().map_or_else(String::new, |(_, text)| text);
        return Headline { ink, text: format!("Round trip: {round_trip}.") };
    }
    plain(of_series(record))
}

fn plain(text: String) -> Headline {
    Headline { ink: Ink::Title, text }
}

/// The colour of an outcome.
pub(crate) fn ink_of(outcome: Outcome) -> Ink {
    match outcome {
        Outcome::Pass => Ink::Good,
        Outcome::Fail => Ink::Bad,
        Outcome::Inconclusive => Ink::Doubt,
        Outcome::Invalid => Ink::Alarm,
    }
}

/// The uses that a run without requested profiles shows, the least demanding first.
pub(crate) fn shown_uses(record: &Record) -> Vec<&UseVerdict> {
    if !record.scenario.profiles.is_empty() {
        return Vec::new();
    }
    let short: Vec<&UseVerdict> = record.uses.iter().filter(|a_use| on_short_ladder(a_use)).collect();
    if short.is_empty() { record.uses.iter().collect() } else { short }
}

/// The mark of these uses together.
pub(crate) fn ink_of_uses(uses: &[&UseVerdict]) -> Ink {
    let has_failed = |a_use: &&UseVerdict| a_use.outcome == Outcome::Fail;
    match uses.iter().all(|a_use| a_use.outcome == Outcome::Pass) {
        true => Ink::Good,
        false if uses.iter().any(has_failed) => Ink::Bad,
        false => Ink::Doubt,
    }
}

/// `Holds 3 of 12 uses, and 2 more so far. Worst 1.21 ms late, CPU 0, under load (27 s, 325,368 wake-ups).`
fn of_uses(record: &Record, uses: &[&UseVerdict]) -> Headline {
    Headline { ink: ink_of_uses(uses), text: format!("{}. {}", ladder(uses), of_series(record)) }
}

/// The number of these uses that hold; if there are none, the number that fail.
pub(crate) fn ladder(uses: &[&UseVerdict]) -> String {
    let count = |is_it: fn(&UseVerdict) -> bool| uses.iter().filter(|a_use| is_it(a_use)).count();
    let held = count(|a_use| a_use.outcome == Outcome::Pass);
    let so_far = count(|a_use| a_use.outcome != Outcome::Pass && a_use.clean_so_far);
    let (failed, all) = (count(|a_use| a_use.outcome == Outcome::Fail), uses.len());
    let of_all = counted(all as u64, "use");
    match (held, failed, so_far) {
        (0, 0, 0) => format!("Shown for none of {of_all}"),
        (0, 0, so_far) => format!("None late so far for {so_far} of {of_all}"),
        (0, failed, _) if failed == all => format!("Holds none of {of_all}"),
        (0, failed, _) => format!("Fails {failed} of {of_all}, {} not decided", all - failed),
        (held, _, 0) => format!("Holds {held} of {of_all}"),
        (held, _, so_far) => format!("Holds {held} of {of_all}, and {so_far} more so far"),
    }
}

/// The worst figure of the series.
fn of_series(record: &Record) -> String {
    // The outside judge measures the whole way. The way to the thread is a part of it.
    let (whole, parts): (Vec<&Series>, Vec<&Series>) =
        record.series.iter().partition(|series| series.kind.responses().is_some());
    let own: Vec<String> = of_classes(record)
        .map_or_else(|| whole.into_iter().chain(parts).filter_map(of_own_kind).collect(), |of| vec![of]);
    match record.series.first().map(|series| &series.kind) {
        None => "Nothing was measured.".to_owned(),
        Some(SeriesKind::Gaps(_)) => of_noise(record),
        Some(SeriesKind::Audio(_)) => of_audio(record),
        Some(_) if own.is_empty() => worst(record),
        Some(_) => own.join(" "),
    }
}

/// The latest wake-up of the probe, and how much was measured.
fn worst(record: &Record) -> String {
    let samples: u64 = record.probe_series().map(|series| series.samples).sum();
    let lasted = format_duration(record.phases.iter().map(|phase| phase.duration_ns).sum());
    let Some(latest) = record.probe_series().max_by_key(|series| series.max_ns) else {
        return "Nothing was measured.".to_owned();
    };
    let Words { item, .. } = Words::of(record);
    let measured = format!("({lasted}, {})", counted(samples, item));
    if let Some(comparison) = cores::comparison(record) {
        return format!("{} {measured}.", comparison.trim_end_matches('.'));
    }
    match latest.max_ns {
        Some(max_ns) => {
            format!("Worst {} late, {}, {} {measured}.", format_ns(max_ns), latest.place(), when(latest))
        }
        None => format!("Nothing was measured {measured}."),
    }
}

fn of_noise(record: &Record) -> String {
    let all = || record.series.iter().filter_map(|series| Some((series, series.kind.noise()?)));
    let sum = |of: fn(&Noise) -> u64| all().map(|(_, noise)| of(noise)).sum::<u64>();
    let (lost_ns, observed_ns) = (sum(|noise| noise.lost_ns), sum(|noise| noise.observed_ns));
    let share = percent(lost_ns, observed_ns);
    let longest = all().max_by_key(|(series, _)| series.max_ns);
    let Some((series, max_ns)) = longest.and_then(|(series, _)| Some((series, series.max_ns?))) else {
        return format!("No gap was long enough to count in {}.", format_duration(observed_ns));
    };
    let own = own_share(record).map_or_else(String::new, |own| format!(" ({own} of it by punctual itself)"));
    let from = match record.scenario.policy.as_str() {
        ordinary @ ("other" | "batch" | "idle") => {
            format!(" from an ordinary thread (policy {ordinary}), which shares its CPU with all others")
        }
        _ => String::new(),
    };
    format!(
        "{share} of the CPU time was taken away{from}{own}. Longest gap {} on {}.",
        format_ns(max_ns),
        series.place()
    )
}

/// The share of punctual's own threads in the explained gaps; `None` if it is nothing.
fn own_share(record: &Record) -> Option<String> {
    let blame = record.blame.as_ref()?;
    let own_ns = blame.ledger.iter().filter(|account| account.cause.own).map(|account| account.total_ns).sum::<u64>();
    (own_ns > 0).then(|| percent(own_ns, ledger_total_ns(blame)))
}

/// The figures of a series that say more than its lateness.
fn of_own_kind(series: &Series) -> Option<String> {
    match &series.kind {
        SeriesKind::RoundTrips(trip) => Some(of_round_trip(series, trip)),
        SeriesKind::Stream(stream) => of_end(stream),
        SeriesKind::Interrupts(interrupts) => Some(interrupt::sentence(series, interrupts)),
        SeriesKind::Responses(responses) => Some(response::sentence(series, responses)),
        SeriesKind::WakeUps
        | SeriesKind::Process(_)
        | SeriesKind::Gaps(_)
        | SeriesKind::Audio(_)
        | SeriesKind::Capture
        | SeriesKind::TimerlatIrq
        | SeriesKind::TimerlatThread => None,
    }
}

/// The round trips of several traffic classes; `None` for other records.
fn of_classes(record: &Record) -> Option<String> {
    let all: Vec<(&Series, &RoundTrip)> =
        record.series.iter().filter_map(|series| Some((series, series.kind.round_trip()?))).collect();
    let (_, first) = *all.first()?;
    let is_class = |(series, trip): &(&Series, &RoundTrip)| series.traffic_class().is_some() && trip.peer == first.peer;
    let mut names: Vec<&str> = all.iter().map(|(series, _)| series.role.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    if names.len() < 2 || !all.iter().all(is_class) {
        return None;
    }
    let worst = all.iter().filter_map(|(series, _)| Some((series.max_ns?, &series.role))).max();
    let longest = worst
        .map_or_else(|| "none was answered".to_owned(), |(ns, role)| format!("at most {} ({role})", format_ns(ns)));
    let sum = |of: fn(&RoundTrip) -> u64| grouped(all.iter().map(|(_, trip)| of(trip)).fold(0, u64::saturating_add));
    let (lost, sent, late) = (sum(|trip| trip.lost), sum(|trip| trip.sent), sum(|trip| trip.late));
    let not_sent = sum(|trip| trip.slots.saturating_sub(trip.sent));
    Some(format!(
        "Round trips of {} traffic classes to {}: {longest}, {lost} of {sent} lost, {not_sent} not sent, {late} answered \
         after the time-out.",
        names.len(),
        first.peer
    ))
}

fn of_round_trip(series: &Series, trip: &RoundTrip) -> String {
    let longest =
        series.max_ns.map_or_else(|| "none was answered".to_owned(), |ns| format!("at most {}", format_ns(ns)));
    let RoundTrip { peer, sent, lost, late, .. } = trip;
    let (not_sent, time_out) = (grouped(trip.slots.saturating_sub(*sent)), unsigned(trip.timeout_ns));
    let [sent, lost, late] = [*sent, *lost, *late].map(grouped);
    format!(
        "Round trips to {peer}: {longest}, {lost} of {sent} lost, {not_sent} not sent, {late} answered after the time-out \
         of {time_out}."
    )
}

fn of_end(stream: &Stream) -> Option<String> {
    match stream {
        Stream::Talker(talker) => {
            let Talker { frames, late, refused, missed_slots, tolerance_ns, .. } = **talker;
            let tolerance = unsigned(tolerance_ns);
            let unsent = refused + missed_slots;
            let [late, frames, unsent, due] = [late, frames, unsent, frames + unsent].map(grouped);
            let at_most = at_most(talker.max_delta_ns);
            Some(format!(
                "Talker: {late} of {frames} frames more than {tolerance} late{at_most}, {unsent} of {due} not sent."
            ))
        }
        Stream::Listener(listener) => {
            let Listener { frames, lost, duplicates, max_gap_ns, .. } = &**listener;
            let sent = frames.saturating_sub(*duplicates).saturating_add(*lost);
            let gap = max_gap_ns.map_or_else(String::new, |ns| format!(", largest gap {}", unsigned(ns)));
            let of_worst =
                listener.worst_first().first().map_or_else(String::new, |worst| worst_stream(listener, worst));
            let margin = listener.one_way.as_ref().and_then(|one_way| one_way.margin.as_ref());
            let late = margin.filter(|margin| margin.late > 0).map_or_else(String::new, |margin| {
                format!(", {} after their presentation time", counted(margin.late, "frame"))
            });
            Some(format!("Listener: {} of {} frames lost{gap}{late}{of_worst}.", grouped(*lost), grouped(sent)))
        }
    }
}

/// The losses of the worst of several streams, or a time without its frames.
fn worst_stream(listener: &Listener, worst: &ReceivedStream) -> String {
    if let Some(silence) = worst.silence().filter(|_| worst.lost == 0) {
        return format!("; the stream {} {silence}", stream_name(&worst.stream_id));
    }
    if worst.lost == 0 {
        let others = listener.streams.len() - 1;
        return format!("; none lost of the {others} other stream{}", if others == 1 { "" } else { "s" });
    }
    let name = stream_name(&worst.stream_id);
    format!("; worst of {} streams: {name}, {} lost", listener.streams.len(), grouped(worst.lost))
}

/// The largest time in brackets; empty if it is unknown or not late.
fn at_most(max_ns: Option<i64>) -> String {
    max_ns.filter(|&ns| ns > 0).map_or_else(String::new, |ns| format!(" (at most {})", format_ns(ns)))
}

fn of_audio(record: &Record) -> String {
    let all = || record.series.iter().filter_map(|series| series.kind.audio());
    let (played, xruns) = all().fold((0, 0), |(played, xruns), audio| (played + audio.played, xruns + audio.xruns));
    let (frames, limit_ns) = all().next().map_or((0, 0), |audio| (audio.frames, audio.limit_ns));
    let xruns = counted(xruns, "xrun");
    let slowest = all().filter_map(|audio| audio.completion.as_ref()).map(|times| times.max_ns).max();
    let slowest = slowest.map_or_else(String::new, |ns| {
        let (after, limit) = (format_ns(ns), unsigned(limit_ns));
        format!("; the slowest was done {after} after its deadline (an xrun from {limit})")
    });
    format!("{xruns} in {} periods of {} frames{slowest}.", grouped(played), grouped(frames.into()))
}

fn of_capture(capture: &Capture) -> String {
    let Capture { frames, late, lost, skipped_slots, duplicates, .. } = *capture;
    let frames = counted(frames, "frame");
    let (tolerance, stream) = (unsigned(capture.tolerance_ns), capture.name_of(&capture.stream));
    let at_most = at_most(capture.worst_late.first().map(|frame| frame.ns));
    let lateness = match late {
        Some(late) => format!("{} of {frames} more than {tolerance} late{at_most}", grouped(late)),
        None => format!("Lateness of {frames} not known{at_most}"),
    };
    let gap = capture.max_gap_ns.map_or_else(String::new, |ns| format!(", largest gap {}", format_ns(ns)));
    let missing = match lost.zip(duplicates) {
        Some((lost, duplicates)) => {
            let skipped =
                skipped_slots.map_or_else(String::new, |slots| format!(", {} skipped", counted(slots, "slot")));
            format!("{} lost{skipped}, {}", grouped(lost), counted(duplicates, "duplicate"))
        }
        None if capture.is_numbered() => {
            let skipped =
                skipped_slots.map_or_else(String::new, |slots| format!(", {} skipped", counted(slots, "slot")));
            format!("losses not known (the numbers do not show them){skipped}")
        }
        None => match skipped_slots {
            Some(slots) => {
                let slots = counted(slots, "slot");
                format!("{slots} without a frame (lost or not sent: the frames have no numbers)")
            }
            None => "losses not known (the frames have no numbers)".to_owned(),
        },
    };
    format!("{lateness}, {missing}{gap} in {stream}.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::NumberedBy;

    #[test]
    fn unknown_losses_of_numbered_frames_are_not_those_without_numbers() {
        let of = |numbered_by| {
            of_capture(&Capture {
                frames: 9,
                skipped_slots: Some(3),
                lost: None,
                duplicates: None,
                numbered_by,
                ..Capture::default()
            })
        };
        let numbered = of(NumberedBy::Avtp);
        assert!(numbered.contains("losses not known (the numbers do not show them), 3 slots skipped"), "{numbered}");
        assert!(of(NumberedBy::Nothing).contains("the frames have no numbers"));
    }

    #[test]
    fn the_ladder_says_first_what_is_worst_unless_a_use_holds() {
        use Outcome::{Fail, Inconclusive, Pass};
        let sentence = |outcomes: &[(Outcome, bool)]| {
            let of = |&(outcome, clean_so_far)| UseVerdict { outcome, clean_so_far, ..UseVerdict::default() };
            let uses: Vec<UseVerdict> = outcomes.iter().map(of).collect();
            ladder(&uses.iter().collect::<Vec<_>>())
        };
        let (fail, open, clean, pass) = ((Fail, false), (Inconclusive, false), (Inconclusive, true), (Pass, false));
        for (outcomes, expected) in [
            (&[pass, fail, open][..], "Holds 1 of 3 uses"),
            (&[pass, clean, open], "Holds 1 of 3 uses, and 1 more so far"),
            (&[pass], "Holds 1 of 1 use"),
            (&[fail, fail], "Holds none of 2 uses"),
            (&[fail, fail, clean], "Fails 2 of 3 uses, 1 not decided"),
            (&[clean, open], "None late so far for 1 of 2 uses"),
            (&[open], "Shown for none of 1 use"),
        ] {
            assert_eq!(sentence(outcomes), expected);
        }
    }
}
