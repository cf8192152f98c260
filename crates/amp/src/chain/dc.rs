//! Removal of constant offsets: y = x - x' + r y', with r = exp(-2 pi 8 Hz / rate).

use crate::convert::to_f32;

/// Cutoff frequency, Hz.
const CUTOFF_HZ: f64 = 8.0;

/// The filter of one side. It computes in `f64`: because r is close to 1, rounding in `f32` would leave an offset.
#[derive(Debug)]
pub struct DcBlock {
    keep: f64,
    previous: f64,
    output: f64,
}

impl DcBlock {
    pub fn new(rate_hz: f32) -> Self {
        let keep = (-std::f64::consts::TAU * CUTOFF_HZ / f64::from(rate_hz)).exp();
        Self { keep, previous: 0.0, output: 0.0 }
    }

    pub fn process(&mut self, samples: &mut [f32]) {
        for sample in samples {
            let x = f64::from(*sample);
            self.output = x - self.previous + self.keep * self.output;
            self.previous = x;
            *sample = to_f32(self.output);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removes_an_offset_and_keeps_a_low_note() {
        let mut samples: Vec<f32> =
            (0..96_000).map(|n| 0.5 + (n as f32 * 82.0 * 6.283_185_5 / 48_000.0).sin()).collect();
        DcBlock::new(48_000.0).process(&mut samples);
        let last = &samples[48_000..];
        let mean = last.iter().sum::<f32>() / 48_000.0;
        let power = last.iter().map(|x| x * x).sum::<f32>() / 48_000.0;
        assert!(mean.abs() < 1e-3 && (power - 0.5).abs() < 0.01, "{mean} {power}");
    }
}
