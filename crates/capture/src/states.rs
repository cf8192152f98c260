//! Extends numbers that start again with each state of the talker (GOOSE: sqNum within stNum) to numbers of all its frames.
//!
//! The first frame of a state has number 0. A frame with a larger one follows lost frames, and a state that was not seen had
//! at least one frame. The last frames of a state can be lost without a sign. After 4,294,967,295, both numbers continue with
//! 1: 0 is reserved for the first frame of a state (IEC 61850-8-1, 18.1.2.5).

use frames::Count;

use crate::counter::{Extended, FIRST};
use crate::sequence::Contained;

/// Number of values from 1 to the largest one, after which states and their numbers continue with 1.
const VALUES: i64 = u32::MAX as i64;

/// Counts the frames of a stream by their states.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct States {
    newest: Option<Position>,
    /// The last frame of the state before that of the newest one.
    before: Option<Position>,
    changes: u64,
}

/// A frame: its state, its number in it, and the number of all frames.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Position {
    state: u32,
    number: u32,
    seq: u64,
}

impl States {
    /// The counter of a stream with these first frames; `None` if they have no states.
    pub(crate) fn learn(frames: &[(Contained, i64)]) -> Option<Self> {
        let has_state =
            |(number, _): &(Contained, i64)| matches!(number, Contained::Candidate(count) if count.state.is_some());
        frames.first().filter(|first| has_state(first)).map(|_| Self::default())
    }

    /// True if a new state was seen.
    pub(crate) fn changes_state(&self) -> bool {
        self.changes > 0
    }

    /// The number of a frame among all frames of its run; `None` if the talker started again.
    pub(crate) fn extend(&mut self, count: Count) -> Option<Extended> {
        let Some(newest) = self.newest else { return Some(Extended { seq: self.begin(count), distance: 0 }) };
        let state = count.state?.number;
        let seq = self.position(newest, state, count.value)?;
        if seq > newest.seq {
            if state != newest.state {
                (self.before, self.changes) = (Some(newest), self.changes + 1);
            }
            self.newest = Some(Position { state, number: count.value, seq });
        }
        Some(Extended { seq, distance: seq.abs_diff(newest.seq) })
    }

    /// Begins a run with this frame; its number.
    pub(crate) fn begin(&mut self, count: Count) -> u64 {
        self.before = None;
        self.newest = count.state.map(|state| Position { state: state.number, number: count.value, seq: FIRST });
        FIRST
    }

    /// The number of a frame among all frames; `None` if the talker started again.
    fn position(&self, newest: Position, state: u32, number: u32) -> Option<u64> {
        let ahead = ahead(newest.number, number);
        if state == newest.state {
            // A number that goes back to the first ones is that of a talker that started again with the same state.
            let is_restart = number <= 1 && ahead < -1 && newest.number > 2;
            return newest.seq.checked_add_signed(ahead).filter(|_| !is_restart);
        }
        if let Ok(states @ 1..) = u64::try_from(self::ahead(newest.state, state)) {
            return Some(newest.seq + states + u64::from(number));
        }
        let before = self.before.filter(|before| before.state == state && self::ahead(before.number, number) <= 0)?;
        before.seq.checked_add_signed(self::ahead(before.number, number))
    }
}

/// The distance from one value to another one: the shortest one, across the largest value or not.
fn ahead(from: u32, to: u32) -> i64 {
    let ahead = i64::from(to) - i64::from(from);
    if ahead.abs() <= VALUES / 2 { ahead } else { ahead - ahead.signum() * VALUES }
}

#[cfg(test)]
mod tests {
    use frames::{Range, State};

    use super::*;
    use crate::{counter::Counter, sequence::Number};

    fn extended(frames: &[(u32, u32)]) -> Vec<(u32, u64)> {
        let candidate = |&(number, value): &(u32, u32)| {
            let state = Some(State { number, allowed_ms: 2_000 });
            Count { value, range: Range::Bits(32), step: None, parts: None, media: None, state }
        };
        let mut counter = Counter::learn(&[(Contained::Candidate(candidate(&frames[0])), 0)]).expect("states");
        let extend = |frame: &(u32, u32)| match counter.extend(candidate(frame), 0) {
            Number::Whole { run, seq } => (run, seq - FIRST),
            other => panic!("{other:?}"),
        };
        frames.iter().map(extend).collect()
    }

    #[test]
    fn numbers_continue_after_the_largest_one() {
        const MAX: u32 = u32::MAX;
        assert_eq!(extended(&[(1, MAX - 1), (1, MAX), (1, 1), (1, 2)]), [(0, 0), (0, 1), (0, 2), (0, 3)]);
        assert_eq!(
            extended(&[(1, MAX - 1), (1, 3), (1, MAX)]),
            [(0, 0), (0, 4), (0, 1)],
            "three missing frames, one of them late"
        );
        assert_eq!(extended(&[(MAX, 7), (1, 0), (MAX, 7), (1, 1)]), [(0, 0), (0, 1), (0, 0), (0, 2)], "a new state");
        assert_eq!(
            extended(&[(MAX - 1, 7), (2, 1)]),
            [(0, 0), (0, 4)],
            "states MAX and 1, and number 0 of 2, are lost"
        );
    }

    #[test]
    fn numbers_continue_over_states() {
        assert_eq!(extended(&[(1, 7), (1, 8), (2, 0), (2, 1)]), [(0, 0), (0, 1), (0, 2), (0, 3)]);
        assert_eq!(extended(&[(1, 7), (2, 2)]), [(0, 0), (0, 3)], "numbers 0 and 1 of state 2 are lost");
        assert_eq!(extended(&[(1, 7), (4, 0)]), [(0, 0), (0, 3)], "states 2 and 3 are lost");
        assert_eq!(extended(&[(1, 7), (1, 8), (2, 0), (1, 8)]), [(0, 0), (0, 1), (0, 2), (0, 1)], "a duplicate");
        assert_eq!(extended(&[(5, 7), (1, 0), (1, 1)]), [(0, 0), (1, 0), (1, 1)], "a restart");
        assert_eq!(extended(&[(1, 7), (1, 8), (1, 0), (1, 1)]), [(0, 0), (0, 1), (1, 0), (1, 1)], "a restart");
        let late = [(8, 3), (9, 0), (2, 5), (9, 1)];
        assert_eq!(extended(&late), [(0, 0), (0, 1), (1, 0), (0, 2)], "a frame of an old state");
    }
}
