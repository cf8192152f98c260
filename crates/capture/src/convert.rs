//! Conversions between number types.

/// The nearest integer, within the range of the type.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the cast saturates")]
pub(crate) fn nearest(value: f64) -> i64 {
    value.round() as i64
}

/// The largest integer that is not larger, within the range of the type.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the cast saturates")]
pub(crate) fn floor(value: f64) -> i64 {
    value.floor() as i64
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
