//! The delay effect: echoes whose time, number and brightness can be set.
//!
//! The time can be between two samples. There, a polynomial through the four nearest samples is used (Lagrange
//! interpolation of third order: T. I. Laakso et al., "Splitting the unit delay", IEEE Signal Processing Magazine,
//! 1996). At a whole number of samples it is exact.

use super::{
    one_pole::{LowPass, tone_coefficient},
    parameter::Parameter,
    settings::Settings,
    smooth::Smooth,
    stages::Effect,
    tap::Tap,
};
use crate::convert::{to_f32, whole};

/// Longest time, s.
const LONGEST_S: f32 = 2.0;
/// Shortest time, samples: the polynomial reads one sample after the position, which must be in the past.
const SHORTEST: f64 = 2.0;

/// Echoes of both sides.
#[derive(Debug)]
pub struct Echo {
    rate_hz: f32,
    sides: [Side; 2],
    /// Index of the next sample in the rings; their length is `mask + 1`.
    position: usize,
    mask: usize,
    /// Number of samples in the rings that belong to the sound; older ones count as 0.
    filled: usize,
    /// Fades the input in after a rest, because an echo of its start would click.
    input: Smooth,
    time: Tap<Position>,
    feedback: Smooth,
    mix: Smooth,
    tone: Smooth,
}

/// The past of one side.
#[derive(Debug)]
struct Side {
    ring: Vec<f32>,
    filter: LowPass,
}

/// A time in samples, and the weights of the samples that are one before it, at it, and one and two after it.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Position {
    samples: usize,
    weights: [f32; 4],
}

impl Position {
    fn new(samples: f64) -> Self {
        let samples = samples.max(SHORTEST);
        let d = samples.fract();
        let weights = [
            -d * (d - 1.0) * (d - 2.0) / 6.0,
            (d + 1.0) * (d - 1.0) * (d - 2.0) / 2.0,
            -d * (d + 1.0) * (d - 2.0) / 2.0,
            d * (d + 1.0) * (d - 1.0) / 6.0,
        ];
        Self { samples: whole(samples), weights: weights.map(to_f32) }
    }
}

impl Echo {
    pub fn new(rate_hz: f32) -> Self {
        let value = || Smooth::new(0.0, rate_hz);
        let length = (whole(f64::from(rate_hz * LONGEST_S)) + 4).next_power_of_two();
        let side = || Side { ring: vec![0.0; length], filter: LowPass::default() };
        Self {
            rate_hz,
            sides: [side(), side()],
            position: 0,
            mask: length - 1,
            filled: 0,
            time: Tap::new(Position::new(SHORTEST), rate_hz),
            input: Smooth::new(1.0, rate_hz),
            feedback: value(),
            mix: value(),
            tone: value(),
        }
    }

    /// Applies the settings, immediately or with ramps.
    pub fn apply_settings(&mut self, settings: &Settings, at_once: bool) {
        let ms = f64::from(settings.get(Parameter::DelayTime));
        self.time.set(Position::new(ms / 1000.0 * f64::from(self.rate_hz)), at_once);
        self.feedback.change_to(settings.get(Parameter::DelayFeedback), at_once);
        self.mix.change_to(settings.get(Parameter::DelayMix), at_once);
        self.tone.change_to(tone_coefficient(settings.get(Parameter::DelayTone), self.rate_hz), at_once);
    }
}

impl Side {
    /// The sample at a time before `now`.
    #[inline]
    fn past(&self, now: usize, at: &Position, filled: usize) -> f32 {
        let first = at.samples - 1;
        let sample = |i: usize| self.ring[now.wrapping_sub(first + i) & (self.ring.len() - 1)];
        match first + 3 <= filled {
            true => (0..4).map(|i| at.weights[i] * sample(i)).sum(),
            false => (0..4).filter(|i| first + i <= filled).map(|i| at.weights[i] * sample(i)).sum(),
        }
    }
}

impl Effect<2> for Echo {
    fn process(&mut self, [left, right]: [&mut [f32]; 2]) {
        let Self { sides, position, mask, filled, input, time, feedback, mix, tone, .. } = self;
        for frame in left.iter_mut().zip(right) {
            let now = *position;
            let past = time.read(|at| sides.each_ref().map(|side| side.past(now, at, *filled)));
            let (input, feedback, mix, tone) = (input.next(), feedback.next(), mix.next(), tone.next());
            for ((sample, side), past) in <[&mut f32; 2]>::from(frame).into_iter().zip(&mut *sides).zip(past) {
                let echo = side.filter.process(past, tone);
                side.ring[now] = input * *sample + feedback * echo;
                *sample += mix * (echo - *sample);
            }
            *position = (now + 1) & *mask;
            *filled = (*filled + 1).min(*mask);
        }
    }

