//! Computes the lateness of each frame relative to its slot.
//!
//! The slot follows from the frame's index in the stream, which counts lost frames, so the frame after a loss is not
//! late. A talker that skips slots continues later by whole periods and stays there, whereas a late frame is followed
//! by frames that catch up. The following frames therefore decide: their minimum lateness is a step of the stream against
//! its grid.
//!
//! A step of whole periods means skipped slots. Any other step starts a new run of the stream, whose slots are measured
//! from its own earliest frames: the talker changed its phase, or the clock of the capture was set.
//!
//! If a talker skips many slots, late frames and skipped slots alternate without a frame on time
//! between them. The grid of the stream, whose period is stated, then shows both: each frame belongs to the last slot
//! that it is not before.

use std::collections::VecDeque;

use record::StepKind;

use crate::convert::nearest;
use crate::fit::Grid;
use crate::sequence::Placed;

/// Number of following frames taken into account: half a second of class A.
pub(crate) const AHEAD: usize = 4096;
/// The number of frames before a frame one of which must be as early, so that one reordered frame has no effect. More than
/// one, because each second frame may be late.
const AGREEING: usize = 4;
/// A step must last for at least this many frames; fewer frames are late or early ones.
const STEP_FRAMES: usize = 64;
/// A silence from which on the clock of the capture may have been set, ns. ntpd sets the clock from an error of 128 ms on
/// and otherwise changes its rate (option `tinker step`).
const SET_NS: i64 = 128_000_000;

/// A frame with its lateness.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Late {
    /// The frame's number in the file.
    pub(crate) frame: u64,
    /// When it was captured, ns after the stream's first frame.
    pub(crate) at_ns: i64,
    /// Its index in the stream.
    pub(crate) index: i64,
    /// Lateness relative to its slot, ns; negative if early.
    pub(crate) late_ns: i64,
}

/// A change of the grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Step {
    /// The first frame after it.
    pub(crate) frame: u64,
    pub(crate) at_ns: i64,
    /// The change of the lateness, ns.
    pub(crate) ns: i64,
    pub(crate) kind: StepKind,
}

/// Frames whose lateness is not final.
pub(crate) struct Lateness {
    grid: Grid,
    /// The smallest change that is a step and not lateness, ns.
    step_ns: i64,
    /// These frames, with their lateness against the first run's grid.
    waiting: VecDeque<Late>,
    /// Lateness of the previous frames.
    last_ns: [i64; AGREEING],
    /// A monotonic queue: position and agreed lateness of frames below all later ones.
    smallest: VecDeque<(u64, i64)>,
    taken: u64,
    given: u64,
    /// Lateness of the current run's slots against the grid, ns; `None` before the first frame.
    base_ns: Option<i64>,
    /// Number of frames of the run that arrived, and the smallest lateness of the first [`STEP_FRAMES`], ns. It stands for
    /// the base until that is known.
    run_frames: usize,
    first_base_ns: i64,
    /// Smallest lateness among at most two blocks of the last final frames, ns.
    recent: [i64; 2],
    /// Consecutive frames before the slots of the run, and whether the time stepped back at the first one.
    early: usize,
    time_stepped_back: bool,
    last_at_ns: i64,
    /// Slots that the talker skipped.
    pub(crate) skipped: u64,
    /// Number of times that it skipped some.
    pub(crate) skips: u64,
    /// Index and slot of the last frame, if the grid has one phase for the whole stream.
    one_phase: Option<OnePhase>,
}

/// The last frame of a stream whose slots are those of one grid.
#[derive(Debug, Clone, Copy, Default)]
struct OnePhase {
    last: Option<(i64, i64)>,
}

impl OnePhase {
    /// The lateness of the frame with this index, which is `late_ns` after its time in a grid without skipped slots, and
    /// the number of slots that were skipped just before it. The frame belongs to the last slot that it is not before. A
    /// negative number takes back slots of frames that were late, because this one is on time.
    fn place(&mut self, index: i64, late_ns: i64, period_ns: f64, tolerance_ns: i64) -> (i64, i64) {
        let whole_ns = |slots: i64| nearest(slots as f64 * period_ns);
        // Distance of its slot from that of its index.
        let moved = nearest((late_ns.saturating_add(tolerance_ns) as f64 / period_ns).floor());
        let Some((last_index, last_moved)) = self.last else {
            self.last = Some((index, moved));
            return (late_ns.saturating_sub(whole_ns(moved)), 0);
        };
        if index <= last_index {
            return (late_ns.saturating_sub(whole_ns(last_moved)), 0);
        }
        let is_early = late_ns < whole_ns(last_moved).saturating_sub(nearest(period_ns / 2.0));
        let moved = if is_early { moved } else { moved.max(last_moved) };
        self.last = Some((index, moved));
        (late_ns.saturating_sub(whole_ns(moved)), moved.saturating_sub(last_moved))
    }
}

