//! Computes the lateness of each frame relative to its slot.
//!
//! The slot follows from the frame's index in the stream, which counts lost frames, so the frame after a loss is not
//! late. A talker that skips slots continues later by whole periods and stays there, whereas a late frame is followed
//! by frames that catch up. The following frames therefore decide: their minimum lateness is a step of the stream against
//! its grid.
//!
//! A step of whole periods means skipped slots. Any other step starts a new run of the stream, whose slots are measured
//! from its own earliest frames: the talker changed its phase, or the clock of the capture was set. If the stream moves
//! slowly, one of the two clocks changed its rate.
//!
//! With jitter, the minimum of few frames is larger than that of many. Near the end of the stream, where few frames
//! follow, a step must therefore be larger than the largest of the minima of as many frames before it.
//!
//! A step to an earlier phase is found when its frames arrive: relative to the slots, or to a steady level of the frames
//! before it, which can be later than the slots if the stream moved to that level less than [`Frames::ahead`] ago.
//!
//! A talker that sends groups of frames can leave out one of them. Then all later frames fit the grid as the next frame of
//! their group, and not only from a certain frame on.
//!
//! If a talker skips many slots, late frames and skipped slots alternate without a frame on time
//! between them. The grid of the stream, whose period is stated, then shows both: each frame belongs to the last slot
//! that it is not before.

use std::collections::VecDeque;

use record::{StepKind, saturating::Saturating};

use crate::convert::nearest;
use crate::fit::Grid;
use crate::sequence::Placed;

/// Number of following frames taken into account: half a second of class A.
const AHEAD: usize = 4096;
/// So many frames are finalized together, if their lateness does not depend on the frames after them.
const TOGETHER: usize = 64;
/// The number of frames before a frame one of which must be as early, so that one reordered frame has no effect. More than
/// one, because each second frame may be late.
const AGREEING: usize = 4;
/// The slots of a run are those of its earliest frames, except for ones that fewer than this part of all are near to, and
/// fewer than so many. Near is within this part of the distance to the median.
const NEAR_PART: usize = 64;
const NEAR_MAX: usize = 6;
const NEAR_OF_MEDIAN: i64 = 4;
/// The same for the earliest frames of blocks of [`Frames::step`]: early frames in a row are in two of them at most.
const NEAR_PART_OF_BLOCKS: usize = 4;
const NEAR_BLOCKS_MAX: usize = 3;
/// A step must last for at least this many frames; fewer frames are late or early ones.
const STEP_FRAMES: usize = 64;
/// A step to an earlier phase ends if none of so many consecutive frames is early: some of its frames can be late.
const NOT_EARLY_MAX: usize = 8;
/// At least this part of its frames is as early as one of the frames just before: single early frames are no step.
const AGREEING_PART: usize = 4;
/// The minimum of fewer frames is not known.
const MINIMA_OF: usize = 8;
/// A step is sudden if at least this part of it is between the frames of a step before and after it. Otherwise, the stream
/// moved slowly.
const SUDDEN: f64 = 0.75;
/// Maximum change of a clock's rate while it is slewed: twice the 500 ppm of ntpd. With chrony it can be far more
/// (`maxslewrate`); such a change is lateness here.
const SLEW_PPM_MAX: f64 = 1000.0;
/// A step is one of skipped slots if the rest of whole periods is at most this part of the period. With more jitter, it is
/// up to the second part.
const NEARLY_WHOLE: f64 = 0.125;
const NEARLY_WHOLE_MAX: f64 = 0.25;
/// A silence from which on the clock of the capture may have been set, ns. ntpd sets the clock from an error of 128 ms on
/// and otherwise changes its rate (option `tinker step`).
pub(crate) const SET_NS: i64 = 128_000_000;

/// Numbers of frames: those of the constants, but of at least so many groups, because all frames of a group can be late
/// together.
#[derive(Debug, Clone, Copy)]
struct Frames {
    /// A step must last for so many; fewer are late or early ones.
    step: usize,
    /// So many following ones are taken into account.
    ahead: usize,
    /// A step to an earlier phase ends if none of so many consecutive ones is early: some of its frames can be late.
    not_early: usize,
    /// At most so many frames must be near the slots of a run.
    near: usize,
}

impl Frames {
    fn new(grid: &Grid) -> Self {
        let group = usize::try_from(grid.frames()).unwrap_or(usize::MAX);
        let or_groups = |frames: usize, groups: usize| frames.max(group.saturating_mul(groups));
        Self {
            // For groups of up to 8 frames, the constant.
            step: or_groups(STEP_FRAMES, 8),
            // Eight steps.
            ahead: or_groups(AHEAD, 64),
            not_early: or_groups(NOT_EARLY_MAX, 2),
            near: or_groups(NEAR_MAX, 2),
        }
    }
}

/// A frame with its lateness.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Late {
    /// The frame's number in the file.
    pub(crate) frame: u64,
    /// When it was captured, ns after the stream's first frame.
    pub(crate) at_ns: i64,
    /// Its index in the stream, moved on by the frames that the talker left out of groups.
    pub(crate) index: i64,
    /// Lateness relative to its slot, ns; negative if early.
    pub(crate) late_ns: i64,
    /// The same, or the smallest lateness of the frames just before it if that is larger, ns.
    agreed_ns: i64,
}

