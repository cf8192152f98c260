//! Evaluates audio: the part of a period at fault, the culprit, and the smallest buffer that holds.

use std::{cmp::Reverse, collections::HashMap};

use record::{
    Audio, BufferSearch, CLOCK, Obstacle, Outcome, Part, Played, Record, Series, Spike, State, counted, grouped,
};

use crate::{
    duration::{format_ns, format_unsigned_ns},
    float::to_u64,
    profile::Profile,
    stalls,
};

/// The median times of a period's parts, ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MedianTimes {
    /// From the deadline to the start of processing.
    pub wait_ns: i64,
    /// Processing.
    pub dsp_ns: i64,
}

impl MedianTimes {
    /// The medians of a series.
    #[must_use]
    pub fn of(series: &Series) -> Self {
        let dsp = series.kind.audio().and_then(|audio| audio.dsp.as_ref());
        Self {
            wait_ns: series.raw.percentile(50.0).unwrap_or_default(),
            dsp_ns: dsp.and_then(|times| times.histogram.percentile(50.0)).unwrap_or_default(),
        }
    }

    /// The part that made a period last `limit_ns` or longer: the one that would have kept the period in time with its
    /// median duration. Both, if either part or only both together would have. If even the medians exceed the limit,
    /// the part whose median alone does, or both.
    #[must_use]
    pub fn at_fault(&self, played: Played, limit_ns: i64) -> Part {
        let in_time = |wait_ns: i64, dsp_ns: i64| wait_ns + dsp_ns < limit_ns;
        let (wait_fits, dsp_fits) = (in_time(self.wait_ns, 0), in_time(0, self.dsp_ns));
        match (wait_fits, dsp_fits) {
            (true, false) => return Part::Dsp,
            (false, true) => return Part::Wake,
            _ if !in_time(self.wait_ns, self.dsp_ns) => return Part::Both,
            _ => {}
        }
        match (in_time(self.wait_ns, played.dsp_ns), in_time(played.wait_ns, self.dsp_ns)) {
            (true, false) => Part::Wake,
            (false, true) => Part::Dsp,
            (true, true) | (false, false) => Part::Both,
        }
    }
}

/// Xruns of one part and one culprit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The part at fault.
    pub part: Part,
    /// The main culprit; empty if unknown.
    pub culprit: String,
    /// The number of such xruns in the record.
    pub count: u64,
}

/// The causes of the xruns in the record, the most frequent first.
#[must_use]
pub fn faults(series: &Series) -> Vec<Fault> {
    let Some(audio) = series.kind.audio() else { return Vec::new() };
    let medians = MedianTimes::of(series);
    let mut counts: HashMap<(Part, String), u64> = HashMap::new();
    for (spike, played) in xruns(series) {
        let part = medians.at_fault(played, i64::try_from(audio.limit_ns).unwrap_or(i64::MAX));
        *counts.entry((part, culprit(spike))).or_default() += 1;
    }
    let mut faults: Vec<Fault> =
        counts.into_iter().map(|((part, culprit), count)| Fault { part, culprit, count }).collect();
    faults.sort_by(|a, b| (Reverse(a.count), &a.culprit, a.part).cmp(&(Reverse(b.count), &b.culprit, b.part)));
    faults
}

/// The xruns in the record of a series.
pub fn xruns(series: &Series) -> impl Iterator<Item = (&Spike, Played)> {
    series.spikes.iter().filter_map(|spike| Some((spike, spike.played.filter(|played| played.xrun)?)))
}

/// The main culprit of a period.
fn culprit(spike: &Spike) -> String {
    spike.culprits.first().map_or_else(String::new, |main| main.cause.title())
}

/// The command that plays the same audio, without the duration.
pub(crate) fn command(audio: &Audio) -> String {
    let Audio { rate_hz, frames, periods, model, cab, preset, card, .. } = audio;
    let cab = if cab.is_empty() { "none" } else { cab };
    let mut words = if preset.is_empty() { vec!["--model", model, "--cab", cab] } else { vec!["--preset", preset] };
    if let Some(card) = card {
        words.extend(["--capture-device", &card.capture, "--playback-device", &card.playback]);
        words.extend(card.asked_format.iter().flat_map(|format| ["--sample-format", format]));
    }
    let input = card.as_ref().and_then(|card| card.input).filter(|input| *input > 1).map(|input| input.to_string());
    words.extend(input.iter().flat_map(|input| ["--input", input]));
    let words = record::shell::command(&words);
    format!("punctual measure audio --rate {rate_hz} --frames {frames} --periods {periods} {words}")
}