impl Lateness {
    pub(crate) fn new(grid: Grid, tolerance_ns: i64) -> Self {
        // The earliest frames may be apart by their scatter on both sides of the grid.
        let step_ns = tolerance_ns.saturating_add(nearest(2.0 * grid.scatter_ns));
        Self {
            grid,
            step_ns,
            waiting: VecDeque::with_capacity(AHEAD + 1),
            last_ns: [i64::MIN; AGREEING],
            smallest: VecDeque::new(),
            taken: 0,
            given: 0,
            base_ns: None,
            run_frames: 0,
            first_base_ns: i64::MAX,
            recent: [i64::MAX; 2],
            early: 0,
            time_stepped_back: false,
            last_at_ns: i64::MIN,
            skipped: 0,
            skips: 0,
            one_phase: None,
        }
    }

    /// Lets all slots belong to one grid: the talker skips many slots, but its phase stays.
    pub(crate) fn with_one_phase(self) -> Self {
        Self { one_phase: Some(OnePhase::default()), ..self }
    }

    /// Adds a frame of the stream. Frames whose lateness is final, and steps, are given to `late` and `step`.
    #[inline]
    pub(crate) fn add(&mut self, placed: Placed, late: &mut impl FnMut(Late), step: &mut impl FnMut(Step)) {
        let Placed { frame, at_ns, index, restarts } = placed;
        if restarts {
            self.finish(late, step);
            self.one_phase = None;
            self.start_run(Step { frame, at_ns, ns: 0, kind: StepKind::Restart }, step);
        }
        let late_ns = self.grid.late_ns(index, at_ns);
        if let Some(phase) = &mut self.one_phase {
            let (late_ns, skipped) = phase.place(index, late_ns, self.grid.group_ns(), self.step_ns);
            if at_ns >= self.last_at_ns {
                self.last_at_ns = at_ns;
                self.skipped = self.skipped.saturating_add_signed(skipped);
                self.skips += u64::from(skipped > 0);
                return late(Late { frame, at_ns, index, late_ns });
            }
            self.one_phase = None;
            self.start_run(Step { frame, at_ns, ns: late_ns, kind: StepKind::ClockSet }, step);
        }
        self.push(Late { frame, at_ns, index, late_ns });
        if self.is_early(at_ns, late_ns) {
            self.early += 1;
            self.time_stepped_back |= at_ns < self.last_at_ns;
            if self.early == STEP_FRAMES {
                self.step_back(late, step);
            }
        } else {
            (self.early, self.time_stepped_back) = (0, false);
        }
        self.last_at_ns = at_ns;
        if self.waiting.len() > AHEAD {
            self.finalize(late, step);
        }
    }

    /// True if the frame is before its slot by a step.
    #[inline]
    fn is_early(&mut self, at_ns: i64, late_ns: i64) -> bool {
        let early = late_ns < self.base_ns.unwrap_or(self.first_base_ns).saturating_sub(self.step_ns);
        if self.run_frames >= STEP_FRAMES {
            return early;
        }
        // The first frames may be late, so an earlier one is a step only if the time went back.
        if early && self.run_frames > 0 && (self.early > 0 || at_ns < self.last_at_ns) {
            return true;
        }
        self.run_frames += 1;
        self.first_base_ns = self.first_base_ns.min(late_ns);
        false
    }

    #[inline]
    fn push(&mut self, late: Late) {
        let late_ns = late.late_ns;
        let [a, b, c, d] = self.last_ns;
        let agreed_ns = late_ns.max(a.min(b).min(c.min(d)));
        self.last_ns = [b, c, d, late_ns];
        while self.smallest.back().is_some_and(|&(_, smallest_ns)| smallest_ns >= agreed_ns) {
            self.smallest.pop_back();
        }
        self.smallest.push_back((self.taken, agreed_ns));
        self.taken += 1;
        self.waiting.push_back(late);
    }