/// A change of the grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Step {
    /// The first frame after it.
    pub(crate) frame: u64,
    pub(crate) at_ns: i64,
    /// The change of the lateness, ns.
    pub(crate) ns: i64,
    /// The lateness after it, against the grid of the whole stream, ns.
    pub(crate) level_ns: i64,
    pub(crate) kind: StepKind,
}

/// Frames whose lateness is not final.
pub(crate) struct Lateness {
    grid: Grid,
    frames: Frames,
    /// The smallest change that is a step and not lateness, ns.
    step_ns: i64,
    /// A run that begins so near the slots of the grid has these, ns.
    same_ns: i64,
    half_period_ns: i64,
    /// These frames, with their lateness against the first run's grid.
    waiting: VecDeque<Late>,
    /// Lateness of the previous frames.
    last_ns: [i64; AGREEING],
    /// The position after that of the last frame that was in the slots of the run when it arrived. The stream does not step at
    /// frames before it.
    in_slots: u64,
    /// A monotonic queue: position and agreed lateness of frames below all later ones. Empty while one of them is in the slots.
    smallest: VecDeque<(u64, i64)>,
    /// For streams in groups: the same for the lateness of each frame as the next one of its group.
    smallest_as_next: VecDeque<(u64, i64)>,
    /// Indexes are moved on by so many: the frames that the talker left out of groups, less those between the regular ones.
    moved: i64,
    taken: u64,
    given: u64,
    /// Lateness of the current run's slots against the grid, ns; `None` before the first frame.
    base_ns: Option<i64>,
    /// So many blocks of frames must be near the slots of the run. One is enough if it began with a step to an earlier phase.
    near_blocks: usize,
    /// Number of frames of the run that arrived, and the smallest lateness of the first [`Frames::step`], ns: used as
    /// the base until that is known.
    run_frames: usize,
    first_base_ns: i64,
    /// The last final frames.
    recent: Recent,
    /// The last frames that arrived, without those that may be after a step to an earlier phase.
    arrived: Recent,
    /// Of the final lateness: what the minimum of few frames can be without a step.
    minima: LargestMinima,
    /// Number of the last final frames that were late by more than half a period.
    late_for: usize,
    /// Index of the last final frame.
    last_index: i64,
    /// Number of frames from the first early one on, of those after the last early one, and whether the time stepped back
    /// at the first one.
    early: usize,
    not_early: usize,
    time_stepped_back: bool,
    last_at_ns: i64,
    /// Frames between the regular ones, which have numbers but no slot.
    pub(crate) surplus: u64,
    /// Slots that the talker skipped.
    pub(crate) skipped: u64,
    /// Number of times that it skipped some.
    pub(crate) skips: u64,
    /// Index and slot of the last frame, if the grid has one phase for the whole stream.
    one_phase: Option<OnePhase>,
}

/// The smallest lateness in blocks of the last frames, ns.
#[derive(Debug, Clone)]
struct Recent {
    /// Number of frames of a block.
    length: usize,
    /// The whole blocks, the latest last.
    blocks: VecDeque<i64>,
    /// Of the block that is not complete: the smallest lateness, ns, and the number of frames.
    current_ns: i64,
    frames: usize,
    /// A frame before this is earlier by a step than the level of the last blocks, ns.
    earliest_ns: Option<i64>,
}

impl Recent {
    const BLOCKS: usize = 16;
    /// So many blocks whose minima are near each other are a level.
    const LEVEL_BLOCKS: usize = 2;

    fn new(length: usize) -> Self {
        Self {
            length,
            blocks: VecDeque::with_capacity(Self::BLOCKS),
            current_ns: i64::MAX,
            frames: 0,
            earliest_ns: None,
        }
    }

    /// Forgets all frames.
    fn clear(&mut self) {
        *self = Self::new(self.length);
    }

    #[inline]
    fn add(&mut self, late_ns: i64, step_ns: i64) {
        self.current_ns = self.current_ns.min(late_ns);
        self.frames += 1;
        if self.frames == self.length {
            self.end_block(step_ns);
        }
    }

    /// Adds frames as [`Self::add`] does.
    fn add_all(&mut self, mut frames: &[Late], step_ns: i64) {
        while !frames.is_empty() {
            let (some, rest) = frames.split_at(frames.len().min(self.length - self.frames));
            self.current_ns = some.iter().map(|one| one.late_ns).fold(self.current_ns, i64::min);
            self.frames += some.len();
            if self.frames == self.length {
                self.end_block(step_ns);
            }
            frames = rest;
        }
    }

    fn end_block(&mut self, step_ns: i64) {
        if self.blocks.len() == Self::BLOCKS {
            self.blocks.pop_front();
        }
        let last_ns = self.current_ns;
        self.blocks.push_back(last_ns);
        (self.current_ns, self.frames) = (i64::MAX, 0);
        let (mut smallest_ns, mut largest_ns, mut count) = (last_ns, last_ns, 0);
        let level = |block_ns: &&i64| last_ns.abs_diff(**block_ns) <= step_ns.unsigned_abs();
        for &block_ns in self.blocks.iter().rev().take_while(level) {
            (smallest_ns, largest_ns) = (smallest_ns.min(block_ns), largest_ns.max(block_ns));
            count += 1;
        }
        let spread_ns = largest_ns.saturating_sub(smallest_ns);
        self.earliest_ns =
            (count >= Self::LEVEL_BLOCKS).then(|| smallest_ns.saturating_sub(step_ns.max(spread_ns.saturating_mul(2))));
    }

