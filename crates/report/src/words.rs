//! Names of a record's figures: wake-ups and their lateness, or for example the gaps of a thread that never sleeps.

use std::{borrow::Cow, path::Path};

use record::{EndedBy, Measured, NOISE, Record, Series, SeriesKind, State, Stream, counted};

/// The names of one kind of figures.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Words {
    /// One counted item, singular.
    pub item: &'static str,
    /// The time measured for each item.
    pub lateness: &'static str,
    /// The largest of these times.
    pub largest: &'static str,
    /// An item above the threshold.
    pub spike: &'static str,
    /// Compares two spikes: `later`, `longer`.
    pub later: &'static str,
    /// The start of an item's time.
    pub start: &'static str,
    /// The end of an item's time.
    pub end: &'static str,
    /// Marks of the start and the end on a time line.
    pub marks: (&'static str, &'static str),
    /// True if items are due once per period, and can be missed.
    pub is_periodic: bool,
}

const WAKE_UPS: Words = Words {
    item: "wake-up",
    lateness: "lateness",
    largest: "Largest lateness",
    spike: "spike",
    later: "later",
    start: "deadline",
    end: "wake-up",
    marks: ("|deadline", "awake|"),
    is_periodic: true,
};

const GAPS: Words = Words {
    item: "gap",
    lateness: "length",
    largest: "Longest gap",
    spike: "gap",
    later: "longer",
    start: "start of the gap",
    end: "end of the gap",
    marks: ("|start", "end|"),
    is_periodic: false,
};

const ROUND_TRIPS: Words = Words {
    item: "round trip",
    lateness: "time",
    largest: "Longest round trip",
    spike: "late send",
    later: "longer",
    start: "scheduled send time",
    end: "answer",
    marks: ("|send time", "answered|"),
    is_periodic: true,
};

const INTERRUPTS: Words = Words {
    item: "interrupt",
    lateness: "time until the thread woke",
    largest: "Longest time",
    start: "interrupt",
    marks: ("|interrupt", "awake|"),
    is_periodic: false,
    ..WAKE_UPS
};

const RESPONSES: Words = Words {
    item: "answer",
    lateness: "time from the question to the answer",
    largest: "Longest response",
    spike: "late answer",
    start: "question",
    end: "answer",
    marks: ("|question", "answered|"),
    is_periodic: false,
    ..WAKE_UPS
};

const INTERVALS: Words = Words {
    item: "frame",
    lateness: "interval minus period",
    largest: "Longest delay",
    spike: "spike",
    later: "longer",
    start: "due time",
    end: "reading",
    marks: ("|due", "read|"),
    is_periodic: true,
};

const FRAMES: Words = Words {
    item: "frame",
    lateness: "lateness",
    largest: "Largest lateness",
    spike: "late packet",
    later: "later",
    start: "slot",
    end: "frame",
    marks: ("|slot", "seen|"),
    is_periodic: true,
};

/// Wake-ups whose spikes are audio periods.
const PERIODS: Words = Words { marks: ("|deadline", "done|"), ..WAKE_UPS };
/// The wake-ups of audio periods in charts. The headline has the time until a period is done, which is longer.
const PERIODS_IN_CHARTS: Words = Words { lateness: "wake-up lateness", largest: "Largest wake-up lateness", ..PERIODS };

/// Figures of a campaign whose role is not one of a series: frames received or captured, and audio periods.
const SPACING: Words = Words { lateness: "time between two frames", largest: "Longest time", ..INTERVALS };
const COMPLETION: Words =
    Words { item: "period", lateness: "completion after the deadline", largest: "Largest completion time", ..WAKE_UPS };

