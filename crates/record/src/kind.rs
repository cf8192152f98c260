//! The kinds of series: what their values mean.
//!
//! In the document a series names its kind (`kind`) and keeps the figures of that kind under a key of its own, such as
//! `noise`. Records written before version 0.2 have no `kind`; it follows there from the key and from the role.

use schemars::JsonSchema;
use serde::{
    Deserialize, Serialize, Serializer,
    de::{DeserializeOwned, Error},
    ser::SerializeMap,
};
use serde_json::Value;

use crate::{
    Audio, CAPTURE, Extra, INTERRUPT, Interrupts, Listener, Measured, NOISE, Noise, ProcessThread, RESPONSE, Responses,
    RoundTrip, Stream, TIMER, TIMERLAT_IRQ, TIMERLAT_THREAD, Talker,
};

/// The kind of a series, with the figures that only this kind has.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum SeriesKind {
    /// Lateness of the wake-ups of a measuring thread.
    #[default]
    WakeUps,
    /// Lengths of the gaps seen by a thread that never sleeps.
    Gaps(Box<Noise>),
    /// Times from when a datagram should have been sent to its answer.
    RoundTrips(Box<RoundTrip>),
    /// A talker's lateness of wake-ups, or a listener's delay of each frame against the one before.
    Stream(Stream),
    /// Lateness of the wake-ups of an audio thread; its spikes are late periods.
    Audio(Box<Audio>),
    /// Wake-up latency of a thread of the user's program.
    Process(Box<ProcessThread>),
    /// Times from an interrupt to the wake-up of the thread that waited for it.
    Interrupts(Box<Interrupts>),
    /// Times from the questions of an outside judge to the answers of this machine, by the judge's clock.
    Responses(Box<Responses>),
    /// Lateness of the frames in a capture; the other figures are in [`Record::capture`](crate::Record::capture).
    Capture,
    /// Lateness of the timer interrupt of the kernel's timerlat tracer. Its spikes are counted in the thread's series.
    TimerlatIrq,
    /// Lateness of the thread of the kernel's timerlat tracer.
    TimerlatThread,
}

/// The value of the key `kind`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum KindName {
    WakeUps,
    Gaps,
    RoundTrips,
    Talker,
    Listener,
    Audio,
    Process,
    Interrupts,
    Responses,
    Capture,
    TimerlatIrq,
    TimerlatThread,
}

/// The keys under which the figures of one kind are stored in a series.
const KEYS: [&str; 7] = ["noise", "round_trip", "stream", "audio", "process", "interrupts", "responses"];

/// What the rest of the program needs to know of a kind of series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KindProperties {
    /// Meaning of the times.
    pub measured: Measured,
    /// Who measured it.
    pub by: MeasuredBy,
    /// Role of a thread that has no name of its own.
    pub default_role: &'static str,
    /// True if its spikes count as spikes of the run. A late interrupt of timerlat counts as its thread, and other
    /// machines contribute to long round trips.
    pub counts_spikes: bool,
    /// True if a profile of wake-ups may judge it: its values are lateness against deadlines of a thread or of frames.
    pub judged_as_wake_ups: bool,
    /// True if the lateness of a spike is also one of its values. Spikes of audio are completions of periods instead.
    pub spikes_are_values: bool,
    /// True if its thread woke at deadlines of its own.
    pub has_deadlines: bool,
    /// True if its values have a jitter: the largest |interval - period|.
    pub has_jitter: bool,
    /// True if its corrected histogram differs from the raw one, because values can be missed.
    pub is_corrected: bool,
}

/// Who measured a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MeasuredBy {
    /// The probe of the run.
    Probe,
    /// An observer that captured frames during the run.
    Observer,
    /// The kernel's timerlat tracer.
    Kernel,
    /// An outside judge with a clock of its own.
    Judge,
}

