//! Filters of first order, for tone controls and damping.

use std::f32::consts::TAU;

/// Cutoff of a tone control at 0, Hz.
const DARKEST_HZ: f32 = 500.0;
/// Cutoff of a tone control just below 1, Hz.
const BRIGHTEST_HZ: f32 = 20_000.0;

/// A low-pass filter: y = a x + (1 - a) y', with a = 1 - exp(-2 pi f / rate) for the cutoff f.
#[derive(Debug, Clone, Default)]
pub struct LowPass {
    output: f32,
}

impl LowPass {
    /// Filters a sample with the coefficient a; 1 returns it unchanged.
    #[inline]
    pub fn process(&mut self, sample: f32, a: f32) -> f32 {
        self.output = a * sample + (1.0 - a) * self.output;
        self.output
    }
}

/// The coefficient for a cutoff frequency.
pub fn coefficient(cutoff_hz: f32, rate_hz: f32) -> f32 {
    1.0 - (-TAU * cutoff_hz / rate_hz).exp()
}

/// The coefficient for a tone control, 0 to 1: the cutoff is 500 Hz at 0 and rises by equal intervals to 20 kHz. 1 is
/// no filter.
pub fn tone_coefficient(tone: f32, rate_hz: f32) -> f32 {
    match tone {
        1.0 => 1.0,
        tone => coefficient(DARKEST_HZ * (BRIGHTEST_HZ / DARKEST_HZ).powf(tone), rate_hz),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tone_of_one_changes_nothing() {
        let mut filter = LowPass::default();
        let a = tone_coefficient(1.0, 48_000.0);
        for sample in [0.3, -1e-20, 17.1] {
            assert_eq!(filter.process(sample, a), sample);
        }
    }

    #[test]
    fn the_cutoff_is_half_the_power() {
        for (tone, hz) in [(0.0, 500.0_f32), (0.5, 3162.3)] {
            let rate_hz = 192_000.0;
            let a = tone_coefficient(tone, rate_hz);
            let mut filter = LowPass::default();
            let output: Vec<f32> =
                (0..192_000).map(|n| filter.process((n as f32 / rate_hz % 1.0 * hz * TAU).sin(), a)).collect();
            let power = output[96_000..].iter().map(|y| y * y).sum::<f32>() / 96_000.0;
            let level_db = 10.0 * (2.0 * power).log10();
            assert!((level_db + 3.0).abs() < 0.2, "{tone}: {level_db} dB");
        }
    }
}
