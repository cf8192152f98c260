//! What a campaign keeps of the threads of one role: the figures of its table.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Against, Audio, Capture, Correction, Histogram, Listener, Record, Series, SeriesKind, Stream, Talker};

/// What the threads of one role saw, all CPUs taken together.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct RoleResult {
    /// The role.
    pub role: String,
    /// What its times are.
    #[serde(default, skip_serializing_if = "Measured::is_lateness")]
    pub measured: Measured,
    /// CPUs it was measured on, as the kernel writes a list; empty for threads that were not pinned.
    pub cpus: String,
    /// Time between two deadlines, ns; 0 for a probe without deadlines.
    pub period_ns: u64,
    /// Wake-ups, gaps of a noise probe, round trips, or frames.
    pub samples: u64,
    /// Deadlines that passed before a thread looked at the clock again; slots in which no datagram or frame was sent.
    pub missed: u64,
    /// Datagrams without an answer in time, frames that never came, or periods of audio that were not played; absent for others, as the next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<u64>,
    /// Late packets of a talker, or in a capture; xruns of audio.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late: Option<u64>,
    /// Median, ns, from the corrected histogram where there is one, as the next; absent without samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50_ns: Option<i64>,
    /// 99.9 % were no later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_9_ns: Option<i64>,
    /// The largest, exactly, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_ns: Option<i64>,
    /// Machine-tool jitter: largest |interval - period|, ns.
    pub jitter_ns: u64,
    /// Figures of others that were laid beside.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<Beside>,
}

/// What the times of a role are. The first that a table has are what its run was made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Measured {
    /// From when a datagram was to be sent to its answer.
    RoundTrip,
    /// How long after its slot began a talker sent a frame: the largest is its max delta.
    SendLateness,
    /// Time between two frames as a listener read them: the largest is its max delta.
    FrameGap,
    /// Time between two frames of a capture.
    Spacing,
    /// How long after its deadline a period of audio was done.
    Completion,
    /// How late a thread woke.
    #[default]
    Lateness,
    /// How long a thread that never sleeps had no CPU.
    Gap,
}

impl Measured {
    fn is_lateness(&self) -> bool {
        *self == Self::Lateness
    }

    /// What the times of a series of this kind are.
    #[must_use]
    pub fn of(kind: &SeriesKind) -> Self {
        match kind {
            SeriesKind::Stream(Stream::Talker(_)) => Self::SendLateness,
            SeriesKind::Stream(Stream::Listener(_)) => Self::FrameGap,
            SeriesKind::RoundTrips(_) => Self::RoundTrip,
            SeriesKind::Audio(_) => Self::Completion,
            SeriesKind::Capture => Self::Spacing,
            SeriesKind::Gaps(_) => Self::Gap,
            SeriesKind::WakeUps | SeriesKind::Process(_) | SeriesKind::TimerlatIrq | SeriesKind::TimerlatThread => {
                Self::Lateness
            }
        }
    }
}

/// The largest time of another record, laid beside a scenario.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Beside {
    /// Name of the reference or record.
    pub name: String,
    /// The part of it that matches best.
    pub phase: String,
    /// Its largest time, ns; absent where it was not published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_ns: Option<i64>,
    /// It lies above this, ns: the source could not tell how far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_above_ns: Option<i64>,
    /// The scenario's largest time divided by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
    /// In what the conditions differ, each in a few words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differs: Vec<String>,
}

impl RoleResult {
    /// The figures of one role in a run.
    pub(crate) fn of(role: &str, record: &Record) -> Self {
        let all: Vec<&Series> = record.series.iter().filter(|series| series.role == role).collect();
        let mut cpus: Vec<u32> = all.iter().filter_map(|series| series.cpu).collect();
        cpus.sort_unstable();
        cpus.dedup();
        let mut result = Self {
            role: role.to_owned(),
            measured: all.first().map_or_else(Measured::default, |series| Measured::of(&series.kind)),
            cpus: cpus.iter().map(ToString::to_string).collect::<Vec<_>>().join(","),
            period_ns: all.first().map_or(0, |series| series.period_ns),
            beside: beside(role, record),
            ..Self::default()
        };
        let mut times = Histogram::default();
        all.into_iter().for_each(|series| result.take_in(series, record.capture.as_ref(), &mut times));
        // A bucket is named by its highest value, which may lie above the exact maximum.
        let percentile =
            |percent| times.percentile(percent).map(|ns| result.max_ns.map_or(ns, |max_ns| ns.min(max_ns)));
        (result.p50_ns, result.p99_9_ns) = (percentile(50.0), percentile(99.9));
        result
    }

    /// Adds the counts of a series, and its times.
    fn take_in(&mut self, series: &Series, capture: Option<&Capture>, times: &mut Histogram) {
        let jitter_ns = match &series.kind {
            // The series itself has the jitter of the wake-ups.
            SeriesKind::Stream(Stream::Talker(talker)) => talker.max_interval_error_ns,
            _ => series.jitter_ns,
        };
        self.jitter_ns = self.jitter_ns.max(jitter_ns);
        match (&series.kind, capture) {
            (SeriesKind::Stream(Stream::Talker(talker)), _) => self.take_in_talker(talker, times),
            (SeriesKind::Stream(Stream::Listener(listener)), _) => self.take_in_listener(listener, times),
            (SeriesKind::Audio(audio), _) => self.take_in_audio(audio, times),
            (SeriesKind::Capture, Some(capture)) => self.take_in_capture(capture, times),
            (SeriesKind::RoundTrips(round_trip), _) => {
                self.take_in_wake_ups(series, times);
                *self.lost.get_or_insert_default() += round_trip.lost;
            }
            (
                SeriesKind::WakeUps
                | SeriesKind::Gaps(_)
                | SeriesKind::Process(_)
                | SeriesKind::Capture
                | SeriesKind::TimerlatIrq
                | SeriesKind::TimerlatThread,
                _,
            ) => self.take_in_wake_ups(series, times),
        }
    }