impl SeriesKind {
    /// Returns the value of the key `kind`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self.kind_name() {
            KindName::WakeUps => "wake_ups",
            KindName::Gaps => "gaps",
            KindName::RoundTrips => "round_trips",
            KindName::Talker => "talker",
            KindName::Listener => "listener",
            KindName::Audio => "audio",
            KindName::Process => "process",
            KindName::Interrupts => "interrupts",
            KindName::Responses => "responses",
            KindName::Capture => "capture",
            KindName::TimerlatIrq => "timerlat_irq",
            KindName::TimerlatThread => "timerlat_thread",
        }
    }

    fn kind_name(&self) -> KindName {
        match self {
            Self::WakeUps => KindName::WakeUps,
            Self::Gaps(_) => KindName::Gaps,
            Self::RoundTrips(_) => KindName::RoundTrips,
            Self::Stream(Stream::Talker(_)) => KindName::Talker,
            Self::Stream(Stream::Listener(_)) => KindName::Listener,
            Self::Audio(_) => KindName::Audio,
            Self::Process(_) => KindName::Process,
            Self::Interrupts(_) => KindName::Interrupts,
            Self::Responses(_) => KindName::Responses,
            Self::Capture => KindName::Capture,
            Self::TimerlatIrq => KindName::TimerlatIrq,
            Self::TimerlatThread => KindName::TimerlatThread,
        }
    }

    /// The properties of this kind: the one place that a new kind must answer for the rest of the program.
    #[must_use]
    pub fn properties(&self) -> KindProperties {
        match self {
            Self::WakeUps => KindProperties {
                measured: Measured::Lateness,
                by: MeasuredBy::Probe,
                default_role: TIMER,
                counts_spikes: true,
                judged_as_wake_ups: true,
                spikes_are_values: true,
                has_deadlines: true,
                has_jitter: true,
                is_corrected: true,
            },
            Self::Gaps(_) => KindProperties {
                measured: Measured::Gap,
                by: MeasuredBy::Probe,
                default_role: NOISE,
                counts_spikes: true,
                judged_as_wake_ups: false,
                spikes_are_values: true,
                has_deadlines: false,
                has_jitter: false,
                is_corrected: false,
            },
            Self::RoundTrips(_) => KindProperties {
                measured: Measured::RoundTrip,
                by: MeasuredBy::Probe,
                default_role: "",
                counts_spikes: false,
                judged_as_wake_ups: false,
                spikes_are_values: true,
                has_deadlines: false,
                has_jitter: false,
                is_corrected: true,
            },
            Self::Stream(Stream::Talker(_)) => KindProperties {
                measured: Measured::SendLateness,
                by: MeasuredBy::Probe,
                default_role: "",
                counts_spikes: true,
                judged_as_wake_ups: true,
                spikes_are_values: true,
                has_deadlines: true,
                has_jitter: true,
                is_corrected: true,
            },
            Self::Stream(Stream::Listener(_)) => KindProperties {
                measured: Measured::FrameGap,
                by: MeasuredBy::Probe,
                default_role: "",
                counts_spikes: true,
                judged_as_wake_ups: true,
                spikes_are_values: true,
                has_deadlines: false,
                has_jitter: true,
                is_corrected: true,
            },
            Self::Audio(_) => KindProperties {
                measured: Measured::Completion,
                by: MeasuredBy::Probe,
                default_role: "",
                counts_spikes: true,
                judged_as_wake_ups: true,
                spikes_are_values: false,
                has_deadlines: true,
                has_jitter: true,
                is_corrected: true,
            },
            Self::Process(_) => KindProperties {
                measured: Measured::Lateness,
                by: MeasuredBy::Probe,
                default_role: "",
                counts_spikes: true,
                judged_as_wake_ups: true,
                spikes_are_values: true,
                has_deadlines: true,
                has_jitter: true,
                is_corrected: true,
            },
            Self::Interrupts(_) => KindProperties {
                measured: Measured::Lateness,
                by: MeasuredBy::Probe,
                default_role: INTERRUPT,
                counts_spikes: true,
                judged_as_wake_ups: true,
                spikes_are_values: true,
                has_deadlines: false,
                has_jitter: false,
                is_corrected: true,
            },
            Self::Responses(_) => KindProperties {
                measured: Measured::Response,
                by: MeasuredBy::Judge,
                default_role: RESPONSE,
                // The thread that answers has the spikes, with their causes.
                counts_spikes: false,
                judged_as_wake_ups: true,
                spikes_are_values: true,
                has_deadlines: false,
                has_jitter: false,
                is_corrected: true,
            },
            Self::Capture => KindProperties {
                measured: Measured::Spacing,
                by: MeasuredBy::Observer,
                default_role: "",
                counts_spikes: true,
                judged_as_wake_ups: true,
                spikes_are_values: true,
                has_deadlines: false,
                has_jitter: true,
                is_corrected: true,
            },
            Self::TimerlatIrq => KindProperties {
                measured: Measured::Lateness,
                by: MeasuredBy::Kernel,
                default_role: TIMERLAT_IRQ,
                counts_spikes: false,
                judged_as_wake_ups: false,
                spikes_are_values: true,
                has_deadlines: true,
                has_jitter: true,
                is_corrected: true,
            },
            Self::TimerlatThread => KindProperties {
                measured: Measured::Lateness,
                by: MeasuredBy::Kernel,
                default_role: TIMERLAT_THREAD,
                counts_spikes: true,
                judged_as_wake_ups: false,
                spikes_are_values: true,
                has_deadlines: true,
                has_jitter: true,
                is_corrected: true,
            },
        }
    }

    /// Removes the kind and its figures from the keys of a series.
    pub(crate) fn take<E: Error>(keys: &mut Extra, role: &str) -> Result<Self, E> {
        let name = match keys.remove("kind") {
            Some(Value::String(name)) => name,
            Some(other) => return Err(E::custom(format!("a series has the kind {other}, which is not a string"))),
            None => kind_before_0_2(keys, role).to_owned(),
        };
        let Ok(kind_name) = serde_json::from_value::<KindName>(Value::from(name.as_str())) else {
            return Err(E::custom(format!(
                "a series has the kind {name:?}, which this version does not know: read it with a newer punctual"
            )));
        };
        let kind = match kind_name {
            KindName::WakeUps => Self::WakeUps,
            KindName::Gaps => Self::Gaps(figures(keys, &name, "noise")?),
            KindName::RoundTrips => Self::RoundTrips(figures(keys, &name, "round_trip")?),
            KindName::Talker | KindName::Listener => Self::Stream(figures(keys, &name, "stream")?),
            KindName::Audio => Self::Audio(figures(keys, &name, "audio")?),
            KindName::Process => Self::Process(figures(keys, &name, "process")?),
            KindName::Interrupts => Self::Interrupts(figures(keys, &name, "interrupts")?),
            KindName::Responses => Self::Responses(figures(keys, &name, "responses")?),
            KindName::Capture => Self::Capture,
            KindName::TimerlatIrq => Self::TimerlatIrq,
            KindName::TimerlatThread => Self::TimerlatThread,
        };
        if kind.name() != name {
            return Err(E::custom(format!("a series of the kind {name:?} has the figures of a {}", kind.name())));
        }
        match KEYS.iter().find(|key| keys.contains_key(**key)) {
            Some(key) => Err(E::custom(format!("a series of the kind {name:?} has {key:?}, which is of another kind"))),
            None => Ok(kind),
        }
    }
}

