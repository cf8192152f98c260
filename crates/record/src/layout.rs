//! The buckets of histograms: log-linear, 3 significant digits.
//!
//! Values below 2048 ns have one bucket each. Above that, each power of two is divided into 1024 buckets, so a bucket
//! is never wider than a thousandth of its values. This is the layout of `HdrHistogram` with 3 digits. A bucket is
//! named by the highest value in it, so a figure that is read back is never smaller than the measured one.

/// Buckets per power of two.
pub const PER_OCTAVE: u64 = 1024;

/// Returns the index of the bucket that contains `value_ns`.
#[inline]
#[must_use]
#[expect(clippy::cast_possible_truncation, reason = "below 2^16 for every value")]
pub const fn index_of(value_ns: u64) -> usize {
    let shift = shift_of(value_ns);
    (shift * PER_OCTAVE + (value_ns >> shift)) as usize
}

/// Returns the lowest value in bucket `index`.
#[must_use]
pub const fn lowest_in(index: usize) -> u64 {
    let index = index as u64;
    let octave = index / PER_OCTAVE;
    let shift = octave.saturating_sub(1);
    (index - shift * PER_OCTAVE) << shift
}

/// Returns the highest value in bucket `index`.
#[must_use]
pub const fn highest_in(index: usize) -> u64 {
    let octave = index as u64 / PER_OCTAVE;
    let shift = octave.saturating_sub(1);
    lowest_in(index) + ((1 << shift) - 1)
}

/// Returns the number of buckets that cover the values `0 .. 2^bits`, for `bits` of 11 to 63.
#[must_use]
pub const fn buckets_for_bits(bits: u32) -> usize {
    index_of((1 << bits) - 1) + 1
}

/// Returns how many low bits of `value_ns` its bucket ignores.
#[inline]
const fn shift_of(value_ns: u64) -> u64 {
    // OR with 2047 keeps the subtraction in range and gives all small values the shift 0.
    (53 - (value_ns | (2 * PER_OCTAVE - 1)).leading_zeros()) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn small_values_have_one_bucket_each() {
        for v in 0..2048_usize {
            let value = v as u64;
            assert_eq!((index_of(value), lowest_in(v), highest_in(v)), (v, value, value));
        }
        assert_eq!(index_of(2048), 2048);
        assert_eq!(index_of(2049), 2048);
        assert_eq!(highest_in(2048), 2049);
    }

    #[test]
    fn ten_seconds_need_25_600_buckets_or_fewer() {
        assert!(index_of(10_000_000_000) < 25_600);
        assert_eq!(buckets_for_bits(11), 2048);
    }

    proptest! {
        #[test]
        fn a_bucket_is_at_most_a_thousandth_wide(v in 0..i64::MAX as u64) {
            let i = index_of(v);
            prop_assert!(lowest_in(i) <= v && v <= highest_in(i));
            prop_assert!(highest_in(i) - lowest_in(i) <= v / PER_OCTAVE);
            prop_assert_eq!(index_of(highest_in(i)), i);
            prop_assert_eq!(index_of(highest_in(i) + 1), i + 1);
        }
    }
}