impl Words {
    /// The names of the figures of a campaign's role.
    pub(crate) fn of_measured(measured: Measured) -> &'static Self {
        match measured {
            Measured::RoundTrip => &ROUND_TRIPS,
            Measured::SendLateness => &FRAMES,
            Measured::FrameGap | Measured::Spacing => &SPACING,
            Measured::Completion => &COMPLETION,
            Measured::Lateness => &WAKE_UPS,
            Measured::Response => &RESPONSES,
            Measured::Gap => &GAPS,
        }
    }

    /// The names of the times in the charts of all values of a record.
    pub(crate) fn of_charts(record: &Record) -> &'static Self {
        let is_audio = record.series.iter().any(|series| series.kind.audio().is_some());
        if is_audio { &PERIODS_IN_CHARTS } else { Self::of(record) }
    }

    /// The names of a series' figures.
    pub(crate) fn of_series(series: &Series) -> &'static Self {
        match &series.kind {
            SeriesKind::Gaps(_) => &GAPS,
            SeriesKind::Audio(_) => &PERIODS,
            SeriesKind::Capture => &FRAMES,
            SeriesKind::RoundTrips(_) => &ROUND_TRIPS,
            SeriesKind::Interrupts(_) => &INTERRUPTS,
            SeriesKind::Responses(_) => &RESPONSES,
            SeriesKind::Stream(Stream::Listener(_)) => &INTERVALS,
            SeriesKind::WakeUps
            | SeriesKind::Stream(Stream::Talker(_))
            | SeriesKind::Process(_)
            | SeriesKind::TimerlatIrq
            | SeriesKind::TimerlatThread => &WAKE_UPS,
        }
    }

    /// The names of a record's figures: those of its first series, which the probe measured.
    pub(crate) fn of(record: &Record) -> &'static Self {
        if is_noise(record) { &GAPS } else { Self::of_all(record.series.iter()) }
    }

    /// The heading of all spikes: `Spikes`, `Gaps`.
    pub(crate) fn spikes_title(&self) -> String {
        format!("{}s", capitalized(self.spike))
    }

    /// The names of the first series' figures; those of wake-ups if there are none.
    pub(crate) fn of_all<'a>(mut all: impl Iterator<Item = &'a Series>) -> &'static Self {
        all.next().map_or(&WAKE_UPS, Self::of_series)
    }
}

/// The numbers of samples of these series, by item: `1,884 interrupts, 1,786 answers`.
pub(crate) fn counted_items(all: &[&Series]) -> String {
    let mut counts: Vec<(&str, u64)> = Vec::new();
    for series in all {
        let item = Words::of_series(series).item;
        match counts.iter_mut().find(|(known, _)| *known == item) {
            Some((_, count)) => *count = count.saturating_add(series.samples),
            None => counts.push((item, series.samples)),
        }
    }
    counts.into_iter().map(|(item, count)| counted(count, item)).collect::<Vec<_>>().join(", ")
}

/// True if the noise probe made the record.
pub(crate) fn is_noise(record: &Record) -> bool {
    record.series.first().map_or(record.scenario.probe == NOISE, |series| series.kind.noise().is_some())
}

/// True if `requested`, a profile's name or its file, is the profile called `name`.
pub(crate) fn is_profile(requested: &str, name: &str) -> bool {
    requested == name || Path::new(requested).file_stem().is_some_and(|stem| stem == name)
}

/// A note about a run that did not end normally; empty for a complete one.
pub(crate) fn state_note(record: &Record) -> Cow<'static, str> {
    let note = match (record.state, record.ended_by) {
        (State::Complete, _) => "",
        (State::Partial, _) => {
            "This record is partial: the run was still in progress or was cut off. At most the last 5 s are missing."
        }
        (State::Interrupted, Some(EndedBy::Signal)) => {
            let signal = record.ending_signal.as_deref().unwrap_or("A signal");
            return format!("{signal} ended the run. The record contains all samples up to then.").into();
        }
        (State::Interrupted, Some(EndedBy::Key)) => "You ended the run. The record contains all samples up to then.",
        (State::Interrupted, Some(EndedBy::Spike)) => {
            "A spike ended the run, as requested. The record contains all samples up to then."
        }
        (State::Interrupted, Some(EndedBy::Guard | EndedBy::Failure) | None) => {
            "The run was stopped early. The record contains all samples up to then."
        }
    };
    note.into()
}

/// The text with a capital at the start and a full stop at the end.
pub(crate) fn sentence(text: &str) -> String {
    let stop = if text.is_empty() || text.ends_with(['.', '!', '?']) { "" } else { "." };
    format!("{}{stop}", capitalized(text))
}

/// The reason of a verdict as a sentence. The name of a thread at its start keeps its case.
pub(crate) fn reason_sentence(record: &Record, reason: &str) -> String {
    let first_word = reason.split(' ').next().unwrap_or_default();
    if !record.series.iter().any(|series| series.role == first_word) {
        return sentence(reason);
    }
    let stop = if reason.ends_with(['.', '!', '?']) { "" } else { "." };
    format!("{reason}{stop}")
}

/// The text with a capital at the start, unless it starts with a name such as `audio-48k-64:` or `i915`.
pub(crate) fn capitalized(text: &str) -> String {
    let first_word = text.split(' ').next().unwrap_or_default();
    let is_name =
        first_word != "real-time" && !first_word.trim_end_matches([',', '.', ';']).chars().all(char::is_alphabetic);
    let mut letters = text.chars();
    match letters.next() {
        Some(first) if !is_name => first.to_uppercase().chain(letters).collect(),
        _ => text.to_owned(),
    }
}

