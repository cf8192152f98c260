//! Audio as text and figures for terminal and HTML.

use analysis::{
    audio::{MedianTimes, contradicted, faults, is_undecided, statement, why_no_size},
    format_ns,
};
use record::{Audio, BufferSearch, CLOCK, Culprit, Part, Played, Record, Series, SoundCard, Spike, counted, grouped};

use crate::{
    blame::unsigned,
    round_trip::{TIMES, of_series, of_times},
    words::{capitalized, sentence},
};

/// Headings of the figures returned by [`times`].
pub const FIGURES: [&str; 7] = {
    let [min, mean, p50, p99, p999, max] = TIMES;
    [min, mean, p50, p99, p999, max, "of the limit"]
};
/// The number of worst periods described part by part.
const WORST: usize = 3;
/// The number of culprits named per period.
const CULPRITS: usize = 3;
/// The number of lines about causes of xruns.
const FAULTS: usize = 5;

/// The audio chain that was played: card, period size, rate, model or preset, and latency.
pub fn title(series: &Series, audio: &Audio) -> String {
    let Audio { rate_hz, frames, periods, pacer, model, cab, preset, .. } = audio;
    let through = match (preset.as_str(), cab.as_str()) {
        ("", "") => format!("{model} and no cabinet"),
        ("", cab) => format!("{model} and cabinet {cab}"),
        (preset, _) => format!("preset {preset}"),
    };
    let pacer = if pacer == CLOCK { "the clock" } else { pacer };
    let (latency, frames) = (unsigned(audio.latency_ns()), grouped(u64::from(*frames)));
    format!(
        "Audio on {}: {frames} frames at {rate_hz} Hz, {periods} periods, paced by {pacer}, through {through}: \
                 {latency} from input to output, without converters",
        series.place().trim_start_matches("audio on ")
    )
}

