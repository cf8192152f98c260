//! Counts lost, duplicated and reordered frames.

/// Frames this far behind the newest one can still be classified as late or duplicated.
const WINDOW: u64 = 64;
/// An 8-bit number at least this far ahead is instead interpreted as up to [`WINDOW`] behind.
const BEHIND: u64 = 256 - WINDOW;
/// The start value for 8-bit numbers, so that earlier ones do not underflow.
const FIRST: u64 = 1 << 32;

/// The sequence number of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Number {
    /// The frame has no number.
    None,
    /// AVTP's number, modulo 256.
    Eight(u8),
    /// The number of our own talker, with its run.
    Whole { run: u32, seq: u64 },
}

/// The classification of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// First arrival; its index in the stream, counting lost frames.
    New(u64),
    /// A duplicate, or too far behind to be classified.
    Duplicate,
}

/// The state of counting the numbers of a stream.
#[derive(Debug, Default)]
pub(crate) struct Sequence {
    begun: bool,
    next: u64,
    /// Bit n: frame `next - 1 - n` was seen. Frames before the first one count as seen.
    seen: u64,
    run: Option<u32>,
    /// Wrapping offset from a number to the frame's index.
    to_index: u64,
    /// Consecutive frames that are certainly missing.
    missing: u64,
    pub(crate) lost: u64,
    pub(crate) losses: u64,
    pub(crate) longest_loss: u64,
    pub(crate) duplicates: u64,
    pub(crate) reordered: u64,
    pub(crate) too_late: u64,
    pub(crate) restarts: u64,
}

impl Sequence {
    /// Adds a frame that arrived `slots` periods after the previous one.
    #[inline]
    pub(crate) fn add(&mut self, number: Number, slots: i64) -> Arrival {
        let number = match number {
            Number::Eight(low) if self.begun => self.unwrap(low, slots),
            Number::Eight(low) => FIRST | u64::from(low),
            Number::Whole { run, seq } => self.in_run(run, seq),
            Number::None => self.next,
        };
        if !self.begun {
            (self.begun, self.next, self.seen, self.to_index) = (true, number, u64::MAX, number.wrapping_neg());
        }
        if number >= self.next {
            self.advance(number);
            return Arrival::New(number.wrapping_add(self.to_index));
        }
        let back = self.next - 1 - number;
        if back >= WINDOW {
            self.too_late += 1;
            Arrival::Duplicate
        } else if self.seen >> back & 1 == 1 {
            self.duplicates += 1;
            Arrival::Duplicate
        } else {
            self.seen |= 1 << back;
            self.reordered += 1;
            Arrival::New(number.wrapping_add(self.to_index))
        }
    }

    /// Extends an 8-bit number. It is slightly behind or ahead of the expected one; after a long silence, multiples of
    /// 256 are added if they fit the elapsed time.
    #[inline]
    fn unwrap(&self, low: u8, slots: i64) -> u64 {
        let [expected, ..] = self.next.to_le_bytes();
        let ahead = u64::from(low.wrapping_sub(expected));
        if ahead == 0 && slots < 192 {
            return self.next;
        }
        let silent = (slots - 1).max(0).cast_unsigned();
        if silent >= BEHIND {
            let rounds = (silent.saturating_sub(ahead) + 128) / 256;
            let guess = ahead + rounds * 256;
            if guess.abs_diff(silent) <= 2 + silent / 1000 {
                return self.next.saturating_add(guess);
            }
        }
        if ahead >= BEHIND { self.next.saturating_sub(256 - ahead) } else { self.next.saturating_add(ahead) }
    }

    /// The number of a frame of our own talker. A new run continues directly after the previous one.
    fn in_run(&mut self, run: u32, seq: u64) -> u64 {
        if self.begun && self.run != Some(run) {
            self.flush();
            let index = self.next.wrapping_add(self.to_index);
            (self.next, self.seen, self.to_index) = (seq, u64::MAX, index.wrapping_sub(seq));
            self.restarts += u64::from(self.run.is_some());
        }
        self.run = Some(run);
        seq
    }

    /// Makes `number` the newest. Frames that leave the window are final.
    #[inline]
    fn advance(&mut self, number: u64) {
        let step = (number - self.next).saturating_add(1);
        if step == 1 {
            self.finalize(self.seen >> (WINDOW - 1) & 1 == 1);
            self.seen = self.seen << 1 | 1;
        } else {
            for bit in (WINDOW - step.min(WINDOW)..WINDOW).rev() {
                self.finalize(self.seen >> bit & 1 == 1);
            }
            self.missing = self.missing.saturating_add(step.saturating_sub(WINDOW));
            self.seen = if step >= WINDOW { 1 } else { self.seen << step | 1 };
        }
        self.next = number.saturating_add(1);
    }