    fn take_in_wake_ups(&mut self, series: &Series, times: &mut Histogram) {
        times.merge(&series.corrected);
        self.samples += series.samples;
        self.missed += series.missed;
        self.max_ns = self.max_ns.max(series.max_ns);
    }

    fn take_in_audio(&mut self, audio: &Audio, times: &mut Histogram) {
        self.samples += audio.played;
        *self.lost.get_or_insert_default() += audio.lost;
        *self.late.get_or_insert_default() += audio.xruns;
        if let Some(completion) = &audio.completion {
            times.merge(&completion.histogram);
            self.max_ns = self.max_ns.max(Some(completion.max_ns));
        }
    }

    fn take_in_talker(&mut self, talker: &Talker, times: &mut Histogram) {
        times.merge(&Correction::new(self.period_ns).of(&talker.send));
        self.samples += talker.frames;
        // Frames that missed their launch times were dropped.
        let dropped = talker.launch.as_ref().map_or(0, |launch| launch.invalid + launch.missed);
        self.missed += talker.missed_slots + talker.refused + dropped;
        *self.late.get_or_insert_default() += talker.late;
        self.max_ns = self.max_ns.max(talker.max_delta_ns);
    }

    fn take_in_listener(&mut self, listener: &Listener, times: &mut Histogram) {
        times.merge(&listener.interval);
        self.samples += listener.frames;
        *self.lost.get_or_insert_default() += listener.lost;
        self.max_ns = self.max_ns.max(listener.max_gap_ns.map(|ns| i64::try_from(ns).unwrap_or(i64::MAX)));
    }

    fn take_in_capture(&mut self, capture: &Capture, times: &mut Histogram) {
        times.merge(&capture.spacing);
        self.jitter_ns = capture.max_deviation_ns;
        self.samples = capture.frames;
        self.lost = Some(capture.lost);
        self.late = Some(capture.late);
        self.missed = capture.skipped_slots;
        self.max_ns = capture.max_gap_ns;
    }
}

/// What was laid beside the threads of one role.
fn beside(role: &str, record: &Record) -> Vec<Beside> {
    let of = |against: &Against| {
        // The probe's own threads have no role there.
        let is = |ours: &str| ours == role || (ours.is_empty() && role == "timer");
        let pair = against.pairs.iter().find(|pair| is(&pair.ours.role))?;
        let gap_ns = |ns: Option<u64>| ns.map(|ns| i64::try_from(ns).unwrap_or(i64::MAX));
        Some(Beside {
            name: against.name.clone(),
            phase: pair.theirs.phase.clone(),
            max_ns: pair.theirs.max_ns.or(gap_ns(pair.theirs.max_gap_ns)),
            max_above_ns: pair.theirs.max_above_ns,
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
    fn roles_are_told_apart_and_their_cpus_taken_together() {
        let roles = roles(vec![series("base", 0, &[1, 2, 3]), series("servo", 1, &[50]), series("base", 1, &[9])]);
        let told: Vec<_> = roles.iter().map(|r| (r.role.as_str(), r.cpus.as_str(), r.samples, r.max_ns)).collect();
        assert_eq!(told, [("base", "0,1", 4, Some(9)), ("servo", "1", 1, Some(50))]);
        assert!(roles.iter().all(|role| role.measured == Measured::Lateness && role.lost.is_none()));
    }

    #[test]
    fn round_trips_have_losses() {
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

    #[test]
    fn audio_is_told_by_when_its_periods_were_done() {
        let completion = crate::Times { max_ns: 1_500, histogram: of(&[300, 1_500]), ..crate::Times::default() };
        let audio = Audio { played: 2, xruns: 1, lost: 3, completion: Some(completion), ..Audio::default() };
        let plays = Series { kind: SeriesKind::Audio(Box::new(audio)), ..series(crate::AUDIO, 1, &[5, 6]) };
        let [plays] = &roles(vec![plays])[..] else { panic!("one role") };
        assert_eq!((plays.measured, plays.samples, plays.max_ns), (Measured::Completion, 2, Some(1_500)));
        assert_eq!((plays.late, plays.lost, plays.p50_ns), (Some(1), Some(3), Some(300)));
    }

    #[test]
    fn a_capture_is_told_by_its_spacing() {
        let capture = Capture {
            frames: 3,
            late: 1,
            lost: 2,
            max_gap_ns: Some(1_700),
            max_deviation_ns: 700,
            spacing: of(&[600, 1_700]),
            ..Capture::default()
        };
        let series = vec![Series { kind: SeriesKind::Capture, ..series(CAPTURE, 0, &[5, 6, 7]) }];
        let record = Record { series, capture: Some(capture), ..Record::default() };
        let [told] = &ScenarioResult::of(&record, 7, None).roles[..] else { panic!("one role") };
        assert_eq!((told.measured, told.samples, told.max_ns), (Measured::Spacing, 3, Some(1_700)));
        assert_eq!((told.late, told.lost, told.missed, told.jitter_ns), (Some(1), Some(2), 0, 700));
        assert!((600..=601).contains(&told.p50_ns.unwrap()));
    }

    #[test]
    fn a_talker_is_told_by_what_it_sent_and_a_listener_by_what_came() {
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