    /// The smallest lateness of the current block and the one before; `None` if there are no frames.
    fn smallest_ns(&self) -> Option<i64> {
        let current_ns = (self.frames > 0).then_some(self.current_ns);
        self.blocks.back().copied().into_iter().chain(current_ns).min()
    }

    /// Moves all blocks, because the slots moved by so much, ns.
    fn shift(&mut self, by_ns: i64) {
        let current_ns = Some(&mut self.current_ns).filter(|_| self.frames > 0);
        for block_ns in self.blocks.iter_mut().chain(current_ns) {
            *block_ns = block_ns.saturating_add(by_ns);
        }
    }

    /// How far the last block is later than the one before, ns.
    fn rise_ns(&self) -> i64 {
        let mut latest = self.blocks.iter().rev();
        latest.next().zip(latest.next()).map_or(0, |(last, before)| last.saturating_sub(*before))
    }
}

/// The largest of the minima of the agreed lateness, in blocks of a shortest length and of 2, 4 ... 256 times as many
/// frames, ns.
#[derive(Debug, Clone)]
struct LargestMinima {
    shortest: usize,
    /// Smallest lateness of the current frames, fewer than the shortest block, and their number.
    current_ns: i64,
    frames: usize,
    /// For each length, the minimum of the first half of the current block, if there is one, and the largest minimum.
    blocks: [(Option<i64>, i64); Self::LENGTHS],
}

impl LargestMinima {
    const LENGTHS: usize = 9;

    /// With blocks of at least [`MINIMA_OF`] frames, and of at least one group of so many.
    fn new(group: u64) -> Self {
        let shortest = usize::try_from(group).unwrap_or(usize::MAX).max(MINIMA_OF);
        Self { shortest, current_ns: i64::MAX, frames: 0, blocks: [(None, 0); Self::LENGTHS] }
    }

    #[inline]
    fn add(&mut self, agreed_ns: i64) {
        self.current_ns = self.current_ns.min(agreed_ns);
        self.frames += 1;
        if self.frames == self.shortest {
            self.end_block();
        }
    }

    /// Adds the agreed lateness of frames, less `base_ns`, as [`Self::add`] does.
    fn add_all(&mut self, mut frames: &[Late], base_ns: i64) {
        while !frames.is_empty() {
            let (some, rest) = frames.split_at(frames.len().min(self.shortest - self.frames));
            self.current_ns = some.iter().map(|one| one.agreed_ns.minus(base_ns)).fold(self.current_ns, i64::min);
            self.frames += some.len();
            if self.frames == self.shortest {
                self.end_block();
            }
            frames = rest;
        }
    }

    fn end_block(&mut self) {
        let mut minimum_ns = self.current_ns;
        (self.current_ns, self.frames) = (i64::MAX, 0);
        for (half, largest_ns) in &mut self.blocks {
            *largest_ns = minimum_ns.max(*largest_ns);
            match half.take() {
                Some(other_ns) => minimum_ns = minimum_ns.min(other_ns),
                None => {
                    *half = Some(minimum_ns);
                    break;
                }
            }
        }
    }

