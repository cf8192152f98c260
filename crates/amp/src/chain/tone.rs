//! Three bands of tone, as second-order filters: a low shelf, a peak and a high shelf.
//!
//! Formulas: R. Bristow-Johnson, "Cookbook formulae for audio equalizer biquad filter coefficients" (W3C Working Group
//! Note, 2021), with A = 10^(dB/40), slope 1 for the shelves, and Q for the peak.

use std::f32::consts::{PI, SQRT_2};

use super::smooth::Smooth;

/// Where the bands are, Hz.
const BANDS_HZ: [f32; 3] = [120.0, 600.0, 2500.0];
/// Quality of the peak.
const PEAK_Q: f32 = 0.7;
/// While a band moves, its filter is made anew after so many samples.
const UPDATE_FRAMES: usize = 8;

/// The three bands.
#[derive(Debug)]
pub struct Tone {
    bands: [Band; 3],
}

#[derive(Debug)]
struct Band {
    shape: BandShape,
    gain_db: Smooth,
    /// Of the angle a sample at the band's frequency.
    cos_w0: f32,
    sin_w0: f32,
    filter: Biquad,
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
            let w0 = 2.0 * PI * (BANDS_HZ[i] / rate_hz).min(0.45);
            let gain_db = Smooth::new(gains_db[i], rate_hz);
            let mut band =
                Band { shape: shapes[i], gain_db, cos_w0: w0.cos(), sin_w0: w0.sin(), filter: Biquad::default() };
            band.set_gain(gains_db[i]);
            band
        };
        Self { bands: std::array::from_fn(band) }
    }

    pub fn set(&mut self, gains_db: [f32; 3]) {
        self.bands.iter_mut().zip(gains_db).for_each(|(band, gain_db)| band.gain_db.set(gain_db));
    }

    pub fn process(&mut self, samples: &mut [f32]) {
        for band in &mut self.bands {
            if !band.gain_db.is_ramping() {
                band.filter.process(samples);
                continue;
            }
            for samples in samples.chunks_mut(UPDATE_FRAMES) {
                let gain_db = samples.iter().fold(0.0, |_, _| band.gain_db.next());
                band.set_gain(gain_db);
                band.filter.process(samples);
            }
        }
    }
}

impl Band {
    /// The filter for this gain; what it remembers stays.
    fn set_gain(&mut self, gain_db: f32) {
        let (cos, sin) = (self.cos_w0, self.sin_w0);
        let amplitude = 10.0_f32.powf(gain_db / 40.0);
        // 2 * sqrt(A) * alpha, where alpha is sin / 2 * sqrt(2) with slope 1.
        let edge = sin * SQRT_2 * amplitude.sqrt();
        let shelf = |sign: f32| {
            let cos = sign * cos;
            let (up, down) = (amplitude + 1.0, amplitude - 1.0);
            (
                [
                    amplitude * (up - down * cos + edge),
                    sign * 2.0 * amplitude * (down - up * cos),
                    amplitude * (up - down * cos - edge),
                ],
                [up + down * cos + edge, sign * -2.0 * (down + up * cos), up + down * cos - edge],
            )
        };
        let (b, a) = match self.shape {
            BandShape::LowShelf => shelf(1.0),
            BandShape::HighShelf => shelf(-1.0),
            BandShape::Peak => {
                let alpha = sin / (2.0 * PEAK_Q);
                (
                    [1.0 + alpha * amplitude, -2.0 * cos, 1.0 - alpha * amplitude],
                    [1.0 + alpha / amplitude, -2.0 * cos, 1.0 - alpha / amplitude],
                )
            }
        };
        self.filter.b = b.map(|b| b / a[0]);
        self.filter.a = [a[1] / a[0], a[2] / a[0]];
    }
}

/// A second-order filter, transposed direct form II.
#[derive(Debug, Default)]
struct Biquad {
    /// Numerator and denominator, divided by a0.
    b: [f32; 3],
    a: [f32; 2],
    state: [f32; 2],
}

impl Biquad {
    fn process(&mut self, samples: &mut [f32]) {
        let Self { b: [b0, b1, b2], a: [a1, a2], state: [mut first, mut second] } = *self;
        for sample in samples {
            let x = *sample;
            let y = b0 * x + first;
            first = b1 * x - a1 * y + second;
            second = b2 * x - a2 * y;
            *sample = y;
        }
        self.state = [first, second];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a sine of this frequency gains, dB.
    fn gain_db(tone: &mut Tone, hz: f32) -> f32 {
        let mut samples: Vec<f32> = (0..48_000).map(|n| (2.0 * PI * hz * n as f32 / 48_000.0).sin()).collect();
        tone.process(&mut samples);
        let power = samples[24_000..].iter().map(|x| x * x).sum::<f32>() / 24_000.0;
        10.0 * (2.0 * power).log10()
    }

    #[test]
    fn each_band_has_its_gain_at_its_place() {
        let cases = [
            ([6.0, 0.0, 0.0], [(20.0, 6.0), (120.0, 3.0), (5000.0, 0.0)]),
            ([0.0, -9.0, 0.0], [(20.0, 0.0), (600.0, -9.0), (15_000.0, 0.0)]),
            ([0.0, 0.0, 12.0], [(60.0, 0.0), (2500.0, 6.0), (18_000.0, 12.0)]),
        ];
        for (gains, expected) in cases {
            for (hz, expected) in expected {
                let made = gain_db(&mut Tone::new(48_000.0, gains), hz);
                assert!((made - expected).abs() < 0.25, "{gains:?} at {hz} Hz: {made}");
            }
        }
    }

    #[test]
    fn flat_it_changes_nothing_to_speak_of() {
        let input: Vec<f32> = (0..4000).map(|n| ((n * n) as f32 * 0.001).sin()).collect();
        let mut samples = input.clone();
        Tone::new(48_000.0, [0.0; 3]).process(&mut samples);
        assert!(samples.iter().zip(&input).all(|(a, b)| (a - b).abs() < 1e-5));
    }

    #[test]
    fn turning_it_makes_no_step() {
        let mut tone = Tone::new(48_000.0, [-15.0; 3]);
        let mut samples: Vec<f32> = (0..9600).map(|n| 0.1 * (2.0 * PI * 200.0 * n as f32 / 48_000.0).sin()).collect();
        let (before, after) = samples.split_at_mut(4800);
        tone.process(before);
        tone.set([15.0; 3]);
        tone.process(after);
        // A sine of 200 Hz, ten times as large, moves by 0.026 a sample at most.
        let steps = samples[100..].windows(2).map(|pair| (pair[1] - pair[0]).abs());
        let most = steps.fold(0.0, f32::max);
        assert!(most < 0.03, "{most}");
    }
}