/// Counts of periods by outcome: name, count, and true if a count above 0 is bad news.
pub fn outcomes(audio: &Audio) -> [(&'static str, u64, bool); 5] {
    [
        ("periods", audio.due(), false),
        ("played", audio.played, false),
        ("xruns", audio.xruns, true),
        ("lost", audio.lost, true),
        ("silent", audio.silent, false),
    ]
}

/// Completion times of periods and times of their parts, with the figures of [`FIGURES`].
pub fn times(series: &Series, audio: &Audio) -> Vec<(&'static str, [String; 7])> {
    let rows = [
        ("done after the deadline", audio.completion.as_ref().map(of_times)),
        ("  woke late", series.max_ns.map(|_| of_series(series))),
        ("  processing", audio.dsp.as_ref().map(of_times)),
    ];
    let row = |(name, figures): (&'static str, Option<[Option<i64>; 6]>)| {
        let [min, mean, p50, p99, p999, max] = figures?;
        let share = max.map(|ns| format!("{} %", ns.max(0).unsigned_abs() * 100 / audio.limit_ns.max(1)));
        let [min, mean, p50, p99, p999, max] =
            [min, mean, p50, p99, p999, max].map(|ns| ns.map_or_else(|| "-".to_owned(), format_ns));
        Some((name, [min, mean, p50, p99, p999, max, share.unwrap_or_default()]))
    };
    rows.into_iter().filter_map(row).collect()
}

/// Headings of [`tried`].
pub const TRIED: [&str; 6] = ["frames", "latency", "periods", "xruns", "worst", "margin"];

/// The buffer sizes that were played, the smallest first, each with true if it held, or `None` if that is undecided or
/// no size was searched. The margin is the time between the latest completion and an xrun.
pub fn tried(record: &Record) -> Vec<([String; 6], Option<bool>)> {
    let mut all: Vec<&Audio> = record.series.iter().filter_map(|series| series.kind.audio()).collect();
    all.sort_by_key(|audio| audio.frames);
    let row = |audio: &Audio| {
        let worst_ns = audio.completion.as_ref().map(|times| times.max_ns);
        let margin_ns = worst_ns.map(|ns| audio.limit_ns.cast_signed().saturating_sub(ns));
        let [worst, margin] = [worst_ns, margin_ns].map(|ns| ns.map_or_else(|| "-".to_owned(), format_ns));
        let cells = [
            grouped(audio.frames.into()),
            unsigned(audio.latency_ns()),
            grouped(audio.played),
            grouped(audio.xruns),
            worst,
            margin,
        ];
        let held = record.buffer.as_ref().filter(|_| why_no_size(record).is_none()).and_then(|search| {
            let is_held = search.held.is_some_and(|smallest| smallest <= audio.frames);
            (audio.xruns > 0 || is_held).then_some(audio.xruns == 0)
        });
        (cells, held)
    };
    all.into_iter().map(row).collect()
}

/// The result of a search, in sentences.
pub fn found(record: &Record, search: &BufferSearch) -> Vec<String> {
    let of = |frames: u32| {
        let played = |series: &Series| series.kind.audio().is_some_and(|audio| audio.frames == frames);
        record.series.iter().find(|series| played(series))
    };
    let summary = |series: &Series| series.kind.audio().map(|audio| statement(series, audio)).unwrap_or_default();
    if let Some(obstacle) = why_no_size(record) {
        return vec![sentence(&format!("the search shows no buffer size: {obstacle}"))];
    }
    let mut all = Vec::new();
    let held = search.held.and_then(|frames| Some((frames, of(frames)?)));
    let none = match search.failed {
        _ if !is_undecided(record, search) => "No buffer size held.",
        None => "The search ended before any size was decided: let it run to its end.",
        Some(_) => "The search ended before it found a size that holds: let it run to its end.",
    };
    all.push(held.map_or_else(
        || none.to_owned(),
        |(frames, series)| {
            let held = format!("Smallest buffer that held: {} frames.", grouped(frames.into()));
            match contradicted(record, search) {
                Some(why) => format!("{held} This can be chance: {why}."),
                None => format!("{held} {}.", capitalized(&summary(series))),
            }
        },
    ));
    if let Some((frames, series)) = search.failed.and_then(|frames| Some((frames, of(frames)?))) {
        let limit = search.limit.map(|limit| format!(" Reason: {}", part(limit)));
        let limit = limit
            .map(|limit| if search.culprit.is_empty() { limit + "." } else { format!("{limit}: {}.", search.culprit) });
        let frames = grouped(frames.into());
        all.push(format!("{frames} frames did not hold: {}.{}", summary(series), limit.unwrap_or_default()));
    }
    all
}

/// The meaning of an xrun, and the conclusion that the figures allow.
pub fn remarks(series: &Series, audio: &Audio) -> [String; 2] {
    let limit = unsigned(audio.limit_ns);
    let meaning = match &audio.card {
        None => format!(
            "xrun: a period that is done {limit} or more after its deadline, when the card has played all of its \
                         buffer; the card is then restarted, and the periods that pass meanwhile are lost."
        ),
        Some(card) => format!(
            "xrun: a period that the card did not get before it had played all of its buffer, {limit} after the \
                         deadline, and stopped; the card is then restarted, and the periods that pass meanwhile are \
                         lost. {}",
            paced_by(card)
        ),
    };
    [meaning, format!("{}.", capitalized(&statement(series, audio)))]
}

/// Describes the card in one sentence.
fn paced_by(card: &SoundCard) -> String {
    let SoundCard { capture, playback, format, input, linked, rate_ppm, rate_error_ppm, .. } = card;
    let ends = if capture == playback { playback.clone() } else { format!("{capture} in, {playback} out") };
    let input = input.filter(|input| *input > 1).map_or_else(String::new, |input| format!(", input {input}"));
    let start = if *linked { "started together" } else { "started one after the other" };
    let rate = rate_ppm.zip(*rate_error_ppm).map_or_else(
        || "its rate is unknown".to_owned(),
        |(ppm, error_ppm)| format!("its rate is {ppm:+.1} ppm off the nominal one, +/- {:.1}", 2.0 * error_ppm),
    );
    format!("Card: {ends}, {format}{input}, both directions {start}, {rate}.")
}

/// The causes of xruns, one sentence each.
pub fn fault_lines(series: &Series) -> Vec<String> {
    let lines = faults(series).into_iter().take(FAULTS).map(|fault| {
        let xruns = counted(fault.count, "xrun");
        let by = if fault.culprit.is_empty() { "culprit not determined".to_owned() } else { fault.culprit };
        format!("{xruns}: {}: {by}", part(fault.part))
    });
    lines.collect()
}

/// Describes the part of a period that was too slow.
pub fn part(part: Part) -> &'static str {
    match part {
        Part::Wake => "the thread woke late",
        Part::Dsp => "processing took too long",
        Part::Both => "the thread woke late and processing took long",
    }
}