/// Determines the kind of a series that was written without one.
fn kind_before_0_2(keys: &Extra, role: &str) -> &'static str {
    let is_talker = |stream: &Value| stream.get("side").and_then(Value::as_str) == Some("talker");
    match KEYS.iter().find(|key| keys.contains_key(**key)) {
        Some(&"noise") => "gaps",
        Some(&"round_trip") => "round_trips",
        Some(&"stream") if keys.get("stream").is_some_and(is_talker) => "talker",
        Some(&"stream") => "listener",
        Some(&key) => key,
        None if role == CAPTURE => "capture",
        None if role == TIMERLAT_IRQ => "timerlat_irq",
        None if role == TIMERLAT_THREAD => "timerlat_thread",
        None => "wake_ups",
    }
}

fn figures<T: DeserializeOwned, E: Error>(keys: &mut Extra, name: &str, key: &str) -> Result<T, E> {
    let value = keys.remove(key).ok_or_else(|| E::custom(format!("a series of the kind {name:?} has no {key:?}")))?;
    serde_json::from_value(value).map_err(|error| E::custom(format!("{key}: {error}")))
}

impl Serialize for SeriesKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("kind", &self.kind_name())?;
        match self {
            Self::WakeUps | Self::Capture | Self::TimerlatIrq | Self::TimerlatThread => {}
            Self::Gaps(noise) => map.serialize_entry("noise", noise)?,
            Self::RoundTrips(round_trip) => map.serialize_entry("round_trip", round_trip)?,
            Self::Stream(stream) => map.serialize_entry("stream", stream)?,
            Self::Audio(audio) => map.serialize_entry("audio", audio)?,
            Self::Process(process) => map.serialize_entry("process", process)?,
            Self::Interrupts(interrupts) => map.serialize_entry("interrupts", interrupts)?,
            Self::Responses(responses) => map.serialize_entry("responses", responses)?,
        }
        map.end()
    }
}

