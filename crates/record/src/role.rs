//! The figures of the threads of one role, for a campaign's table.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Audio, Capture, Comparison, Correction, Histogram, Listener, Record, Series, SeriesKind, Stream, TIMER, Talker,
};

/// Precision of the times in a campaign, bits: finer than the bins of a chart, and a tenth of the size of the record's.
const CURVE_BITS: u32 = 6;

/// The figures of the threads of one role, all CPUs together.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct RoleResult {
    /// Name of the role.
    pub role: String,
    /// Meaning of its times; absent for `lateness`.
    #[serde(default, skip_serializing_if = "Measured::is_lateness")]
    pub measured: Measured,
    /// Measured CPUs, as the kernel writes a list; empty for unpinned threads.
    pub cpus: String,
    /// Time between two deadlines, ns; 0 for a probe without deadlines.
    pub period_ns: u64,
    /// Number of wake-ups, gaps (noise probe), round trips or frames.
    pub samples: u64,
    /// Deadlines that passed before a thread read the clock again, or slots without a sent datagram or frame.
    pub missed: u64,
    /// Datagrams and questions without an answer, lost interrupts and frames, edges without an interrupt, or lost periods of
    /// audio; absent for other probes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<u64>,
    /// Late frames of a talker or a capture, or xruns of audio; absent for other probes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late: Option<u64>,
    /// Answers to an outside judge whose time was lost on its serial line; absent for other probes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown: Option<u64>,
    /// Median, ns, from the corrected histogram if there is one; absent without samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50_ns: Option<i64>,
    /// 99.9th percentile, ns, from the corrected histogram if there is one; absent without samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_9_ns: Option<i64>,
    /// Exact largest time, ns; absent without samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_ns: Option<i64>,
    /// Machine-tool jitter: largest |interval - period|, ns. Absent for gaps, round trips, interrupts and responses, for
    /// which older documents have 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter_ns: Option<u64>,
    /// Its times, corrected if there is a correction, in buckets at most 1/64 of their value wide, for the curves of the
    /// campaign's report. Absent without samples, and in documents of versions up to 0.2.
    #[serde(default, skip_serializing_if = "Histogram::is_empty")]
    pub times: Histogram,
    /// The largest times of other records and references, for comparison.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<Compared>,
}

/// Meaning of the times of a role. A run is about the first of these kinds that it has: the others are parts of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Measured {
    /// From the question of an outside judge to the answer of the machine.
    Response,
    /// From the time at which a datagram should have been sent to its answer.
    RoundTrip,
    /// From the start of a slot to the sending of its frame; the largest is the talker's max delta.
    SendLateness,
    /// Between two frames as a listener read them; the largest is the listener's max delta.
    FrameGap,
    /// Between two frames of a capture.
    Spacing,
    /// From the deadline of a period of audio to the end of its processing.
    Completion,
    /// Lateness of a thread's wake-ups.
    #[default]
    Lateness,
    /// Length of a gap: time without a CPU, of a thread that never sleeps.
    Gap,
}

impl Measured {
    fn is_lateness(&self) -> bool {
        *self == Self::Lateness
    }
}

/// The largest time of another record or reference, to compare a scenario with.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Compared {
    /// Name of the reference or record.
    pub name: String,
    /// Its best matching phase.
    pub phase: String,
    /// Its largest time, ns; absent if it was not published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_ns: Option<i64>,
    /// Lower bound of its largest time, ns, if the publication does not say how large it was; absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_above_ns: Option<i64>,
    /// Its histogram, each cell at its upper end; absent if it was not published, or lacks samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub histogram: Option<Histogram>,
    /// The scenario's largest time divided by it; absent if either is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
    /// Differences between the conditions, each in a few words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differs: Vec<String>,
}

/// The items of a run that never came, from those of its parts, each with the kind that it measured. The parts of the kind that
/// the run is about are added, because those of other kinds miss the same items.
pub(crate) fn absent_together(parts: &(impl Iterator<Item = (Measured, u64)> + Clone)) -> u64 {
    let of = |wanted| {
        let absent = parts.clone().filter(|(measured, _)| Some(*measured) == wanted).map(|(_, absent)| absent);
        absent.fold(0, u64::saturating_add)
    };
    let main = parts.clone().map(|(measured, _)| measured).min();
    match main {
        // Frames that were sent can be lost later, and each observer can have lost the same.
        Some(Measured::SendLateness) => of(main).max(of(Some(Measured::FrameGap))).max(of(Some(Measured::Spacing))),
        _ => of(main),
    }
}

impl RoleResult {
    /// Summarizes one role of a run.
    pub(crate) fn of(role: &str, record: &Record) -> Self {
        Self::with_times(role, record).0
    }