    /// The largest minimum of so many frames or a little fewer; not known for fewer than the shortest block.
    fn of(&self, frames: usize) -> i64 {
        let length = (frames / self.shortest).checked_ilog2().map(|length| (length as usize).min(Self::LENGTHS - 1));
        length.map_or(i64::MAX, |length| self.blocks[length].1)
    }
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
        let frames = Frames::new(&grid);
        Self {
            half_period_ns: nearest(grid.group_ns() / 2.0),
            frames,
            step_ns,
            same_ns: if grid.unfollowed_ns > 0.0 { tolerance_ns / 2 } else { step_ns / 2 },
            waiting: VecDeque::with_capacity(frames.ahead + frames.step.max(TOGETHER) + 1),
            last_ns: [i64::MIN; AGREEING],
            in_slots: 0,
            smallest: VecDeque::new(),
            smallest_as_next: VecDeque::new(),
            moved: 0,
            taken: 0,
            given: 0,
            base_ns: None,
            near_blocks: NEAR_BLOCKS_MAX,
            run_frames: 0,
            first_base_ns: i64::MAX,
            recent: Recent::new(frames.step),
            arrived: Recent::new(frames.step / 2),
            minima: LargestMinima::new(grid.frames()),
            grid,
            late_for: 0,
            last_index: i64::MIN,
            early: 0,
            not_early: 0,
            time_stepped_back: false,
            last_at_ns: i64::MIN,
            surplus: 0,
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
    #[inline(always)]
    pub(crate) fn add(&mut self, placed: Placed, late: &mut impl FnMut(&[Late]), step: &mut impl FnMut(Step)) {
        let Placed { frame, at_ns, index, restarts } = placed;
        if restarts {
            self.finish(late, step);
            self.one_phase = None;
            self.start_run(Step { frame, at_ns, ns: 0, level_ns: 0, kind: StepKind::Restart }, step);
        }
        let index = index.plus(self.moved);
        let late_ns = self.grid.late_ns(index, at_ns);
        if let Some(phase) = &mut self.one_phase {
            let (late_ns, skipped) = phase.place(index, late_ns, self.grid.group_ns(), self.step_ns);
            if at_ns >= self.last_at_ns {
                self.last_at_ns = at_ns;
                self.skipped = self.skipped.saturating_add_signed(skipped);
                self.skips += u64::from(skipped > 0);
                return late(&[Late { frame, at_ns, index, late_ns, agreed_ns: late_ns }]);
            }
            self.one_phase = None;
            self.start_run(Step { frame, at_ns, ns: late_ns, level_ns: late_ns, kind: StepKind::ClockSet }, step);
        }
        self.push(Late { frame, at_ns, index, late_ns, agreed_ns: late_ns });
        let is_early = self.is_early(at_ns, late_ns);
        self.time_stepped_back |= is_early && at_ns < self.last_at_ns;
        self.not_early = if is_early { 0 } else { self.not_early + 1 };
        if is_early || self.early > 0 {
            if self.early == 0 {
                // The frames that were due before this one do not depend on it.
                self.finalize_first(self.due().saturating_sub(1), late, step);
            }
            self.early += 1;
            if self.early >= self.frames.step && is_early {
                self.step_back(late, step);
            } else if self.not_early == self.frames.not_early {
                (self.early, self.time_stepped_back) = (0, false);
            }
        } else {
            self.arrived.add(late_ns, self.step_ns);
        }
        self.last_at_ns = at_ns;
        // Frames that may be after a step say nothing about those before it.
        let due = self.due();
        if self.early == 0 && due > 0 && (due >= TOGETHER || !self.are_final(due)) {
            self.finalize_first(due, late, step);
        }
    }

    /// The number of waiting frames that enough others follow.
    #[inline(always)]
    fn due(&self) -> usize {
        self.waiting.len().saturating_sub(self.frames.ahead)
    }

    /// True if the frames that are still to come do not change the lateness of the first `frames` waiting ones: the last of
    /// these or a later frame was in the slots when it arrived, so the stream does not step before it.
    #[inline(always)]
    fn are_final(&self, frames: usize) -> bool {
        self.in_slots >= self.given + frames as u64 && self.grid.frames() == 1
    }

    /// True if the frame is earlier by a step than its slot, or than a steady level of the frames before it.
    #[inline(always)]
    fn is_early(&mut self, at_ns: i64, late_ns: i64) -> bool {
        let early = late_ns < self.base_ns.unwrap_or(self.first_base_ns).minus(self.step_ns);
        if self.run_frames >= self.frames.step {
            return early || self.arrived.earliest_ns.is_some_and(|earliest_ns| late_ns < earliest_ns);
        }
        // The first frames may be late, so an earlier one is a step only if the time went back.
        if early && self.run_frames > 0 && (self.early > 0 || at_ns < self.last_at_ns) {
            return true;
        }
        self.run_frames += 1;
        self.first_base_ns = self.first_base_ns.min(late_ns);
        false
    }

    #[inline(always)]
    fn push(&mut self, late: Late) {
        let late_ns = late.late_ns;
        let [a, b, c, d] = self.last_ns;
        let agreed_ns = late_ns.max(a.min(b).min(c.min(d)));
        self.last_ns = [b, c, d, late_ns];
        if self.base_ns.is_some_and(|base_ns| agreed_ns.minus(base_ns) <= self.step_ns) {
            self.in_slots = self.taken + 1;
            if !self.smallest.is_empty() {
                self.smallest.clear();
            }
        } else if !self.smallest.is_empty() {
            push_smallest(&mut self.smallest, self.taken, agreed_ns);
        }
        if self.grid.frames() > 1 {
            let as_next_ns = self.grid.late_ns(late.index.saturating_add(1), late.at_ns);
            push_smallest(&mut self.smallest_as_next, self.taken, as_next_ns);
        }
        self.taken += 1;
        self.waiting.push_back(Late { agreed_ns, ..late });
    }

    /// Starts a run with the frames that were early for long enough, unless these return to the slots of the run: then
    /// the frames before them were late.
    fn step_back(&mut self, late: &mut impl FnMut(&[Late]), step: &mut impl FnMut(Step)) {
        let before = self.waiting.len().saturating_sub(self.early);
        let early_ns = || self.waiting.iter().skip(before).map(|late| late.late_ns);
        let smallest_ns = early_ns().min().unwrap_or(0);
        let slots_ns = self.base_ns.or_else(|| self.waiting.iter().take(before).map(|late| late.late_ns).min());
        let level_ns = self.arrived.smallest_ns().unwrap_or(smallest_ns);
        if let Some(slots_ns) = slots_ns.filter(|_| !self.time_stepped_back) {
            let limit_ns = slots_ns.saturating_sub(self.step_ns).max(self.arrived.earliest_ns.unwrap_or(i64::MIN));
            let agreeing = self.waiting.iter().skip(before).filter(|late| late.agreed_ns < limit_ns).count();
            if agreeing < self.early / AGREEING_PART {
                self.early = 0;
                return;
            }
            let off_ns = smallest_ns.saturating_sub(slots_ns);
            let margin_ns = self.step_ns.max(level_ns.saturating_sub(slots_ns) / 4);
            let returns = (-self.step_ns..=margin_ns).contains(&off_ns);
            if returns || self.base_ns.is_none() && self.starts_late(slots_ns, before) {
                self.arrived.clear();
                self.early = 0;
                self.first_base_ns = self.first_base_ns.min(smallest_ns);
                return;
            }
        }
        let mut after = self.waiting.split_off(before);
        let taken = self.taken;
        // The frames before the step are judged without those after it.
        self.replace_waiting(|_, one| one);
        self.finish(late, step);
        debug_assert_eq!(self.taken + after.len() as u64, taken);
        let ns = smallest_ns.saturating_sub(self.base_ns.unwrap_or(0));
        if let Some((kept, between)) = self.without_frames_between(&after) {
            self.surplus = self.surplus.saturating_add(between.unsigned_abs());
            self.moved = self.moved.saturating_sub(between);
            after = kept;
        } else if let Some(first) = after.front() {
            let kind = if self.time_stepped_back {
                StepKind::ClockSet
            } else if is_slow(level_ns.saturating_sub(smallest_ns), fall_ns(&after), ns.saturating_abs()) {
                StepKind::Drift
            } else {
                StepKind::Phase
            };
            self.start_run(Step { frame: first.frame, at_ns: first.at_ns, ns, level_ns: smallest_ns, kind }, step);
            self.near_blocks = 1;
        }
        for one in after {
            self.arrived.add(one.late_ns, self.step_ns);
            self.push(one);
        }
        (self.run_frames, self.first_base_ns) = (self.frames.step, smallest_ns);
        (self.early, self.time_stepped_back) = (0, false);
    }

    /// Removes numbered frames between the regular ones from these early frames. Each makes the frames after it early by one more
    /// period. Returns the regular frames with their indexes in a stream without them, and the number of removed frames. `None`
    /// if such frames do not explain why the frames are early.
    fn without_frames_between(&self, after: &VecDeque<Late>) -> Option<(VecDeque<Late>, i64)> {
        let (base_ns, period_ns) = (self.base_ns?, self.grid.group_ns());
        if self.grid.frames() > 1 || self.time_stepped_back {
            return None;
        }
        let mut kept = Vec::with_capacity(after.len());
        // Frames between so far, and frames near no slot until the next one that is near one.
        let (mut between, mut off) = (0, Vec::new());
        for one in after {
            let periods = base_ns.saturating_sub(one.late_ns) as f64 / period_ns;
            let early = nearest(periods);
            off.push(one);
            if (periods - periods.round()).abs() <= NEARLY_WHOLE && early >= between {
                let regular = off.pop();
                let more = usize::try_from(early - between).unwrap_or(usize::MAX);
                // One near a slot has the one of the frame before it, or of this one.
                let has_slot = more <= off.len();
                off.truncate(off.len().saturating_sub(more));
                kept.extend(off.drain(..).map(|late| (late, between)));
                between = early;
                kept.extend(regular.filter(|_| has_slot).map(|late| (late, between)));
            }
        }
        kept.extend(off.into_iter().map(|late| (late, between)));
        let moved = |(late, between): (&Late, i64)| {
            let index = late.index.saturating_sub(between);
            Late { index, late_ns: self.grid.late_ns(index, late.at_ns), ..*late }
        };
        let kept: VecDeque<Late> = kept.into_iter().map(moved).collect();
        // After a step by nearly a period, no frame is in its slot.
        let off_ns = || kept.iter().map(|late| late.late_ns.saturating_sub(base_ns));
        let early = off_ns().filter(|&ns| ns < -self.step_ns).count();
        let most_ns = self.step_ns.saturating_add(self.minima.of(kept.len()));
        let is_in_slots = off_ns().any(|ns| (-self.step_ns..=most_ns).contains(&ns))
            && early <= usize::try_from(between).unwrap_or(0);
        // Numbers that a talker skips without time are no frames.
        let missing = after.front()?.index.saturating_sub(self.last_index).saturating_sub(1);
        (between > 0 && is_in_slots && missing < between).then_some((kept, between))
    }

    /// True if fewer than [`Frames::step`] of the first `before` waiting frames are near these slots: the run starts in a
    /// stall, and shows its slots only after it.
    fn starts_late(&self, slots_ns: i64, before: usize) -> bool {
        let most_ns = slots_ns.saturating_add(self.half_period_ns);
        self.waiting.iter().take(before).filter(|late| late.late_ns < most_ns).take(self.frames.step).count()
            < self.frames.step
    }

    /// The next frame starts a run.
    fn start_run(&mut self, found: Step, step: &mut impl FnMut(Step)) {
        (self.base_ns, self.near_blocks, self.early) = (None, NEAR_BLOCKS_MAX, 0);
        self.recent.clear();
        self.arrived.clear();
        self.last_ns = [i64::MIN; AGREEING];
        (self.run_frames, self.first_base_ns) = (0, i64::MAX);
        step(found);
    }

    /// Finalizes the first `frames` waiting ones.
    #[inline(never)]
    fn finalize_first(&mut self, frames: usize, late: &mut impl FnMut(&[Late]), step: &mut impl FnMut(Step)) {
        let mut others = frames;
        if self.grid.frames() == 1 {
            let in_slots = usize::try_from(self.in_slots.saturating_sub(self.given)).unwrap_or(usize::MAX);
            others -= self.finalize_in_slots(frames.min(in_slots), late);
        }
        for _ in 0..others {
            self.finalize(late, step);
        }
    }

    /// Finalizes the first `frames` waiting ones. The last frame that was in the slots when it arrived is one of them, or after
    /// them. Returns their number.
    #[inline(always)]
    fn finalize_in_slots(&mut self, frames: usize, late: &mut impl FnMut(&[Late])) -> usize {
        let Self { waiting, recent, minima, late_for, last_index, .. } = self;
        let (base_ns, step_ns, half_period_ns) = (self.base_ns.unwrap_or(0), self.step_ns, self.half_period_ns);
        let frames = frames.min(waiting.len());
        let (first, second) = waiting.as_mut_slices();
        let in_first = frames.min(first.len());
        for some in [&mut first[..in_first], &mut second[..frames - in_first]] {
            let Some(last) = some.last() else { continue };
            *last_index = last.index;
            recent.add_all(some, step_ns);
            some.iter_mut().for_each(|one| one.late_ns = one.late_ns.minus(base_ns));
            minima.add_all(some, base_ns);
            let late_last = some.iter().rev().take_while(|one| one.late_ns >= half_period_ns).count();
            *late_for = if late_last == some.len() { *late_for + late_last } else { late_last };
            late(some);
        }
        waiting.drain(..frames);
        self.given += frames as u64;
        frames
    }

    /// Finalizes the next frame, assuming that no more frames follow.
    fn finalize(&mut self, late: &mut impl FnMut(&[Late]), step: &mut impl FnMut(Step)) {
        if self.grid.frames() > 1 {
            self.follow_groups(step);
        }
        let Some(mut one) = self.waiting.pop_front() else { return };
        if self.in_slots <= self.given {
            self.find_step(one, step);
        }
        self.recent.add(one.late_ns, self.step_ns);
        self.smallest_as_next.pop_front_if(|&mut (position, _)| position == self.given);
        self.given += 1;
        let base_ns = self.base_ns.unwrap_or(0);
        one.late_ns = one.late_ns.saturating_sub(base_ns);
        self.minima.add(one.agreed_ns.saturating_sub(base_ns));
        self.last_index = one.index;
        self.late_for = if one.late_ns >= self.half_period_ns { self.late_for + 1 } else { 0 };
        late(&[one]);
    }

    /// Finds out whether the run starts or the stream steps at this frame, if neither it nor one of the waiting ones was in the
    /// slots when it arrived.
    #[cold]
    fn find_step(&mut self, one: Late, step: &mut impl FnMut(Step)) {
        if self.smallest.is_empty() {
            for (position, late) in (self.given..).zip(std::iter::once(&one).chain(&self.waiting)) {
                push_smallest(&mut self.smallest, position, late.agreed_ns);
            }
        }
        let Some(&(first, smallest_ns)) = self.smallest.front() else { return };
        if self.base_ns.is_none_or(|base_ns| smallest_ns.saturating_sub(base_ns) > self.step_ns) {
            self.rebase(one, smallest_ns, step);
        }
        if first == self.given {
            self.smallest.pop_front();
        }
    }

    /// Moves the waiting frames on in their groups if the talker left out frames, or if a run starts inside a group.
    fn follow_groups(&mut self, step: &mut impl FnMut(Step)) {
        let Some(base_ns) = self.base_ns else { return self.begin_group() };
        let earliest_ns = base_ns.saturating_sub(self.step_ns);
        let are_next = |lateness: &Self| {
            lateness.waiting.len() >= lateness.frames.step
                && lateness.smallest_as_next.front().is_some_and(|&(_, smallest_ns)| smallest_ns >= earliest_ns)
        };
        if are_next(self) {
            let level_ns = self.waiting.iter().map(|late| late.late_ns).min().unwrap_or(base_ns);
            let ns = level_ns.saturating_sub(base_ns);
            if is_silence(ns, self.grid.group_ns()) {
                return self.begin_after_silence(ns, level_ns, step);
            }
        }
        while are_next(self) {
            self.move_on(1);
            (self.skipped, self.skips) = (self.skipped + 1, self.skips + 1);
        }
    }

    /// Moves the waiting frames, which begin a run, on to their places in a group.
    fn begin_group(&mut self) {
        let group = self.grid.frames().cast_signed();
        let moved = (0..group).min_by_key(|&moved| self.spread_ns(moved)).unwrap_or(0);
        if moved > 0 {
            self.move_on(moved);
        }
    }

    /// Starts a run of groups with the waiting frames, which are so many ns later after a silence.
    fn begin_after_silence(&mut self, ns: i64, level_ns: i64, step: &mut impl FnMut(Step)) {
        let Some(&Late { frame, at_ns, .. }) = self.waiting.front() else { return };
        self.start_run(Step { frame, at_ns, ns, level_ns, kind: StepKind::Silence }, step);
        self.replace_waiting(|_, one| one);
        self.begin_group();
        let smallest_ns = self.waiting.iter().map(|late| late.late_ns).min().unwrap_or(level_ns);
        (self.run_frames, self.first_base_ns) = (self.frames.step, smallest_ns);
        self.waiting.iter().for_each(|late| self.arrived.add(late.late_ns, self.step_ns));
    }

    /// The sum of the latenesses of the next frames against their smallest one, ns, if these are so many frames further.
    fn spread_ns(&self, moved: i64) -> i64 {
        let late_ns = |one: &Late| self.grid.late_ns(one.index.saturating_add(moved), one.at_ns);
        let next = || self.waiting.iter().take(self.frames.step).map(late_ns);
        let smallest_ns = next().min().unwrap_or(0);
        next().fold(0, |sum_ns: i64, late_ns| sum_ns.saturating_add(late_ns.saturating_sub(smallest_ns)))
    }

    /// Moves the waiting frames, and all later ones, on by so many frames.
    fn move_on(&mut self, frames: i64) {
        self.moved = self.moved.saturating_add(frames);
        // Compared with the lateness of the frames before, later ones would seem to be early.
        self.arrived.clear();
        self.replace_waiting(|grid, one| {
            let index = one.index.saturating_add(frames);
            Late { index, late_ns: grid.late_ns(index, one.at_ns), ..one }
        });
    }

    /// Replaces each waiting frame, and what is known about the smallest lateness.
    fn replace_waiting(&mut self, replace: impl Fn(&Grid, Late) -> Late) {
        let waiting = std::mem::take(&mut self.waiting);
        (self.smallest, self.smallest_as_next) = (VecDeque::new(), VecDeque::new());
        self.in_slots = 0;
        (self.taken, self.last_ns) = (self.given, [i64::MIN; AGREEING]);
        for one in waiting {
            let replaced = replace(&self.grid, one);
            self.push(replaced);
        }
    }

    /// Finds out whether the run starts or the stream steps at this frame, if it and all later ones are at least
    /// `smallest_ns` behind the grid.
    fn rebase(&mut self, one: Late, smallest_ns: i64, step: &mut impl FnMut(Step)) {
        let period_ns = self.grid.group_ns();
        let smallest_ns = if self.base_ns.is_none() { self.usual_smallest_ns(one) } else { smallest_ns };
        let change_ns = smallest_ns.saturating_sub(self.base_ns.unwrap_or(0));
        let slots = nearest(change_ns as f64 / period_ns);
        let whole_ns = nearest(slots as f64 * period_ns);
        let rest_ns = change_ns.saturating_sub(whole_ns).saturating_abs();
        let Some(base_ns) = self.base_ns else {
            // The first frame of a run, whose slots are those of the grid or its own.
            self.base_ns = Some(if change_ns.saturating_abs() <= self.same_ns { 0 } else { change_ns });
            return;
        };
        let error_ns = self.step_ns.saturating_add(self.minima.of(self.frames_at(smallest_ns)));
        let is_whole =
            rest_ns as f64 <= (error_ns as f64).clamp(period_ns * NEARLY_WHOLE, period_ns * NEARLY_WHOLE_MAX);
        let before_ns = self.recent.smallest_ns().unwrap_or(base_ns);
        let is_skip = slots > 0
            && is_whole
            && one.index > self.last_index
            && smallest_ns.saturating_sub(before_ns) as f64 >= period_ns / 2.0;
        let kind = if !self.is_settled(one, smallest_ns) {
            return;
        } else if is_silence(change_ns, period_ns) {
            StepKind::Silence
        } else if is_skip {
            self.base_ns = Some(base_ns.saturating_add(whole_ns));
            self.skipped = self.skipped.saturating_add(slots.unsigned_abs());
            self.skips += 1;
            self.recent.shift(whole_ns);
            return;
        } else if change_ns <= error_ns || !self.lasts(smallest_ns, error_ns) {
            return;
        } else if is_slow(self.jump_ns(before_ns), self.recent.rise_ns().max(self.rise_ns()), change_ns) {
            StepKind::Drift
        } else {
            StepKind::Phase
        };
        self.base_ns = Some(smallest_ns);
        if kind != StepKind::Drift {
            self.recent.clear();
        }
        step(Step { frame: one.frame, at_ns: one.at_ns, ns: change_ns, level_ns: smallest_ns, kind });
    }

    /// The smallest lateness of this frame and the waiting ones that enough others are near to: a few early frames do not
    /// move the slots of a run. Neither do early frames in a row, if there are fewer than [`Frames::step`].
    fn usual_smallest_ns(&self, one: Late) -> i64 {
        let mut all_ns: Vec<i64> = std::iter::once(&one).chain(&self.waiting).map(|late| late.agreed_ns).collect();
        // A run that starts with early frames has their slots: its clock may have been set after them.
        let first_ns = all_ns.iter().take(self.frames.not_early).min().copied().unwrap_or(0);
        let blocks = all_ns.chunks_exact(self.frames.step);
        let mut minima_ns: Vec<i64> = blocks.filter_map(|block| block.iter().min().copied()).collect();
        all_ns.sort_unstable();
        let median_ns = all_ns[all_ns.len() / 2];
        minima_ns.sort_unstable();
        let blocks = (minima_ns.len() / NEAR_PART_OF_BLOCKS).clamp(1, self.near_blocks);
        let earliest_ns = first_with_near(&minima_ns, blocks, median_ns).unwrap_or(all_ns[0]).min(first_ns);
        let usual_ns = &all_ns[all_ns.partition_point(|&ns| ns < earliest_ns)..];
        let near = (all_ns.len() / NEAR_PART).clamp(1, self.frames.near);
        first_with_near(usual_ns, near, median_ns).unwrap_or(earliest_ns)
    }

    /// The number of the next frames until all later ones are later than this by a step.
    fn frames_at(&self, smallest_ns: i64) -> usize {
        let later = self.smallest.partition_point(|&(_, late_ns)| late_ns <= smallest_ns.saturating_add(self.step_ns));
        let position = self.smallest.get(later.saturating_sub(1)).map_or(0, |&(position, _)| position);
        usize::try_from(position.saturating_sub(self.given)).unwrap_or(usize::MAX)
    }

    /// True if more frames follow the first one at this lateness than were later before it. In a burst at the end of the
    /// stream, most frames are later than the last one.
    fn is_settled(&self, one: Late, smallest_ns: i64) -> bool {
        if self.waiting.len() >= self.frames.ahead {
            return true;
        }
        let most_ns = smallest_ns.saturating_add(self.half_period_ns);
        let next = || std::iter::once(&one).chain(&self.waiting);
        let later = next().take_while(|late| late.late_ns >= most_ns).count();
        let all = self.late_for + later;
        all == 0 || next().count() - later > all.min(self.frames.step)
    }

    /// The smallest lateness of the next [`Frames::step`] less that of the ones before, ns.
    fn jump_ns(&self, before_ns: i64) -> i64 {
        let next_ns = self.waiting.iter().take(self.frames.step).map(|late| late.late_ns).min();
        next_ns.map_or(0, |next_ns| next_ns.saturating_sub(before_ns))
    }

    /// True if the following frames stay at this lateness for [`Frames::step`], or move away as slowly as a slewed clock.
    fn lasts(&self, smallest_ns: i64, error_ns: i64) -> bool {
        let after = self.given + self.frames.step as u64;
        let slewed_ns = nearest(self.frames.step as f64 * self.grid.period_ns * SLEW_PPM_MAX / 1e6);
        let most_ns = smallest_ns.saturating_add(error_ns).saturating_add(slewed_ns);
        let later = self.smallest.get(self.smallest.partition_point(|&(position, _)| position < after));
        later.is_some_and(|&(_, later_ns)| later_ns <= most_ns)
    }

    /// The smallest lateness of the second [`Frames::step`] of the following frames less that of the first, ns.
    fn rise_ns(&self) -> i64 {
        let smallest_ns = |skip| self.waiting.iter().skip(skip).take(self.frames.step).map(|late| late.late_ns).min();
        smallest_ns(0).zip(smallest_ns(self.frames.step)).map_or(0, |(first, second)| second.saturating_sub(first))
    }

    /// Ends the stream.
    pub(crate) fn end(&mut self, late: &mut impl FnMut(&[Late]), step: &mut impl FnMut(Step)) {
        // Few frames after the time went back are no early frames. Enough others that stay at one level are the start of a step.
        if self.early > 0 && self.time_stepped_back || self.early > self.frames.near && self.early_stay() {
            self.step_back(late, step);
        }
        self.finish(late, step);
    }

    /// True if at least half of the early frames are about as early as the earliest one. Frames that are sent at once, before
    /// their slots, are earlier and earlier.
    fn early_stay(&self) -> bool {
        let early_ns = || self.waiting.iter().rev().take(self.early).map(|late| late.late_ns);
        let smallest_ns = early_ns().min().unwrap_or(0);
        let most_ns =
            smallest_ns.saturating_add(self.step_ns).saturating_add(self.minima.of(self.early.max(MINIMA_OF)));
        2 * early_ns().filter(|&late_ns| late_ns <= most_ns).count() >= self.early
    }

    /// Finalizes all waiting frames, at the end of the stream or of a part of it.
    fn finish(&mut self, late: &mut impl FnMut(&[Late]), step: &mut impl FnMut(Step)) {
        while !self.waiting.is_empty() {
            self.finalize_first(self.waiting.len(), late, step);
        }
    }
}

/// True if a step of so many ns to later slots is a silence: the talker may have paused, or the clock of the capture was set.
pub(crate) fn is_silence(step_ns: i64, period_ns: f64) -> bool {
    step_ns >= SET_NS.max(nearest(period_ns * 1.5))
}

/// True if a step of `step_ns` was slow: only `jump_ns` of it were between the [`Frames::step`] before and after it, or the
/// stream moved on by a large part of it within the next frames.
fn is_slow(jump_ns: i64, moved_ns: i64, step_ns: i64) -> bool {
    (jump_ns as f64) < step_ns as f64 * SUDDEN || moved_ns >= step_ns / 4
}

/// How far the second half of these frames is earlier than the first, ns.
fn fall_ns(frames: &VecDeque<Late>) -> i64 {
    let half = frames.len() / 2;
    let smallest_ns = |part: &mut dyn Iterator<Item = &Late>| part.take(half).map(|late| late.late_ns).min();
    let (first, last) = (smallest_ns(&mut frames.iter()), smallest_ns(&mut frames.iter().rev()));
    first.zip(last).map_or(0, |(first, last)| first.saturating_sub(last))
}

/// The first of these ascending values that so many, with itself, are near to.
fn first_with_near(values_ns: &[i64], near: usize, median_ns: i64) -> Option<i64> {
    let are_near = |values: &&[i64]| {
        let (first_ns, last_ns) = (values[0], values[values.len() - 1]);
        last_ns <= first_ns.saturating_add(median_ns.saturating_sub(first_ns) / NEAR_OF_MEDIAN)
    };
    values_ns.windows(near).find(are_near).map(|values| values[0])
}

/// Adds a value to a queue of values that are below all later ones.
#[inline]
fn push_smallest(queue: &mut VecDeque<(u64, i64)>, position: u64, value_ns: i64) {
    while queue.back().is_some_and(|&(_, smallest_ns)| smallest_ns >= value_ns) {
        queue.pop_back();
    }
    queue.push_back((position, value_ns));
}
