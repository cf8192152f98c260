//! Extends numbers that start again with each state of the talker (GOOSE: sqNum within stNum) to numbers of all its frames.
//!
//! The first frame of a state has number 0. A frame with a larger one follows lost frames, and a state that was not seen had
//! at least one frame. The last frames of a state can be lost without a sign.

use frames::Count;

use crate::counter::Extended;
use crate::sequence::Contained;

/// The first extended number, so that earlier ones do not underflow.
const FIRST: u64 = 1 << 32;

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
            if state > newest.state {
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
        let difference = i64::from(number) - i64::from(newest.number);
        if state == newest.state {
            // A number that goes back to the first ones is that of a talker that started again with the same state.
            let is_restart = number <= 1 && difference < -1 && newest.number > 2;
            return newest.seq.checked_add_signed(difference).filter(|_| !is_restart);
        }
        if state > newest.state {
            let skipped = u64::from(state - newest.state - 1);
            return Some(newest.seq + 1 + skipped + u64::from(number));
        }
        let before = self.before.filter(|before| before.state == state && number <= before.number)?;
        before.seq.checked_sub(u64::from(before.number - number))
    }
}

#[cfg(test)]
mod tests {
    use frames::{Range, State};

    use super::*;
    use crate::{counter::Counter, sequence::Number};

    fn extended(frames: &[(u32, u32)]) -> Vec<(u32, u64)> {
        let candidate = |&(number, value): &(u32, u32)| {
            let state = Some(State { number, allowed_ms: 2_000 });
            Count { value, range: Range::Bits(32), media: None, state }
        };
        let mut counter = Counter::learn(&[(Contained::Candidate(candidate(&frames[0])), 0)]).expect("states");
        let extend = |frame: &(u32, u32)| match counter.extend(candidate(frame), 0) {
            Number::Whole { run, seq } => (run, seq - FIRST),
            other => panic!("{other:?}"),
        };
        frames.iter().map(extend).collect()
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
