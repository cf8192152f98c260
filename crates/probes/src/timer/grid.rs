//! Deadlines with a fixed period, which need not be a whole number of ns.

/// The part of a period beyond its whole ns: `part / of` ns, below 1.
///
/// It keeps a grid exact over any time: 64 frames at 48 kHz take 1333333 1/3 ns, and without the fraction the grid
/// would be ahead by a whole period after an hour and a half.
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

/// Deadlines: number `k` is `k` periods after the first, rounded down to whole ns once, not `k` times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grid {
    period_ns: u64,
    fraction: Fraction,
}

impl Grid {
    /// Creates a grid of `period_ns` and a fraction.
    #[must_use]
    pub fn new(period_ns: u64, fraction: Fraction) -> Self {
        Self { period_ns, fraction }
    }

    /// Creates a grid whose period is the duration of `frames` at `rate_hz`, both above 0.
    #[must_use]
    pub fn of_frames(frames: u32, rate_hz: u32) -> Self {
        let (frames_ns, rate) = (u64::from(frames) * 1_000_000_000, u64::from(rate_hz.max(1)));
        #[expect(clippy::cast_possible_truncation, reason = "below the rate, which is 32 bits")]
        let part = (frames_ns % rate) as u32;
        Self { period_ns: frames_ns / rate, fraction: Fraction { part, of: rate_hz.max(1) } }
    }

    /// The period in whole ns, without the fraction.
    #[must_use]
    pub fn period_ns(&self) -> u64 {
        self.period_ns
    }

    /// The fraction of the period.
    #[must_use]
    pub fn fraction(&self) -> Fraction {
        self.fraction
    }

    /// Time from the first deadline to number `slot`, ns. For grids with a fraction, `slot` must be below 2^32 (50 days
    /// of 1 ms).
    #[inline]
    #[must_use]
    pub fn offset_ns(&self, slot: u64) -> i64 {
        let Fraction { part, of } = self.fraction;
        let parts_ns = if part == 0 { 0 } else { slot * u64::from(part) / u64::from(of) };
        (slot * self.period_ns + parts_ns).cast_signed()
    }

    /// Number of whole periods in a time; 0 for a negative one.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "at most `ns`, because a period is at least 1 ns")]
    pub fn periods_in(&self, ns: i64) -> i64 {
        let Fraction { part, of } = self.fraction;
        if part == 0 {
            return (ns / self.period_ns.cast_signed()).max(0);
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
    fn audio_periods_add_up_to_a_whole_day() {
        let grid = Grid::of_frames(64, 48_000);
        assert_eq!((grid.period_ns(), grid.fraction()), (1_333_333, Fraction { part: 16_000, of: 48_000 }));
        assert_eq!(grid.offset_ns(24 * 3600 * 750), 24 * 3600 * 1_000_000_000);
        assert_eq!((0..4).map(|slot| grid.offset_ns(slot)).collect::<Vec<_>>(), [0, 1_333_333, 2_666_666, 4_000_000]);
    }

    proptest! {
        #[test]
        fn each_deadline_is_rounded_down_once(frames in 1..4096u32, rate in 8_000..768_001u32, slot in 0..1u64 << 32) {
            let exact = u128::from(slot) * u128::from(frames) * 1_000_000_000 / u128::from(rate);
            prop_assert_eq!(u128::from(Grid::of_frames(frames, rate).offset_ns(slot).cast_unsigned()), exact);
        }

        #[test]
        fn counts_only_periods_that_have_passed(frames in 1..4096u32, rate in 8_000..768_001u32, ns in -1_000_000..1i64 << 42) {
            let grid = Grid::of_frames(frames, rate);
            let periods = grid.periods_in(ns);
            prop_assert!(periods >= 0 && (periods == 0 || grid.offset_ns(periods.cast_unsigned()) <= ns));
            prop_assert!(grid.offset_ns(periods.cast_unsigned() + 1) >= ns.max(0));
        }

        #[test]
        fn whole_ns_periods_are_divided_exactly(period_ns in 1..10_000_000u64, ns in -1_000_000..1i64 << 42) {
            let grid = Grid::new(period_ns, Fraction::default());
            prop_assert_eq!(grid.periods_in(ns), (ns / period_ns.cast_signed()).max(0));
        }
    }
}
