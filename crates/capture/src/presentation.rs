//! The presentation times in the frames of an AVTP stream, and the timestamps of a clock reference.
//!
//! A presentation time has 32 bits, so it repeats every 4.3 s. The time between frames continues it; the one of a capture
//! clock that is tied to the talker's shows the margin: the time left when the frame was captured.

use frames::{Avtp, Content, Crf, nearest_ns};
use record::{
    CaptureClock, CapturedPresentation, ClockReference, MarginTally, MediaClock, MediaFrame, saturating::Saturating,
};

use crate::{fit::rate_in_runs, track::Earliest};

/// TAI less UTC since 2017-01-01, ns (IERS, Bulletin C). gPTP counts TAI.
const TAI_LESS_UTC_NS: i64 = 37_000_000_000;
/// Smaller changes of the margin are no steps, ns: hardware stamps scatter by as much.
const STEP_MIN_NS: u64 = 100;

/// The state of reading the presentation times of a stream.
pub(crate) struct Presentation {
    clock: Option<CaptureClock>,
    /// The nominal time between two frames, if it is known, ns.
    nominal_ns: Option<f64>,
    interval_ns: f64,
    media: MediaClock,
    /// The capture time of the earliest frame of each stretch, and that time less its presentation time.
    earliest: Earliest,
    /// Smallest and largest presentation time less capture time, ns, from an arbitrary origin.
    range_ns: Option<(i64, i64)>,
    margins: MarginTally,
    first_crf: Option<Crf>,
    found: CapturedPresentation,
}

impl Presentation {
    /// Frames are `interval_ns` apart by the clock of the capture, and nominally `nominal_ns`, if that is known.
    pub(crate) fn new(clock: Option<CaptureClock>, interval_ns: f64, nominal_ns: Option<f64>) -> Self {
        Self {
            clock,
            nominal_ns,
            interval_ns,
            media: MediaClock::new(interval_ns),
            earliest: Earliest::default(),
            range_ns: None,
            margins: MarginTally::default(),
            first_crf: None,
            found: CapturedPresentation::default(),
        }
    }

    /// Adds a frame, captured at `stamp_ns` and `at_ns` after the first one.
    #[inline(always)]
    pub(crate) fn add(&mut self, frame: u64, at_ns: i64, stamp_ns: i64, content: &Content) {
        let Some(avtp) = content.avtp else { return };
        self.found.uncertain += u64::from(avtp.timestamp_uncertain);
        if let Some(crf) = content.crf {
            self.add_reference(crf);
        }
        // A presentation time of 32 bits is the one nearest to that of the last frame and the time since then.
        let near_ns = || self.media.near_ns(at_ns).unwrap_or(0);
        let of_reference = || content.crf.and_then(|crf| crf.first_ns).map(u64::cast_signed);
        let time_ns = avtp.timestamp.map(|timestamp| nearest_ns(timestamp, near_ns())).or_else(of_reference);
        let of_run = content.probe.map(|probe| (probe.run, probe.seq));
        let Avtp { sequence, media_restart: restart_bit, .. } = avtp;
        self.media.add(MediaFrame { frame, at_ns, sequence, of_run, restart_bit, time_ns });
        let Some(time_ns) = time_ns else {
            self.found.not_valid += 1;
            return;
        };
        self.found.valid += 1;
        self.earliest.add(at_ns, at_ns.minus(time_ns), 0.0);
        if avtp.timestamp_uncertain {
            // The timestamps of a talker that is not synchronised have no relation to the clock of the capture.
            return;
        }
        let ahead_ns = time_ns.minus(at_ns);
        let (smallest_ns, largest_ns) = self.range_ns.unwrap_or((ahead_ns, ahead_ns));
        self.range_ns = Some((smallest_ns.min(ahead_ns), largest_ns.max(ahead_ns)));
        if let Some(clock) = self.clock {
            let stamp_ns = match clock {
                CaptureClock::Gptp => stamp_ns,
                CaptureClock::Utc => stamp_ns.saturating_add(TAI_LESS_UTC_NS),
            };
            let of_reference = || Some(content.crf?.last_ns()?.cast_signed().saturating_sub(stamp_ns));
            if let Some(margin_ns) = avtp.margin_ns(stamp_ns).or_else(of_reference) {
                self.margins.add(frame, at_ns, margin_ns, content.crf.is_none());
            }
        }
    }

    #[cold]
    fn add_reference(&mut self, crf: Crf) {
        let header = |crf: Crf| (crf.kind, crf.pull, crf.base_hz, crf.interval, crf.timestamps);
        let first = *self.first_crf.get_or_insert_with(|| {
            let events = f64::from(crf.interval) * f64::from(crf.timestamps);
            let nominal_ns = crf.frequency_hz().map(|hz| events * 1e9 / hz).filter(|&ns| ns > 0.0);
            self.nominal_ns = nominal_ns;
            if let Some(nominal_ns) = nominal_ns {
                self.interval_ns = nominal_ns;
                self.media.set_interval_ns(nominal_ns);
            }
            let Crf { kind, pull, base_hz, interval, timestamps, .. } = crf;
            let reference = ClockReference { kind, pull, base_hz, interval, timestamps, ..ClockReference::default() };
            self.found.reference = Some(reference);
            crf
        });
        if let Some(reference) = &mut self.found.reference {
            reference.frame_sync += u64::from(crf.frame_sync);
            reference.changed += u64::from(header(crf) != header(first));
        }
    }

    /// The result; `None` if no frame has a timestamp, unless the clock of the capture was given to judge them. `without_rate`
    /// is true if the stamps of the capture show no rate: its clock was set, or frames came in batches. They have steps of
    /// `step_ns`.
    pub(crate) fn finish(mut self, without_rate: bool, step_ns: u64) -> Option<CapturedPresentation> {
        self.media.learn();
        if self.found.valid == 0 && self.clock.is_none() {
            return None;
        }
        let advanced = self.media.advanced();
        let frequency_ppm = advanced.filter(|&(_, advance_ns)| advance_ns > 0).zip(self.nominal_ns);
        let frequency_ppm =
            frequency_ppm.map(|((frames, advance_ns), ns)| (frames as f64 * ns / advance_ns as f64 - 1.0) * 1e6);
        let drift_ppm = if without_rate || advanced.is_none() { None } else { self.drift_ppm(step_ns) };
        Some(CapturedPresentation {
            jumps: self.media.jumps(),
            restarts: self.media.restarts(),
            changes: self.media.changes().to_vec(),
            drift_ppm,
            frequency_ppm,
            variation_ns: self.range_ns.map(|(smallest_ns, largest_ns)| largest_ns.abs_diff(smallest_ns)),
            clock: self.clock,
            margin: self.margins.to_record(),
            ..self.found
        })
    }

    /// The rate of the timestamps against the clock of the capture, by the earliest frames, ppm; `None` if the margin steps so
    /// often that it has none.
    fn drift_ppm(&self, step_ns: u64) -> Option<f64> {
        let kept = self.earliest.kept.iter();
        let presented: Vec<_> = kept.map(|&(at_ns, before_ns)| (at_ns, at_ns.saturating_sub(before_ns))).collect();
        let rate = rate_in_runs(&presented, self.interval_ns, step_ns.max(STEP_MIN_NS));
        rate.map(|rate| (rate - 1.0) * 1e6)
    }
}
