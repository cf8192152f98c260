//! Audio in the words and figures that terminal and HTML share.

use analysis::{
    Summary,
    audio::{Usual, faults, is_open, statement},
    format_ns,
};
use record::{Audio, BufferSearch, CLOCK, Culprit, Part, Played, Record, Series, SoundCard, Spike};

use crate::{
    blame::unsigned,
    round_trip::{TIMES, of_times},
};

/// Headings of the figures that [`times`] gives.
pub const FIGURES: [&str; 7] = {
    let [min, mean, p50, p99, p999, max] = TIMES;
    [min, mean, p50, p99, p999, max, "of the limit"]
};
/// How many of the worst periods are told part by part.
const WORST: usize = 3;
/// How many culprits are named of a period.
const CULPRITS: usize = 3;
/// How many lines say who was to blame.
const FAULTS: usize = 5;

/// What was played, in words.
pub fn title(series: &Series, audio: &Audio) -> String {
    let Audio { rate_hz, frames, periods, pacer, model, cab, preset, .. } = audio;
    let through = match (preset.as_str(), cab.as_str()) {
        ("", "") => format!("{model} and no cabinet"),
        ("", cab) => format!("{model} and cabinet {cab}"),
        (preset, _) => format!("preset {preset}"),
    };
    let pacer = if pacer == CLOCK { "the clock" } else { pacer };
    let latency = unsigned(audio.latency_ns());
    format!(
        "Audio on {}: {frames} frames at {rate_hz} Hz, {periods} periods, paced by {pacer}, through {through}: {latency} from in to \
         out, without converters",
        series.place().trim_start_matches("audio on ")
    )
}

