//! The reverb: a feedback delay network of 16 lines.
//!
//! Each line of m samples is attenuated to g = 10^(-3 m / (rate T)) per pass, so that every part of the sound decays by
//! 60 dB in the time T, and passes a low-pass filter, which lets high frequencies decay sooner (J.-M. Jot and A.
//! Chaigne, "Digital delay networks for designing artificial reverberators", 90th AES Convention, 1991). The outputs of
//! the lines are mixed by a Hadamard matrix, which keeps their power, and fed back. Left and right are two sums of all
//! lines with different signs.
//!
//! The filter is y = a x + p y', with the gain g at 0 Hz and h at [`HIGH_HZ`]. With r = (h / g)^2 and c the cosine of
//! that frequency, p is the smaller solution of (1 - r) p^2 - 2 (1 - r c) p + (1 - r) = 0, and a = g (1 - p).
//!
//! The input is scaled so that white noise keeps its level: with equal power q in all lines, the mean G of g^2 and the
//! input gain b, q = G q + b^2, so b^2 = 1 - G.

use std::f64::consts::TAU;

use super::{parameter::Parameter, settings::Settings, smooth::Smooth, stages::Effect, tap::Tap};
use crate::convert::{to_f32, whole};

/// Number of lines, a power of two.
const LINES: usize = 16;
/// Length of the shortest line for the smallest size, s.
const SHORTEST_S: f64 = 0.006;
/// Ratio of lengths between the largest and the smallest size.
const SIZES: f64 = 7.5;
/// Ratio of lengths between the longest and the shortest line.
const SPREAD: f64 = 2.7;
/// Frequency whose decay the damping sets, Hz.
const HIGH_HZ: f64 = 4000.0;
/// Signs of the lines in the left and the right output: two rows of the Hadamard matrix.
const SIGNS: [[f32; LINES]; 2] = [hadamard_row(5), hadamard_row(10)];

/// A reverb with two inputs and outputs.
#[derive(Debug)]
pub struct Reverb {
    rate_hz: f32,
    /// The rings of all lines, each of `mask + 1` samples.
    rings: Vec<f32>,
    /// Distance between the starts of two rings.
    stride: usize,
    mask: usize,
    /// Index of the next sample in all rings.
    position: usize,
    /// Number of samples in the rings that belong to the sound; older ones count as 0.
    filled: usize,
    /// Fades the input in after a rest, because an echo of its start would click.
    input: Smooth,
    lengths: Tap<[usize; LINES]>,
    /// The last outputs of the filters.
    filtered: [f32; LINES],
    shape: Shape,
    /// The coefficients now, and those before and after the last change, with its progress.
    coefficients: Coefficients,
    before: Coefficients,
    after: Coefficients,
    change: Smooth,
    mix: Smooth,
}

/// The settings that lengths and coefficients depend on.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Shape {
    size: f32,
    decay_s: f32,
    damping: f32,
}

/// The names are those of the module's formulas.
#[derive(Debug, Clone, Copy)]
struct Coefficients {
    a: [f32; LINES],
    p: [f32; LINES],
    b: f32,
}

impl Reverb {
    pub fn new(rate_hz: f32) -> Self {
        let shape = Shape { size: 1.0, decay_s: 1.0, damping: 0.0 };
        let lengths = shape.lengths(rate_hz.into());
        let ring = (lengths[LINES - 1] + 1).next_power_of_two();
        // An additional cache line, so that the rings do not compete for the same cache set.
        let stride = ring + 16;
        let coefficients = shape.coefficients(rate_hz.into());
        Self {
            rate_hz,
            rings: vec![0.0; LINES * stride],
            stride,
            mask: ring - 1,
            position: 0,
            filled: 0,
            lengths: Tap::new(lengths, rate_hz),
            filtered: [0.0; LINES],
            shape,
            coefficients,
            before: coefficients,
            after: coefficients,
            change: Smooth::new(1.0, rate_hz),
            input: Smooth::new(1.0, rate_hz),
            mix: Smooth::new(0.0, rate_hz),
        }
    }

    /// Applies the settings, immediately or with ramps.
    pub fn apply_settings(&mut self, settings: &Settings, at_once: bool) {
        self.mix.change_to(settings.get(Parameter::ReverbMix), at_once);
        let shape = Shape {
            size: settings.get(Parameter::ReverbSize),
            decay_s: settings.get(Parameter::ReverbDecay),
            damping: settings.get(Parameter::ReverbDamping),
        };
        if shape == self.shape {
            return;
        }
        self.shape = shape;
        self.lengths.set(shape.lengths(self.rate_hz.into()), at_once);
        self.before = self.coefficients;
        self.after = shape.coefficients(self.rate_hz.into());
        match at_once {
            true => {
                self.coefficients = self.after;
                self.change.set_now(1.0);
            }
            false => {
                self.change.set_now(0.0);
                self.change.set(1.0);
            }
        }
    }
}

