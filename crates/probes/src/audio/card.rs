//! The definition of an xrun, as in `docs/audio.md`: playback reaches the end of the written data.

use std::ops::Range;

use crate::timer::Grid;

/// A sound card simulated by the clock. It captures a period until each deadline, and starts with `periods` periods of
/// silence for playback. All times are ns after the first deadline.
#[derive(Debug, Clone)]
pub struct Card {
    grid: Grid,
    periods: u64,
    /// The first period that was not read.
    next: u64,
}

impl Card {
    /// Creates a card that starts one period before the first deadline; `periods` is 2 or more.
    #[must_use]
    pub fn new(grid: Grid, periods: u32) -> Self {
        Self { grid, periods: u64::from(periods), next: 0 }
    }

    /// Returns the periods to process by a thread that woke for deadline number `slot` and read the clock at `now_ns`:
    /// those captured since its last wake-up.
    #[must_use]
    pub fn captured(&self, slot: u64, now_ns: i64) -> Range<u64> {
        self.next..slot.max(self.grid.periods_in(now_ns).cast_unsigned()) + 1
    }

    /// Time at which period `slot` was captured.
    #[must_use]
    pub fn deadline_ns(&self, slot: u64) -> i64 {
        self.grid.offset_ns(slot)
    }

    /// First time at which it is too late to write the output of period `slot`, because everything was played.
    #[must_use]
    pub fn dry_at_ns(&self, slot: u64) -> i64 {
        self.grid.offset_ns(slot + self.periods - 1)
    }

    /// Writes the output of period `slot` at `done_ns`. `Some` means an xrun, with the number of periods lost until the
    /// card restarts at the next deadline.
    #[must_use]
    pub fn write(&mut self, slot: u64, done_ns: i64) -> Option<u64> {
        self.next = slot + 1;
        if done_ns < self.dry_at_ns(slot) {
            return None;
        }
        let passed = self.grid.periods_in(done_ns).cast_unsigned() + 1;
        self.next = self.next.max(passed);
        Some(self.next - slot - 1)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::timer::Fraction;

    const PERIOD_NS: i64 = 1_000;

    fn card(periods: u32) -> Card {
        Card::new(Grid::new(PERIOD_NS as u64, Fraction::default()), periods)
    }

    #[test]
    fn with_two_periods_the_limit_is_one_period() {
        assert_eq!(card(2).write(5, 5_999), None);
        assert_eq!(card(2).write(5, 6_000), Some(1), "period 6 is lost: it was captured when the card stopped");
        assert_eq!(card(3).write(5, 6_999), None);
        assert_eq!(card(3).write(5, 7_000), Some(2));
    }

    #[test]
    fn processes_all_periods_captured_meanwhile() {
        let mut card = card(4);
        assert_eq!(card.captured(0, 2_500), 0..3);
        assert_eq!(card.write(0, 2_600), None);
        assert_eq!(card.captured(3, 3_010), 1..4);
        assert_eq!(card.captured(3, 2_990), 1..4, "a thread that woke early gets its period too");
    }

    #[test]
    fn a_stall_of_many_periods_is_one_xrun() {
        let mut card = card(2);
        assert_eq!(card.write(0, 500), None);
        assert_eq!(card.write(1, 50_500), Some(49));
        assert_eq!(card.captured(50, 50_500), 51..51, "the card starts with the next deadline");
    }

    /// A card modelled by counters: periods captured, played and written.
    struct Counters {
        periods: i64,
        /// The deadline at which the card started to play, and the number of periods written since.
        started_ns: i64,
        written: i64,
    }

    impl Counters {
        /// True if the card is stopped at `now_ns`: playback reached the end of the written data.
        fn is_dry(&self, now_ns: i64) -> bool {
            // One period is played while one is captured.
            let played = (now_ns - self.started_ns) / PERIOD_NS;
            played >= self.periods + self.written
        }
    }

    proptest! {
        /// A thread with the given processing times, against a card modelled by counters.
        #[test]
        fn xruns_match_a_card_modelled_by_counters(
            periods in 2..6u32, takes_ns in prop::collection::vec(prop_oneof![4 => 0..900i64, 1 => 0..6_000i64], 1..200)
        ) {
            let mut card = card(periods);
            let mut counters = Counters { periods: periods.into(), started_ns: -PERIOD_NS, written: 0 };
            let (mut now_ns, mut slot, mut lost, mut xruns) = (0, 0_u64, 0, 0);
            for takes_ns in takes_ns {
                now_ns = now_ns.max(card.deadline_ns(slot)) + takes_ns;
                let dry = counters.is_dry(now_ns);
                let written = card.write(slot, now_ns);
                prop_assert_eq!(written.is_some(), dry, "period {} at {} ns", slot, now_ns);
                counters.written += 1;
                slot += 1;
                if let Some(passed) = written {
                    (lost, xruns, slot) = (lost + passed, xruns + 1, slot + passed);
                    // The next period starts with the deadline before it.
                    counters = Counters { started_ns: card.deadline_ns(slot) - PERIOD_NS, written: 0, ..counters };
                    prop_assert!(counters.started_ns <= now_ns && now_ns <= card.deadline_ns(slot));
                }
                prop_assert_eq!(card.captured(slot, 0).start, slot);
            }
            prop_assert!(xruns <= lost, "each xrun loses at least one period");
        }
    }
}
