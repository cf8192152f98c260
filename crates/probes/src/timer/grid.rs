//! Deadlines at a fixed distance, also where that is no whole number of ns.

/// What each period is longer than its whole ns: `part / of` of one, below 1.
///
/// With it a grid is as exact after a day as at its begin: 64 frames at 48 kHz take 1333333 1/3 ns, and without the third
/// the grid would run ahead by a whole period every hour and a half.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fraction {
    part: u32,
    of: u32,
}

impl Default for Fraction {
    fn default() -> Self {
        Self { part: 0, of: 1 }
    }
}

/// Deadlines: number `k` lies `k` periods after the first, rounded down to a whole ns once, not `k` times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grid {
    period_ns: u64,
    fraction: Fraction,
}

impl Grid {
    /// A grid of `period_ns` and a fraction.
    #[must_use]
    pub fn new(period_ns: u64, fraction: Fraction) -> Self {
        Self { period_ns, fraction }
    }

    /// A grid of a period in which so many frames are played at so many a second, both above 0.
    #[must_use]
    pub fn of_frames(frames: u32, rate_hz: u32) -> Self {
        let (frames_ns, rate) = (u64::from(frames) * 1_000_000_000, u64::from(rate_hz.max(1)));
        let part = (frames_ns % rate) as u32;
        Self { period_ns: frames_ns / rate, fraction: Fraction { part, of: rate_hz.max(1) } }
    }

    /// The period without its fraction, ns.
    #[must_use]
    pub fn period_ns(&self) -> u64 {
        self.period_ns
    }

    /// The fraction of its period.
    #[must_use]
    pub fn fraction(&self) -> Fraction {
        self.fraction
    }

    /// From the first deadline to number `slot`, ns. Of grids with a fraction `slot` is below 2^32, two months of 1 ms.
    #[inline]
    #[must_use]
    pub fn offset_ns(&self, slot: u64) -> i64 {
        let Fraction { part, of } = self.fraction;
        let parts_ns = if part == 0 { 0 } else { slot * u64::from(part) / u64::from(of) };
        (slot * self.period_ns + parts_ns) as i64
    }

    /// How many whole periods lie in a time; 0 in one before its deadline.
    #[must_use]
    pub fn periods_in(&self, ns: i64) -> i64 {
        let Fraction { part, of } = self.fraction;
        if part == 0 {
            return (ns / self.period_ns as i64).max(0);
        }
        let of = i128::from(of);
        let period = i128::from(self.period_ns) * of + i128::from(part);
        (i128::from(ns) * of / period).max(0) as i64
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_day_of_audio_is_a_day() {
        let grid = Grid::of_frames(64, 48_000);
        assert_eq!((grid.period_ns(), grid.fraction()), (1_333_333, Fraction { part: 16_000, of: 48_000 }));
        assert_eq!(grid.offset_ns(24 * 3600 * 750), 24 * 3600 * 1_000_000_000);
        assert_eq!((0..4).map(|slot| grid.offset_ns(slot)).collect::<Vec<_>>(), [0, 1_333_333, 2_666_666, 4_000_000]);
    }

    proptest! {
        #[test]
        fn each_deadline_is_the_exact_one_rounded_down(frames in 1..4096u32, rate in 8_000..768_001u32, slot in 0..1u64 << 32) {
            let exact = u128::from(slot) * u128::from(frames) * 1_000_000_000 / u128::from(rate);
            prop_assert_eq!(Grid::of_frames(frames, rate).offset_ns(slot) as u128, exact);
        }

        #[test]
        fn whole_periods_have_passed_and_the_next_has_not(frames in 1..4096u32, rate in 8_000..768_001u32, ns in -1_000_000..1i64 << 42) {
            let grid = Grid::of_frames(frames, rate);
            let periods = grid.periods_in(ns);
            prop_assert!(periods >= 0 && (periods == 0 || grid.offset_ns(periods as u64) <= ns));
            prop_assert!(grid.offset_ns(periods as u64 + 1) >= ns.max(0));
        }

        #[test]
        fn whole_ns_are_counted_as_ever(period_ns in 1..10_000_000u64, ns in -1_000_000..1i64 << 42) {
            let grid = Grid::new(period_ns, Fraction::default());
            prop_assert_eq!(grid.periods_in(ns), (ns / period_ns as i64).max(0));
        }
    }
}
