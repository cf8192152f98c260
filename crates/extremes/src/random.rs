//! Repeatable random numbers.

/// Pseudo-random numbers (SplitMix64; G. Steele, D. Lea, C. Flood, OOPSLA 2014).
#[derive(Debug)]
pub struct Random(pub u64);

impl Random {
    /// The next 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ (bits >> 31)
    }

    /// A random number between 0 and 1, neither of them.
    pub fn uniform(&mut self) -> f64 {
        ((self.bits() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    /// The values in random order (Fisher and Yates).
    pub fn shuffled(&mut self, mut values: Vec<usize>) -> Vec<usize> {
        for last in (1..values.len()).rev() {
            let other = self.bits() % (last as u64 + 1);
            // Not above `last`.
            values.swap(last, usize::try_from(other).unwrap_or(last));
        }
        values
    }
}
