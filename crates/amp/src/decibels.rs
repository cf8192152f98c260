//! Conversion from decibels.

/// The amplitude factor of a gain in dB.
pub fn db_to_gain(db: f32) -> f32 {
    10.0_f32.powf(db / 20.0)
}
