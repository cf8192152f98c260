//! Converts the timestamp ticks of a capture to nanoseconds.

/// The length of a tick and the time of tick 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Clock {
    scale: Scale,
    offset_s: i64,
    /// Length of a tick, rounded up, ns.
    pub(crate) resolution_ns: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scale {
    /// Nanoseconds per tick.
    Times(u64),
    /// Ticks per nanosecond.
    Per(u128),
    /// The second has 2^n ticks.
    Shift(u32),
}

const SECOND_NS: i128 = 1_000_000_000;

impl Clock {
    /// The clock for `if_tsresol` (a negative power of ten, or of two if bit 7 is set) and `if_tsoffset` (seconds).
    pub(crate) fn new(tsresol: u8, offset_s: i64) -> Self {
        let exponent = u32::from(tsresol & 0x7f);
        let scale = match exponent {
            n if tsresol & 0x80 != 0 => Scale::Shift(n),
            n @ 0..=9 => Scale::Times(10u64.pow(9 - n)),
            // Ticks of 10^-48 s or less: even the largest count is less than 1 ns.
            n => Scale::Per(10u128.checked_pow(n - 9).unwrap_or(u128::MAX)),
        };
        let resolution_ns = match scale {
            Scale::Times(ns) => ns,
            Scale::Per(_) => 1,
            Scale::Shift(n) => u64::try_from(1_000_000_000u128.div_ceil(1 << n)).unwrap_or(u64::MAX).max(1),
        };
        Self { scale, offset_s, resolution_ns }
    }

    /// Nanoseconds since 1970, rounded down; `None` on overflow of 64 bits.
    #[inline]
    pub(crate) fn ns(&self, ticks: u64) -> Option<i64> {
        if let (Scale::Times(ns), 0) = (self.scale, self.offset_s) {
            return i64::try_from(ticks.checked_mul(ns)?).ok();
        }
        let ns = match self.scale {
            Scale::Times(ns) => i128::from(ticks) * i128::from(ns),
            Scale::Per(ticks_a_ns) => (u128::from(ticks) / ticks_a_ns).cast_signed(),
            Scale::Shift(n) => (i128::from(ticks) * SECOND_NS) >> n,
        };
        i64::try_from(ns + i128::from(self.offset_s) * SECOND_NS).ok()
    }
}

impl Default for Clock {
    /// Microseconds, the default of pcapng.
    fn default() -> Self {
        Self::new(6, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn converts_all_resolutions() {
        assert_eq!(Clock::default().ns(1_500_000), Some(1_500_000_000));
        assert_eq!(Clock::new(9, -2).ns(2_000_000_007), Some(7));
        assert_eq!(Clock::new(12, 0).ns(7_999), Some(7));
        assert_eq!(Clock::new(0x80 | 10, 0).ns(1536), Some(1_500_000_000));
        let resolutions =
            [0, 6, 9, 12, 127, 0x80, 0x8a, 0x9e, 0xff].map(|tsresol| Clock::new(tsresol, 0).resolution_ns);
        assert_eq!(resolutions, [1_000_000_000, 1_000, 1, 1, 1, 1_000_000_000, 976_563, 1, 1]);
        assert_eq!(Clock::new(0, 0).ns(u64::MAX), None);
    }

    proptest! {
        #[test]
        fn arbitrary_ticks_do_not_overflow(tsresol in any::<u8>(), offset_s in any::<i64>(), ticks in any::<u64>()) {
            Clock::new(tsresol, offset_s).ns(ticks);
        }

        #[test]
        fn fast_path_equals_the_general_path(ticks in any::<u64>(), exponent in 0..10u8) {
            let long = i64::try_from(i128::from(ticks) * 10i128.pow(9 - u32::from(exponent))).ok();
            prop_assert_eq!(Clock::new(exponent, 0).ns(ticks), long);
        }
    }
}
