//! The presentation times in the frames of an AVTP stream, and the timestamps of a clock reference.
//!
//! A presentation time has 32 bits, so it repeats every 4.3 s. The time between frames continues it; the one of a capture
//! clock that is tied to the talker's shows the margin: the time left when the frame was captured.

use frames::{Content, Crf, nearest_ns};
use record::{CaptureClock, CapturedMediaChange, CapturedPresentation, ClockReference, MarginTally, WORST_KEPT};

use crate::{convert::nearest, fit::quantile, track::Earliest};

/// TAI less UTC since 2017-01-01, ns (IERS, Bulletin C). gPTP counts TAI.
const TAI_LESS_UTC_NS: i64 = 37_000_000_000;
/// The number of frames that show how regularly the timestamps advance.
const LEARN: usize = 256;
/// A jump is a deviation of more than this multiple of that of nine tenths of these frames,
const JUMP: f64 = 4.0;
/// and of more than this part of the period, and this time, ns; at most, of the second part of the period.
const JUMP_MIN: f64 = 0.01;
const JUMP_MIN_NS: f64 = 1000.0;
const JUMP_MAX: f64 = 0.25;
/// Maximum relative difference of two clocks.
const CLOCK_ERROR: f64 = 500e-6;
/// Minimum number of stretches for a rate.
const STRETCHES_MIN: usize = 3;

/// The state of reading the presentation times of a stream.
pub(crate) struct Presentation {
    clock: Option<CaptureClock>,
    /// The time between two frames, on the clock of the capture, ns.
    interval_ns: f64,
    /// The nominal one, if it is known, ns.
    nominal_ns: Option<f64>,
    newest: Option<Newest>,
    last: Option<Last>,
    /// True if the media clock restart bit changed in a frame without a timestamp since the last one with one.
    restarted: bool,
    /// The first steps, until they show how regular the timestamps are.
    waiting: Vec<Step>,
    /// The largest deviation that is no jump, ns; `None` before it is known.
    jump_ns: Option<f64>,
    irregular: bool,
    /// Sum of all jumps, ns.
    moved_ns: i64,
    jumps: u64,
    /// Frames, and the sum of their timestamps' differences, without jumps.
    advanced: (u64, i64),
    earliest: Earliest,
    /// Smallest and largest presentation time less capture time, ns, from an arbitrary origin.
    range_ns: Option<(i64, i64)>,
    margins: MarginTally,
    first_crf: Option<Crf>,
    found: CapturedPresentation,
}

/// The newest frame by its sequence number, with or without a timestamp.
#[derive(Clone, Copy)]
struct Newest {
    sequence: u8,
    at_ns: i64,
    restart_bit: bool,
}

/// The newest frame with a timestamp.
#[derive(Clone, Copy)]
struct Last {
    sequence: u8,
    at_ns: i64,
    /// Its presentation time with more bits, ns.
    time_ns: i64,
}

/// The difference of a frame to the one before.
#[derive(Clone, Copy)]
struct Step {
    frame: u64,
    at_ns: i64,
    time_ns: i64,
    /// Frames from one to the other, with those that were lost.
    frames: u64,
    advance_ns: i64,
    restarted: bool,
}

impl Presentation {
    /// Frames are `interval_ns` apart by the clock of the capture, and nominally `nominal_ns`, if that is known.
    pub(crate) fn new(clock: Option<CaptureClock>, interval_ns: f64, nominal_ns: Option<f64>) -> Self {
        Self {
            clock,
            interval_ns,
            nominal_ns,
            newest: None,
            last: None,
            restarted: false,
            waiting: Vec::new(),
            jump_ns: None,
            irregular: false,
            moved_ns: 0,
            jumps: 0,
            advanced: (0, 0),
            earliest: Earliest::default(),
            range_ns: None,
            margins: MarginTally::default(),
            first_crf: None,
            found: CapturedPresentation::default(),
        }
    }

