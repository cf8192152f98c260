//! The media clock of an AVTP stream by the presentation times in its frames: jumps and announced restarts.
//!
//! A presentation time is expected one interval after the one before. Losses are counted by the sequence numbers. Those of
//! AVTP have 8 bits, so after a longer loss, the presentation time or else the time that passed shows how many frames it had.

use std::ops::Range;

use crate::{CapturedMediaChange, WORST_KEPT, saturating::Saturating};

/// The number of frames that show how regularly the timestamps advance.
const LEARN: usize = 256;
/// A jump is a deviation of more than this multiple of that of nine tenths of these frames,
const JUMP: f64 = 4.0;
/// and of more than this part of the period, and this time, ns; at most, of the second part of the period.
const JUMP_MIN: f64 = 0.01;
const JUMP_MIN_NS: f64 = 1000.0;
const JUMP_MAX: f64 = 0.25;
/// In a shorter time than this many intervals, sequence numbers of 8 bits did not start again. Less than half of 256, so that
/// rounding does not matter. With a larger error of the clocks, they show nothing.
const AROUND_MIN: f64 = 64.0;
/// If the time between two frames shows the lost ones, it differs from theirs by at most this many intervals.
const AROUND_ERROR: f64 = 2.0;
/// A frame is later than another one by at least this part of the interval.
const LATER: f64 = 0.5;
/// Presentation times have 32 bits: they repeat after so many ns. If the time between two frames is wrong because its clock was
/// set, the presentation time is wrong by a multiple.
const REPEATS_NS: i64 = 1 << 32;
/// A jump of that size is improbable: it is a smaller one if it is within this time of a multiple.
const REPEATS_ERROR_NS: f64 = 1e6;
/// Maximum relative difference of two clocks.
const CLOCK_ERROR: f64 = 500e-6;

/// A frame of the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MediaFrame {
    /// Its number, from 1.
    pub frame: u64,
    /// When it came, ns after the first one.
    pub at_ns: i64,
    /// Its sequence number.
    pub sequence: u8,
    /// The run of punctual's own talker, and the frame's number in it; `None` for other talkers.
    pub of_run: Option<(u32, u64)>,
    /// The media clock restart bit (mr).
    pub restart_bit: bool,
    /// Its presentation time, ns from any fixed origin; `None` without one.
    pub time_ns: Option<i64>,
}

/// The media clock so far.
#[derive(Debug, Clone)]
pub struct MediaClock {
    /// The time between two frames, ns.
    interval_ns: f64,
    /// In a shorter time, sequence numbers did not start again, ns: [`AROUND_MIN`].
    around_ns: i64,
    /// The advances of the presentation time from one frame to the next that are no jumps, ns; empty before they are known.
    usual_advance_ns: Range<i64>,
    /// The newest frame with a timestamp.
    last: Option<Last>,
    /// The newest frame, if it came after that one and has no timestamp.
    untimed: Option<Newest>,
    /// True if the media clock restart bit changed in a frame without a timestamp since the last one with one.
    restarted: bool,
    /// The first steps, until they show how regular the timestamps are.
    waiting: Vec<Step>,
    /// The largest deviation that is no jump, ns; `None` before it is known.
    jump_ns: Option<f64>,
    irregular: bool,
    jumps: u64,
    restarts: u64,
    changes: Vec<CapturedMediaChange>,
    /// Frames, and the sum of their timestamps' differences, without jumps.
    advanced: (u64, i64),
}

/// The newest frame by its sequence number.
#[derive(Debug, Clone, Copy)]
struct Newest {
    sequence: u8,
    of_run: Option<(u32, u64)>,
    at_ns: i64,
    restart_bit: bool,
}

/// The newest frame with a timestamp.
#[derive(Debug, Clone, Copy)]
struct Last {
    frame: Newest,
    /// Its presentation time, ns.
    time_ns: i64,
}

/// The difference of a frame to the one before.
#[derive(Debug, Clone, Copy)]
struct Step {
    frame: u64,
    at_ns: i64,
    /// Number of frames since that one, including lost ones; `None` if it is not known.
    frames: Option<u64>,
    advance_ns: i64,
    restarted: bool,
}