/// A list of CPUs with its noun: `CPU 3`, `CPUs 0-3`.
pub(crate) fn cpus(list: &str) -> String {
    let is_one = list.chars().all(|c| c.is_ascii_digit());
    format!("CPU{} {list}", if is_one { "" } else { "s" })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The way to the thread, and the whole way to the answer.
    pub(crate) fn judged() -> Record {
        let responses = record::Responses { questions: 1_884, answered: 1_786, missed: 98, ..Default::default() };
        let kinds = [
            (record::INTERRUPT, 1_884, SeriesKind::Interrupts(Box::default())),
            (record::RESPONSE, 1_786, SeriesKind::Responses(Box::new(responses))),
        ];
        let series = kinds.map(|(role, samples, kind)| Series {
            phase: "rest".to_owned(),
            role: role.to_owned(),
            kind,
            samples,
            cpu: Some(1),
            max_ns: Some(samples.cast_signed()),
            ..Series::default()
        });
        let phases = vec![record::Phase { name: "rest".to_owned(), ..Default::default() }];
        Record { series: series.into(), phases, ..Record::default() }
    }

    #[test]
    fn names_the_signal_that_ended_a_run() {
        let note_of = |ended_by: EndedBy, ending_signal: Option<&str>| {
            let (state, ended_by) = (State::Interrupted, Some(ended_by));
            let ending_signal = ending_signal.map(str::to_owned);
            state_note(&Record { state, ended_by, ending_signal, ..Record::default() }).into_owned()
        };
        let note = |ending_signal| note_of(EndedBy::Signal, ending_signal);
        assert!(note_of(EndedBy::Key, None).starts_with("You ended the run. "), "{}", note_of(EndedBy::Key, None));
        assert!(note(Some("SIGHUP")).starts_with("SIGHUP ended the run. "), "{}", note(Some("SIGHUP")));
        assert!(note(None).starts_with("A signal ended the run. "), "as in records of version 0.2");
    }

    #[test]
    fn the_name_of_a_thread_keeps_its_case() {
        let record = Record { series: vec![Series { role: "servo".into(), ..Series::default() }], ..Record::default() };
        assert_eq!(reason_sentence(&record, "servo waited 2 ms"), "servo waited 2 ms.");
        assert_eq!(reason_sentence(&record, "no limit was exceeded"), "No limit was exceeded.");
    }

    #[test]
    fn completes_sentences() {
        assert_eq!(["", "why not", "Done."].map(sentence), ["", "Why not.", "Done."]);
        assert_eq!(sentence("audio-48k-64: 2 ms late"), "audio-48k-64: 2 ms late.");
        assert_eq!(sentence("real-time throttling"), "Real-time throttling.");
        assert_eq!(["3", "0-3", "1,3"].map(cpus), ["CPU 3", "CPUs 0-3", "CPUs 1,3"]);
    }

    #[test]
    fn the_export_for_comments_counts_unanswered_questions() {
        let text = String::from_utf8(crate::export::Format::Markdown.record(&judged())).unwrap();
        assert!(text.contains("| 1,786 | 98 |") && text.contains("| 1,884 | 0 |"), "{text}");
    }

    #[test]
    fn the_short_answer_counts_lost_datagrams() {
        let kinds = [
            SeriesKind::WakeUps,
            SeriesKind::RoundTrips(Box::new(record::RoundTrip { lost: 7, ..Default::default() })),
        ];
        let series =
            kinds.map(|kind| Series { role: "x".to_owned(), kind, samples: 90, missed: 2, ..Series::default() });
        let record = Record { series: series.into(), ..Record::default() };
        let text = crate::terminal::answer(&record, "more", &crate::Style::plain(), 80);
        let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        let missed: Vec<&str> =
            rows.iter().filter(|row| row.starts_with(&["x,", "unpinned", "90"])).map(|row| row[3]).collect();
        assert_eq!(missed, ["2", "9"], "{text}");
    }

    #[test]
    fn one_line_about_an_invalid_run_has_the_reason() {
        let mut record = judged();
        record.verdict = Some(record::Verdict {
            outcome: record::Outcome::Invalid,
            reason: "audio: the run did not go as requested (judge.wiring)".to_owned(),
        });
        let text = "the judge saw answers before the thread woke".to_owned();
        record.validity.reasons = vec![record::Reason { id: "judge.wiring".to_owned(), text, ..Default::default() }];
        let line = crate::terminal::headline(&record, &crate::Style::plain(), 10_000);
        assert!(line.ends_with("(judge.wiring). The judge saw answers before the thread woke.\n"), "{line}");
    }
}