    /// Adds a frame, captured at `stamp_ns` and `at_ns` after the first one.
    #[inline]
    pub(crate) fn add(&mut self, frame: u64, at_ns: i64, stamp_ns: i64, content: &Content) {
        let Some(avtp) = content.avtp else { return };
        self.found.uncertain += u64::from(avtp.timestamp_uncertain);
        if let Some(crf) = content.crf {
            self.add_reference(crf);
        }
        let is_newer = self.is_newer(avtp.sequence, at_ns);
        if is_newer {
            let newest = Newest { sequence: avtp.sequence, at_ns, restart_bit: avtp.media_restart };
            if self.newest.replace(newest).is_some_and(|before| before.restart_bit != newest.restart_bit) {
                self.found.restarts += 1;
                self.restarted = true;
            }
        }
        // A presentation time of 32 bits is the one nearest to that of the last frame and the time since then.
        let near_ns = self.last.map(|last| last.time_ns.saturating_add(at_ns.saturating_sub(last.at_ns)));
        let time_ns = match (avtp.timestamp, content.crf.and_then(|crf| crf.first_ns)) {
            (Some(timestamp), _) => nearest_ns(timestamp, near_ns.unwrap_or(0)),
            (None, Some(first_ns)) => first_ns.cast_signed(),
            (None, None) => {
                self.found.not_valid += 1;
                return;
            }
        };
        self.found.valid += 1;
        let ahead_ns = time_ns.saturating_sub(at_ns);
        let (smallest_ns, largest_ns) = self.range_ns.unwrap_or((ahead_ns, ahead_ns));
        self.range_ns = Some((smallest_ns.min(ahead_ns), largest_ns.max(ahead_ns)));
        // The timestamps of a talker that is not synchronised have no relation to the clock of the capture.
        if let Some(clock) = self.clock.filter(|_| !avtp.timestamp_uncertain) {
            let stamp_ns = match clock {
                CaptureClock::Gptp => stamp_ns,
                CaptureClock::Utc => stamp_ns.saturating_add(TAI_LESS_UTC_NS),
            };
            let of_reference = || Some(content.crf?.last_ns()?.cast_signed().saturating_sub(stamp_ns));
            if let Some(margin_ns) = avtp.margin_ns(stamp_ns).or_else(of_reference) {
                self.margins.add(frame, at_ns, margin_ns, content.crf.is_none());
            }
        }
        if !is_newer {
            return;
        }
        let now = Last { sequence: avtp.sequence, at_ns, time_ns };
        let Some(last) = self.last else {
            self.last = Some(now);
            self.earliest.add(time_ns, at_ns, 1.0);
            return;
        };
        let ahead = u64::from(avtp.sequence.wrapping_sub(last.sequence));
        let passed = at_ns.saturating_sub(last.at_ns) as f64 / self.interval_ns;
        let around = nearest((passed - ahead as f64) / 256.0).max(0).cast_unsigned();
        let frames = ahead.saturating_add(around.saturating_mul(256)).max(1);
        let advance_ns = time_ns.saturating_sub(last.time_ns);
        self.last = Some(now);
        let restarted = std::mem::take(&mut self.restarted);
        let step = Step { frame, at_ns, time_ns, frames, advance_ns, restarted };
        if self.jump_ns.is_some() {
            self.take(step);
        } else {
            self.waiting.push(step);
            if self.waiting.len() == LEARN {
                self.learn();
            }
        }
    }

    /// False for duplicates and for frames that were overtaken.
    #[inline]
    fn is_newer(&self, sequence: u8, at_ns: i64) -> bool {
        self.newest.is_none_or(|newest| {
            (1..128).contains(&sequence.wrapping_sub(newest.sequence))
                || at_ns.saturating_sub(newest.at_ns) as f64 > 128.0 * self.interval_ns
        })
    }

