//! Detection of lost, duplicate and reordered frames by their numbers, in order of arrival.

/// Number of frames behind the newest one whose arrival is remembered.
const WINDOW: usize = 1024;
/// After so many frames, their mean period shows how many were lost at once.
const KNOWN_AFTER: u64 = 64;
/// A loss takes the time of its frames within so many slots, and within this part of it.
const EXACT_SLOTS: f64 = 2.0;
const EXACT: f64 = 0.01;

/// So many frames in a row that arrived before are no copies: copies come between others. The talker restarted with numbers a
/// little behind.
const RESTARTED: u64 = 16;

/// When a frame with an 8-bit number arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Arrived {
    /// The number that was expected then: before the first frame, and after any other.
    next: u64,
    /// The time, ns.
    at_ns: i64,
}

/// The state so far. A missing frame counts as lost when a later one arrives, until it arrives itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Numbers {
    /// The next expected number; `None` before the first.
    next: Option<u64>,
    /// The first expected number; earlier ones never count as lost.
    first: u64,
    /// Arrival of each of the last [`WINDOW`] numbers, by number modulo that.
    arrived: Box<[bool]>,
    /// The times of the first frame and of the newest one, of 8-bit numbers.
    times: Option<[Arrived; 2]>,
    /// Frames with 8-bit numbers in a row that arrived before.
    again: u64,
    /// Restarts that the 8-bit numbers show.
    pub restarts: u64,
    /// Runs of losses with 8-bit numbers that lasted for 256 frames more, but for no exact number of frames: what is counted
    /// is the least number.
    pub longer_losses: u64,
    /// Lost frames.
    pub lost: u64,
    /// Runs of consecutive lost frames.
    pub loss_bursts: u64,
    /// Frames that arrived again.
    pub duplicates: u64,
    /// Frames that arrived after a later one.
    pub reordered: u64,
    /// Frames too far behind to be classified.
    pub strays: u64,
}

impl Default for Numbers {
    fn default() -> Self {
        Self {
            next: None,
            first: 0,
            arrived: vec![false; WINDOW].into(),
            times: None,
            again: 0,
            restarts: 0,
            longer_losses: 0,
            lost: 0,
            loss_bursts: 0,
            duplicates: 0,
            reordered: 0,
            strays: 0,
        }
    }
}

impl Numbers {
    /// Numbers of a stream that is received from its first frame if `whole`.
    pub fn of(whole: bool) -> Self {
        if whole { Self::from_zero() } else { Self::default() }
    }

    /// Expects numbers from 0, so that frames missing before the first one count as lost.
    pub fn from_zero() -> Self {
        Self { next: Some(0), ..Self::default() }
    }

    /// Adds a 64-bit number.
    pub fn add(&mut self, number: u64) {
        let next = self.expected_or(number);
        if number >= next {
            self.skip_to(number);
            self.arrived[index_of(number)] = true;
            self.next = Some(number.saturating_add(1));
            return;
        }
        let arrived = &mut self.arrived[index_of(number)];
        if next - number > WINDOW as u64 {
            self.strays += 1;
        } else if *arrived {
            self.duplicates += 1;
        } else {
            *arrived = true;
            self.reordered += 1;
            if number >= self.first {
                self.lost -= 1;
                self.split_burst(number, next);
            }
        }
    }

    /// Adds an 8-bit number of a frame that arrived at this time, ns: as the 64-bit number nearest to the expected one, or as
    /// a later one with the same low byte if exactly the time for the frames before it passed.
    pub fn add_short(&mut self, number: u8, at_ns: i64) {
        // A start far from 0 gives frames before the first one a number too.
        let next = self.expected_or((1 << 32) + u64::from(number));
        let ahead = number.wrapping_sub(low_byte(next));
        let lost = self.lost_by_time(ahead, next, at_ns);
        let whole =
            lost.map_or(next.saturating_add_signed(ahead.cast_signed().into()), |lost| next.saturating_add(lost));
        let duplicates = self.duplicates;
        self.add(whole);
        self.again = if self.duplicates > duplicates { self.again + 1 } else { 0 };
        if self.again == RESTARTED {
            self.duplicates -= RESTARTED;
            self.restarts += 1;
            self.again = 0;
            self.restart();
            self.add(whole);
        }
        let [_, newest] = self.times.get_or_insert([Arrived { next, at_ns }; 2]);
        if let Some(next) = self.next.filter(|&next| next > newest.next) {
            *newest = Arrived { next, at_ns };
        }
    }

    /// True if this is the expected 8-bit number.
    pub fn expects_short(&self, number: u8) -> bool {
        self.next.is_some_and(|next| low_byte(next) == number)
    }