/// What became of the periods: name, count, and whether more than 0 is bad news.
pub fn fates(audio: &Audio) -> [(&'static str, u64, bool); 5] {
    [
        ("periods", audio.due(), false),
        ("played", audio.played, false),
        ("xruns", audio.xruns, true),
        ("lost", audio.lost, true),
        ("silent", audio.silent, false),
    ]
}

/// When periods were done, and what their parts took, each with the figures of [`FIGURES`].
pub fn times(series: &Series, audio: &Audio) -> Vec<(&'static str, [String; 7])> {
    let wake = Summary::of(series);
    let mean_ns = series.mean_ns.map(|ns| ns.round() as i64);
    let wake = [series.min_ns, mean_ns, wake.p50_ns, wake.p99_ns, wake.p99_9_ns, wake.max_ns];
    let rows = [
        ("done after the deadline", audio.completion.as_ref().map(of_times)),
        ("  woke late", series.max_ns.map(|_| wake)),
        ("  processing", audio.dsp.as_ref().map(of_times)),
    ];
    let told = |(name, figures): (&'static str, Option<[Option<i64>; 6]>)| {
        let [min, mean, p50, p99, p999, max] = figures?;
        let share = max.map(|ns| format!("{} %", ns.max(0) as u64 * 100 / audio.limit_ns.max(1)));
        let [min, mean, p50, p99, p999, max] =
            [min, mean, p50, p99, p999, max].map(|ns| ns.map_or_else(|| "-".to_owned(), format_ns));
        Some((name, [min, mean, p50, p99, p999, max, share.unwrap_or_default()]))
    };
    rows.into_iter().filter_map(told).collect()
}

/// Headings of [`tried`].
pub const TRIED: [&str; 6] = ["frames", "latency", "periods", "xruns", "worst", "of the limit"];

/// The sizes that a search tried, the smallest first, each with whether it held: `None` where it was cut short.
pub fn tried(record: &Record, search: &BufferSearch) -> Vec<([String; 6], Option<bool>)> {
    let mut all: Vec<&Audio> = record.series.iter().filter_map(|series| series.kind.audio()).collect();
    all.sort_by_key(|audio| audio.frames);
    let row = |audio: &Audio| {
        let worst_ns = audio.completion.as_ref().map(|times| times.max_ns);
        let share = worst_ns.map(|ns| format!("{} %", ns.max(0) as u64 * 100 / audio.limit_ns.max(1)));
        let cells = [
            audio.frames.to_string(),
            unsigned(audio.latency_ns()),
            audio.played.to_string(),
            audio.xruns.to_string(),
            worst_ns.map_or_else(|| "-".to_owned(), format_ns),
            share.unwrap_or_default(),
        ];
        let held = match audio.xruns {
            0 => search.held.is_some_and(|smallest| smallest <= audio.frames).then_some(true),
            _ => Some(false),
        };
        (cells, held)
    };
    all.into_iter().map(row).collect()
}

/// What a search found, in sentences.
pub fn found(record: &Record, search: &BufferSearch) -> Vec<String> {
    let of = |frames: u32| {
        let played = |series: &Series| series.kind.audio().is_some_and(|audio| audio.frames == frames);
        record.series.iter().find(|series| played(series))
    };
    let said = |series: &Series| series.kind.audio().map(|audio| statement(series, audio)).unwrap_or_default();
    let mut all = Vec::new();
    let held = search.held.and_then(|frames| Some((frames, of(frames)?)));
    let none = match search.failed {
        _ if !is_open(record, search) => "No size held.",
        None => "The search ended before a size was decided: let it run to its end.",
        Some(_) => "The search ended before a size that holds was found: let it run to its end.",
    };
    all.push(held.map_or_else(
        || none.to_owned(),
        |(frames, series)| format!("The smallest buffer that held: {frames} frames. {}.", first_upper(&said(series))),
    ));
    if let Some((frames, series)) = search.failed.and_then(|frames| Some((frames, of(frames)?))) {
        let limit = search.limit.map(|limit| format!(" The limit was that {}", part(limit)));
        let limit = limit
            .map(|limit| if search.culprit.is_empty() { limit + "." } else { format!("{limit}: {}.", search.culprit) });
        all.push(format!("{frames} frames did not hold: {}.{}", said(series), limit.unwrap_or_default()));
    }
    all
}

/// How to read the figures, and what they allow to be said.
pub fn remarks(series: &Series, audio: &Audio) -> [String; 2] {
    let limit = unsigned(audio.limit_ns);
    let meaning = match &audio.card {
        None => format!(
            "xrun: a period that is done {limit} after its deadline or later, when the card has played all that it holds; it is \
             started anew then, and the periods that pass meanwhile are lost."
        ),
        Some(card) => format!(
            "xrun: a period that the card did not get before it had played all that it held, {limit} after the deadline, and \
             stopped; it is started anew then, and the periods that pass meanwhile are lost. {}",
            paced_by(card)
        ),
    };
    [meaning, format!("{}.", first_upper(&statement(series, audio)))]
}

/// What the card was, in a sentence.
fn paced_by(card: &SoundCard) -> String {
    let SoundCard { capture, playback, format, input, linked, rate_ppm, rate_error_ppm, .. } = card;
    let ends = if capture == playback { playback.clone() } else { format!("{capture} in, {playback} out") };
    let input = input.filter(|input| *input > 1).map_or_else(String::new, |input| format!(", input {input}"));
    let start = if *linked { "started together" } else { "started one after the other" };
    let rate = rate_ppm.zip(*rate_error_ppm).map_or_else(
        || "its rate by the clock is not known".to_owned(),
        |(ppm, error_ppm)| format!("{ppm:+.1} ppm off its rate by the clock, give or take {:.1}", 2.0 * error_ppm),
    );
    format!("Card: {ends}, {format}{input}, both directions {start}, {rate}.")
}

/// Who was to blame for the xruns: a sentence each.
pub fn to_blame(series: &Series) -> Vec<String> {
    let told = faults(series).into_iter().take(FAULTS).map(|fault| {
        let xruns = if fault.count == 1 { "1 xrun".to_owned() } else { format!("{} xruns", fault.count) };
        let by = if fault.culprit.is_empty() { "nobody looked by whom".to_owned() } else { fault.culprit };
        format!("{xruns}: {}: {by}", part(fault.part))
    });
    told.collect()
}

/// A part of a period at fault, in words.
pub fn part(part: Part) -> &'static str {
    match part {
        Part::Wake => "the thread came late to the period",
        Part::Dsp => "processing took too long",
        Part::Both => "the thread came late and processing took long",
    }
}

