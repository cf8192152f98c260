//! Levels as they are told, and as they are computed with.

/// The factor of an amplitude, from its gain in dB.
pub fn db_to_gain(db: f32) -> f32 {
    10.0_f32.powf(db / 20.0)
}