/// The same audio with the buffer of a use: a search may not have played it.
pub(crate) fn with_period_of(audio: &Audio, profile: &Profile) -> Audio {
    let frames = to_u64((profile.period_ns as f64 * f64::from(audio.rate_hz) / 1e9).round());
    match u32::try_from(frames) {
        Ok(frames @ 1..) if profile.group == "audio" => Audio { frames, ..audio.clone() },
        _ => audio.clone(),
    }
}

/// True if a phase ran to its end with its loads, and without an xrun.
#[must_use]
pub fn held(record: &Record, phase: &str) -> bool {
    let series = record.series.iter().filter(|series| series.phase == phase);
    let mut played = series.filter_map(|series| Some((series, series.kind.audio()?))).peekable();
    let ran = record.phase(phase).is_some_and(|phase| record.phase_obstacle(phase).is_none());
    let in_time =
        |(series, audio): (&Series, &Audio)| audio.xruns == 0 && audio.played > 0 && hidden_xrun(series).is_none();
    ran && played.peek().is_some() && played.all(in_time)
}

/// The reason why a series of audio without an xrun supports no PASS: its other figures say that there was one, or are
/// missing. A sound card reports its xruns itself, whatever the completion of their periods was.
pub(crate) fn hidden_xrun(series: &Series) -> Option<String> {
    let audio = series.kind.audio().filter(|audio| audio.xruns == 0 && audio.played > 0)?;
    if audio.lost > 0 {
        return Some(format!("{} lost, but the record contains no xrun", counted(audio.lost, "period")));
    }
    let Some(completion) = &audio.completion else {
        return Some("the record does not contain when the periods were completed".to_owned());
    };
    (audio.pacer == CLOCK && to_limit(completion.max_ns) >= audio.limit_ns).then(|| {
        let (worst, limit) = (format_ns(completion.max_ns), format_unsigned_ns(audio.limit_ns));
        format!("a period was done {worst} after its deadline (an xrun from {limit}), but the record contains no xrun")
    })
}

/// The smallest buffer that held, and the limiting part of the next smaller one that was tried.
#[must_use]
pub fn search(record: &Record, candidates: Vec<u32>) -> BufferSearch {
    let tried = || record.series.iter().filter_map(|series| Some((series, series.kind.audio()?)));
    let holds = tried().filter(|(series, _)| held(record, &series.phase)).map(|(_, audio)| audio.frames).min();
    let below = |frames: u32| holds.is_none_or(|holds| frames < holds);
    let failed = tried().filter(|(_, audio)| audio.xruns > 0 && below(audio.frames));
    let failed = failed.max_by_key(|(_, audio)| audio.frames);
    let faults = failed.map(|(series, _)| faults(series)).unwrap_or_default();
    let limit = [Part::Wake, Part::Dsp, Part::Both].into_iter().max_by_key(|part| {
        let of_part = faults.iter().filter(|fault| fault.part == *part);
        of_part.map(|fault| fault.count).sum::<u64>()
    });
    let limit = limit.filter(|_| !faults.is_empty());
    let culprit = faults.iter().find(|fault| Some(fault.part) == limit).map(|fault| fault.culprit.clone());
    BufferSearch {
        candidates,
        held: holds,
        failed: failed.map(|(_, audio)| audio.frames),
        limit,
        culprit: culprit.unwrap_or_default(),
    }
}

/// True if a search ended before it was known whether any size holds. A phase that was cut short decides nothing, and
/// sizes larger than the failed ones were not tried.
#[must_use]
pub fn is_undecided(record: &Record, search: &BufferSearch) -> bool {
    record.state != State::Complete && search.held.is_none() && search.failed != search.candidates.last().copied()
}