    /// Counts the frame that leaves the window as seen or missing.
    #[inline]
    fn finalize(&mut self, seen: bool) {
        if !seen {
            self.missing = self.missing.saturating_add(1);
        } else if self.missing > 0 {
            self.lost = self.lost.saturating_add(self.missing);
            self.losses += 1;
            self.longest_loss = self.longest_loss.max(self.missing);
            self.missing = 0;
        }
    }

    /// Finalizes the remaining frames at the end of the stream.
    pub(crate) fn flush(&mut self) {
        for bit in (0..WINDOW).rev() {
            self.finalize(self.seen >> bit & 1 == 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The order of arrival, given for each frame: lost, delayed by so many positions, duplicated.
    fn arrivals(fates: &[(bool, usize, bool)]) -> Vec<u64> {
        let mut seen = Vec::new();
        for (n, &(lost, later, twice)) in fates.iter().enumerate() {
            if !lost {
                seen.push((2 * (n + later) + usize::from(later > 0), n as u64));
            }
            if !lost && twice {
                seen.push((2 * (n + later + 1) + 1, n as u64));
            }
        }
        // Delayed frames arrive after the frame at whose position they arrive.
        seen.sort_by_key(|(place, _)| *place);
        seen.into_iter().map(|(_, n)| n).collect()
    }

    fn fates() -> impl Strategy<Value = Vec<(bool, usize, bool)>> {
        let fate =
            (prop::bool::weighted(0.1), prop_oneof![20 => Just(0usize), 1 => 1..50usize], prop::bool::weighted(0.05));
        prop::collection::vec(fate, 2..600)
    }

    /// Counts of lost, duplicated and reordered frames from the first arrival to the newest frame.
    fn expected_counts(seen: &[u64]) -> (u64, u64, u64) {
        let (mut known, mut newest) = (std::collections::BTreeSet::new(), None);
        let (mut duplicates, mut reordered) = (0, 0);
        for &n in seen {
            if !known.insert(n) || n < seen[0] {
                duplicates += 1;
            } else if Some(n) < newest {
                reordered += 1;
            }
            newest = newest.max(Some(n));
        }
        let in_range = known.iter().filter(|&&n| n >= seen[0]).count() as u64;
        (newest.map_or(0, |newest| newest - seen[0] + 1 - in_range), duplicates, reordered)
    }

    proptest! {
        #[test]
        fn classifies_each_frame(fates in fates(), whole: bool) {
            let seen = arrivals(&fates);
            prop_assume!(!seen.is_empty());
            let mut sequence = Sequence::default();
            for &n in &seen {
                let number = if whole { Number::Whole { run: 1, seq: n } } else { Number::Eight(n.to_le_bytes()[0]) };
                if let Arrival::New(index) = sequence.add(number, 1) {
                    prop_assert_eq!(index, n - seen[0]);
                }
            }
            sequence.flush();
            prop_assert_eq!((sequence.lost, sequence.duplicates, sequence.reordered), expected_counts(&seen));
            prop_assert_eq!((sequence.too_late, sequence.restarts), (0, 0));
        }

        #[test]
        fn arbitrary_numbers_do_not_panic(numbers in prop::collection::vec((any::<u64>(), 0..3u8, any::<i64>()), 0..300)) {
            let mut sequence = Sequence::default();
            for (n, kind, slots) in numbers {
                let number = match kind {
                    0 => Number::Eight(n.to_le_bytes()[0]),
                    1 => Number::Whole { run: (n % 3) as u32, seq: n },
                    _ => Number::None,
                };
                sequence.add(number, slots);
            }
            sequence.flush();
        }
    }

    #[test]
    fn a_new_run_continues_after_the_previous_one() {
        let mut sequence = Sequence::default();
        let mut take = |run, seq| sequence.add(Number::Whole { run, seq }, 1);
        assert_eq!([take(1, 500), take(1, 501), take(2, 0), take(2, 2)], [0, 1, 2, 4].map(Arrival::New));
        sequence.flush();
        assert_eq!((sequence.restarts, sequence.lost, sequence.duplicates), (1, 1, 0));
    }
}