    /// Summarizes one role of a run. Also returns its times in the narrow buckets of the record.
    #[must_use]
    pub fn with_times(role: &str, record: &Record) -> (Self, Histogram) {
        let all: Vec<&Series> = record.series.iter().filter(|series| series.role == role).collect();
        let mut cpus: Vec<u32> = all.iter().filter_map(|series| series.cpu).collect();
        cpus.sort_unstable();
        cpus.dedup();
        let mut result = Self {
            role: role.to_owned(),
            measured: all.first().map_or_else(Measured::default, |series| series.kind.properties().measured),
            cpus: cpus.iter().map(ToString::to_string).collect::<Vec<_>>().join(","),
            period_ns: all.first().map_or(0, |series| series.period_ns),
            beside: compared_with(role, record),
            ..Self::default()
        };
        let mut times = Histogram::default();
        all.into_iter().for_each(|series| result.add(series, record.capture.as_ref(), &mut times));
        // The highest value of a bucket may be above the exact maximum.
        let percentile =
            |percent| times.percentile(percent).map(|ns| result.max_ns.map_or(ns, |max_ns| ns.min(max_ns)));
        (result.p50_ns, result.p99_9_ns) = (percentile(50.0), percentile(99.9));
        result.times = times.in_wider_buckets(CURVE_BITS);
        (result, times)
    }

    /// Deadlines, answers, interrupts and frames that never came. Lost periods of audio are not among them, because late
    /// periods cause them.
    #[must_use]
    pub fn absent(&self) -> u64 {
        let lost = if self.measured == Measured::Completion { None } else { self.lost };
        self.missed.saturating_add(lost.unwrap_or(0))
    }

    /// Adds the counts and the times of a series.
    fn add(&mut self, series: &Series, capture: Option<&Capture>, times: &mut Histogram) {
        let jitter_ns = match &series.kind {
            // The jitter of the series is that of its wake-ups, not of the sent frames.
            SeriesKind::Stream(Stream::Talker(talker)) => Some(talker.max_interval_error_ns),
            SeriesKind::WakeUps
            | SeriesKind::Gaps(_)
            | SeriesKind::RoundTrips(_)
            | SeriesKind::Stream(Stream::Listener(_))
            | SeriesKind::Audio(_)
            | SeriesKind::Process(_)
            | SeriesKind::Interrupts(_)
            | SeriesKind::Responses(_)
            | SeriesKind::Capture
            | SeriesKind::TimerlatIrq
            | SeriesKind::TimerlatThread => series.jitter(),
        };
        self.jitter_ns = self.jitter_ns.max(jitter_ns);
        match (&series.kind, capture) {
            (SeriesKind::Stream(Stream::Talker(talker)), _) => self.add_talker(talker, times),
            (SeriesKind::Stream(Stream::Listener(listener)), _) => self.add_listener(listener, times),
            (SeriesKind::Audio(audio), _) => self.add_audio(audio, times),
            (SeriesKind::Capture, Some(capture)) => self.add_capture(capture, times),
            (
                SeriesKind::RoundTrips(_)
                | SeriesKind::Interrupts(_)
                | SeriesKind::Responses(_)
                | SeriesKind::WakeUps
                | SeriesKind::Gaps(_)
                | SeriesKind::Process(_)
                | SeriesKind::Capture
                | SeriesKind::TimerlatIrq
                | SeriesKind::TimerlatThread,
                _,
            ) => self.add_wake_ups(series, times),
        }
    }

    fn add_wake_ups(&mut self, series: &Series, times: &mut Histogram) {
        times.merge(&series.corrected);
        self.samples += series.samples;
        self.missed += series.missed;
        self.max_ns = self.max_ns.max(series.max_ns);
        if let Some(lost) = series.kind.lost() {
            self.lost = Some(self.lost.unwrap_or(0).saturating_add(lost));
        }
        if let SeriesKind::Responses(responses) = &series.kind {
            let unknown = responses.without_known_time();
            self.unknown = Some(self.unknown.unwrap_or(0).saturating_add(unknown));
        }
    }

    fn add_audio(&mut self, audio: &Audio, times: &mut Histogram) {
        self.samples += audio.played;
        *self.lost.get_or_insert_default() += audio.lost;
        *self.late.get_or_insert_default() += audio.xruns;
        if let Some(completion) = &audio.completion {
            times.merge(&completion.histogram);
            self.max_ns = self.max_ns.max(Some(completion.max_ns));
        }
    }

    fn add_talker(&mut self, talker: &Talker, times: &mut Histogram) {
        times.merge(&Correction::new(self.period_ns).of(&talker.send));
        self.samples += talker.frames;
        // Frames that missed their launch times were dropped, so nothing was sent in their slots.
        let dropped = talker.launch.as_ref().map_or(0, |launch| launch.invalid + launch.missed);
        self.missed += talker.missed_slots + talker.refused + dropped;
        *self.late.get_or_insert_default() += talker.late;
        self.max_ns = self.max_ns.max(talker.max_delta_ns);
    }