/// Why a search shows nothing: the run is invalid, or did not keep its threads and its far end. `None` if its sizes count.
#[must_use]
pub fn why_no_size(record: &Record) -> Option<Obstacle> {
    // An interrupted search shows the sizes that ran to their end.
    record.run_obstacle().filter(|obstacle| !matches!(obstacle, Obstacle::EndedEarly { .. }))
}

/// The outcome of a search that found no size, or one that another size contradicts; it decides before all limits. `None`
/// if a size held, or if the record has no valid search.
#[must_use]
pub fn outcome_of_search(record: &Record) -> Option<Outcome> {
    let search = record.buffer.as_ref()?;
    match why_no_size(record) {
        Some(Obstacle::Invalid(_)) => None,
        Some(_) => Some(Outcome::Inconclusive),
        None if search.held.is_some() => contradicted(record, search).map(|_| Outcome::Inconclusive),
        None if is_undecided(record, search) => Some(Outcome::Inconclusive),
        None => Some(Outcome::Fail),
    }
}

/// Why the size that held probably holds only by chance: during the time of a larger size, which is less demanding, a period
/// was later than the one that held allows. `None` if there was none.
#[must_use]
pub fn contradicted(record: &Record, search: &BufferSearch) -> Option<String> {
    let tried = || record.series.iter().filter_map(|series| series.kind.audio());
    let held = tried().find(|audio| Some(audio.frames) == search.held)?;
    let larger = tried().filter(|audio| audio.frames > held.frames);
    let latest = larger.filter_map(|audio| Some((audio.completion.as_ref()?.max_ns, audio.frames)));
    let (late_ns, frames) = latest.max().filter(|(late_ns, _)| to_limit(*late_ns) >= held.limit_ns)?;
    let (late, limit) = (format_ns(late_ns), format_unsigned_ns(held.limit_ns));
    Some(format!(
        "the same run had a delay of {late} with {} frames, and {} frames allow less than {limit}: measure longer, with \
         --duration",
        grouped(frames.into()),
        grouped(held.frames.into())
    ))
}

/// A lateness as the time that a limit is compared with; 0 if it is early.
fn to_limit(late_ns: i64) -> u64 {
    late_ns.max(0).unsigned_abs()
}

/// The rate of xruns that the periods allow to conclude: that of their stalls, because an xrun often follows another.
/// Lost periods follow an xrun and do not count as further ones.
#[must_use]
pub fn statement(series: &Series, audio: &Audio) -> String {
    let Audio { played, xruns, .. } = *audio;
    if played == 0 {
        return "no period was played, so there is no conclusion".to_owned();
    }
    let stalls = stalls::of_xruns(series, audio).count().stalls;
    let periods = format!("{} periods", grouped(played));
    let seen = match (xruns, stalls.total) {
        (0, _) => format!("no xrun in {periods}"),
        (1, _) => format!("1 xrun in {periods}"),
        (xruns, stalls) => {
            let at_most = if stalls == 1 { "" } else { "at most " };
            format!("{} xruns in {periods}, in {at_most}{}", grouped(xruns), counted(stalls, "stall"))
        }
    };
    let ns = to_u64(played as f64 * series.period_ns as f64 / stalls.upper());
    if ns == 0 { seen } else { format!("{seen}: at 95 % fewer than one stall in {}", format_unsigned_ns(ns)) }
}

#[cfg(test)]
mod tests {
    use record::{Cause, CauseKind, Culprit, Histogram, SeriesKind, SoundCard, Times};

    use super::*;

    fn played(wait_us: i64, dsp_us: i64) -> Played {
        Played { wait_ns: wait_us * 1000, dsp_ns: dsp_us * 1000, xrun: wait_us + dsp_us >= 1333 }
    }

