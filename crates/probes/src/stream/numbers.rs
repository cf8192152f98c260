//! Numbers of frames in the order in which they came: what was lost, came twice, or overtook.

/// Frames behind the newest for which it is known whether they came.
const WINDOW: u64 = 1024;

/// What the numbers tell so far. A frame counts as lost once a later one came, until it comes after all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Numbers {
    /// The number that is due next; `None` before the first.
    next: Option<u64>,
    /// The first that was due; those before it were never counted as lost.
    first: u64,
    /// Whether each of the last [`WINDOW`] came, by number modulo that.
    came: Box<[bool]>,
    /// Frames that did not come.
    pub lost: u64,
    /// Stretches of frames that did not come when they were due.
    pub loss_bursts: u64,
    /// Frames that came again.
    pub duplicates: u64,
    /// Frames that came after a later one.
    pub reordered: u64,
    /// Frames too far behind to tell which of these they are.
    pub strays: u64,
}

impl Default for Numbers {
    fn default() -> Self {
        Self {
            next: None,
            first: 0,
            came: vec![false; WINDOW as usize].into(),
            lost: 0,
            loss_bursts: 0,
            duplicates: 0,
            reordered: 0,
            strays: 0,
        }
    }
}

impl Numbers {
    /// Numbers that begin with 0: what does not come before the first one is lost, too.
    pub fn from_zero() -> Self {
        Self { next: Some(0), ..Self::default() }
    }

    /// Takes in a number of 64 bits.
    pub fn take_in(&mut self, number: u64) {
        let next = self.due_or(number);
        if number >= next {
            self.skip_to(number);
            self.came[(number % WINDOW) as usize] = true;
            self.next = Some(number.saturating_add(1));
            return;
        }
        let came = &mut self.came[(number % WINDOW) as usize];
        if next - number > WINDOW {
            self.strays += 1;
        } else if *came {
            self.duplicates += 1;
        } else {
            *came = true;
            self.reordered += 1;
            self.lost -= u64::from(number >= self.first);
        }
    }

    /// Takes in a number of 8 bits: the one of 64 bits that is nearest to the one that is due.
    pub fn take_in_short(&mut self, number: u8) {
        // Far from 0, so that frames before the first have numbers, too.
        let next = self.due_or((1 << 32) + u64::from(number));
        let ahead = number.wrapping_sub(next as u8).cast_signed();
        self.take_in(next.saturating_add_signed(ahead.into()));
    }

    /// Another talker, which counts anew: its first number is due.
    pub fn begin_anew(&mut self) {
        self.next = None;
        self.came.fill(false);
    }

    /// No more frames will come, and so many were sent: those after the last one are lost.
    pub fn end_at(&mut self, sent: u64) {
        if self.next.is_some_and(|next| next < sent) {
            self.skip_to(sent);
            self.next = Some(sent);
        }
    }

    /// The number that is due; the first that comes is.
    fn due_or(&mut self, number: u64) -> u64 {
        if self.next.is_none() {
            self.first = number;
        }
        *self.next.get_or_insert(number)
    }

    /// Frames up to `number` have not come.
    fn skip_to(&mut self, number: u64) {
        let Some(next) = self.next else { return };
        let skipped = number - next;
        self.lost += skipped;
        self.loss_bursts += u64::from(skipped > 0);
        for missing in 0..skipped.min(WINDOW) {
            self.came[((number - 1 - missing) % WINDOW) as usize] = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(numbers: &[u64]) -> Numbers {
        let mut told = Numbers::default();
        numbers.iter().for_each(|&number| told.take_in(number));
        told
    }

    #[test]
    fn loss_duplicates_and_reordering_are_kept_apart() {
        let told = of(&[5, 6, 9, 10, 10, 8, 11, 5]);
        assert_eq!((told.lost, told.loss_bursts, told.duplicates, told.reordered, told.strays), (1, 1, 2, 1, 0));
    }

    #[test]
    fn what_is_too_far_behind_is_told_as_such() {
        let told = of(&[0, 5000, 1]);
        assert_eq!((told.lost, told.strays, told.duplicates, told.reordered), (4999, 1, 0, 0));
    }

    #[test]
    fn what_was_sent_before_the_first_that_came_was_not_lost() {
        let told = of(&[5, 7, 3]);
        assert_eq!((told.lost, told.reordered), (1, 1));
    }

    #[test]
    fn begin_and_end_are_known_where_both_ends_are_ours() {
        let mut told = Numbers::from_zero();
        [2, 3, 0].into_iter().for_each(|number| told.take_in(number));
        told.end_at(10);
        assert_eq!((told.lost, told.reordered), (1 + 6, 1));
        let mut nothing = Numbers::from_zero();
        nothing.end_at(10);
        assert_eq!(nothing.lost, 10);
    }

    #[test]
    fn short_numbers_wrap() {
        let mut told = Numbers::default();
        (250..600_u64).filter(|n| ![300, 301, 511].contains(n)).for_each(|n| told.take_in_short(n as u8));
        told.take_in_short(511_u64 as u8);
        assert_eq!((told.lost, told.loss_bursts, told.reordered), (2, 2, 1));
    }

    proptest! {
        /// Any frames dropped, doubled or moved back a little, against a count of what was done to them.
        #[test]
        fn what_was_done_is_found(fates in prop::collection::vec(0..10u8, 1..3000)) {
            let mut sent: Vec<(u64, u64)> = Vec::new();
            let (mut dropped, mut doubled) = (0, 0);
            for (number, fate) in fates.iter().enumerate() {
                let number = number as u64;
                match fate {
                    0 => dropped += 1,
                    1 => {
                        sent.extend([(number * 10, number), (number * 10 + 40, number)]);
                        doubled += 1;
                    }
                    // Overtaken by up to 30 others.
                    2 => sent.push((number * 10 + 305, number)),
                    _ => sent.push((number * 10, number)),
                }
            }
            sent.sort_unstable();
            let (mut newest, mut seen, mut overtaken) = (None, std::collections::HashSet::new(), 0);
            for &(_, number) in &sent {
                let first_time = seen.insert(number);
                overtaken += u64::from(first_time && newest > Some(number));
                newest = newest.max(Some(number));
            }
            for short in [false, true] {
                let mut told = Numbers::from_zero();
                for &(_, number) in &sent {
                    if short { told.take_in_short(number as u8) } else { told.take_in(number) }
                }
                if short && sent.first().is_none_or(|&(_, number)| number > 100) {
                    continue;
                }
                told.end_at(fates.len() as u64);
                prop_assert_eq!((told.lost, told.duplicates, told.reordered), (dropped, doubled, overtaken));
                prop_assert_eq!(told.strays, 0);
            }
        }
    }
}
