//! Loss, duplicates and frames out of order, each counted for what it is.

/// How far behind the newest a frame may come and still be known as late or as seen before.
const WINDOW: u64 = 64;
/// A number of 8 bits this far ahead may as well be a frame from [`WINDOW`] behind.
const BEHIND: u64 = 256 - WINDOW;
/// Numbers of 8 bits begin here, so that there is room behind.
const FIRST: u64 = 1 << 32;

/// What a frame says about its place in the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Number {
    /// Nothing.
    None,
    /// AVTP's number, modulo 256.
    Eight(u8),
    /// That of our own talker, with its run.
    Whole { run: u32, seq: u64 },
}

/// What a frame was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taken {
    /// Seen for the first time; its place, counting lost ones.
    New(u64),
    /// Seen before, or so far behind that it cannot be told.
    Again,
}

/// The numbers of a stream under way.
#[derive(Debug, Default)]
pub(crate) struct Sequence {
    begun: bool,
    next: u64,
    /// Bit n: the frame n + 1 before `next` was seen. Before the first all count as seen.
    seen: u64,
    run: Option<u32>,
    /// Added to a number, wrapping, for its place.
    to_place: u64,
    /// Frames missing in a row, as far as is certain.
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
    /// Takes in a frame that came `slots` periods after the one before it.
    #[inline]
    pub(crate) fn take_in(&mut self, number: Number, slots: i64) -> Taken {
        let number = match number {
            Number::Eight(low) if self.begun => self.unwrap(low, slots),
            Number::Eight(low) => FIRST | u64::from(low),
            Number::Whole { run, seq } => self.of_run(run, seq),
            Number::None => self.next,
        };
        if !self.begun {
            (self.begun, self.next, self.seen, self.to_place) = (true, number, u64::MAX, number.wrapping_neg());
        }
        if number >= self.next {
            self.advance(number);
            return Taken::New(number.wrapping_add(self.to_place));
        }
        let back = self.next - 1 - number;
        if back >= WINDOW {
            self.too_late += 1;
            Taken::Again
        } else if self.seen >> back & 1 == 1 {
            self.duplicates += 1;
            Taken::Again
        } else {
            self.seen |= 1 << back;
            self.reordered += 1;
            Taken::New(number.wrapping_add(self.to_place))
        }
    }

    /// All of a number of which 8 bits are known: a little behind, or ahead, by 256 more where the time since the frame
    /// before speaks for that.
    #[inline]
    fn unwrap(&self, low: u8, slots: i64) -> u64 {
        let ahead = u64::from(low.wrapping_sub(self.next as u8));
        if ahead == 0 && slots < 192 {
            return self.next;
        }
        let silent = (slots - 1).max(0) as u64;
        if silent >= BEHIND {
            let rounds = (silent.saturating_sub(ahead) + 128) / 256;
            let guess = ahead + rounds * 256;
            if guess.abs_diff(silent) <= 2 + silent / 1000 {
                return self.next.saturating_add(guess);
            }
        }
        if ahead >= BEHIND { self.next.saturating_sub(256 - ahead) } else { self.next.saturating_add(ahead) }
    }

    /// A number of our own talker's. Another run begins anew, right behind the one before.
    fn of_run(&mut self, run: u32, seq: u64) -> u64 {
        if self.begun && self.run != Some(run) {
            self.flush();
            let place = self.next.wrapping_add(self.to_place);
            (self.next, self.seen, self.to_place) = (seq, u64::MAX, place.wrapping_sub(seq));
            self.restarts += u64::from(self.run.is_some());
        }
        self.run = Some(run);
        seq
    }

    /// `number` is the newest: those that can no longer come are decided upon.
    #[inline]
    fn advance(&mut self, number: u64) {
        let step = (number - self.next).saturating_add(1);
        if step == 1 {
            self.decide(self.seen >> (WINDOW - 1) & 1 == 1);
            self.seen = self.seen << 1 | 1;
        } else {
            for bit in (WINDOW - step.min(WINDOW)..WINDOW).rev() {
                self.decide(self.seen >> bit & 1 == 1);
            }
            self.missing = self.missing.saturating_add(step.saturating_sub(WINDOW));
            self.seen = if step >= WINDOW { 1 } else { self.seen << step | 1 };
        }
        self.next = number.saturating_add(1);
    }

    /// Whether the frame that leaves the window was seen.
    #[inline]
    fn decide(&mut self, seen: bool) {
        if !seen {
            self.missing = self.missing.saturating_add(1);
        } else if self.missing > 0 {
            self.lost = self.lost.saturating_add(self.missing);
            self.losses += 1;
            self.longest_loss = self.longest_loss.max(self.missing);
            self.missing = 0;
        }
    }

    /// Nothing more comes: decides upon the rest.
    pub(crate) fn flush(&mut self) {
        for bit in (0..WINDOW).rev() {
            self.decide(self.seen >> bit & 1 == 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The fate of each frame of a stream: lost, seen so many places later, seen twice.
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
        // Those that are held up come behind the frame that they are held up to.
        seen.sort_by_key(|(place, _)| *place);
        seen.into_iter().map(|(_, n)| n).collect()
    }

    fn fates() -> impl Strategy<Value = Vec<(bool, usize, bool)>> {
        let fate =
            (prop::bool::weighted(0.1), prop_oneof![20 => Just(0usize), 1 => 1..50usize], prop::bool::weighted(0.05));
        prop::collection::vec(fate, 2..600)
    }

    /// Lost, duplicates, reordered, of the frames from the first to arrive to the newest.
    fn counted_by_hand(seen: &[u64]) -> (u64, u64, u64) {
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
        fn each_frame_is_counted_for_what_it_was(fates in fates(), whole: bool) {
            let seen = arrivals(&fates);
            prop_assume!(!seen.is_empty());
            let mut sequence = Sequence::default();
            for &n in &seen {
                let number = if whole { Number::Whole { run: 1, seq: n } } else { Number::Eight(n as u8) };
                if let Taken::New(place) = sequence.take_in(number, 1) {
                    prop_assert_eq!(place, n - seen[0]);
                }
            }
            sequence.flush();
            prop_assert_eq!((sequence.lost, sequence.duplicates, sequence.reordered), counted_by_hand(&seen));
            prop_assert_eq!((sequence.too_late, sequence.restarts), (0, 0));
        }

        #[test]
        fn any_numbers_are_borne(numbers in prop::collection::vec((any::<u64>(), 0..3u8, any::<i64>()), 0..300)) {
            let mut sequence = Sequence::default();
            for (n, kind, slots) in numbers {
                let number = match kind {
                    0 => Number::Eight(n as u8),
                    1 => Number::Whole { run: (n % 3) as u32, seq: n },
                    _ => Number::None,
                };
                sequence.take_in(number, slots);
            }
            sequence.flush();
        }
    }

    #[test]
    fn a_new_run_goes_on_where_the_old_one_ended() {
        let mut sequence = Sequence::default();
        let mut take = |run, seq| sequence.take_in(Number::Whole { run, seq }, 1);
        assert_eq!([take(1, 500), take(1, 501), take(2, 0), take(2, 2)], [0, 1, 2, 4].map(Taken::New));
        sequence.flush();
        assert_eq!((sequence.restarts, sequence.lost, sequence.duplicates), (1, 1, 0));
    }
}