/// The keys of a series that depend on its kind, for the JSON Schema.
#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) struct KindKeys {
    /// The kind of the values. Absent in records written before version 0.2.
    #[serde(default)]
    kind: Option<KindName>,
    /// Figures of a thread that never sleeps; present in series of the kind `gaps`.
    #[serde(default)]
    noise: Option<Noise>,
    /// Results of the datagrams; present in series of the kind `round_trips`.
    #[serde(default)]
    round_trip: Option<RoundTrip>,
    /// Figures of the talker or the listener of a stream; present in series of the kinds `talker` and `listener`.
    #[serde(default)]
    stream: Option<Stream>,
    /// Figures of an audio thread; present in series of the kind `audio`.
    #[serde(default)]
    audio: Option<Audio>,
    /// Figures of a thread of the user's program; present in series of the kind `process`.
    #[serde(default)]
    process: Option<ProcessThread>,
    /// Figures of interrupts from outside; present in series of the kind `interrupts`.
    #[serde(default)]
    interrupts: Option<Interrupts>,
    /// Figures of an outside judge; present in series of the kind `responses`.
    #[serde(default)]
    responses: Option<Responses>,
}

impl SeriesKind {
    /// Answers, interrupts or frames that never came, apart from the missed ones of the series; `None` if the kind counts
    /// none. A question counts as one without an answer, too, if the judge does not know whether it had one.
    ///
    /// Lost periods of audio are not among them, because late periods cause them. The record contains those of a capture.
    #[must_use]
    pub fn lost(&self) -> Option<u64> {
        match self {
            Self::RoundTrips(round_trip) => Some(round_trip.lost),
            Self::Interrupts(interrupts) => Some(interrupts.lost.saturating_add(interrupts.unanswered)),
            Self::Responses(responses) => Some(responses.missed.saturating_add(responses.perhaps_missed())),
            Self::Stream(Stream::Listener(listener)) => Some(listener.lost),
            Self::Stream(Stream::Talker(_))
            | Self::Audio(_)
            | Self::WakeUps
            | Self::Gaps(_)
            | Self::Process(_)
            | Self::Capture
            | Self::TimerlatIrq
            | Self::TimerlatThread => None,
        }
    }
}

/// Access to the figures of one kind; `None` for series of other kinds.
impl SeriesKind {
    /// Figures of a thread that never sleeps.
    #[must_use]
    pub fn noise(&self) -> Option<&Noise> {
        if let Self::Gaps(noise) = self { Some(noise) } else { None }
    }

    /// Figures of round trips.
    #[must_use]
    pub fn round_trip(&self) -> Option<&RoundTrip> {
        if let Self::RoundTrips(round_trip) = self { Some(round_trip) } else { None }
    }

    /// Figures of the talker or the listener of a stream.
    #[must_use]
    pub fn stream(&self) -> Option<&Stream> {
        if let Self::Stream(stream) = self { Some(stream) } else { None }
    }

    /// Figures of the talker of a stream.
    #[must_use]
    pub fn talker(&self) -> Option<&Talker> {
        self.stream().and_then(Stream::talker)
    }

    /// Figures of the listener of a stream.
    #[must_use]
    pub fn listener(&self) -> Option<&Listener> {
        self.stream().and_then(Stream::listener)
    }

    /// Figures of an audio thread.
    #[must_use]
    pub fn audio(&self) -> Option<&Audio> {
        if let Self::Audio(audio) = self { Some(audio) } else { None }
    }

    /// Figures of a thread of the user's program.
    #[must_use]
    pub fn process(&self) -> Option<&ProcessThread> {
        if let Self::Process(process) = self { Some(process) } else { None }
    }

    /// Figures of interrupts from outside.
    #[must_use]
    pub fn interrupts(&self) -> Option<&Interrupts> {
        if let Self::Interrupts(interrupts) = self { Some(interrupts) } else { None }
    }

    /// Figures of an outside judge.
    #[must_use]
    pub fn responses(&self) -> Option<&Responses> {
        if let Self::Responses(responses) = self { Some(responses) } else { None }
    }

    /// Mutable figures of the listener of a stream.
    #[must_use]
    pub fn listener_mut(&mut self) -> Option<&mut Listener> {
        if let Self::Stream(Stream::Listener(listener)) = self { Some(listener) } else { None }
    }