impl Effect<2> for Reverb {
    fn process(&mut self, [left, right]: [&mut [f32]; 2]) {
        let Self { rings, stride, mask, position, filled, input, lengths, filtered, mix, .. } = self;
        let (stride, mask) = (*stride, *mask);
        for (left, right) in left.iter_mut().zip(right) {
            if self.change.is_ramping() {
                self.coefficients = self.before.towards(&self.after, self.change.next());
            }
            let Coefficients { a, p, b } = &self.coefficients;
            let now = *position;
            let past: [f32; LINES] = lengths.read(|lengths| {
                let sample = |line: usize| rings[line * stride + (now.wrapping_sub(lengths[line]) & mask)];
                // The last line is the longest.
                match lengths[LINES - 1] <= *filled {
                    true => std::array::from_fn(sample),
                    false => std::array::from_fn(|line| if lengths[line] <= *filled { sample(line) } else { 0.0 }),
                }
            });
            for line in 0..LINES {
                filtered[line] = a[line] * past[line] + p[line] * filtered[line];
            }
            let input = b * input.next();
            let inputs = [input * *left, input * *right];
            for (line, mixed) in mixed(*filtered).into_iter().enumerate() {
                rings[line * stride + now] = mixed + inputs[line % 2];
            }
            let mix = mix.next();
            for (sample, signs) in [left, right].into_iter().zip(&SIGNS) {
                *sample += mix * (sum(&past, signs) - *sample);
            }
            *position = (now + 1) & mask;
            *filled = (*filled + 1).min(mask);
        }
    }

    fn rest(&mut self) {
        self.filled = 0;
        self.input.set_now(0.0);
        self.input.set(1.0);
        self.filtered = [0.0; LINES];
    }
}

impl Shape {
    /// Lengths of the lines, samples.
    fn lengths(&self, rate_hz: f64) -> [usize; LINES] {
        let shortest = SHORTEST_S * SIZES.powf(self.size.into()) * rate_hz;
        let ratio = SPREAD.powf(1.0 / (LINES - 1) as f64);
        let mut length = shortest;
        std::array::from_fn(|_| {
            let whole = whole(length.round()).max(1);
            length *= ratio;
            whole
        })
    }

    fn coefficients(&self, rate_hz: f64) -> Coefficients {
        let decay_s = f64::from(self.decay_s);
        let high_decay_s = decay_s / 10.0_f64.powf(self.damping.into());
        let c = (TAU * (HIGH_HZ / rate_hz).min(0.45)).cos();
        let (mut a, mut p, mut power) = ([0.0; LINES], [0.0; LINES], 0.0);
        for (line, length) in self.lengths(rate_hz).into_iter().enumerate() {
            let gain = |decay_s: f64| 10.0_f64.powf(-3.0 * length as f64 / (rate_hz * decay_s));
            let g = gain(decay_s);
            let r = (gain(high_decay_s) / g).powi(2);
            let (half_sum, product) = (1.0 - r * c, 1.0 - r);
            let pole = if r < 1.0 { (half_sum - (half_sum.powi(2) - product.powi(2)).sqrt()) / product } else { 0.0 };
            (a[line], p[line]) = (to_f32(g * (1.0 - pole)), to_f32(pole));
            power += g * g / LINES as f64;
        }
        Coefficients { a, p, b: to_f32((1.0 - power).sqrt()) }
    }
}

impl Coefficients {
    /// These coefficients at 0, `after` at 1.
    fn towards(&self, after: &Self, share: f32) -> Self {
        if share == 1.0 {
            return *after;
        }
        let between = |before: f32, after: f32| before + share * (after - before);
        Self {
            a: std::array::from_fn(|line| between(self.a[line], after.a[line])),
            p: std::array::from_fn(|line| between(self.p[line], after.p[line])),
            b: between(self.b, after.b),
        }
    }
}

/// The product with the Hadamard matrix, scaled so that the power stays the same.
#[inline]
fn mixed(mut values: [f32; LINES]) -> [f32; LINES] {
    let mut half = LINES / 2;
    while half > 0 {
        let mut next = [0.0; LINES];
        for i in 0..LINES / 2 {
            // The next stage finds sums in the first half and differences in the second.
            let (sum, difference) = (values[2 * i] + values[2 * i + 1], values[2 * i] - values[2 * i + 1]);
            (next[i], next[i + LINES / 2]) = (sum, difference);
        }
        values = next;
        half /= 2;
    }
    const SCALE: f32 = 0.25;
    values.map(|value| value * SCALE)
}