impl MediaClock {
    /// Frames are `interval_ns` apart.
    #[must_use]
    pub fn new(interval_ns: f64) -> Self {
        Self {
            interval_ns,
            around_ns: around_ns(interval_ns),
            usual_advance_ns: 0..0,
            last: None,
            untimed: None,
            restarted: false,
            waiting: Vec::new(),
            jump_ns: None,
            irregular: false,
            jumps: 0,
            restarts: 0,
            changes: Vec::new(),
            advanced: (0, 0),
        }
    }

    /// Sets the time between two frames, before the first one is added.
    pub fn set_interval_ns(&mut self, interval_ns: f64) {
        (self.interval_ns, self.around_ns) = (interval_ns, around_ns(interval_ns));
    }

    /// Forgets the last frame, because the talker restarted.
    pub fn restart(&mut self) {
        self.learn();
        (self.last, self.untimed, self.restarted) = (None, None, false);
    }

    /// The expected presentation time of a frame that came at `at_ns`, ns; `None` before the first one. If the time went back,
    /// its clock was set, and the media clock continues.
    #[inline]
    #[must_use]
    pub fn near_ns(&self, at_ns: i64) -> Option<i64> {
        self.last.map(|last| last.time_ns.plus(at_ns.minus(last.frame.at_ns).max(0)))
    }

    /// Adds a frame.
    #[inline(always)]
    pub fn add(&mut self, now: MediaFrame) {
        if !self.add_usual(&now) {
            self.add_any(now);
        }
    }

    /// Adds a frame that follows the last one with the usual presentation time. Returns false, without a change, for others.
    #[inline(always)]
    fn add_usual(&mut self, now: &MediaFrame) -> bool {
        let MediaFrame { at_ns, sequence, of_run, restart_bit, time_ns, .. } = *now;
        let (Some(last), None, Some(time_ns)) = (&mut self.last, &self.untimed, time_ns) else { return false };
        let advance_ns = time_ns.minus(last.time_ns);
        let is_usual = sequence == last.frame.sequence.wrapping_add(1)
            && restart_bit == last.frame.restart_bit
            && at_ns.minus(last.frame.at_ns) < self.around_ns
            && self.usual_advance_ns.contains(&advance_ns)
            && in_run(last.frame.of_run, of_run).is_none_or(|frames| frames == 1);
        if is_usual {
            *last = Last { frame: Newest { sequence, of_run, at_ns, restart_bit }, time_ns };
            self.advance(1, advance_ns);
        }
        is_usual
    }

