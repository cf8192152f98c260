//! Tone controls: second-order filters for a low shelf, a peak and a high shelf.
//!
//! The frequency responses are those of R. Bristow-Johnson, "Cookbook formulae for audio equalizer biquad filter
//! coefficients" (W3C Working Group Note, 2021), with A = 10^(dB/40), slope 1 for the shelves, and Q for the peak. The
//! filters are state-variable filters, whose state remains valid when the gain changes: A. Simper, "Solving the
//! continuous SVF equations using trapezoidal integration and equivalent currents" (Cytomic, 2013). They compute in
//! `f64`, because the frequencies are so far below the sample rate that `f32` would add noise.

use std::f64::consts::{PI, SQRT_2};

use super::smooth::Smooth;
use crate::convert::to_f32;

/// Frequencies of the bands, Hz.
const BANDS_HZ: [f64; 3] = [120.0, 600.0, 2500.0];
/// Q of the peak.
const PEAK_Q: f64 = 0.7;

/// The three bands.
#[derive(Debug)]
pub struct Tone {
    bands: [Band; 3],
}

#[derive(Debug)]
struct Band {
    shape: BandShape,
    gain_db: Smooth,
    /// tan(pi f / rate) for the frequency f of the band.
    tangent: f64,
    filter: StateVariable,
}

#[derive(Debug, Clone, Copy)]
enum BandShape {
    LowShelf,
    Peak,
    HighShelf,
}

impl Tone {
    pub fn new(rate_hz: f32, gains_db: [f32; 3]) -> Self {
        let shapes = [BandShape::LowShelf, BandShape::Peak, BandShape::HighShelf];
        let band = |i: usize| {
            let tangent = (PI * (BANDS_HZ[i] / f64::from(rate_hz)).min(0.45)).tan();
            let gain_db = Smooth::new(gains_db[i], rate_hz);
            let mut band = Band { shape: shapes[i], gain_db, tangent, filter: StateVariable::default() };
            band.set_gain(gains_db[i]);
            band
        };
        Self { bands: std::array::from_fn(band) }
    }

    pub fn set(&mut self, gains_db: [f32; 3]) {
        self.bands.iter_mut().zip(gains_db).for_each(|(band, gain_db)| band.gain_db.set(gain_db));
    }

    pub fn process(&mut self, samples: &mut [f32]) {
        for sample in samples {
            let through = self.bands.iter_mut().fold(f64::from(*sample), |x, band| {
                if band.gain_db.is_ramping() {
                    let gain_db = band.gain_db.next();
                    band.set_gain(gain_db);
                }
                band.filter.process(x)
            });
            *sample = to_f32(through);
        }
    }
}

impl Band {
    /// Sets the coefficients for this gain; the state remains.
    fn set_gain(&mut self, gain_db: f32) {
        let root = 10.0_f64.powf(f64::from(gain_db) / 80.0);
        let (a, a_squared) = (root * root, root.powi(4));
        let (g, k, mix) = match self.shape {
            BandShape::LowShelf => (self.tangent / root, SQRT_2, [1.0, SQRT_2 * (a - 1.0), a_squared - 1.0]),
            BandShape::Peak => {
                let k = 1.0 / (PEAK_Q * a);
                (self.tangent, k, [1.0, k * (a_squared - 1.0), 0.0])
            }
            BandShape::HighShelf => (self.tangent * root, SQRT_2, [a_squared, SQRT_2 * (1.0 - a) * a, 1.0 - a_squared]),
        };
        let first = 1.0 / (1.0 + g * (g + k));
        self.filter.a = [first, g * first, g * g * first];
        self.filter.mix = mix;
    }
}

/// A state-variable filter; the coefficients have the names of the paper.
#[derive(Debug, Default)]
struct StateVariable {
    a: [f64; 3],
    /// Shares of input, band pass and low pass in the output.
    mix: [f64; 3],
    /// Equivalent currents of the two integrators.
    state: [f64; 2],
}