    fn add_reference(&mut self, crf: Crf) {
        let header = |crf: Crf| (crf.kind, crf.pull, crf.base_hz, crf.interval, crf.timestamps);
        let first = *self.first_crf.get_or_insert_with(|| {
            let events = f64::from(crf.interval) * f64::from(crf.timestamps);
            let nominal_ns = crf.frequency_hz().map(|hz| events * 1e9 / hz).filter(|&ns| ns > 0.0);
            self.nominal_ns = nominal_ns;
            self.interval_ns = nominal_ns.unwrap_or(self.interval_ns);
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

    /// Finds out how regularly the timestamps advance.
    fn learn(&mut self) {
        let mut deviations: Vec<f64> = self.waiting.iter().map(|step| self.deviation_ns(step).abs()).collect();
        let most_ns = self.interval_ns * JUMP_MAX;
        self.irregular = quantile(&mut deviations, 0.5).is_some_and(|median_ns| median_ns > most_ns);
        let usual_ns = quantile(&mut deviations, 0.9).unwrap_or(0.0);
        let least_ns = (self.interval_ns * JUMP_MIN).max(JUMP_MIN_NS).min(most_ns);
        self.jump_ns = Some((usual_ns * JUMP).clamp(least_ns, most_ns));
        for step in std::mem::take(&mut self.waiting) {
            self.take(step);
        }
    }

    fn deviation_ns(&self, step: &Step) -> f64 {
        step.advance_ns as f64 - step.frames as f64 * self.interval_ns
    }

    #[inline]
    fn take(&mut self, step: Step) {
        let deviation_ns = self.deviation_ns(&step);
        let most_ns = self.jump_ns.unwrap_or(0.0) + step.frames as f64 * self.interval_ns * CLOCK_ERROR;
        let is_jump = deviation_ns.abs() > most_ns && !self.irregular;
        if is_jump || step.restarted {
            self.change(step, if is_jump { nearest(deviation_ns) } else { 0 });
        }
        if !is_jump {
            let (frames, advance_ns) = self.advanced;
            self.advanced = (frames.saturating_add(step.frames), advance_ns.saturating_add(step.advance_ns));
        }
        self.earliest.add(step.time_ns.saturating_sub(self.moved_ns), step.at_ns, 1.0);
    }

    #[cold]
    fn change(&mut self, step: Step, jump_ns: i64) {
        self.jumps += u64::from(jump_ns != 0);
        self.moved_ns = self.moved_ns.saturating_add(jump_ns);
        if self.found.changes.len() < WORST_KEPT {
            let jump_ns = (!self.irregular).then_some(jump_ns);
            let Step { frame, at_ns, restarted, .. } = step;
            self.found.changes.push(CapturedMediaChange { frame, at_ns, jump_ns, restarted });
        }
    }

    /// The result; `None` if no frame has a timestamp, unless the clock of the capture was given to judge them. `clock_was_set` is true if the timestamps of the capture stepped.
    pub(crate) fn finish(mut self, clock_was_set: bool) -> Option<CapturedPresentation> {
        if self.jump_ns.is_none() {
            self.learn();
        }
        if self.found.valid == 0 && self.clock.is_none() {
            return None;
        }
        let (frames, advance_ns) = self.advanced;
        let nominal_ns = self.nominal_ns.filter(|_| advance_ns > 0 && !self.irregular);
        let frequency_ppm = nominal_ns.map(|ns| (frames as f64 * ns / advance_ns as f64 - 1.0) * 1e6);
        let drift_ppm = if clock_was_set || self.irregular { None } else { self.drift_ppm() };
        Some(CapturedPresentation {
            jumps: (!self.irregular && self.found.valid > 0).then_some(self.jumps),
            drift_ppm,
            frequency_ppm,
            variation_ns: self.range_ns.map(|(smallest_ns, largest_ns)| largest_ns.abs_diff(smallest_ns)),
            clock: self.clock,
            margin: self.margins.to_record(),
            ..self.found
        })
    }

    /// The rate of the timestamps against the clock of the capture, by the earliest frames: the median of the slopes of all
    /// pairs, ppm.
    fn drift_ppm(&self) -> Option<f64> {
        let kept = &self.earliest.kept;
        let slope = |a: (i64, i64), b: (i64, i64)| {
            let captured_ns = b.1.saturating_sub(a.1);
            (captured_ns > 0).then(|| b.0.saturating_sub(a.0) as f64 / captured_ns as f64)
        };
        let pairs = kept.iter().enumerate().flat_map(|(n, &a)| kept[n + 1..].iter().filter_map(move |&b| slope(a, b)));
        let slope = quantile(&mut pairs.collect::<Vec<f64>>(), 0.5).filter(|_| kept.len() >= STRETCHES_MIN);
        slope.map(|slope| (slope - 1.0) * 1e6)
    }
}
