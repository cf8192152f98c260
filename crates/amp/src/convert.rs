//! Conversions between numeric types.

/// The nearest `f32`; infinite beyond its range.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "rounding to `f32` is the purpose")]
pub fn to_f32(x: f64) -> f32 {
    x as f32
}

/// The whole part of `x`; 0 for negative values and NaN.
#[inline]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the conversion saturates")]
pub fn whole(x: f64) -> usize {
    x as usize
}

/// The factor of an amplitude for a gain in dB.
pub fn db_to_gain(db: f32) -> f32 {
    10.0_f32.powf(db / 20.0)
}
