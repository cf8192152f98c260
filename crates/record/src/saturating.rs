//! Differences and sums that saturate, for code that runs once for each frame of a capture.
//!
//! [`i64::saturating_sub`] computes the limit each time, without a branch, in six instructions. Times in captures do not
//! overflow, so a branch that is never taken is quicker: a tenth of the instructions of an analysis.

/// Operations that saturate.
pub trait Saturating: Sized {
    /// As [`i64::saturating_sub`].
    #[must_use]
    fn minus(self, other: Self) -> Self;

    /// As [`i64::saturating_add`].
    #[must_use]
    fn plus(self, other: Self) -> Self;
}

impl Saturating for i64 {
    #[inline(always)]
    fn minus(self, other: Self) -> Self {
        self.checked_sub(other).unwrap_or_else(|| saturated(self))
    }

    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        self.checked_add(other).unwrap_or_else(|| saturated(self))
    }
}

/// The limit that a sum or a difference is beyond, which begins with this number.
#[cold]
#[inline(never)]
fn saturated(first: i64) -> i64 {
    // Only a negative number leads below the smallest one.
    if first < 0 { i64::MIN } else { i64::MAX }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(a: i64, b: i64) {
        assert_eq!((a.minus(b), a.plus(b)), (a.saturating_sub(b), a.saturating_add(b)), "{a} {b}");
    }

    #[test]
    fn limits_are_those_of_the_type() {
        let edges = [i64::MIN, i64::MIN + 1, -1, 0, 1, i64::MAX - 1, i64::MAX];
        edges.iter().for_each(|&a| edges.iter().for_each(|&b| check(a, b)));
    }

    proptest! {
        #[test]
        fn results_are_those_of_the_library(a: i64, b: i64) {
            check(a, b);
        }
    }
}