    fn rest(&mut self) {
        self.filled = 0;
        self.input.set_now(0.0);
        self.input.set(1.0);
        self.sides.iter_mut().for_each(|side| side.filter = LowPass::default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE_HZ: f32 = 48_000.0;

    fn settings(time_ms: f32, feedback: f32, mix: f32, tone: f32) -> Settings {
        let mut settings = Settings::default();
        for (parameter, value) in [
            (Parameter::DelayTime, time_ms),
            (Parameter::DelayFeedback, feedback),
            (Parameter::DelayMix, mix),
            (Parameter::DelayTone, tone),
        ] {
            settings.set(parameter, value).unwrap();
        }
        settings
    }

    fn echo(settings: &Settings) -> Echo {
        let mut echo = Echo::new(RATE_HZ);
        echo.apply_settings(settings, true);
        echo
    }

    fn play(echo: &mut Echo, input: &[f32]) -> [Vec<f32>; 2] {
        let (mut left, mut right) = (input.to_vec(), vec![0.0; input.len()]);
        left.chunks_mut(64).zip(right.chunks_mut(64)).for_each(|(left, right)| echo.process([left, right]));
        [left, right]
    }

    fn click(frames: usize) -> Vec<f32> {
        let mut input = vec![0.0; frames];
        input[0] = 1.0;
        input
    }

    #[test]
    fn echoes_come_at_the_exact_sample_with_the_exact_level() {
        for (time_ms, period) in [(1.0, 48), (350.0, 16_800), (2000.0, 96_000)] {
            let [left, right] = play(&mut echo(&settings(time_ms, 0.5, 0.25, 1.0)), &click(3 * period + 10));
            for (n, &sample) in left.iter().enumerate() {
                let expected = match n % period {
                    0 if n == 0 => 0.75,
                    0 => 0.25 * 0.5_f32.powi(i32::try_from(n / period).unwrap() - 1),
                    _ => 0.0,
                };
                assert_eq!(sample, expected, "{time_ms} ms, sample {n}");
            }
            assert!(right.iter().all(|&sample| sample == 0.0), "the sides do not mix");
        }
    }

    #[test]
    fn a_time_between_two_samples_delays_by_that() {
        // 480.37 samples.
        let mut echo = echo(&settings(480.37 / 48.0, 0.0, 1.0, 1.0));
        let turn = 0.3;
        let input: Vec<f32> = (0..2000).map(|n| (n as f32 * turn).sin()).collect();
        let [left, _] = play(&mut echo, &input);
        for (n, &sample) in left.iter().enumerate().skip(600) {
            let expected = ((n as f32 - 480.37) * turn).sin();
            assert!((sample - expected).abs() < 1e-3, "sample {n}: {sample}, {expected}");
        }
    }

    #[test]
    fn every_echo_is_darker_than_the_one_before() {
        let [left, _] = play(&mut echo(&settings(10.0, 0.9, 1.0, 0.3)), &click(480 * 20));
        let level = |echo: usize, turn: f32| {
            let part = &left[480 * echo..480 * (echo + 1)];
            let sum = |of: fn(f32) -> f32| part.iter().enumerate().map(|(n, x)| x * of(n as f32 * turn)).sum::<f32>();
            sum(f32::cos).hypot(sum(f32::sin))
        };
        // The cutoff is 500 Hz times 40 to the power of 0.3: 1512 Hz.
        let turn = std::f32::consts::TAU * 1512.0 / RATE_HZ;
        for echo in 1..5 {
            let bright = level(echo, turn) / level(echo, 0.0);
            let expected = 0.5_f32.powf(echo as f32 / 2.0);
            assert!((bright / expected - 1.0).abs() < 0.06 * echo as f32, "echo {echo}: {bright}, {expected}");
            assert!((level(echo, 0.0) - 0.9_f32.powi(i32::try_from(echo).unwrap() - 1)).abs() < 1e-3);
        }
    }

    #[test]
    fn the_time_changes_without_a_click() {
        let input: Vec<f32> = (0..96_000).map(|n| (n as f32 * 0.005).sin()).collect();
        let mut echo = echo(&settings(300.0, 0.3, 0.5, 1.0));
        let (mut left, mut right) = (input.clone(), input);
        let mut worst = 0.0_f32;
        let mut last = 0.0;
        for (at, (left, right)) in left.chunks_mut(64).zip(right.chunks_mut(64)).enumerate() {
            // Quicker than a fade, also by less than a sample, as a pedal does.
            if at.is_multiple_of(7) {
                echo.apply_settings(&settings(1.0 + (at * 37 % 500) as f32, 0.3, 0.5, 1.0), false);
            } else if at.is_multiple_of(5) {
                echo.apply_settings(&settings(100.0 + at as f32 / 96.0, 0.3, 0.5, 1.0), false);
            }
            echo.process([left, right]);
            for &sample in &*left {
                worst = worst.max((sample - last).abs());
                last = sample;
            }
        }
        // The sine has steps of 0.005, and a fade of 960 samples between opposite signals of 1.4 adds 0.003.
        assert!(worst < 0.012, "{worst}");
    }

    #[test]
    fn silence_ends_at_zero() {
        let _flushed = crate::simd::flush_denormals();
        let mut echo = echo(&settings(1.0, 0.8, 0.5, 0.5));
        play(&mut echo, &click(64));
        let [left, _] = play(&mut echo, &[0.0; 96_000]);
        assert!(left[100] != 0.0 && left[90_000..] == [0.0; 6000]);
        assert_eq!(left.iter().filter(|sample| sample.is_subnormal()).count(), 0);
    }
}
