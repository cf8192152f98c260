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
    /// The numbers that were expected at the last duplicates before the row, oldest first.
    before: VecDeque<u64>,
}

impl Again {
    /// So many numbers are between the numbers of two frames of the row at most, because frames can be lost.
    const APART: u64 = 4;
    /// With so many duplicates among so many numbers before the row, it consists of copies.
    const COPIES: usize = 8;
    const AMONG: u64 = 64;

    /// Adds a frame. Returns the row if it is that of a restart.
    pub(crate) fn add(&mut self, one: OfRun, expected: u64, schedule: &Schedule) -> Option<Vec<OfRun>> {
        let continues = |last: &OfRun| {
            let is_next = (1..=Self::APART).contains(&one.seq.saturating_sub(last.seq));
            is_next && one.at_ns > last.at_ns && self.expected == expected
        };
        if !self.frames.last().is_some_and(continues) {
            self.before.extend(self.frames.drain(..).map(|_| self.expected));
            self.before.drain(..self.before.len().saturating_sub(Self::COPIES));
        }
        self.expected = expected;
        self.frames.push(one);
        let are_copies = self.before.len() == Self::COPIES
            && self.before.front().is_some_and(|&oldest| expected.saturating_sub(oldest) <= Self::AMONG);
        let keeps_time = |first: &OfRun| {
            let slots = schedule.slots_between(first.at_ns, one.at_ns);
            (slots - (one.seq - first.seq).cast_signed()).abs() <= APART_MAX + schedule.uneven
        };
        let is_restart = self.frames.len() >= RESTARTED && !are_copies && self.frames.first().is_some_and(keeps_time);
        is_restart.then(|| std::mem::take(&mut self.frames))
    }
}