/// The sum of the lines with these signs, scaled so that equal power in all lines gives the same power.
#[inline]
fn sum(values: &[f32; LINES], signs: &[f32; LINES]) -> f32 {
    let mut sums = [0.0; 4];
    for line in 0..LINES {
        sums[line % 4] += values[line] * signs[line];
    }
    0.25 * sums.iter().sum::<f32>()
}

/// Signs of a row of the Hadamard matrix: that of a column depends on the number of bits that row and column share.
const fn hadamard_row(row: usize) -> [f32; LINES] {
    let mut signs = [1.0; LINES];
    let mut column = 0;
    while column < LINES {
        if (row & column).count_ones() % 2 == 1 {
            signs[column] = -1.0;
        }
        column += 1;
    }
    signs
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE_HZ: f32 = 48_000.0;

    fn settings(size: f32, decay_s: f32, damping: f32, mix: f32) -> Settings {
        let mut settings = Settings::default();
        for (parameter, value) in [
            (Parameter::ReverbSize, size),
            (Parameter::ReverbDecay, decay_s),
            (Parameter::ReverbDamping, damping),
            (Parameter::ReverbMix, mix),
        ] {
            settings.set(parameter, value).unwrap();
        }
        settings
    }

    fn reverb(settings: &Settings, rate_hz: f32) -> Reverb {
        let mut reverb = Reverb::new(rate_hz);
        reverb.apply_settings(settings, true);
        reverb
    }

    fn play(reverb: &mut Reverb, input: &[f32]) -> [Vec<f32>; 2] {
        let (mut left, mut right) = (input.to_vec(), input.to_vec());
        left.chunks_mut(64).zip(right.chunks_mut(64)).for_each(|(left, right)| reverb.process([left, right]));
        [left, right]
    }

    fn click(frames: usize) -> Vec<f32> {
        let mut input = vec![0.0; frames];
        input[0] = 1.0;
        input
    }

    /// Time of a decay by 60 dB, s: from the time between -5 and -35 dB of the energy that is still to come (M. R.
    /// Schroeder, "New method of measuring reverberation time", 1965).
    fn decay_s(response: &[f32], rate_hz: f32) -> f32 {
        let mut left: f64 = response.iter().map(|&x| f64::from(x).powi(2)).sum();
        let whole = left;
        let mut reached = [None; 2];
        for (n, &x) in response.iter().enumerate() {
            left -= f64::from(x).powi(2);
            for (reached, db) in reached.iter_mut().zip([-5.0, -35.0]) {
                if reached.is_none() && 10.0 * (left / whole).log10() <= db {
                    *reached = Some(n);
                }
            }
        }
        let [from, to] = reached.map(|at| at.expect("decays by 35 dB"));
        2.0 * (to - from) as f32 / rate_hz
    }

    /// Level of a frequency over time, with a bandwidth of about 15 Hz.
    fn envelope(response: &[f32], hz: f32) -> Vec<f32> {
        let turn = std::f32::consts::TAU * hz / RATE_HZ;
        let mut parts = [[0.0_f32; 2]; 2];
        let keep = 0.999;
        let level = |(n, &x): (usize, &f32)| {
            let angle = n as f32 * turn % std::f32::consts::TAU;
            for (part, wave) in parts.iter_mut().zip([angle.cos(), angle.sin()]) {
                let mut x = x * wave;
                for pole in part {
                    *pole = keep * *pole + (1.0 - keep) * x;
                    x = *pole;
                }
            }
            parts[0][1].hypot(parts[1][1])
        };
        response.iter().enumerate().map(level).collect()
    }

    #[test]
    fn the_sound_decays_by_60_db_in_the_set_time() {
        for rate_hz in [44_100.0, 96_000.0] {
            for (size, set_s) in [(0.0, 0.3), (0.5, 1.0), (1.0, 2.0), (0.5, 5.0)] {
                let frames = whole(f64::from(rate_hz * set_s)) * 2;
                for side in play(&mut reverb(&settings(size, set_s, 0.0, 1.0), rate_hz), &click(frames)) {
                    let measured_s = decay_s(&side, rate_hz);
                    assert!(
                        (measured_s / set_s - 1.0).abs() < 0.05,
                        "size {size}: {measured_s} s instead of {set_s} s"
                    );
                }
            }
        }
    }

    #[test]
    fn high_frequencies_decay_sooner_by_the_damping() {
        let (set_s, damping) = (2.0, 0.5);
        let [response, _] = play(&mut reverb(&settings(0.5, set_s, damping, 1.0), RATE_HZ), &click(192_000));
        // Each frequency has few resonances, so that the mean of many bands is needed.
        for (hz, expected_s) in [(100.0, set_s), (4000.0, set_s / 10.0_f32.powf(damping))] {
            let bands = (-5_i8..=5).map(|band| decay_s(&envelope(&response, hz + 16.0 * f32::from(band)), RATE_HZ));
            let measured_s = bands.sum::<f32>() / 11.0;
            assert!((measured_s / expected_s - 1.0).abs() < 0.1, "{hz} Hz: {measured_s} s instead of {expected_s} s");
        }
    }

    #[test]
    fn noise_keeps_its_level_and_the_sides_differ() {
        let mut state = 1_u32;
        let noise: Vec<f32> = (0..480_000)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 8) as f32 / (1 << 23) as f32 - 1.0
            })
            .collect();
        let power = |samples: &[f32]| samples[240_000..].iter().map(|x| x * x).sum::<f32>() / 240_000.0;
        for (size, set_s) in [(0.0, 0.5), (1.0, 2.0), (1.0, 0.1)] {
            let [left, right] = play(&mut reverb(&settings(size, set_s, 0.0, 1.0), RATE_HZ), &noise);
            let common: f32 =
                left[240_000..].iter().zip(&right[240_000..]).map(|(l, r)| l * r).sum::<f32>() / 240_000.0;
            for side in [&left, &right] {
                let db = 10.0 * (power(side) / power(&noise)).log10();
                assert!(db.abs() < 1.0, "size {size}, {set_s} s: {db} dB");
            }
            assert!(common.abs() < 0.3 * power(&left), "size {size}, {set_s} s: {common}");
        }
    }

    #[test]
    fn the_first_reflection_comes_after_the_shortest_line() {
        for (size, first) in [(0.0, 288), (1.0, 2160)] {
            let [left, _] = play(&mut reverb(&settings(size, 1.0, 0.5, 0.5), RATE_HZ), &click(4000));
            assert_eq!(left[0], 0.5);
            assert_eq!(left.iter().skip(1).position(|&x| x != 0.0), Some(first - 1));
        }
    }

    #[test]
    fn settings_change_without_a_click() {
        let input: Vec<f32> = (0..192_000).map(|n| 0.5 * (n as f32 * 0.005).sin()).collect();
        let mut reverb = reverb(&settings(0.5, 1.0, 0.0, 0.5), RATE_HZ);
        let (mut left, mut right) = (input.clone(), input);
        let (mut last, mut worst) = (0.0_f32, 0.0_f32);
        for (at, (left, right)) in left.chunks_mut(64).zip(right.chunks_mut(64)).enumerate() {
            if at.is_multiple_of(7) {
                let share = (at * 37 % 101) as f32 / 100.0;
                reverb.apply_settings(&settings(share, 0.1 + 3.0 * (1.0 - share), share, 0.5), false);
            }
            reverb.process([left, right]);
            for &sample in &*left {
                worst = worst.max((sample - last).abs());
                last = sample;
            }
        }
        // A sine can meet a resonance of 4 times its level; its steps are 0.0025 and those of a fade 2 in 960.
        assert!(worst < 0.02, "{worst}");
    }

    #[test]
    fn mixing_keeps_the_power() {
        let values: [f32; LINES] = std::array::from_fn(|i| (i * i % 7) as f32 - 3.0);
        let power = |values: [f32; LINES]| values.iter().map(|x| x * x).sum::<f32>();
        assert!((power(mixed(values)) - power(values)).abs() < 1e-3);
        let mut unit = [0.0; LINES];
        unit[3] = 4.0;
        assert_eq!(mixed(unit), hadamard_row(3), "one line is spread over all of them");
    }

    #[test]
    fn silence_ends_at_zero() {
        let _flushed = crate::simd::flush_denormals();
        let mut reverb = reverb(&settings(0.0, 0.1, 0.5, 1.0), RATE_HZ);
        play(&mut reverb, &click(64));
        let [left, _] = play(&mut reverb, &[0.0; 144_000]);
        assert!(left[1000] != 0.0 && left[140_000..] == [0.0; 4000]);
        assert_eq!(left.iter().filter(|sample| sample.is_subnormal()).count(), 0);
    }
}
