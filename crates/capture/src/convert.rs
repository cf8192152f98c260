//! Conversions between number types.

use record::saturating::Saturating;

/// The nearest integer, away from zero if two are equally near, within the range of the type. Without a call of
/// [`f64::round`], which is a function of the C library on processors of the base level.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the cast saturates")]
pub(crate) fn nearest(value: f64) -> i64 {
    let whole = value as i64;
    let rest = value - whole as f64;
    whole.plus(i64::from(rest >= 0.5) - i64::from(rest <= -0.5))
}

/// The largest integer that is not larger, within the range of the type.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the cast saturates")]
pub(crate) fn floor(value: f64) -> i64 {
    let whole = value as i64;
    whole.saturating_sub(i64::from(value < whole as f64))
}

/// A length with a sign, within the range of the type.
#[inline]
pub(crate) fn signed(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}

/// A length in 32 bits, within the range of the type.
pub(crate) fn length(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[expect(clippy::cast_possible_truncation, reason = "the casts saturate")]
    fn check(value: f64) {
        assert_eq!((nearest(value), floor(value)), (value.round() as i64, value.floor() as i64), "{value}");
    }

    #[test]
    fn rounds_as_the_library_does() {
        let edges = [0.0, 0.5, 0.499_999_999_999_999_94, 1.5, 2.5, 4_503_599_627_370_495.5, 9.3e18, f64::INFINITY];
        edges.iter().for_each(|&edge| [edge, -edge].into_iter().for_each(check));
        check(f64::NAN);
    }

    proptest! {
        #[test]
        fn rounds_any_number_as_the_library_does(value: f64, near in -1e6..1e6) {
            [value, near, near.trunc() + 0.5].into_iter().for_each(check);
        }
    }
}