    fn add_listener(&mut self, listener: &Listener, times: &mut Histogram) {
        times.merge(&listener.interval);
        self.samples += listener.frames;
        *self.lost.get_or_insert_default() += listener.lost;
        self.max_ns = self.max_ns.max(listener.max_gap_ns.map(|ns| i64::try_from(ns).unwrap_or(i64::MAX)));
    }

    fn add_capture(&mut self, capture: &Capture, times: &mut Histogram) {
        times.merge(&capture.spacing);
        self.jitter_ns = capture.max_deviation_ns;
        self.samples = capture.frames;
        self.lost = capture.lost;
        self.late = capture.late;
        self.missed = capture.skipped_slots.unwrap_or(0);
        self.max_ns = capture.max_gap_ns;
    }
}

/// Returns the largest times that the threads of one role are compared with.
fn compared_with(role: &str, record: &Record) -> Vec<Compared> {
    let of = |against: &Comparison| {
        // In a reference the probe's own threads have no role.
        let is = |ours: &str| ours == role || (ours.is_empty() && role == TIMER);
        let pair = against.pairs.iter().find(|pair| is(&pair.ours.role))?;
        let gap_ns = |ns: Option<u64>| ns.map(|ns| i64::try_from(ns).unwrap_or(i64::MAX));
        Some(Compared {
            name: against.name.clone(),
            phase: pair.theirs.phase.clone(),
            max_ns: pair.theirs.max_ns.or(gap_ns(pair.theirs.max_gap_ns)),
            max_above_ns: pair.theirs.max_above_ns,
            histogram: pair.theirs.whole_histogram().cloned(),
            ratio: pair.ratios.max.or(pair.ratios.max_gap),
            differs: pair.differs.clone(),
        })
    };
    record.against.iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CAPTURE, ROUND_TRIP, RoundTrip, ScenarioResult};

    fn of(values: &[i64]) -> Histogram {
        let mut histogram = Histogram::default();
        values.iter().for_each(|&value| histogram.record(value));
        histogram
    }

    fn series(role: &str, cpu: u32, values: &[i64]) -> Series {
        Series {
            role: role.to_owned(),
            cpu: Some(cpu),
            period_ns: 1_000,
            samples: values.len() as u64,
            max_ns: values.iter().max().copied(),
            corrected: of(values),
            raw: of(values),
            ..Series::default()
        }
    }

    fn roles(series: Vec<Series>) -> Vec<RoleResult> {
        ScenarioResult::of(&Record { series, ..Record::default() }, 7, None).roles
    }

    #[test]
    fn groups_series_by_role() {
        let roles = roles(vec![series("base", 0, &[1, 2, 3]), series("servo", 1, &[50]), series("base", 1, &[9])]);
        let found: Vec<_> = roles.iter().map(|r| (r.role.as_str(), r.cpus.as_str(), r.samples, r.max_ns)).collect();
        assert_eq!(found, [("base", "0,1", 4, Some(9)), ("servo", "1", 1, Some(50))]);
        assert!(roles.iter().all(|role| role.measured == Measured::Lateness && role.lost.is_none()));
        assert_eq!(roles.iter().map(|role| role.times.total()).collect::<Vec<_>>(), [4, 1]);
    }

    #[test]
    fn counts_lost_round_trips() {
        let round_trip = RoundTrip { lost: 2, sent: 5, slots: 6, ..RoundTrip::default() };
        let answered = Series {
            kind: SeriesKind::RoundTrips(Box::new(round_trip)),
            missed: 1,
            ..series(ROUND_TRIP, 0, &[4, 5, 900])
        };
        let [sender, trip] = &roles(vec![series("sender", 0, &[1; 5]), answered])[..] else { panic!("two roles") };
        assert_eq!((sender.measured, sender.lost), (Measured::Lateness, None));
        assert_eq!((trip.measured, trip.lost, trip.missed, trip.max_ns), (Measured::RoundTrip, Some(2), 1, Some(900)));
        assert_eq!((trip.p50_ns, trip.p99_9_ns), (Some(5), Some(900)));
    }

    /// A judge's question without an answer, and the interrupt that did not come, are the same.
    #[test]
    fn counts_what_never_came_once() {
        let interrupts = crate::Interrupts { lost: 2, unanswered: 1, ..Default::default() };
        let responses = crate::Responses { missed: 5, possibly_missed: 1, without_time: 1, ..Default::default() };
        let way = Series { kind: SeriesKind::Interrupts(Box::new(interrupts)), ..series("interrupt", 0, &[4, 5]) };
        let whole = Series { kind: SeriesKind::Responses(Box::new(responses)), ..series("response", 0, &[9]) };
        let all = vec![way, whole];
        assert_eq!(Series::absent_of_all(&all.iter().collect::<Vec<_>>()), 7);
        let result = ScenarioResult::of(&Record { series: all, ..Record::default() }, 7, None);
        let [way, whole] = &result.roles[..] else { panic!("two roles") };
        assert_eq!((way.absent(), whole.absent(), result.absent()), (3, 7, 7));
        assert_eq!(result.main_roles().map(|role| &*role.role).collect::<Vec<_>>(), ["response"]);
        assert_eq!((way.jitter_ns, whole.jitter_ns), (None, None));
        assert!(!serde_json::to_string(whole).unwrap().contains("jitter_ns"));
        // By the totals of the judge, a lost result was an answer.
        let responses =
            crate::Responses { missed: 5, possibly_missed: 1, without_time: 9, complete: true, ..Default::default() };
        assert_eq!(SeriesKind::Responses(Box::new(responses)).lost(), Some(6));
    }

    #[test]
    fn frames_that_were_not_sent_or_got_lost_are_absent() {
        let talker = Talker { frames: 9, missed_slots: 2, refused: 1, ..Talker::default() };
        let listener = Listener { frames: 5, lost: 4, ..Listener::default() };
        let of = |role: &str, stream| Series { kind: SeriesKind::Stream(stream), ..series(role, 0, &[1]) };
        let talks = of("talker", Stream::Talker(Box::new(talker)));
        let listens = of("listener", Stream::Listener(Box::new(listener)));
        let absent = |series| ScenarioResult::of(&Record { series, ..Record::default() }, 7, None).absent();
        assert_eq!((absent(vec![talks.clone()]), absent(vec![talks, listens])), (3, 4));
    }

    #[test]
    fn audio_shows_completion_times() {
        let completion = crate::Times { max_ns: 1_500, histogram: of(&[300, 1_500]), ..crate::Times::default() };
        let audio = Audio { played: 2, xruns: 1, lost: 3, completion: Some(completion), ..Audio::default() };
        let result = Series { kind: SeriesKind::Audio(Box::new(audio)), ..series(crate::AUDIO, 1, &[5, 6]) };
        let [result] = &roles(vec![result])[..] else { panic!("one role") };
        assert_eq!((result.measured, result.samples, result.max_ns), (Measured::Completion, 2, Some(1_500)));
        assert_eq!((result.late, result.lost, result.p50_ns), (Some(1), Some(3), Some(300)));
    }

    #[test]
    fn a_capture_shows_its_spacing() {
        let capture = Capture {
            frames: 3,
            late: Some(1),
            lost: Some(2),
            max_gap_ns: Some(1_700),
            max_deviation_ns: Some(700),
            spacing: of(&[600, 1_700]),
            ..Capture::default()
        };
        let series = vec![Series { kind: SeriesKind::Capture, ..series(CAPTURE, 0, &[5, 6, 7]) }];
        let record = Record { series, capture: Some(capture), ..Record::default() };
        let [result] = &ScenarioResult::of(&record, 7, None).roles[..] else { panic!("one role") };
        assert_eq!((result.measured, result.samples, result.max_ns), (Measured::Spacing, 3, Some(1_700)));
        assert_eq!((result.late, result.lost, result.missed, result.jitter_ns), (Some(1), Some(2), 0, Some(700)));
        assert!((600..=601).contains(&result.p50_ns.unwrap()));
    }

    #[test]
    fn a_talker_shows_send_lateness_and_a_listener_frame_gaps() {
        let talker = Talker {
            frames: 3,
            late: 1,
            missed_slots: 4,
            refused: 1,
            max_delta_ns: Some(40),
            send: of(&[20, 30, 40]),
            ..Talker::default()
        };
        let listener = Listener {
            frames: 3,
            lost: 2,
            max_gap_ns: Some(1_700),
            interval: of(&[600, 1_700]),
            ..Listener::default()
        };
        let talks =
            Series { kind: SeriesKind::Stream(Stream::Talker(Box::new(talker))), ..series("talker", 0, &[700; 9]) };
        let listens =
            Series { kind: SeriesKind::Stream(Stream::Listener(Box::new(listener))), ..series("listener", 1, &[700]) };
        let [talks, listens] = &roles(vec![talks, listens])[..] else { panic!("two roles") };
        assert_eq!((talks.samples, talks.late, talks.missed, talks.lost), (3, Some(1), 5, None));
        assert_eq!((talks.p50_ns, talks.max_ns, talks.measured), (Some(30), Some(40), Measured::SendLateness));
        assert_eq!((listens.samples, listens.lost, listens.late), (3, Some(2), None));
        assert_eq!((listens.max_ns, listens.measured), (Some(1_700), Measured::FrameGap));
    }
}
