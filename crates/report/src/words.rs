//! What the figures of a record are called: wake-ups with their lateness, or the gaps of a thread that never slept.

use record::{Record, Series, SeriesKind, Stream};

/// Names of figures.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Words {
    /// What is counted, one of it.
    pub one: &'static str,
    /// What is measured of each.
    pub lateness: &'static str,
    /// The largest of all.
    pub largest: &'static str,
    /// One above the threshold.
    pub spike: &'static str,
    /// Where the time of one begins.
    pub begin: &'static str,
    /// How begin and end are marked on a time line.
    pub marks: (&'static str, &'static str),
}

const WAKE_UPS: Words = Words {
    one: "wake-up",
    lateness: "lateness",
    largest: "Largest lateness",
    spike: "spike",
    begin: "deadline",
    marks: ("|deadline", "awake|"),
};

const GAPS: Words = Words {
    one: "gap",
    lateness: "length",
    largest: "Longest gap",
    spike: "gap",
    begin: "begin of the gap",
    marks: ("|begin", "end|"),
};

const ROUND_TRIPS: Words = Words {
    one: "round trip",
    lateness: "time",
    largest: "Longest round trip",
    spike: "spike",
    begin: "time to send",
    marks: ("|to be sent", "answered|"),
};

const INTERVALS: Words = Words {
    one: "frame",
    lateness: "delay against the one before",
    largest: "Longest delay",
    spike: "spike",
    begin: "time it was due",
    marks: ("|due", "read|"),
};

const FRAMES: Words = Words {
    one: "frame",
    lateness: "lateness",
    largest: "Largest lateness",
    spike: "late packet",
    begin: "slot",
    marks: ("|slot", "seen|"),
};

/// Wake-ups whose spikes are periods of audio.
const PERIODS: Words = Words { marks: ("|deadline", "done|"), ..WAKE_UPS };

impl Words {
    /// The names for a series.
    pub(crate) fn of_series(series: &Series) -> &'static Self {
        match &series.kind {
            SeriesKind::Gaps(_) => &GAPS,
            SeriesKind::Audio(_) => &PERIODS,
            SeriesKind::Capture => &FRAMES,
            SeriesKind::RoundTrips(_) => &ROUND_TRIPS,
            SeriesKind::Stream(Stream::Listener(_)) => &INTERVALS,
            SeriesKind::WakeUps
            | SeriesKind::Stream(Stream::Talker(_))
            | SeriesKind::Process(_)
            | SeriesKind::TimerlatIrq
            | SeriesKind::TimerlatThread => &WAKE_UPS,
        }
    }

    /// Those of a record.
    pub(crate) fn of(record: &Record) -> &'static Self {
        if is_noise(record) { &GAPS } else { &WAKE_UPS }
    }

    /// Those of several series.
    pub(crate) fn of_all<'a>(mut all: impl Iterator<Item = &'a Series>) -> &'static Self {
        all.next().map_or(&WAKE_UPS, Self::of_series)
    }
}

/// True if the noise probe made the record.
pub(crate) fn is_noise(record: &Record) -> bool {
    record.series.first().map_or(record.scenario.probe == "noise", |series| series.kind.noise().is_some())
}

/// True if the thread of the series woke at deadlines of its own.
pub(crate) fn has_deadlines(series: &Series) -> bool {
    match series.kind {
        SeriesKind::RoundTrips(_) | SeriesKind::Stream(Stream::Listener(_)) | SeriesKind::Capture => false,
        SeriesKind::WakeUps
        | SeriesKind::Gaps(_)
        | SeriesKind::Stream(Stream::Talker(_))
        | SeriesKind::Audio(_)
        | SeriesKind::Process(_)
        | SeriesKind::TimerlatIrq
        | SeriesKind::TimerlatThread => true,
    }
}
