//! Sample rate conversion: windowed sinc with exact phases.
//!
//! The ratio of the rates is reduced to `up / down`. Every output sample has one of `up` phases, whose weights are in a
//! table. The window is Kaiser's; its width and shape follow J. F. Kaiser's formulas (Oppenheim and Schafer,
//! Discrete-Time Signal Processing, 7.6). The weights of every phase add up to 1, so that a constant input gives the
//! same constant output.

mod insert;
mod recording;
mod response;
mod streaming;

use std::f64::consts::PI;

use thiserror::Error;

use crate::convert::{to_f32, whole};
pub use insert::ResampledInsert;
pub use recording::RecordingResampler;
pub use response::response;

/// Maximum number of weights in a table: 64 MiB.
const MAX_WEIGHTS: usize = 1 << 24;

/// Unsupported ratio of sample rates: one is 0, they differ by a factor of more than 64, or the table would be too
/// large.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("cannot resample {from_hz} Hz to {to_hz} Hz; use common rates such as 44100, 48000 or 96000 Hz")]
pub struct RateError {
    /// Sample rate of the input, Hz.
    pub from_hz: u32,
    /// Sample rate of the output, Hz.
    pub to_hz: u32,
}

/// Quality of a conversion.
#[derive(Debug, Clone, Copy)]
struct Quality {
    /// Length of the kernel on each side, samples of the lower rate.
    half: f64,
    /// Attenuation of the stop band, dB.
    attenuation_db: f64,
    /// Middle of the transition band, relative to half the lower rate.
    middle: f64,
}

impl Quality {
    /// For files: -120 dB above half the lower rate; the passband reaches 0.92 of it (20.2 kHz of 22.05).
    const OFFLINE: Self = Self { half: 96.0, attenuation_db: 120.0, middle: 0.96 };
    /// For real time, with less delay: the passband reaches 0.89 of half the lower rate, -80 dB above 1.11 of it.
    const REAL_TIME: Self = Self { half: 24.0, attenuation_db: 80.0, middle: 1.0 };
}

/// The weights of every phase.
#[derive(Debug)]
struct PolyphaseFilter {
    up: usize,
    down: usize,
    /// Number of input samples before and after the output position; the last one before it may be at the position
    /// itself.
    half: usize,
    /// `2 * half` weights per phase.
    weights: Vec<f32>,
}

impl PolyphaseFilter {
    fn new(from_hz: u32, to_hz: u32, quality: Quality) -> Result<Self, RateError> {
        let error = RateError { from_hz, to_hz };
        let common = greatest_common_divisor(from_hz, to_hz);
        if from_hz == 0 || to_hz == 0 || from_hz.max(to_hz) > 64 * from_hz.min(to_hz) {
            return Err(error);
        }
        let (up, down) = ((to_hz / common) as usize, (from_hz / common) as usize);
        let narrow = (f64::from(to_hz) / f64::from(from_hz)).min(1.0);
        let half = whole((quality.half / narrow).ceil());
        if up.saturating_mul(2 * half) > MAX_WEIGHTS {
            return Err(error);
        }
        let beta = 0.1102 * (quality.attenuation_db - 8.7);
        let cutoff = narrow * quality.middle;
        let mut weights = Vec::with_capacity(up * 2 * half);
        for phase in 0..up {
            let mut sum = 0.0;
            let exact: Vec<f64> = (0..2 * half)
                .map(|i| {
                    let t = i as f64 + 1.0 - half as f64 - phase as f64 / up as f64;
                    let across = (t / half as f64).abs().min(1.0);
                    let weight = sinc(cutoff * t) * bessel_i0(beta * (1.0 - across * across).sqrt());
                    sum += weight;
                    weight
                })
                .collect();
            weights.extend(exact.iter().map(|weight| to_f32(weight / sum)));
        }
        Ok(Self { up, down, half, weights })
    }

