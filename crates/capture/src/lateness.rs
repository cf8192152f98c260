//! How late each frame is against its own slot.
//!
//! A frame's slot follows from its place in the stream, lost frames counted: the frame after a loss is not late for it. A
//! talker that left slots out goes on later by whole periods, and stays there; a frame that was late is followed by others
//! that catch up. What is to come therefore decides: the smallest lateness of the frames ahead, in whole periods, is what
//! the talker left out. Two frames in a row must agree on it, so that one that overtook others does not decide.

use std::collections::VecDeque;

use crate::fit::Grid;

/// Frames ahead that are looked at: half a second of class A.
pub(crate) const AHEAD: usize = 4096;

/// A frame whose lateness is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Late {
    /// The frame's number in the file.
    pub(crate) frame: u64,
    /// When it was seen, ns after the stream's first.
    pub(crate) at_ns: i64,
    /// How late for its slot, ns; negative where it was before it.
    pub(crate) late_ns: i64,
}

/// Frames on their way to a decision.
pub(crate) struct Lateness {
    grid: Grid,
    /// The slot of the first frame.
    first_slot: Option<i64>,
    /// Their lateness as if no slot had been left out.
    waiting: VecDeque<Late>,
    /// Lateness of the frame before.
    last_ns: Option<i64>,
    /// Count, and lateness of the later of two frames in a row, of those that are smaller than all behind them.
    smallest: VecDeque<(u64, i64)>,
    taken: u64,
    given: u64,
    left_out: Option<i64>,
    /// Slots that the talker left out.
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
            left_out: None,
            skipped: 0,
        }
    }

    /// Takes in the frame at `place` of the stream; answers one that is decided upon.
    #[inline]
    pub(crate) fn take_in(&mut self, frame: u64, at_ns: i64, place: u64) -> Option<Late> {
        let first_slot = *self.first_slot.get_or_insert_with(|| self.grid.nearest(at_ns));
        let late_ns = self.grid.behind_ns(first_slot.wrapping_add(place.cast_signed()), at_ns);
        let agreed_ns = late_ns.max(self.last_ns.replace(late_ns).unwrap_or(late_ns));
        while self.smallest.back().is_some_and(|&(_, smallest_ns)| smallest_ns >= agreed_ns) {
            self.smallest.pop_back();
        }
        self.smallest.push_back((self.taken, agreed_ns));
        self.taken += 1;
        self.waiting.push_back(Late { frame, at_ns, late_ns });
        if self.waiting.len() > AHEAD { self.decide() } else { None }
    }

    /// Decides upon the next frame, with nothing more to come.
    pub(crate) fn decide(&mut self) -> Option<Late> {
        let late = self.waiting.pop_front()?;
        let &(_, smallest_ns) = self.smallest.front()?;
        let left_out = (smallest_ns as f64 / self.grid.period_ns).round() as i64;
        let before = self.left_out.replace(left_out).unwrap_or(left_out);
        self.skipped = self.skipped.saturating_add(left_out.saturating_sub(before).max(0) as u64);
        self.given += 1;
        while self.smallest.front().is_some_and(|&(count, _)| count < self.given) {
            self.smallest.pop_front();
        }
        let slots_ns = (left_out as f64 * self.grid.period_ns).round() as i64;
        Some(Late { late_ns: late.late_ns.saturating_sub(slots_ns), ..late })
    }
}