    fn add_any(&mut self, now: MediaFrame) {
        let MediaFrame { frame, at_ns, sequence, of_run, restart_bit, time_ns } = now;
        let newest = self.untimed.or(self.last.map(|last| last.frame));
        if newest.is_some_and(|newest| !self.is_newer(&now, &newest)) {
            return;
        }
        if newest.is_some_and(|newest| newest.restart_bit != restart_bit) {
            self.restarts += 1;
            self.restarted = true;
        }
        let now = Newest { sequence, of_run, at_ns, restart_bit };
        let Some(time_ns) = time_ns else {
            self.untimed = Some(now);
            return;
        };
        self.untimed = None;
        let now = Last { frame: now, time_ns };
        let Some(last) = self.last.replace(now) else { return };
        let frames = self.frames_between(&last, &now);
        let mut advance_ns = time_ns.saturating_sub(last.time_ns);
        if advance_ns >= REPEATS_NS {
            advance_ns = self.without_repeats_ns(advance_ns, frames);
        }
        let restarted = std::mem::take(&mut self.restarted);
        let step = Step { frame, at_ns, frames, advance_ns, restarted };
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
    fn is_newer(&self, now: &MediaFrame, newest: &Newest) -> bool {
        if let Some(frames) = in_run(newest.of_run, now.of_run) {
            return frames > 0;
        }
        (1..128).contains(&now.sequence.wrapping_sub(newest.sequence))
            || self.intervals(now.at_ns, newest.at_ns) > 128.0
            || self.follows_by_media(now)
            || self.restarts_numbers(now, newest)
    }

    /// True if the frame came later than the newest one and is presented later, too, although its number is behind: the talker
    /// started its numbers again. A frame that was overtaken is presented before.
    fn restarts_numbers(&self, now: &MediaFrame, newest: &Newest) -> bool {
        let is_later = |now_ns: i64, before_ns: i64| self.intervals(now_ns, before_ns) >= LATER;
        let presented = self.last.zip(now.time_ns);
        is_later(now.at_ns, newest.at_ns) && presented.is_some_and(|(last, time_ns)| is_later(time_ns, last.time_ns))
    }

    /// True if the presentation time shows that the frame is after the newest one and at least 128 frames between them were
    /// lost.
    fn follows_by_media(&self, now: &MediaFrame) -> bool {
        self.last.zip(now.time_ns).is_some_and(|(last, time_ns)| {
            let MediaFrame { sequence, of_run, at_ns, restart_bit, .. } = *now;
            let frame = Newest { sequence, of_run, at_ns, restart_bit };
            self.frames_by_media(&last, &Last { frame, time_ns }).is_some_and(|frames| frames >= 128)
        })
    }

    /// The number of frames from the last one to this one, including lost ones; `None` if it is not known.
    fn frames_between(&self, last: &Last, now: &Last) -> Option<u64> {
        if let Some(frames) = in_run(last.frame.of_run, now.frame.of_run) {
            return Some(frames.max(1).cast_unsigned());
        }
        let ahead = u64::from(now.frame.sequence.wrapping_sub(last.frame.sequence)).max(1);
        let longest = self.intervals(now.frame.at_ns, last.frame.at_ns).max(self.intervals(now.time_ns, last.time_ns));
        if longest < AROUND_MIN {
            Some(self.frames_by_time(ahead, last, now))
        } else {
            self.frames_around(ahead, longest, last, now)
        }
    }

    /// The number of frames within a short time: by the number, unless neither the time that passed nor the presentation time shows
    /// so many. Then the talker started its numbers again.
    fn frames_by_time(&self, ahead: u64, last: &Last, now: &Last) -> u64 {
        let passed = self.intervals(now.frame.at_ns, last.frame.at_ns);
        let by_media = self.intervals(now.time_ns, last.time_ns);
        let is_too_soon = passed + AROUND_ERROR < ahead as f64;
        match is_too_soon && (by_media - ahead as f64).abs() > AROUND_ERROR {
            true => nearest(passed).max(1).cast_unsigned(),
            false => ahead,
        }
    }

    /// The same if so much time passed, in intervals, that the sequence numbers may have started again. A frame that came late
    /// has an expected presentation time. If the presentation time moved on, too, the talker left out slots, unless the time
    /// for exactly as many frames passed.
    fn frames_around(&self, ahead: u64, longest: f64, last: &Last, now: &Last) -> Option<u64> {
        if longest * CLOCK_ERROR > AROUND_MIN {
            return None;
        }
        let by_media = self.frames_by_media(last, now).filter(|&frames| ahead > 1 || frames == ahead);
        let passed = self.intervals(now.frame.at_ns, last.frame.at_ns);
        by_media.or_else(|| frames_near(passed, last, now, AROUND_ERROR)).or(Some(ahead))
    }

    /// The number of frames by the advance of the presentation time: the one that the time between the frames shows, or else the
    /// shortest one. `None` if it did not advance by the time of whole frames with this sequence number.
    fn frames_by_media(&self, last: &Last, now: &Last) -> Option<u64> {
        let near = |time_ns: i64| frames_near(self.intervals(time_ns, last.time_ns), last, now, JUMP_MAX);
        let advance_ns = now.time_ns.saturating_sub(last.time_ns);
        let shortest_ns = || (advance_ns >= REPEATS_NS).then(|| last.time_ns.saturating_add(advance_ns % REPEATS_NS));
        near(now.time_ns).or_else(|| near(shortest_ns()?))
    }

    fn intervals(&self, now_ns: i64, before_ns: i64) -> f64 {
        now_ns.saturating_sub(before_ns) as f64 / self.interval_ns
    }

    /// Finds out how regularly the timestamps advance, if that is not known yet. Call it at the end of the stream.
    pub fn learn(&mut self) {
        if self.jump_ns.is_some() {
            return;
        }
        let mut deviations: Vec<f64> =
            self.waiting.iter().filter_map(|step| self.deviation_ns(step)).map(f64::abs).collect();
        deviations.sort_by(f64::total_cmp);
        let most_ns = self.interval_ns * JUMP_MAX;
        self.irregular = at_part(&deviations, 1, 2).is_some_and(|median_ns| median_ns > most_ns);
        let usual_ns = at_part(&deviations, 9, 10).unwrap_or(0.0);
        let least_ns = (self.interval_ns * JUMP_MIN).max(JUMP_MIN_NS).min(most_ns);
        let jump_ns = (usual_ns * JUMP).clamp(least_ns, most_ns);
        self.jump_ns = Some(jump_ns);
        let off_ns = jump_ns + self.interval_ns * CLOCK_ERROR;
        let [first, last] = [self.interval_ns - off_ns, self.interval_ns + off_ns];
        self.usual_advance_ns = if self.irregular {
            i64::MIN..i64::MAX
        } else {
            nearest(first.ceil())..nearest(last.floor()).saturating_add(1)
        };
        for step in std::mem::take(&mut self.waiting) {
            self.take(step);
        }
    }

    fn deviation_ns(&self, step: &Step) -> Option<f64> {
        step.frames.map(|frames| step.advance_ns as f64 - frames as f64 * self.interval_ns)
    }

    /// The advance of a presentation time without the multiple of the time after which these repeat, ns, if it is then near that
    /// of so many frames.
    fn without_repeats_ns(&self, advance_ns: i64, frames: Option<u64>) -> i64 {
        let Some(frames_ns) = frames.map(|frames| frames as f64 * self.interval_ns) else { return advance_ns };
        let repeats = ((advance_ns as f64 - frames_ns) / REPEATS_NS as f64).round();
        let nearer_ns = advance_ns.saturating_sub(nearest(repeats).saturating_mul(REPEATS_NS));
        if (nearer_ns as f64 - frames_ns).abs() <= REPEATS_ERROR_NS { nearer_ns } else { advance_ns }
    }

    fn take(&mut self, step: Step) {
        let Some((frames, deviation_ns)) = step.frames.zip(self.deviation_ns(&step)) else {
            if step.restarted {
                self.change(step, None);
            }
            return;
        };
        let most_ns = self.jump_ns.unwrap_or(0.0) + frames as f64 * self.interval_ns * CLOCK_ERROR;
        let is_jump = deviation_ns.abs() > most_ns && !self.irregular;
        if is_jump || step.restarted {
            self.change(step, Some(if is_jump { nearest(deviation_ns) } else { 0 }));
        }
        if !is_jump {
            self.advance(frames, step.advance_ns);
        }
    }

    #[inline]
    fn advance(&mut self, frames: u64, ns: i64) {
        let (all, advance_ns) = self.advanced;
        self.advanced = (all.saturating_add(frames), advance_ns.plus(ns));
    }

    fn change(&mut self, step: Step, jump_ns: Option<i64>) {
        self.jumps += u64::from(jump_ns.is_some_and(|ns| ns != 0));
        if self.changes.len() < WORST_KEPT {
            let jump_ns = jump_ns.filter(|_| !self.irregular);
            let Step { frame, at_ns, restarted, .. } = step;
            self.changes.push(CapturedMediaChange { frame, at_ns, jump_ns, restarted });
        }
    }

    /// The jumps of the presentation time; `None` without presentation times, or if they do not advance regularly.
    #[must_use]
    pub fn jumps(&self) -> Option<u64> {
        (!self.irregular && self.last.is_some()).then_some(self.jumps)
    }

    /// Changes of the media clock restart bit.
    #[must_use]
    pub fn restarts(&self) -> u64 {
        self.restarts
    }

    /// The first jumps and restarts, in order; at most 20.
    #[must_use]
    pub fn changes(&self) -> &[CapturedMediaChange] {
        &self.changes
    }

    /// Frames, and the sum of the differences of their presentation times without jumps, ns; `None` if they do not advance
    /// regularly.
    #[must_use]
    pub fn advanced(&self) -> Option<(u64, i64)> {
        (!self.irregular).then_some(self.advanced)
    }
}

/// [`AROUND_MIN`] intervals, ns.
fn around_ns(interval_ns: f64) -> i64 {
    nearest((AROUND_MIN * interval_ns).ceil())
}

/// The number of frames from one number to another one of the same run of punctual's talker; `None` for other numbers.
#[inline]
fn in_run(before: Option<(u32, u64)>, now: Option<(u32, u64)>) -> Option<i64> {
    let ((run, before), (same, seq)) = before.zip(now)?;
    (run == same).then(|| seq.wrapping_sub(before).cast_signed())
}

/// The number of frames nearest to so many intervals by the sequence numbers of 8 bits; `None` if it differs by more than
/// `error` and the difference of two clocks.
fn frames_near(intervals: f64, last: &Last, now: &Last, error: f64) -> Option<u64> {
    let ahead = f64::from(now.frame.sequence.wrapping_sub(last.frame.sequence));
    let frames = ahead + 256.0 * ((intervals - ahead) / 256.0).round().max(0.0);
    let is_near = (intervals - frames).abs() <= error + frames * CLOCK_ERROR;
    (is_near && frames >= 1.0).then(|| nearest(frames).cast_unsigned())
}

/// The value at this part of sorted values; `None` without values.
fn at_part(sorted: &[f64], part: usize, of: usize) -> Option<f64> {
    sorted.get((sorted.len() * part / of).min(sorted.len().saturating_sub(1))).copied()
}

/// The nearest integer, within the range of the type.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the cast saturates")]
fn nearest(value: f64) -> i64 {
    value.round() as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL_NS: i64 = 125_000;

    /// The media clock of these presentation times of consecutive frames.
    fn clock_of(times_ns: impl Iterator<Item = Option<i64>>) -> MediaClock {
        let mut clock = MediaClock::new(INTERVAL_NS as f64);
        for ((frame, sequence), time_ns) in (0..).zip((0..=u8::MAX).cycle()).zip(times_ns) {
            let at_ns = i64::try_from(frame).unwrap() * INTERVAL_NS;
            clock.add(MediaFrame { frame: frame + 1, at_ns, sequence, of_run: None, restart_bit: false, time_ns });
        }
        clock
    }

    #[test]
    fn a_jump_has_its_size_and_frame() {
        let time_ns = |n: i64| Some(n * INTERVAL_NS + n % 3 * 20 + if n < 700 { 0 } else { 40_000 });
        let clock = clock_of((0..1000).map(time_ns));
        assert_eq!((clock.jumps(), clock.restarts()), (Some(1), 0));
        let [change] = clock.changes() else { panic!("{:?}", clock.changes()) };
        assert_eq!((change.frame, change.restarted), (701, false));
        assert!((39_900..40_100).contains(&change.jump_ns.unwrap()), "{change:?}");
    }

    /// The numbers start again, with or without a jump of the presentation time.
    #[test]
    fn numbers_that_start_again_are_no_jump() {
        for (first, jump_ns) in [(0_u8, 0), (40, 0), (200, 0), (255, 0), (40, 1_000_000), (200, 1_000_000)] {
            let mut clock = MediaClock::new(INTERVAL_NS as f64);
            for frame in 0..2_000_u64 {
                let [low, ..] = (if frame < 1_000 { frame } else { frame - 1_000 + u64::from(first) }).to_le_bytes();
                let at_ns = frame.cast_signed() * INTERVAL_NS;
                let time_ns = Some(2_000_000 + at_ns + if frame < 1_000 { 0 } else { jump_ns });
                let of =
                    MediaFrame { frame: frame + 1, at_ns, sequence: low, of_run: None, restart_bit: false, time_ns };
                clock.add(of);
            }
            let found: Vec<_> = clock.changes().iter().map(|change| (change.frame, change.jump_ns)).collect();
            let expected = if jump_ns == 0 { vec![] } else { vec![(1_001, Some(jump_ns))] };
            assert_eq!(found, expected, "{first} {jump_ns}");
        }
    }

    #[test]
    fn irregular_or_absent_times_have_no_known_jumps() {
        let irregular = |n: i64| Some(n * INTERVAL_NS + n % 2 * 100_000);
        assert_eq!(clock_of((0..1000).map(irregular)).jumps(), None);
        assert_eq!(clock_of((0..1000).map(|_| None)).jumps(), None);
    }
}