    /// The number of frames lost before one whose 8-bit number is so far ahead: at least 128, for exactly the time that
    /// passed. `None` if another time did.
    fn lost_by_time(&mut self, ahead: u8, next: u64, at_ns: i64) -> Option<u64> {
        let [first, newest] =
            self.times.filter(|[first, newest]| ahead > 0 && newest.next - first.next >= KNOWN_AFTER)?;
        let period_ns = newest.at_ns.saturating_sub(first.at_ns) as f64 / (newest.next - first.next) as f64;
        let slots = at_ns.saturating_sub(newest.at_ns) as f64 / period_ns - 1.0 - (next - newest.next) as f64;
        let times = ((slots - f64::from(ahead)) / 256.0).round().clamp(0.0, 1e9);
        let lost = f64::from(ahead) + 256.0 * times;
        let is_exact = (slots - lost).abs() <= EXACT_SLOTS + EXACT * lost;
        // A copy or a late frame has a number far ahead too, but comes in its own time.
        self.longer_losses += u64::from(!is_exact && times >= 1.0 && ahead < 128);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a whole number, limited above")]
        (is_exact && lost >= 128.0).then_some(lost as u64)
    }

    /// Restarts with another talker: its first number is the expected one.
    pub fn restart(&mut self) {
        (self.next, self.times) = (None, None);
        self.arrived.fill(false);
    }

    /// Ends the stream after `sent` frames: those after the last one are lost.
    pub fn end_at(&mut self, sent: u64) {
        if self.next.is_some_and(|next| next < sent) {
            self.skip_to(sent);
            self.next = Some(sent);
        }
    }

    /// Returns the expected number; before the first frame, sets it to `number`.
    fn expected_or(&mut self, number: u64) -> u64 {
        if self.next.is_none() {
            self.first = number;
        }
        *self.next.get_or_insert(number)
    }

    /// Splits, shortens or ends the run of lost frames that `number` belonged to. `next`: the next expected number.
    fn split_burst(&mut self, number: u64, next: u64) {
        let first = self.first.max(next.saturating_sub(WINDOW as u64));
        let is_lost = |other: u64| (first..next).contains(&other) && !self.arrived[index_of(other)];
        let neighbours = [number.checked_sub(1), number.checked_add(1)];
        match neighbours.into_iter().flatten().filter(|&other| is_lost(other)).count() {
            0 => self.loss_bursts -= 1,
            1 => {}
            _ => self.loss_bursts += 1,
        }
    }

    /// Counts the frames up to `number` as lost.
    fn skip_to(&mut self, number: u64) {
        let Some(next) = self.next else { return };
        let skipped = number - next;
        self.lost += skipped;
        self.loss_bursts += u64::from(skipped > 0);
        for missing in 0..skipped.min(WINDOW as u64) {
            self.arrived[index_of(number - 1 - missing)] = false;
        }
    }
}

/// Index of a number in the list of the last [`WINDOW`] ones.
#[expect(clippy::cast_possible_truncation, reason = "below WINDOW")]
fn index_of(number: u64) -> usize {
    (number % WINDOW as u64) as usize
}