/// The worst periods, part by part, one sentence each.
pub fn worst(series: &Series, audio: &Audio) -> Vec<String> {
    let mut spikes: Vec<(&Spike, Played)> =
        series.spikes.iter().filter_map(|spike| Some((spike, spike.played?))).collect();
    spikes.sort_by_key(|(spike, _)| std::cmp::Reverse(spike.lateness_ns));
    let medians = MedianTimes::of(series);
    let describe = |(spike, played): &(&Spike, Played)| {
        let (whole, at) = (format_ns(spike.lateness_ns), unsigned(spike.at_ns));
        let xrun = if played.xrun {
            format!(", an xrun: {}", part(medians.at_fault(*played, i64::try_from(audio.limit_ns).unwrap_or(i64::MAX))))
        } else {
            String::new()
        };
        format!(
            "done {whole} after the deadline at {at}{xrun}. Woke after {}, processing took {} (median {}){}",
            format_ns(played.wait_ns),
            format_ns(played.dsp_ns),
            format_ns(medians.dsp_ns),
            culprits(&spike.culprits)
        )
    };
    spikes.iter().take(WORST).map(describe).collect()
}

fn culprits(all: &[Culprit]) -> String {
    let named =
        all.iter().take(CULPRITS).map(|culprit| format!("{} {}", unsigned(culprit.ns), culprit.cause.in_full()));
    match named.collect::<Vec<_>>().join(", ") {
        none if none.is_empty() => String::new(),
        list => format!(": {list}"),
    }
}

#[cfg(test)]
mod tests {
    use record::{Phase, SeriesKind, State};

    use super::*;

    /// An interrupted or complete search among 64, 128 and 256 frames; `tried` holds sizes with their xruns.
    fn searched(state: State, tried: &[(u32, u64)], held: Option<u32>, failed: Option<u32>) -> (Record, BufferSearch) {
        let series = |&(frames, xruns): &(u32, u64)| Series {
            kind: SeriesKind::Audio(Box::new(Audio { frames, xruns, played: 1000, ..Audio::default() })),
            ..Series::default()
        };
        let series = tried.iter().map(series).collect();
        let mut record = Record { state, phases: vec![Phase::default()], series, ..Record::default() };
        record.validity.valid = true;
        (record, BufferSearch { candidates: vec![64, 128, 256], held, failed, ..BufferSearch::default() })
    }

    /// The text about such a search.
    fn search_text(state: State, tried: &[(u32, u64)], held: Option<u32>, failed: Option<u32>) -> String {
        let (record, search) = searched(state, tried, held, failed);
        found(&record, &search).join(" ")
    }

    #[test]
    fn a_size_cut_short_neither_held_nor_failed() {
        let (mut record, search) = searched(State::Interrupted, &[(128, 2), (256, 0), (192, 0)], Some(256), Some(128));
        record.buffer = Some(search);
        let held: Vec<Option<bool>> = tried(&record).into_iter().map(|(_, held)| held).collect();
        assert_eq!(held, [Some(false), None, Some(true)]);
    }

    #[test]
    fn an_invalid_search_shows_no_size() {
        let (mut record, search) = searched(State::Complete, &[(128, 2), (256, 0)], Some(256), Some(128));
        assert!(found(&record, &search)[0].starts_with("Smallest buffer that held: 256 frames."));
        record.validity.valid = false;
        record.validity.reasons = vec![record::Reason { id: "policy.changed".into(), ..record::Reason::default() }];
        assert_eq!(found(&record, &search), ["The search shows no buffer size: the run is invalid: policy.changed."]);
    }

    #[test]
    fn an_interrupted_search_reports_only_what_it_decided() {
        let cut = search_text(State::Interrupted, &[(128, 0)], None, None);
        assert_eq!(cut, "The search ended before any size was decided: let it run to its end.");
        let cut = search_text(State::Interrupted, &[(128, 2), (256, 0)], None, Some(128));
        assert!(cut.starts_with("The search ended before it found a size that holds"), "{cut}");
        assert!(cut.contains("128 frames did not hold: 2 xruns in 1,000 periods"), "{cut}");
        let decided = search_text(State::Interrupted, &[(128, 0), (64, 0)], Some(128), None);
        assert!(decided.starts_with("Smallest buffer that held: 128 frames."), "{decided}");
        for state in [State::Complete, State::Interrupted] {
            let none = search_text(state, &[(128, 2), (256, 1)], None, Some(256));
            assert!(none.starts_with("No buffer size held. 256 frames did not hold: 1 xrun in"), "{none}");
        }
    }
}
