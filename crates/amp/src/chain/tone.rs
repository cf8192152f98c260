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
const STEP: usize = 8;

/// The three bands.
#[derive(Debug)]
pub struct Tone {
    bands: [Band; 3],
}

#[derive(Debug)]
struct Band {
    shape: Shape,
    gain_db: Smooth,
    /// Cosine and sine of the frequency.
    turn: (f32, f32),
    filter: Filter,
}

#[derive(Debug, Clone, Copy)]
enum Shape {
    LowShelf,
    Peak,
    HighShelf,
}

impl Tone {
    pub fn new(rate_hz: f32, gains_db: [f32; 3]) -> Self {
        let shapes = [Shape::LowShelf, Shape::Peak, Shape::HighShelf];
        let band = |i: usize| {
            let turn = 2.0 * PI * (BANDS_HZ[i] / rate_hz).min(0.45);
            let gain_db = Smooth::new(gains_db[i], rate_hz);
            let mut band =
                Band { shape: shapes[i], gain_db, turn: (turn.cos(), turn.sin()), filter: Filter::default() };
            band.make(gains_db[i]);
            band
        };
        Self { bands: std::array::from_fn(band) }
    }

    pub fn set(&mut self, gains_db: [f32; 3]) {
        self.bands.iter_mut().zip(gains_db).for_each(|(band, gain_db)| band.gain_db.set(gain_db));
    }

    pub fn process(&mut self, samples: &mut [f32]) {
        for band in &mut self.bands {
            if !band.gain_db.moves() {
                band.filter.process(samples);
                continue;
            }
            for samples in samples.chunks_mut(STEP) {
                let gain_db = samples.iter().fold(0.0, |_, _| band.gain_db.next());
                band.make(gain_db);
                band.filter.process(samples);
            }
        }
    }
}

impl Band {
    /// The filter for this gain; what it remembers stays.
    fn make(&mut self, gain_db: f32) {
        let (cos, sin) = self.turn;
        let a = 10.0_f32.powf(gain_db / 40.0);
        // With slope 1, alpha is sin / 2 * sqrt(2).
        let edge = sin * SQRT_2 * a.sqrt();
        let shelf = |sign: f32| {
            let cos = sign * cos;
            let (up, down) = (a + 1.0, a - 1.0);
            (
                [a * (up - down * cos + edge), sign * 2.0 * a * (down - up * cos), a * (up - down * cos - edge)],
                [up + down * cos + edge, sign * -2.0 * (down + up * cos), up + down * cos - edge],
            )
        };
        let (above, below) = match self.shape {
            Shape::LowShelf => shelf(1.0),
            Shape::HighShelf => shelf(-1.0),
            Shape::Peak => {
                let alpha = sin / (2.0 * PEAK_Q);
                ([1.0 + alpha * a, -2.0 * cos, 1.0 - alpha * a], [1.0 + alpha / a, -2.0 * cos, 1.0 - alpha / a])
            }
        };
        self.filter.above = above.map(|b| b / below[0]);
        self.filter.below = [below[1] / below[0], below[2] / below[0]];
    }
}

/// A second-order filter, transposed direct form II.
#[derive(Debug, Default)]
struct Filter {
    above: [f32; 3],
    below: [f32; 2],
    state: [f32; 2],
}

impl Filter {
    fn process(&mut self, samples: &mut [f32]) {
        let Self { above: [b0, b1, b2], below: [a1, a2], state: [mut first, mut second] } = *self;
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