    #[test]
    fn blames_the_part_that_exceeded_its_median() {
        let medians = MedianTimes { wait_ns: 10_000, dsp_ns: 300_000 };
        let at_fault = |wait_us, dsp_us| medians.at_fault(played(wait_us, dsp_us), 1_333_333);
        assert_eq!(at_fault(1_100, 310), Part::Wake);
        assert_eq!(at_fault(12, 1_400), Part::Dsp);
        assert_eq!(at_fault(700, 700), Part::Both, "either median would have kept it in time");
        assert_eq!(at_fault(1_500, 1_500), Part::Both, "each part alone was too long");
        let slow = MedianTimes { wait_ns: 10_000, dsp_ns: 1_400_000 };
        assert_eq!(slow.at_fault(played(900, 1_400), 1_333_333), Part::Dsp, "the model is too slow for this buffer");
        let late = MedianTimes { wait_ns: 2_000_000, dsp_ns: 300_000 };
        assert_eq!(late.at_fault(played(2_000, 310), 1_333_333), Part::Wake, "an ordinary thread on a busy CPU");
    }

    #[test]
    fn builds_the_command_of_a_series() {
        let card = |card| Audio { card, ..Audio::default() };
        let command_of = |audio| command(&audio);
        assert!(!command_of(card(None)).contains("--capture"));
        let usb = SoundCard {
            capture: "hw:USB".to_owned(),
            playback: "hw:0".to_owned(),
            format: "S16".to_owned(),
            input: Some(1),
            ..SoundCard::default()
        };
        assert!(command_of(card(Some(usb.clone()))).ends_with("--capture-device hw:USB --playback-device hw:0"));
        let second = SoundCard { asked_format: Some("S16".to_owned()), input: Some(2), ..usb };
        assert!(command_of(card(Some(second))).ends_with("--playback-device hw:0 --sample-format S16 --input 2"));
    }

    #[test]
    fn counts_faults_by_part_and_culprit() {
        let spike = |played: Played, kind, name: &str| Spike {
            lateness_ns: played.completion_ns(),
            culprits: vec![Culprit { cause: Cause::new(kind, name), ns: 1 }],
            played: Some(played),
            ..Spike::default()
        };
        let mut dsp = Histogram::default();
        dsp.add(300_000, 1000);
        let times = Times { histogram: dsp, ..Times::default() };
        let audio = Audio { limit_ns: 1_333_334, dsp: Some(times), ..Audio::default() };
        let series = Series {
            spikes: vec![
                spike(played(1_100, 310), CauseKind::Interrupt, "eth0"),
                spike(played(1_200, 310), CauseKind::Interrupt, "eth0"),
                spike(played(10, 1_900), CauseKind::Thread, "hog"),
                spike(played(10, 900), CauseKind::Work, ""),
            ],
            kind: SeriesKind::Audio(Box::new(audio)),
            ..Series::default()
        };
        let found: Vec<_> = faults(&series).into_iter().map(|f| (f.part, f.culprit, f.count)).collect();
        let expected = [(Part::Wake, "interrupt eth0".to_owned(), 2), (Part::Dsp, "thread hog".to_owned(), 1)].to_vec();
        assert_eq!(found, expected, "periods in time are no xruns");
    }

    #[test]
    fn the_advised_run_has_the_buffer_of_the_use() {
        let audio = Audio { rate_hz: 48_000, frames: 128, ..Audio::default() };
        let frames = |name: &str| {
            let profile = crate::profiles().iter().find(|profile| profile.name == name).unwrap();
            with_period_of(&audio, profile).frames
        };
        assert_eq!([frames("audio-48k-64"), frames("avb-class-a")], [64, 128]);
    }

    #[test]
    fn a_larger_size_can_contradict_the_one_that_held() {
        let tried = |frames: u32, limit_ns: u64, max_ns: i64| {
            let completion = Some(Times { max_ns, ..Times::default() });
            let audio = Audio { frames, limit_ns, completion, played: 9, ..Audio::default() };
            Series { phase: frames.to_string(), kind: SeriesKind::Audio(Box::new(audio)), ..Series::default() }
        };
        let why = |late_ns: i64| {
            let series = vec![tried(32, 667_000, 5_000_000), tried(64, 1_333_000, 9), tried(128, 2_667_000, late_ns)];
            let record = Record { series, ..Record::default() };
            contradicted(&record, &BufferSearch { held: Some(64), ..BufferSearch::default() })
        };
        assert_eq!(why(1_332_999), None, "a smaller size is later by itself");
        let reason = why(1_490_000).unwrap();
        assert!(
            reason.starts_with(
                "the same run had a delay of 1.49 ms with 128 frames, and 64 frames allow less than 1.33 ms"
            ),
            "{reason}"
        );
    }

