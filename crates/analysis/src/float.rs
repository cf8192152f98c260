//! Conversions of floating-point numbers to integers: without the fraction, limited to the range of the integer, and 0
//! for NaN.

/// `value` as `u64`.
#[must_use]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "casts of floating-point numbers saturate")]
pub fn to_u64(value: f64) -> u64 {
    value as u64
}

/// `value` as `usize`.
#[must_use]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "casts of floating-point numbers saturate")]
pub fn to_usize(value: f64) -> usize {
    value as usize
}

/// `value` as `i32`.
#[must_use]
#[expect(clippy::cast_possible_truncation, reason = "casts of floating-point numbers saturate")]
pub fn to_i32(value: f64) -> i32 {
    value as i32
}

/// `value` as `i64`.
#[must_use]
#[expect(clippy::cast_possible_truncation, reason = "casts of floating-point numbers saturate")]
pub fn to_i64(value: f64) -> i64 {
    value as i64
}