/// The worst periods, part by part, a sentence each.
pub fn worst(series: &Series, audio: &Audio) -> Vec<String> {
    let mut spikes: Vec<(&Spike, Played)> =
        series.spikes.iter().filter_map(|spike| Some((spike, spike.played?))).collect();
    spikes.sort_by_key(|(spike, _)| std::cmp::Reverse(spike.lateness_ns));
    let usual = Usual::of(series);
    let told = |(spike, played): &(&Spike, Played)| {
        let (whole, at) = (format_ns(spike.lateness_ns), unsigned(spike.at_ns));
        let xrun = if played.xrun {
            format!(", an xrun: {}", part(usual.at_fault(*played, audio.limit_ns as i64)))
        } else {
            String::new()
        };
        format!(
            "done {whole} after the deadline at {at}{xrun}. It waited {}, processing took {}, usually {}{}",
            format_ns(played.wait_ns),
            format_ns(played.dsp_ns),
            format_ns(usual.dsp_ns),
            culprits(&spike.culprits)
        )
    };
    spikes.iter().take(WORST).map(told).collect()
}

fn culprits(all: &[Culprit]) -> String {
    let told = all.iter().take(CULPRITS).map(|culprit| format!("{} {}", unsigned(culprit.ns), culprit.cause.in_full()));
    match told.collect::<Vec<_>>().join(", ") {
        none if none.is_empty() => String::new(),
        told => format!(": {told}"),
    }
}

fn first_upper(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

#[cfg(test)]
mod tests {
    use record::{SeriesKind, State};

    use super::*;

    /// A search among 64, 128 and 256 frames of which these had so many xruns.
    fn searched(state: State, tried: &[(u32, u64)], held: Option<u32>, failed: Option<u32>) -> (Record, BufferSearch) {
        let series = |&(frames, xruns): &(u32, u64)| Series {
            kind: SeriesKind::Audio(Box::new(Audio { frames, xruns, played: 1000, ..Audio::default() })),
            ..Series::default()
        };
        let record = Record { state, series: tried.iter().map(series).collect(), ..Record::default() };
        (record, BufferSearch { candidates: vec![64, 128, 256], held, failed, ..BufferSearch::default() })
    }

    /// What is said of it.
    fn said(state: State, tried: &[(u32, u64)], held: Option<u32>, failed: Option<u32>) -> String {
        let (record, search) = searched(state, tried, held, failed);
        found(&record, &search).join(" ")
    }

    #[test]
    fn a_size_that_was_cut_short_did_neither_hold_nor_fail() {
        let (record, search) = searched(State::Interrupted, &[(128, 2), (256, 0), (192, 0)], Some(256), Some(128));
        let held: Vec<Option<bool>> = tried(&record, &search).into_iter().map(|(_, held)| held).collect();
        assert_eq!(held, [Some(false), None, Some(true)]);
    }

    #[test]
    fn a_search_that_was_cut_short_says_what_was_decided_and_no_more() {
        let cut = said(State::Interrupted, &[(128, 0)], None, None);
        assert_eq!(cut, "The search ended before a size was decided: let it run to its end.");
        let cut = said(State::Interrupted, &[(128, 2), (256, 0)], None, Some(128));
        assert!(cut.starts_with("The search ended before a size that holds was found"), "{cut}");
        assert!(cut.contains("128 frames did not hold: 2 xruns in 1000 periods"), "{cut}");
        let decided = said(State::Interrupted, &[(128, 0), (64, 0)], Some(128), None);
        assert!(decided.starts_with("The smallest buffer that held: 128 frames."), "{decided}");
        for state in [State::Complete, State::Interrupted] {
            let none = said(state, &[(128, 2), (256, 1)], None, Some(256));
            assert!(none.starts_with("No size held. 256 frames did not hold: 1 xrun in"), "{none}");
        }
    }
}
