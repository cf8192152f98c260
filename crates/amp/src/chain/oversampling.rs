//! Conversion between a sample rate and twice that rate, without a constant delay: half-band filters whose two phases
//! are chains of all-pass filters.
//!
//! The output is the mean of both phases, so the filter passes where they agree and stops where they are opposite. The
//! coefficients of the elliptic filter with a given transition band are those of R. A. Valenzuela and A. G.
//! Constantinides, "Digital signal processing schemes for efficient interpolation and decimation" (IEE Proceedings G,
//! 130/6, 1983). The two phases delay low frequencies by 1 to 2 samples of the lower rate and frequencies near the end
//! of the passband by more.

use std::f64::consts::PI;

use crate::convert::to_f32;

/// Number of terms of the series for the coefficients, which converge after few.
const TERMS: i32 = 12;

/// A half-band filter with `N` all-pass filters in each phase.
#[derive(Debug, Clone)]
pub struct HalfBand<const N: usize> {
    phases: [AllPassChain<N>; 2],
}

/// All-pass filters in series, each y = a (x - y') + x' at the lower rate.
#[derive(Debug, Clone)]
struct AllPassChain<const N: usize> {
    coefficients: [f32; N],
    /// The last input of each filter; the output of a filter is the input of the next one.
    inputs: [f32; N],
    last_output: f32,
}

impl<const N: usize> HalfBand<N> {
    /// A filter with a transition band of this width around half the lower rate, as a share of the higher rate.
    pub fn new(transition: f64) -> Self {
        let coefficients = coefficients(2 * N, transition);
        let chain = |phase: usize| AllPassChain {
            coefficients: std::array::from_fn(|i| to_f32(coefficients[2 * i + phase])),
            inputs: [0.0; N],
            last_output: 0.0,
        };
        Self { phases: [chain(0), chain(1)] }
    }

    /// The two samples at the higher rate for a sample.
    #[inline]
    pub fn double(&mut self, sample: f32) -> [f32; 2] {
        self.phases.each_mut().map(|phase| phase.process(sample))
    }

    /// The sample for two samples at the higher rate.
    #[inline]
    pub fn halve(&mut self, [first, second]: [f32; 2]) -> f32 {
        let [even, odd] = &mut self.phases;
        0.5 * (even.process(second) + odd.process(first))
    }
}

impl<const N: usize> AllPassChain<N> {
    #[inline]
    fn process(&mut self, sample: f32) -> f32 {
        let mut x = sample;
        for i in 0..N {
            let last_output = if i + 1 < N { self.inputs[i + 1] } else { self.last_output };
            let y = self.coefficients[i] * (x - last_output) + self.inputs[i];
            self.inputs[i] = x;
            x = y;
        }
        self.last_output = x;
        x
    }
}

/// The coefficients of `count` all-pass filters, which alternate between the phases.
fn coefficients(count: usize, transition: f64) -> Vec<f64> {
    let k = (0.25 * PI * (1.0 - 2.0 * transition)).tan().powi(2);
    let root = (1.0 - k * k).powf(0.25);
    let e = 0.5 * (1.0 - root) / (1.0 + root);
    let e4 = e.powi(4);
    let q = e * (1.0 + e4 * (2.0 + e4 * (15.0 + 150.0 * e4)));
    let order = (2 * count + 1) as f64;
    let coefficient = |index: usize| {
        let turn = index as f64 * PI / order;
        let sign = |term: i32| if term % 2 == 0 { 1.0 } else { -1.0 };
        let numerator: f64 =
            (0..TERMS).map(|i| sign(i) * q.powi(i * (i + 1)) * (f64::from(2 * i + 1) * turn).sin()).sum();
        let denominator: f64 = (1..TERMS).map(|i| sign(i) * q.powi(i * i) * (f64::from(2 * i) * turn).cos()).sum();
        let w = q.sqrt() * (numerator / (0.5 + denominator)).powi(2);
        let x = ((1.0 - w * k) * (1.0 - w / k)).sqrt() / (1.0 + w);
        (1.0 - x) / (1.0 + x)
    };
    (1..=count).map(coefficient).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sine(turns_per_sample: f64, samples: usize) -> impl Iterator<Item = f32> {
        (0..samples).map(move |n| to_f32((2.0 * PI * turns_per_sample * n as f64).sin()))
    }

    fn rms_db(samples: &[f32]) -> f64 {
        10.0 * (2.0 * samples.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>() / samples.len() as f64).log10()
    }

    /// Level of a sine at the higher rate after halving the rate, dB.
    fn halved_db<const N: usize>(transition: f64, turns_per_sample: f64) -> f64 {
        let mut filter = HalfBand::<N>::new(transition);
        let samples: Vec<f32> = sine(turns_per_sample, 20_000).collect();
        let output: Vec<f32> = samples.as_chunks().0.iter().map(|pair| filter.halve(*pair)).collect();
        rms_db(&output[2000..])
    }

    #[test]
    fn the_stop_band_is_removed_and_the_passband_kept() {
        for (transition, turns) in [(0.084, [0.01, 0.1, 0.2079]), (0.29, [0.01, 0.05, 0.104])] {
            for turns in turns {
                let (pass, stop) = match transition {
                    0.084 => (halved_db::<3>(transition, turns), halved_db::<3>(transition, 0.5 - turns)),
                    _ => (halved_db::<2>(transition, turns), halved_db::<2>(transition, 0.5 - turns)),
                };
                assert!(pass.abs() < 0.01 && stop < -90.0, "{turns}: {pass} dB, {stop} dB");
            }
        }
    }

    #[test]
    fn doubling_adds_no_image() {
        let mut filter = HalfBand::<3>::new(0.084);
        let doubled: Vec<f32> = sine(0.3001, 10_000).flat_map(|sample| filter.double(sample)).collect();
        assert!(rms_db(&doubled[2000..]).abs() < 0.01);
        // The image is at 0.5 - 0.15005 of the higher rate; a second filter passes only that.
        let mirrored: Vec<f32> = doubled.iter().enumerate().map(|(n, &x)| if n % 2 == 0 { x } else { -x }).collect();
        let mut filter = HalfBand::<3>::new(0.084);
        let image: Vec<f32> = mirrored.as_chunks().0.iter().map(|pair| filter.halve(*pair)).collect();
        assert!(rms_db(&image[2000..]) < -90.0, "{} dB", rms_db(&image[2000..]));
    }
}
