//! When a sound card would run dry: the definition of an xrun, as it stands in `docs/audio.md`.

use std::ops::Range;

use crate::timer::Grid;

/// A sound card that the clock stands in for. It captures a period up to each deadline, and holds `periods` of them for
/// playback when it starts, silent ones. All times are ns after the first deadline.
#[derive(Debug, Clone)]
pub struct Card {
    grid: Grid,
    periods: u64,
    /// The first period that nobody has read.
    next: u64,
}

impl Card {
    /// A card that starts a period before the first deadline; `periods` is 2 or more.
    #[must_use]
    pub fn new(grid: Grid, periods: u32) -> Self {
        Self { grid, periods: u64::from(periods), next: 0 }
    }

    /// The periods that are to be read by a thread that woke for number `slot` and looked at the clock at `now_ns`: those
    /// that have been captured since it looked last.
    #[must_use]
    pub fn captured(&self, slot: u64, now_ns: i64) -> Range<u64> {
        self.next..slot.max(self.grid.periods_in(now_ns) as u64) + 1
    }

    /// When period `slot` was captured.
    #[must_use]
    pub fn deadline_ns(&self, slot: u64) -> i64 {
        self.grid.offset_ns(slot)
    }

    /// The first instant at which it is too late to write what was made of period `slot`: everything has been played.
    #[must_use]
    pub fn dry_at_ns(&self, slot: u64) -> i64 {
        self.grid.offset_ns(slot + self.periods - 1)
    }

    /// Writes what was made of period `slot` at `done_ns`. `Some` tells that the card had run dry, and how many periods are
    /// lost because it is started anew, with the next deadline.
    #[must_use]
    pub fn write(&mut self, slot: u64, done_ns: i64) -> Option<u64> {
        self.next = slot + 1;
        if done_ns < self.dry_at_ns(slot) {
            return None;
        }
        let passed = self.grid.periods_in(done_ns) as u64 + 1;
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
    fn two_periods_leave_one_to_play_in() {
        assert_eq!(card(2).write(5, 5_999), None);
        assert_eq!(card(2).write(5, 6_000), Some(1), "period 6 was captured when the card stopped");
        assert_eq!(card(3).write(5, 6_999), None);
        assert_eq!(card(3).write(5, 7_000), Some(2));
    }

    #[test]
    fn what_was_captured_meanwhile_is_played_at_once() {
        let mut card = card(4);
        assert_eq!(card.captured(0, 2_500), 0..3);
        assert_eq!(card.write(0, 2_600), None);
        assert_eq!(card.captured(3, 3_010), 1..4);
        assert_eq!(card.captured(3, 2_990), 1..4, "a thread that woke early has its period all the same");
    }

    #[test]
    fn a_stop_of_many_periods_is_one_xrun() {
        let mut card = card(2);
        assert_eq!(card.write(0, 500), None);
        assert_eq!(card.write(1, 50_500), Some(49));
        assert_eq!(card.captured(50, 50_500), 51..51, "the card starts with the next deadline");
    }

    /// What a card does, by its counters: how many periods it has captured and played, how many were written.
    struct Counters {
        periods: i64,
        /// The deadline at which the card began to play, and the first period that it captured after that.
        started_ns: i64,
        written: i64,
    }

    impl Counters {
        /// Whether it is stopped at `now_ns`: playback has come to the end of what was written.
        fn is_dry(&self, now_ns: i64) -> bool {
            // A period is played as one is captured.
            let played = (now_ns - self.started_ns) / PERIOD_NS;
            played >= self.periods + self.written
        }
    }

    proptest! {
        /// A thread that takes so long for each period, against a card that counts.
        #[test]
        fn an_xrun_is_what_a_card_s_counters_tell(
            periods in 2..6u32, takes_ns in prop::collection::vec(prop_oneof![4 => 0..900i64, 1 => 0..6_000i64], 1..200)
        ) {
            let mut card = card(periods);
            let mut counters = Counters { periods: periods.into(), started_ns: -PERIOD_NS, written: 0 };
            let (mut now_ns, mut slot, mut lost, mut xruns) = (0, 0_u64, 0, 0);
            for takes_ns in takes_ns {
                now_ns = now_ns.max(card.deadline_ns(slot)) + takes_ns;
                let dry = counters.is_dry(now_ns);
                let told = card.write(slot, now_ns);
                prop_assert_eq!(told.is_some(), dry, "period {} at {} ns", slot, now_ns);
                counters.written += 1;
                slot += 1;
                if let Some(passed) = told {
                    (lost, xruns, slot) = (lost + passed, xruns + 1, slot + passed);
                    // The next period begins with the deadline before it.
                    counters = Counters { started_ns: card.deadline_ns(slot) - PERIOD_NS, written: 0, ..counters };
                    prop_assert!(counters.started_ns <= now_ns && now_ns <= card.deadline_ns(slot));
                }
                prop_assert_eq!(card.captured(slot, 0).start, slot);
            }
            prop_assert!(xruns <= lost, "with an xrun at least one period passes");
        }
    }
}