impl StateVariable {
    #[inline]
    fn process(&mut self, x: f64) -> f64 {
        let Self { a: [a1, a2, a3], mix: [m0, m1, m2], state: [ic1, ic2] } = *self;
        let v3 = x - ic2;
        let v1 = a1 * ic1 + a2 * v3;
        let v2 = ic2 + a2 * ic1 + a3 * v3;
        self.state = [2.0 * v1 - ic1, 2.0 * v2 - ic2];
        m0 * x + m1 * v1 + m2 * v2
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::convert::whole;

    fn sine(hz: f64, amplitude: f64, rate_hz: f64, samples: usize) -> Vec<f32> {
        (0..samples).map(|n| to_f32(amplitude * (2.0 * PI * hz * n as f64 / rate_hz).sin())).collect()
    }

    /// Gain of a sine of this frequency, dB.
    fn gain_db(tone: &mut Tone, hz: f64) -> f64 {
        let mut samples = sine(hz, 1.0, 48_000.0, 48_000);
        tone.process(&mut samples);
        let power = samples[24_000..].iter().map(|&x| f64::from(x).powi(2)).sum::<f64>() / 24_000.0;
        10.0 * (2.0 * power).log10()
    }

    #[test]
    fn each_band_has_its_gain_at_its_frequency() {
        let cases = [
            ([6.0, 0.0, 0.0], [(20.0, 6.0), (120.0, 3.0), (5000.0, 0.0)]),
            ([0.0, -9.0, 0.0], [(20.0, 0.0), (600.0, -9.0), (15_000.0, 0.0)]),
            ([0.0, 0.0, 12.0], [(60.0, 0.0), (2500.0, 6.0), (18_000.0, 12.0)]),
        ];
        for (gains, expected) in cases {
            for (hz, expected) in expected {
                let measured = gain_db(&mut Tone::new(48_000.0, gains), hz);
                assert!((measured - expected).abs() < 0.25, "{gains:?} at {hz} Hz: {measured}");
            }
        }
    }

    /// Compared with the formula of the low shelf in the cookbook, on the unit circle.
    #[test]
    fn the_low_shelf_matches_the_cookbook_at_high_rates() {
        for (rate_hz, db) in [(44_100.0, 15.0), (96_000.0, -15.0), (192_000.0, 15.0)] {
            let (a, w0) = (10.0_f64.powf(db / 40.0), 2.0 * PI * 120.0 / rate_hz);
            let (cos, edge) = (w0.cos(), w0.sin() * SQRT_2 * a.sqrt());
            let b = [
                (a + 1.0) - (a - 1.0) * cos + edge,
                2.0 * ((a - 1.0) - (a + 1.0) * cos),
                (a + 1.0) - (a - 1.0) * cos - edge,
            ];
            let d = [
                (a + 1.0) + (a - 1.0) * cos + edge,
                -2.0 * ((a - 1.0) + (a + 1.0) * cos),
                (a + 1.0) + (a - 1.0) * cos - edge,
            ];
            for hz in [40.0, 120.0, 300.0] {
                let w = 2.0 * PI * hz / rate_hz;
                let size = |c: [f64; 3]| {
                    let (re, im) =
                        (c[0] + c[1] * w.cos() + c[2] * (2.0 * w).cos(), c[1] * w.sin() + c[2] * (2.0 * w).sin());
                    re.hypot(im)
                };
                let expected = 20.0 * (a * size(b) / size(d)).log10();
                // Whole periods, after the filter has settled.
                let (begin, period) = (whole(0.5 * rate_hz), whole((rate_hz / hz).round()));
                let mut samples = sine(hz, 0.1, rate_hz, begin + 20 * period);
                Tone::new(to_f32(rate_hz), [to_f32(db), 0.0, 0.0]).process(&mut samples);
                let power = samples[begin..].iter().map(|&x| f64::from(x).powi(2)).sum::<f64>() / (20 * period) as f64;
                let measured = 10.0 * (2.0 * power / 0.01).log10();
                assert!(
                    (measured - expected).abs() < 0.003,
                    "{rate_hz} Hz, {db} dB at {hz} Hz: {measured}, {expected}"
                );
            }
        }
    }

    #[test]
    fn zero_gain_changes_nothing() {
        let input: Vec<f32> = (0..4000).map(|n| ((n * n) as f32 * 0.001).sin()).collect();
        let mut samples = input.clone();
        Tone::new(48_000.0, [0.0; 3]).process(&mut samples);
        assert_eq!(samples, input);
    }

    /// Measures the signal above 2 kHz while a band moves from end to end under a low sine.
    #[test]
    fn gain_changes_are_inaudible() {
        let keep = (-2.0 * PI * 2000.0 / 48_000.0_f64).exp();
        let high = |samples: &[f32]| {
            let mut poles = [(0.0, 0.0); 4];
            let mut most = 0.0_f64;
            for (n, &sample) in samples.iter().enumerate() {
                let mut x = f64::from(sample);
                for (input, output) in &mut poles {
                    *output = keep * (*output + x - *input);
                    *input = x;
                    x = *output;
                }
                // Skips the start of the sine.
                if n >= 2400 {
                    most = most.max(x.abs());
                }
            }
            most
        };
        for band in 0..3 {
            for (from, to) in [(0.0, 15.0), (15.0, -15.0)] {
                let gains = |db: f32| std::array::from_fn(|i| if i == band { db } else { 0.0 });
                let mut tone = Tone::new(48_000.0, gains(from));
                let mut samples = sine(100.0, 0.1, 48_000.0, 14_400);
                let (before, after) = samples.split_at_mut(4800);
                tone.process(before);
                tone.set(gains(to));
                tone.process(after);
                assert!(high(&samples) < 1e-3, "band {band}, {from} to {to} dB: {:e}", high(&samples));
            }
        }
    }
}