    /// Starts a run with the frames that were early for long enough.
    fn step_back(&mut self, late: &mut impl FnMut(Late), step: &mut impl FnMut(Step)) {
        let after = self.waiting.split_off(self.waiting.len().saturating_sub(self.early));
        let kind = if self.time_stepped_back { StepKind::ClockSet } else { StepKind::Phase };
        let taken = self.taken;
        // The frames before the step are judged without those after it.
        (self.smallest, self.last_ns) = (VecDeque::new(), [i64::MIN; AGREEING]);
        let before = std::mem::take(&mut self.waiting);
        self.taken = self.given;
        before.into_iter().for_each(|one| self.push(one));
        self.finish(late, step);
        debug_assert_eq!(self.taken + after.len() as u64, taken);
        let base_ns = self.base_ns.unwrap_or(0);
        let smallest_ns = after.iter().map(|one| one.late_ns).min().unwrap_or(base_ns);
        if let Some(first) = after.front() {
            let (frame, at_ns, ns) = (first.frame, first.at_ns, smallest_ns.saturating_sub(base_ns));
            self.start_run(Step { frame, at_ns, ns, kind }, step);
        }
        after.into_iter().for_each(|one| self.push(one));
        (self.run_frames, self.first_base_ns) = (STEP_FRAMES, smallest_ns);
        (self.early, self.time_stepped_back) = (0, false);
    }

    /// The next frame starts a run.
    fn start_run(&mut self, found: Step, step: &mut impl FnMut(Step)) {
        (self.base_ns, self.recent, self.early) = (None, [i64::MAX; 2], 0);
        self.last_ns = [i64::MIN; AGREEING];
        (self.run_frames, self.first_base_ns) = (0, i64::MAX);
        step(found);
    }

    /// Finalizes the next frame, assuming that no more frames follow.
    #[inline]
    fn finalize(&mut self, late: &mut impl FnMut(Late), step: &mut impl FnMut(Step)) {
        let Some(one) = self.waiting.pop_front() else { return };
        let Some(&(first, smallest_ns)) = self.smallest.front() else { return };
        if self.base_ns.is_none_or(|base_ns| smallest_ns.saturating_sub(base_ns) > self.step_ns) {
            self.rebase(one, smallest_ns, step);
        }
        self.recent[0] = self.recent[0].min(one.late_ns);
        if first == self.given {
            self.smallest.pop_front();
        }
        self.given += 1;
        if self.given.is_multiple_of(STEP_FRAMES as u64) {
            self.recent = [i64::MAX, self.recent[0]];
        }
        late(Late { late_ns: one.late_ns.saturating_sub(self.base_ns.unwrap_or(0)), ..one });
    }

    /// Finds out whether the run starts or the stream steps at this frame, if it and all later ones are at least
    /// `smallest_ns` behind the grid.
    fn rebase(&mut self, one: Late, smallest_ns: i64, step: &mut impl FnMut(Step)) {
        let period_ns = self.grid.group_ns();
        let change_ns = smallest_ns.saturating_sub(self.base_ns.unwrap_or(0));
        let slots = nearest(change_ns as f64 / period_ns);
        let whole_ns = nearest(slots as f64 * period_ns);
        let is_whole = change_ns.saturating_sub(whole_ns).saturating_abs() <= self.step_ns;
        let Some(base_ns) = self.base_ns else {
            // The first frame of a run.
            self.base_ns = Some(if is_whole { whole_ns } else { change_ns });
            return;
        };
        let recent_ns = self.recent[0].min(self.recent[1]);
        let jump_ns = smallest_ns.saturating_sub(recent_ns);
        let is_sudden = jump_ns > self.step_ns;
        let kind = if change_ns >= SET_NS.max(nearest(period_ns * 1.5)) {
            StepKind::Silence
        } else if slots > 0 && is_whole && jump_ns as f64 >= period_ns / 2.0 {
            self.base_ns = Some(base_ns.saturating_add(whole_ns));
            self.skipped = self.skipped.saturating_add(slots.unsigned_abs());
            self.skips += 1;
            self.recent = [i64::MAX; 2];
            return;
        } else if is_sudden && self.waiting.len() >= STEP_FRAMES {
            StepKind::Phase
        } else {
            return;
        };
        (self.base_ns, self.recent) = (Some(smallest_ns), [i64::MAX; 2]);
        step(Step { frame: one.frame, at_ns: one.at_ns, ns: change_ns, kind });
    }

    /// Ends the stream.
    pub(crate) fn end(&mut self, late: &mut impl FnMut(Late), step: &mut impl FnMut(Step)) {
        // Few frames after the time went back are no early frames.
        if self.early > 0 && self.time_stepped_back {
            self.step_back(late, step);
        }
        self.finish(late, step);
    }

    /// Finalizes all waiting frames, at the end of the stream or of a part of it.
    fn finish(&mut self, late: &mut impl FnMut(Late), step: &mut impl FnMut(Step)) {
        while !self.waiting.is_empty() {
            self.finalize(late, step);
        }
    }
}
