//! The time at which each frame of a stream is due, while the stream is read.

use record::saturating::Saturating;

use crate::convert::{floor, nearest, signed};
use crate::lateness::SET_NS;

/// A new level of lateness is adopted after this many frames at that level.
const BLOCK: u32 = 64;
/// The possible relative error of the period before it is fitted.
const PERIOD_ERROR: f64 = 500e-6;
/// The smallest error of a fitted period: clocks are not exactly constant.
const PERIOD_ERROR_MIN: f64 = 5e-6;
/// A frame is near a slot if it is this part of the period behind it: slots follow the earliest frames.
const NEAR_SLOT: std::ops::Range<f64> = -0.125..0.375;
/// Fewer missing frames than this are no pause of the talker, even if they take longer than [`SET_NS`].
const SLOTS_MISSING: f64 = 16.0;
/// Stamps with steps of so many periods are coarse. Those of a regular stream can be multiples of one period, too.
const COARSE: f64 = 2.0;
/// A talker that sends frames after this part of the period has another one, or a burst after a stall.
const QUICK: f64 = 7.0 / 8.0;
/// Limit of a number of slots, so that sums of few numbers do not overflow.
const SLOTS_MAX: f64 = 1e15;

/// A schedule: the frame with index `n` is due at `base_ns + n * period_ns`. The base follows the earliest frames.
#[derive(Debug, Clone)]
pub(crate) struct Schedule {
    pub(crate) period_ns: f64,
    /// The possible relative error of the period.
    pub(crate) period_error: f64,
    /// Frames of a group, or with coarse stamps, are up to this many slots before those of a regular stream.
    pub(crate) uneven: i64,
    /// Any slot of the grid, if it is known, ns.
    origin_ns: Option<f64>,
    base_ns: Option<f64>,
    /// The base that follows from the newest frame, ns.
    newest_base_ns: f64,
    /// The index of the newest frame.
    newest: i64,
    /// Number of frames in the block, and the smallest and largest base that follows from each.
    frames: u32,
    smallest_ns: f64,
    largest_ns: f64,
    /// The base that followed from the last frame of the block before, ns.
    before_ns: f64,
    /// The mean interval of the frames of the block before, ns.
    pace_ns: f64,
}

/// The slots by which a stamp can be earlier than its frame because the clock is so coarse that several frames have one stamp.
pub(crate) fn coarse_slots(resolution_ns: u64, period_ns: f64) -> f64 {
    let slots = resolution_ns as f64 / period_ns;
    if slots >= COARSE { slots } else { 0.0 }
}

impl Schedule {
    /// A schedule that starts at the first frame, or at the slot nearest to it if the grid is known. The stream sends
    /// frames in groups of `group`. The period is not fitted yet.
    pub(crate) fn new(period_ns: f64, origin_ns: Option<f64>, group: usize) -> Self {
        Self {
            period_ns,
            period_error: PERIOD_ERROR,
            uneven: signed(group) - 1,
            origin_ns,
            base_ns: None,
            newest_base_ns: 0.0,
            newest: 0,
            frames: 0,
            smallest_ns: f64::INFINITY,
            largest_ns: f64::NEG_INFINITY,
            before_ns: f64::NAN,
            pace_ns: period_ns,
        }
    }

    /// The schedule with a period that was fitted, except for this relative error.
    pub(crate) fn with_period_error(self, error: f64) -> Self {
        Self { period_error: error.clamp(PERIOD_ERROR_MIN, PERIOD_ERROR), ..self }
    }

    /// The schedule of frames with stamps of this resolution.
    pub(crate) fn with_resolution(self, resolution_ns: u64) -> Self {
        Self { uneven: self.uneven.max(floor(coarse_slots(resolution_ns, self.period_ns))), ..self }
    }

    /// Starts again with the next frame.
    pub(crate) fn restart(&mut self) {
        self.base_ns = None;
    }

    /// Adds a frame that is the newest of the stream.
    #[inline(always)]
    pub(crate) fn add(&mut self, index: i64, at_ns: i64) {
        self.newest = index;
        let base_ns = at_ns as f64 - index as f64 * self.period_ns;
        self.newest_base_ns = base_ns;
        if self.base_ns.is_none() {
            self.base_ns = Some(base_ns - self.origin_ns.map_or(0.0, |origin_ns| self.phase(at_ns, origin_ns)));
            (self.frames, self.smallest_ns, self.largest_ns) = (0, base_ns, base_ns);
        }
        // Quicker than `f64::min` and `f64::max`, which check for NaN.
        self.smallest_ns = if base_ns < self.smallest_ns { base_ns } else { self.smallest_ns };
        self.largest_ns = if base_ns > self.largest_ns { base_ns } else { self.largest_ns };
        self.frames += 1;
        if self.frames == BLOCK {
            self.end_block();
        }
    }

    /// Replaces the period. The newest frames keep their slots.
    pub(crate) fn set_period(&mut self, period_ns: f64) {
        let index = self.newest as f64;
        let moved_ns = index * (self.period_ns - period_ns);
        self.base_ns = self.base_ns.map(|base_ns| base_ns + moved_ns);
        self.newest_base_ns += moved_ns;
        self.before_ns += moved_ns;
        self.period_ns = period_ns;
        (self.frames, self.smallest_ns, self.largest_ns) = (0, f64::INFINITY, f64::NEG_INFINITY);
    }