/// The number as AVTP sends it.
fn low_byte(number: u64) -> u8 {
    let [low, ..] = number.to_le_bytes();
    low
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(sequence: &[u64]) -> Numbers {
        let mut numbers = Numbers::default();
        sequence.iter().for_each(|&number| numbers.add(number));
        numbers
    }

    #[test]
    fn distinguishes_loss_duplicates_and_reordering() {
        let numbers = of(&[5, 6, 9, 10, 10, 8, 11, 5]);
        assert_eq!(
            (numbers.lost, numbers.loss_bursts, numbers.duplicates, numbers.reordered, numbers.strays),
            (1, 1, 2, 1, 0)
        );
    }

    #[test]
    fn reordered_frames_are_no_bursts() {
        let bursts = |sequence: &[u64]| of(sequence).loss_bursts;
        assert_eq!(
            [bursts(&[0, 2, 1, 3]), bursts(&[0, 4, 1, 2, 3]), bursts(&[0, 4, 2]), bursts(&[0, 4, 1])],
            [0, 0, 2, 1]
        );
    }

    #[test]
    fn counts_frames_too_far_behind_as_strays() {
        let numbers = of(&[0, 5000, 1]);
        assert_eq!((numbers.lost, numbers.strays, numbers.duplicates, numbers.reordered), (4999, 1, 0, 0));
    }

    #[test]
    fn frames_before_the_first_received_one_are_not_lost() {
        let numbers = of(&[5, 7, 3]);
        assert_eq!((numbers.lost, numbers.reordered), (1, 1));
    }

    #[test]
    fn counts_losses_at_both_ends_if_they_are_known() {
        let mut numbers = Numbers::from_zero();
        [2, 3, 0].into_iter().for_each(|number| numbers.add(number));
        numbers.end_at(10);
        assert_eq!((numbers.lost, numbers.reordered), (1 + 6, 1));
        let mut nothing = Numbers::from_zero();
        nothing.end_at(10);
        assert_eq!(nothing.lost, 10);
    }

    #[test]
    fn short_numbers_wrap_around() {
        let mut numbers = Numbers::default();
        (250..600_u64).filter(|n| ![300, 301, 511].contains(n)).for_each(|n| numbers.add_short(low_byte(n), 0));
        numbers.add_short(low_byte(511), 0);
        assert_eq!((numbers.lost, numbers.loss_bursts, numbers.reordered), (2, 1, 1));
    }

    proptest! {
        /// Random frames are dropped, duplicated or delayed, and compared with a count of these changes.
        #[test]
        fn finds_all_changes(changes in prop::collection::vec(0..10u8, 1..3000)) {
            let mut sent: Vec<(u64, u64)> = Vec::new();
            let (mut dropped, mut duplicated) = (0, 0);
            for (number, change) in changes.iter().enumerate() {
                let number = number as u64;
                match change {
                    0 => dropped += 1,
                    1 => {
                        sent.extend([(number * 10, number), (number * 10 + 40, number)]);
                        duplicated += 1;
                    }
                    // Overtaken by up to 30 other frames.
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
                let mut numbers = Numbers::from_zero();
                for &(_, number) in &sent {
                    if short { numbers.add_short(low_byte(number), 0) } else { numbers.add(number) }
                }
                if short && sent.first().is_none_or(|&(_, number)| number > 100) {
                    continue;
                }
                numbers.end_at(changes.len() as u64);
                prop_assert_eq!((numbers.lost, numbers.duplicates, numbers.reordered), (dropped, duplicated, overtaken));
                prop_assert_eq!(numbers.strays, 0);
                prop_assert_eq!(numbers.loss_bursts, changes.chunk_by(|a, b| (*a == 0) == (*b == 0)).filter(|run| run[0] == 0).count() as u64);
            }
        }
    }

    #[test]
    fn the_time_shows_more_losses_than_half_of_the_short_numbers() {
        const PERIOD_NS: u64 = 1_000_000;
        for lost in [1, 127, 128, 150, 200, 255, 300, 511, 1_000] {
            let mut numbers = Numbers::default();
            let at_ns = |n: u64| (n * PERIOD_NS + n * 7_919 % 40_000).cast_signed();
            let frames = (0..500).chain(500 + lost..1_000 + lost);
            frames.for_each(|n| numbers.add_short(low_byte(n), at_ns(n)));
            let counts = (numbers.lost, numbers.loss_bursts, numbers.duplicates, numbers.reordered);
            assert_eq!(counts, (lost, 1, 0, 0), "{lost}");
        }
    }

    #[test]
    fn a_loss_of_an_unclear_number_of_frames_is_known_as_such() {
        let longer = |lost: u64, late_ns: u64| {
            let mut numbers = Numbers::default();
            let at_ns = |n: u64| (n * 1_000_000 + if n < 500 { 0 } else { late_ns }).cast_signed();
            (0..500).chain(500 + lost..1_000 + lost).for_each(|n| numbers.add_short(low_byte(n), at_ns(n)));
            (numbers.lost, numbers.longer_losses)
        };
        assert_eq!(longer(356, 0), (356, 0));
        assert_eq!(longer(356, 20_000_000), (100, 1), "the talker was 20 slots late");
        assert_eq!(longer(100, 20_000_000), (100, 0));
    }

    #[test]
    fn a_restart_of_short_numbers_a_little_behind_is_no_duplicates() {
        for behind in [16, 20, 100, 128_u8] {
            let mut numbers = Numbers::default();
            let run = |from: u8, count: u64| (0..count).map(move |n| from.wrapping_add(low_byte(n)));
            let frames = run(0, 512 + u64::from(behind)).chain(run(0, 700));
            for (slot, number) in (0..).zip(frames) {
                numbers.add_short(number, slot * 1_000_000);
            }
            assert_eq!((numbers.lost, numbers.duplicates, numbers.restarts), (0, 0, 1), "{behind}");
        }
    }

    #[test]
    fn late_frames_with_short_numbers_are_no_losses() {
        // A frame overtaken by 100 others, a copy of one 20 frames ago, and a stall whose frames come at once.
        let order =
            (0..351).filter(|n| *n != 250).chain([250]).chain(351..400).chain([380]).chain(400..900).chain([895]);
        let mut numbers = Numbers::default();
        for (slot, n) in (0..).zip(order) {
            let slot = if (500..700).contains(&slot) { 700 } else { slot };
            numbers.add_short(low_byte(n), slot * 1_000_000);
        }
        assert_eq!((numbers.lost, numbers.duplicates, numbers.reordered), (0, 2, 1));
    }
}
