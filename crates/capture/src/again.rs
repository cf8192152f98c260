//! Distinguishes copies of frames from those of a talker that restarted with a number a little behind the newest one.

use std::collections::VecDeque;

use crate::schedule::Schedule;
use crate::sequence::{APART_MAX, OfRun, RESTARTED};

/// Frames whose numbers were seen before, in a row. A talker that restarts with a number a little behind the newest one sends
/// them, one after the other in its period. Copies of frames, such as those of a second path, come between new frames.
#[derive(Debug, Default)]
pub(crate) struct Again {
    /// The frames of the row, and the number that was expected before each: a new frame between them changes it.
    frames: Vec<OfRun>,
    expected: u64,
    /// The duplicates before the row.
    before: Repeated,
}

/// The numbers that were expected at the last duplicates, oldest first.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Repeated(VecDeque<u64>);

impl Repeated {
    /// So many duplicates among so many numbers are copies.
    const COPIES: usize = 8;
    const AMONG: u64 = 64;

    /// Adds a duplicate in place of this number.
    pub(crate) fn add(&mut self, expected: u64) {
        self.0.push_back(expected);
        self.0.drain(..self.0.len().saturating_sub(Self::COPIES));
    }

    /// True if most frames come again, so that another one in place of this number is a copy, too.
    pub(crate) fn are_copies(&self, expected: u64) -> bool {
        self.0.len() == Self::COPIES
            && self.0.front().is_some_and(|&oldest| expected.saturating_sub(oldest) <= Self::AMONG)
    }
}

impl Again {
    /// So many numbers are between the numbers of two frames of the row at most, because frames can be lost.
    const APART: u64 = 4;

    /// Adds a frame. Returns the row if it is that of a restart.
    pub(crate) fn add(&mut self, one: OfRun, expected: u64, schedule: &Schedule) -> Option<Vec<OfRun>> {
        let continues = |last: &OfRun| {
            let is_next = (1..=Self::APART).contains(&one.seq.saturating_sub(last.seq));
            is_next && one.at_ns > last.at_ns && self.expected == expected
        };
        if !self.frames.last().is_some_and(continues) {
            self.frames.drain(..).for_each(|_| self.before.add(self.expected));
        }
        self.expected = expected;
        self.frames.push(one);
        let are_copies = self.before.are_copies(expected);
        let keeps_time = |first: &OfRun| {
            let slots = schedule.slots_between(first.at_ns, one.at_ns);
            (slots - (one.seq - first.seq).cast_signed()).abs() <= APART_MAX + schedule.uneven
        };
        let is_restart = self.frames.len() >= RESTARTED && !are_copies && self.frames.first().is_some_and(keeps_time);
        is_restart.then(|| std::mem::take(&mut self.frames))
    }
}