    /// The time of a frame after its slot; a frame is rarely early, so up to a quarter of the period before a slot
    /// belongs to that slot.
    fn phase(&self, at_ns: i64, origin_ns: f64) -> f64 {
        (at_ns as f64 - origin_ns + self.period_ns / 4.0).rem_euclid(self.period_ns) - self.period_ns / 4.0
    }

    /// Follows the earliest frame. A later base is adopted only if all frames of the block agree, because frames are late
    /// in a stall and in the burst after it.
    fn end_block(&mut self) {
        let steady = self.largest_ns - self.smallest_ns < self.period_ns / 2.0;
        if steady || self.base_ns > Some(self.smallest_ns) {
            self.base_ns = Some(self.smallest_ns);
        }
        let pace_ns = self.period_ns + (self.newest_base_ns - self.before_ns) / f64::from(BLOCK);
        self.pace_ns = if pace_ns > 0.0 { pace_ns } else { self.period_ns };
        self.before_ns = self.newest_base_ns;
        (self.frames, self.smallest_ns, self.largest_ns) = (0, f64::INFINITY, f64::NEG_INFINITY);
    }

    /// Whole slots that a frame at `at_ns` is behind its own, if it has this index.
    #[inline]
    pub(crate) fn slots_late(&self, index: i64, at_ns: i64) -> i64 {
        self.slots(self.late_ns(index, at_ns))
    }

    /// The same if the frame's slot follows from the newest frame. After a pause, in a stall and in the burst after it,
    /// frames continue from the newest one and not from the earliest ones.
    #[inline]
    pub(crate) fn slots_after_newest(&self, index: i64, at_ns: i64) -> i64 {
        self.slots(self.late_after_newest_ns(index, at_ns))
    }

    /// The same if a slot takes this time.
    pub(crate) fn slots_after_newest_of(&self, index: i64, at_ns: i64, slot_ns: f64) -> f64 {
        (self.late_after_newest_ns(index, at_ns) + self.period_ns) / slot_ns - 1.0
    }

    /// True if a frame at `at_ns` was captured in the slot after the newest one, or before, also if the talker sends frames more
    /// quickly than before.
    pub(crate) fn is_soon(&self, index: i64, at_ns: i64) -> bool {
        let is_quick = self.pace_ns < QUICK * self.period_ns;
        self.slots_after_newest(index, at_ns) <= 0
            && !(is_quick && self.slots_after_newest_of(index, at_ns, self.pace_ns) > 0.5)
    }

    /// True if a frame at `at_ns` is less than so many slots behind its own, which follows from the newest frame.
    #[inline]
    pub(crate) fn follows_within(&self, index: i64, at_ns: i64, slots: f64) -> bool {
        self.late_after_newest_ns(index, at_ns) < slots * self.period_ns
    }

    /// True if a frame at `at_ns` was captured more than a period before the newest one. The next frame has this index.
    #[inline]
    pub(crate) fn goes_back(&self, index: i64, at_ns: i64) -> bool {
        self.late_after_newest_ns(index, at_ns) < -2.0 * self.period_ns
    }

    /// True if a time is at least half a period before another one.
    #[inline]
    pub(crate) fn is_before(&self, at_ns: i64, other_ns: i64) -> bool {
        other_ns.minus(at_ns) as f64 >= self.period_ns / 2.0
    }

    /// The slots from one time to another.
    pub(crate) fn slots_between(&self, from_ns: i64, to_ns: i64) -> i64 {
        self.slots(to_ns.saturating_sub(from_ns) as f64)
    }

    #[inline]
    fn late_after_newest_ns(&self, index: i64, at_ns: i64) -> f64 {
        at_ns as f64 - self.newest_base_ns - index as f64 * self.period_ns
    }

    #[inline]
    fn slots(&self, late_ns: f64) -> i64 {
        nearest((late_ns / self.period_ns).clamp(-SLOTS_MAX, SLOTS_MAX))
    }

    /// True if a frame at `at_ns` is more than this part of the period before its slot, if it has this index.
    #[inline]
    pub(crate) fn is_early(&self, index: i64, at_ns: i64, part: f64) -> bool {
        self.late_ns(index, at_ns) < -self.period_ns * part
    }

    /// True if a frame at `at_ns` is near its slot, if it has this index.
    #[inline]
    pub(crate) fn is_near(&self, index: i64, at_ns: i64) -> bool {
        NEAR_SLOT.contains(&(self.late_ns(index, at_ns) / self.period_ns))
    }

    /// Whole slots that a frame at `at_ns` is behind its own, if it has this index; 0 if it is not near a slot, or so late
    /// that the clock of the capture may have been set.
    #[inline]
    pub(crate) fn whole_slots_late(&self, index: i64, at_ns: i64) -> u64 {
        let slots = self.late_ns(index, at_ns) / self.period_ns;
        let whole = slots.round();
        let is_near = NEAR_SLOT.contains(&(slots - whole));
        let is_long = whole * self.period_ns >= (SET_NS as f64).max(SLOTS_MISSING * self.period_ns);
        if self.base_ns.is_some() && is_near && !is_long { nearest(whole).cast_unsigned() } else { 0 }
    }

    #[inline]
    fn late_ns(&self, index: i64, at_ns: i64) -> f64 {
        at_ns as f64 - self.base_ns.unwrap_or(0.0) - index as f64 * self.period_ns
    }
}