    #[test]
    fn a_period_after_its_limit_is_an_xrun_of_the_clock() {
        let of = |pacer: &str, lost, completion_ns: Option<i64>| {
            let completion = completion_ns.map(|max_ns| Times { max_ns, ..Times::default() });
            let pacer = pacer.to_owned();
            let audio = Audio { pacer, lost, played: 9, limit_ns: 1_333_334, completion, ..Audio::default() };
            hidden_xrun(&Series { kind: SeriesKind::Audio(Box::new(audio)), ..Series::default() })
        };
        assert_eq!(of(CLOCK, 0, Some(1_333_333)), None);
        let late =
            "a period was done 1.34 ms after its deadline (an xrun from 1.33 ms), but the record contains no xrun";
        assert_eq!(of(CLOCK, 0, Some(1_340_000)).as_deref(), Some(late));
        assert_eq!(of("hw:0", 0, Some(1_340_000)), None, "the card did not stop");
        assert!(of("hw:0", 1, Some(5)).is_some() && of(CLOCK, 0, None).is_some());
    }

    #[test]
    fn finds_the_smallest_buffer_and_the_limiting_part() {
        let tried = |frames: u32, xruns: u64, spikes: Vec<Spike>| {
            let completion = Some(Times { max_ns: 1_000_000, ..Times::default() });
            let audio = Audio { frames, xruns, played: 1000, limit_ns: 1_333_334, completion, ..Audio::default() };
            Series { phase: frames.to_string(), kind: SeriesKind::Audio(Box::new(audio)), spikes, ..Series::default() }
        };
        let spike = |dsp_us| Spike {
            culprits: vec![Culprit { cause: Cause::new(CauseKind::Softirq, "NET_RX"), ns: 1 }],
            played: Some(played(1_500 - dsp_us, dsp_us)),
            ..Spike::default()
        };
        let series = vec![
            tried(128, 0, vec![]),
            tried(32, 9, vec![spike(1_400)]),
            tried(64, 3, vec![spike(0), spike(0), spike(1_450)]),
        ];
        let phase = |series: &Series| record::Phase { name: series.phase.clone(), ..record::Phase::default() };
        let mut record = Record { phases: series.iter().map(phase).collect(), series, ..Record::default() };
        let found = search(&record, vec![32, 64, 128]);
        assert_eq!((found.held, found.failed, found.limit), (Some(128), Some(64), Some(Part::Wake)));
        assert_eq!(found.culprit, "softirq NET_RX");
        // A size that was cut short did not hold.
        record.phases[0].planned_ns = Some(1);
        assert_eq!(search(&record, vec![]).held, None);
        assert_eq!(search(&Record::default(), vec![]), BufferSearch::default());
    }

    #[test]
    fn an_interrupted_search_is_undecided_until_a_size_holds_or_the_largest_fails() {
        let undecided = |state, held, failed| {
            let record = Record { state, ..Record::default() };
            is_undecided(
                &record,
                &BufferSearch { candidates: vec![64, 128, 256], held, failed, ..BufferSearch::default() },
            )
        };
        assert!(undecided(State::Interrupted, None, None) && undecided(State::Interrupted, None, Some(128)));
        assert!(!undecided(State::Interrupted, None, Some(256)) && !undecided(State::Interrupted, Some(128), Some(64)));
        assert!(!undecided(State::Complete, None, Some(256)) && !undecided(State::Complete, None, None));
    }

    #[test]
    fn bounds_the_rate_without_xruns() {
        let series = Series { period_ns: 1_333_333, ..Series::default() };
        let statement_of = |played, xruns| statement(&series, &Audio { played, xruns, ..Audio::default() });
        assert_eq!(statement_of(7_500, 0), "no xrun in 7,500 periods: at 95 % fewer than one stall in 3.33 s");
        assert_eq!(
            statement_of(7_500, 2),
            "2 xruns in 7,500 periods, in at most 2 stalls: at 95 % fewer than one stall in 1.05 s"
        );
        assert_eq!(statement_of(0, 0), "no period was played, so there is no conclusion");
    }
}