    /// Mutable figures of the talker of a stream.
    #[must_use]
    pub fn talker_mut(&mut self) -> Option<&mut Talker> {
        if let Self::Stream(Stream::Talker(talker)) = self { Some(talker) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Series;

    fn read(json: &str) -> Result<Series, String> {
        let mut value = serde_json::to_value(Series::default()).unwrap();
        value.as_object_mut().unwrap().remove("kind");
        let keys: Extra = serde_json::from_str(json).unwrap();
        value.as_object_mut().unwrap().extend(keys);
        serde_json::from_value(value).map_err(|error| error.to_string())
    }

    #[test]
    fn each_kind_is_read_as_it_was_written() {
        let all = [
            SeriesKind::WakeUps,
            SeriesKind::Gaps(Box::new(Noise { iterations: 7, ..Noise::default() })),
            SeriesKind::RoundTrips(Box::default()),
            SeriesKind::Stream(Stream::Talker(Box::default())),
            SeriesKind::Stream(Stream::Listener(Box::default())),
            SeriesKind::Audio(Box::default()),
            SeriesKind::Process(Box::default()),
            SeriesKind::Capture,
            SeriesKind::TimerlatIrq,
            SeriesKind::TimerlatThread,
        ];
        for kind in all {
            let series = Series { kind, role: "capture".to_owned(), ..Series::default() };
            let json = serde_json::to_string(&series).unwrap();
            assert_eq!(serde_json::from_str::<Series>(&json).unwrap(), series, "{json}");
        }
    }

    #[test]
    fn the_schema_has_the_keys_of_all_figures() {
        let schema = schemars::schema_for!(KindKeys).to_value();
        let properties = schema["properties"].as_object().unwrap();
        let mut keys: Vec<&str> = properties.keys().map(String::as_str).filter(|key| *key != "kind").collect();
        keys.sort_unstable();
        let mut expected = KEYS;
        expected.sort_unstable();
        assert_eq!(keys, expected);
    }

    #[test]
    fn the_kind_of_an_older_record_follows_from_its_keys_and_its_role() {
        let of_key = |key: &str, written: &SeriesKind| {
            let value = serde_json::to_value(written).unwrap()[key].clone();
            read(&format!("{{\"{key}\": {value}}}")).unwrap().kind
        };
        for (key, kind) in [
            ("noise", SeriesKind::Gaps(Box::default())),
            ("round_trip", SeriesKind::RoundTrips(Box::default())),
            ("stream", SeriesKind::Stream(Stream::Talker(Box::default()))),
            ("stream", SeriesKind::Stream(Stream::Listener(Box::default()))),
            ("audio", SeriesKind::Audio(Box::default())),
            ("process", SeriesKind::Process(Box::default())),
            ("interrupts", SeriesKind::Interrupts(Box::default())),
            ("responses", SeriesKind::Responses(Box::default())),
        ] {
            assert_eq!(of_key(key, &kind), kind);
        }
        for (role, kind) in [
            ("timer", SeriesKind::WakeUps),
            ("capture", SeriesKind::Capture),
            ("timerlat/irq", SeriesKind::TimerlatIrq),
            ("timerlat/thread", SeriesKind::TimerlatThread),
        ] {
            assert_eq!(read(&format!("{{\"role\": {role:?}}}")).unwrap().kind, kind);
        }
    }

    #[test]
    fn a_series_that_contradicts_itself_is_refused() {
        let noise = serde_json::to_value(Noise::default()).unwrap();
        for (json, error) in [
            (r#"{"kind": "temperatures"}"#.to_owned(), "read it with a newer punctual"),
            (r#"{"kind": 3}"#.to_owned(), "which is not a string"),
            (r#"{"kind": "gaps"}"#.to_owned(), "has no \"noise\""),
            (format!(r#"{{"kind": "wake_ups", "noise": {noise}}}"#), "which is of another kind"),
            (r#"{"kind": "gaps", "noise": {"runtime_ns": "a"}}"#.to_owned(), "noise: "),
        ] {
            let found = read(&json).unwrap_err();
            assert!(found.contains(error), "{json}: {found}");
        }
    }

    #[test]
    fn fields_of_a_newer_version_are_kept() {
        let series = read(r#"{"kind": "wake_ups", "colour": "blue"}"#).unwrap();
        assert_eq!(series.extra["colour"], "blue");
        assert!(!series.extra.contains_key("kind"));
    }
}
