//! Computes the lateness of each frame relative to its slot.
//!
//! The slot follows from the frame's index in the stream, which counts lost frames, so the frame after a loss is not
//! late. A talker that skips slots continues later by whole periods and stays there, whereas a late frame is followed
//! by frames that catch up. The following frames therefore decide: their minimum lateness, in whole periods, is the
//! number of skipped slots. Two consecutive frames must agree, so that one reordered frame has no effect.

use std::collections::VecDeque;

use crate::convert::nearest;
use crate::fit::Grid;

/// Number of following frames taken into account: half a second of class A.
pub(crate) const AHEAD: usize = 4096;

/// A frame with its lateness.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Late {
    /// The frame's number in the file.
    pub(crate) frame: u64,
    /// When it was captured, ns after the stream's first frame.
    pub(crate) at_ns: i64,
    /// Lateness relative to its slot, ns; negative if early.
    pub(crate) late_ns: i64,
}

/// Frames whose lateness is not final.
pub(crate) struct Lateness {
    grid: Grid,
    /// The slot of the first frame.
    first_slot: Option<i64>,
    /// These frames, with their lateness if no slots were skipped.
    waiting: VecDeque<Late>,
    /// Lateness of the previous frame.
    last_ns: Option<i64>,
    /// A monotonic queue: position and lateness (the larger of two consecutive frames) of frames below all later ones.
    smallest: VecDeque<(u64, i64)>,
    taken: u64,
    given: u64,
    skip_offset: Option<i64>,
    /// Slots that the talker skipped.
    pub(crate) skipped: u64,
}

impl Lateness {
    pub(crate) fn new(grid: Grid) -> Self {
        Self {
            grid,
            first_slot: None,
            last_ns: None,
            waiting: VecDeque::with_capacity(AHEAD + 1),
            smallest: VecDeque::new(),
            taken: 0,
            given: 0,
            skip_offset: None,
            skipped: 0,
        }
    }

    /// Adds the frame at `index` of the stream; returns the oldest frame once its lateness is final.
    #[inline]
    pub(crate) fn add(&mut self, frame: u64, at_ns: i64, index: u64) -> Option<Late> {
        let first_slot = *self.first_slot.get_or_insert_with(|| self.grid.nearest(at_ns));
        let late_ns = self.grid.late_ns(first_slot.wrapping_add(index.cast_signed()), at_ns);
        let agreed_ns = late_ns.max(self.last_ns.replace(late_ns).unwrap_or(late_ns));
        while self.smallest.back().is_some_and(|&(_, smallest_ns)| smallest_ns >= agreed_ns) {
            self.smallest.pop_back();
        }
        self.smallest.push_back((self.taken, agreed_ns));
        self.taken += 1;
        self.waiting.push_back(Late { frame, at_ns, late_ns });
        if self.waiting.len() > AHEAD { self.finalize() } else { None }
    }

    /// Finalizes the next frame, assuming that no more frames follow.
    pub(crate) fn finalize(&mut self) -> Option<Late> {
        let late = self.waiting.pop_front()?;
        let &(_, smallest_ns) = self.smallest.front()?;
        let skipped_slots = nearest(smallest_ns as f64 / self.grid.period_ns);
        let before = self.skip_offset.replace(skipped_slots).unwrap_or(skipped_slots);
        self.skipped = self.skipped.saturating_add(skipped_slots.saturating_sub(before).max(0).cast_unsigned());
        self.given += 1;
        while self.smallest.front().is_some_and(|&(count, _)| count < self.given) {
            self.smallest.pop_front();
        }
        let slots_ns = nearest(skipped_slots as f64 * self.grid.period_ns);
        Some(Late { late_ns: late.late_ns.saturating_sub(slots_ns), ..late })
    }
}