    /// The output at `phase` after the middle of `samples`, whose number is `2 * half`.
    fn output(&self, phase: usize, samples: &[f32]) -> f32 {
        let weights = &self.weights[phase * 2 * self.half..][..2 * self.half];
        let mut sums = [0.0; 8];
        let (samples, last) = samples.as_chunks::<8>();
        let (weights, last_weights) = weights.as_chunks::<8>();
        for (samples, weights) in samples.iter().zip(weights) {
            for i in 0..8 {
                sums[i] += samples[i] * weights[i];
            }
        }
        let rest: f32 = last.iter().zip(last_weights).map(|(sample, weight)| sample * weight).sum();
        sums.iter().sum::<f32>() + rest
    }
}

/// Converts `samples` to another rate. The first sample keeps its position. The output has the same duration, rounded
/// up.
///
/// # Errors
/// [`RateError`] if the ratio of the rates is not supported.
pub fn resample(samples: &[f32], from_hz: u32, to_hz: u32) -> Result<Vec<f32>, RateError> {
    let mut resampler = RecordingResampler::new(from_hz, to_hz)?;
    let mut output = Vec::new();
    resampler.push(samples, &mut output);
    resampler.finish(&mut output);
    Ok(output)
}

/// The greatest common divisor, at least 1.
fn greatest_common_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a.max(1) } else { greatest_common_divisor(b, a % b) }
}

fn sinc(x: f64) -> f64 {
    if x == 0.0 { 1.0 } else { (PI * x).sin() / (PI * x) }
}

/// Modified Bessel function of the first kind and order 0, by its power series.
fn bessel_i0(x: f64) -> f64 {
    let (mut sum, mut term, mut n) = (1.0, 1.0, 1.0);
    while term > 1e-17 * sum {
        term *= (x / (2.0 * n)).powi(2);
        sum += term;
        n += 1.0;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sine(hz: f64, rate_hz: u32, frames: usize) -> Vec<f32> {
        let turn = 2.0 * PI * hz / f64::from(rate_hz);
        (0..frames).map(|n| to_f32((turn * n as f64).sin())).collect()
    }

    /// The largest error, not counting the ends of the signal.
    fn worst(samples: &[f32], expected: impl Fn(usize) -> f32) -> f32 {
        let inner = 400..samples.len() - 400;
        inner.map(|n| (samples[n] - expected(n)).abs()).fold(0.0, f32::max)
    }

    #[test]
    fn frequencies_of_both_rates_are_preserved() {
        for (from, to) in [(44_100, 48_000), (48_000, 44_100), (48_000, 96_000), (96_000, 44_100), (48_000, 44_099)] {
            let highest = 0.9 * f64::from(from.min(to)) / 2.0;
            for hz in [0.01 * highest, 0.3 * highest, highest] {
                let output = resample(&sine(hz, from, 9000), from, to).unwrap();
                let expected = sine(hz, to, output.len());
                let error = worst(&output, |n| expected[n]);
                assert!(error < 5e-6, "{from} to {to} at {hz:.0} Hz: {error:e}");
            }
        }
    }

    #[test]
    fn frequencies_above_the_lower_rate_are_removed() {
        for hz in [24_100.0, 30_000.0, 47_000.0] {
            let output = resample(&sine(hz, 96_000, 20_000), 96_000, 48_000).unwrap();
            let left = worst(&output, |_| 0.0);
            assert!(left < 1.5e-6, "{hz} Hz: {left:e}");
        }
    }

    #[test]
    fn constant_input_gives_constant_output_of_the_same_duration() {
        let output = resample(&[1.0; 4410], 44_100, 48_000).unwrap();
        assert_eq!(output.len(), 4800);
        assert!(worst(&output, |_| 1.0) < 1e-6);
        assert_eq!(resample(&[1.0, 2.0], 48_000, 48_000).unwrap(), [1.0, 2.0]);
    }

    #[test]
    fn rejects_unsupported_ratios() {
        for (from, to) in [(0, 48_000), (48_000, 0), (48_000, u32::MAX), (1_000_003, 999_983)] {
            assert_eq!(resample(&[0.0], from, to), Err(RateError { from_hz: from, to_hz: to }));
        }
    }
}
