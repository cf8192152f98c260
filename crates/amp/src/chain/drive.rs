//! The drive: a high-pass filter, a soft clipper, a low-pass filter and a level, as in an overdrive pedal.
//!
//! The clipper is y = x / sqrt(1 + x^2). Its overtones would be mirrored at half the sample rate. Two measures prevent
//! that: it runs at four times the rate, and each output is the mean of the curve between two samples instead of its
//! value at a sample (J. Parker, V. Zavalishin and E. Le Bivic, "Reducing the aliasing of nonlinear waveshaping using
//! continuous-time convolution", DAFx 2016). The mean of this curve between a and b is (sqrt(1 + b^2) - sqrt(1 + a^2))
//! / (b - a), which equals (a + b) / (sqrt(1 + a^2) + sqrt(1 + b^2)): a form that is exact for equal samples, too.
//!
//! The filters of the rate conversion have no constant delay, so none is reported. They delay low frequencies by 4 to 5
//! samples, 0.1 ms at 48 kHz.

use super::{
    one_pole::{LowPass, coefficient, tone_coefficient},
    oversampling::HalfBand,
    parameter::Parameter,
    settings::Settings,
    smooth::Smooth,
    stages::Effect,
};
use crate::convert::db_to_gain;

/// Transition bands of the rate conversion, as a share of the higher rate: the passband reaches 0.83 of half the sample
/// rate, 20 kHz at 48 kHz. From two to four times the rate, the band between is empty and the transition can be wider.
const TRANSITIONS: [f64; 2] = [0.084, 0.29];

/// A drive.
#[derive(Debug)]
pub struct Drive {
    rate_hz: f32,
    gain: Smooth,
    level: Smooth,
    /// Coefficients of the two filters.
    low_cut: Smooth,
    tone: Smooth,
    filters: Filters,
    clipper: Clipper,
    /// The filters before any sound.
    silent: Filters,
}

#[derive(Debug, Clone)]
struct Filters {
    low_part: LowPass,
    low_pass: LowPass,
    to_double: HalfBand<3>,
    to_quadruple: HalfBand<2>,
    from_quadruple: HalfBand<2>,
    from_double: HalfBand<3>,
}

impl Drive {
    pub fn new(rate_hz: f32) -> Self {
        let value = || Smooth::new(0.0, rate_hz);
        let [double, quadruple] = TRANSITIONS;
        let silent = Filters {
            low_part: LowPass::default(),
            low_pass: LowPass::default(),
            to_double: HalfBand::new(double),
            to_quadruple: HalfBand::new(quadruple),
            from_quadruple: HalfBand::new(quadruple),
            from_double: HalfBand::new(double),
        };
        Self {
            rate_hz,
            gain: value(),
            level: value(),
            low_cut: value(),
            tone: value(),
            filters: silent.clone(),
            clipper: Clipper::SILENT,
            silent,
        }
    }

    /// Applies the settings, immediately or with ramps.
    pub fn apply_settings(&mut self, settings: &Settings, at_once: bool) {
        let low_cut = coefficient(settings.get(Parameter::DriveLowCut), self.rate_hz);
        let tone = tone_coefficient(settings.get(Parameter::DriveTone), self.rate_hz);
        self.gain.change_to(db_to_gain(settings.get(Parameter::DriveGain)), at_once);
        self.level.change_to(db_to_gain(settings.get(Parameter::DriveLevel)), at_once);
        self.low_cut.change_to(low_cut, at_once);
        self.tone.change_to(tone, at_once);
    }
}

impl Effect<1> for Drive {
    fn process(&mut self, [samples]: [&mut [f32]; 1]) {
        let Self { gain, level, low_cut, tone, filters, clipper, .. } = self;
        for sample in samples {
            let cut = *sample - filters.low_part.process(*sample, low_cut.next());
            let doubled = filters.to_double.double(cut * gain.next());
            let clipped = doubled.map(|sample| {
                let quadrupled = filters.to_quadruple.double(sample).map(|sample| clipper.process(sample));
                filters.from_quadruple.halve(quadrupled)
            });
            let clipped = filters.from_double.halve(clipped);
            *sample = filters.low_pass.process(clipped, tone.next()) * level.next();
        }
    }

    fn rest(&mut self) {
        self.filters.clone_from(&self.silent);
        self.clipper = Clipper::SILENT;
    }
}

/// The clipper, with the last sample x and sqrt(1 + x^2).
#[derive(Debug)]
struct Clipper {
    last: f32,
    last_root: f32,
}

impl Clipper {
    const SILENT: Self = Self { last: 0.0, last_root: 1.0 };

    #[inline]
    fn process(&mut self, sample: f32) -> f32 {
        let root = (1.0 + sample * sample).sqrt();
        let mean = (self.last + sample) / (self.last_root + root);
        (self.last, self.last_root) = (sample, root);
        mean
    }
}

#[cfg(test)]
mod tests {
    use std::f64::consts::TAU;

    use super::*;
    use crate::convert::to_f32;

    const RATE_HZ: usize = 48_000;

    fn drive(gain_db: f32) -> Drive {
        let mut settings = Settings::default();
        let values = [
            (Parameter::DriveGain, gain_db),
            (Parameter::DriveTone, 1.0),
            (Parameter::DriveLevel, 0.0),
            (Parameter::DriveLowCut, 20.0),
        ];
        values.into_iter().for_each(|(parameter, value)| settings.set(parameter, value).unwrap());
        let mut drive = Drive::new(RATE_HZ as f32);
        drive.apply_settings(&settings, true);
        drive
    }

    fn sine(hz: usize, amplitude: f64) -> Vec<f32> {
        let turn = TAU * hz as f64 / RATE_HZ as f64;
        (0..2 * RATE_HZ).map(|n| to_f32(amplitude * (turn * n as f64).sin())).collect()
    }

    /// Power of the last second, and its share at one frequency.
    fn power(samples: &[f32], hz: usize) -> (f64, f64) {
        let last = &samples[RATE_HZ..];
        let turn = TAU * hz as f64 / RATE_HZ as f64;
        let part = |of: fn(f64) -> f64| {
            last.iter().enumerate().map(|(n, &x)| f64::from(x) * of(turn * n as f64)).sum::<f64>() / RATE_HZ as f64
        };
        let total = last.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>() / RATE_HZ as f64;
        (total, 2.0 * (part(f64::cos).powi(2) + part(f64::sin).powi(2)))
    }

    /// Power of the overtones up to 500 kHz that are mirrored to below 20 kHz, dB of the whole. The frequency has no
    /// common divisor with the rate, so no overtone is mirrored onto another one; the clipper makes odd ones only.
    fn aliases_db(play: impl FnOnce(&mut [f32]), hz: usize) -> f64 {
        let mut samples = sine(hz, 0.5);
        play(&mut samples);
        let overtones = (1..500_000 / hz).step_by(2).map(|n| n * hz).filter(|hz| *hz > RATE_HZ / 2);
        let mirrored = overtones.map(|hz| (hz % RATE_HZ).min(RATE_HZ - hz % RATE_HZ)).filter(|hz| *hz < 20_000);
        10.0 * (mirrored.map(|hz| power(&samples, hz).1).sum::<f64>() / power(&samples, hz).0).log10()
    }

    #[test]
    fn overtones_are_not_mirrored_at_half_the_rate() {
        for (hz, most_db) in [(1249, -62.0), (4999, -50.0)] {
            let level = aliases_db(|samples| drive(40.0).process([samples]), hz);
            let plain = aliases_db(
                |samples| samples.iter_mut().for_each(|x| *x = (100.0 * *x) / (1.0 + (100.0 * *x).powi(2)).sqrt()),
                hz,
            );
            assert!(level < most_db && plain > most_db + 25.0, "{hz} Hz: {level:.1} dB, {plain:.1} without measures");
        }
    }

    #[test]
    fn soft_sounds_are_only_amplified_and_loud_ones_clipped() {
        let mut soft = sine(1000, 1e-4);
        drive(20.0).process([&mut soft]);
        let gain_db = 10.0 * (2.0 * power(&soft, 1000).1 / 1e-8).log10();
        assert!((gain_db - 20.0).abs() < 0.03, "{gain_db} dB");
        let mut loud = sine(110, 1.0);
        drive(50.0).process([&mut loud]);
        let (total, fundamental) = power(&loud, 110);
        // A square wave of amplitude 1, whose fundamental has 8 / pi^2 of its power.
        assert!((total - 1.0).abs() < 0.03 && (fundamental / total - 0.81).abs() < 0.01, "{total} {fundamental}");
    }

    #[test]
    fn tone_and_low_cut_attenuate_the_ends() {
        let level_db = |hz: usize, parameter: Parameter, value: f32| {
            let mut settings = Settings::default();
            for (parameter, value) in [(Parameter::DriveTone, 1.0), (Parameter::DriveLevel, 0.0), (parameter, value)] {
                settings.set(parameter, value).unwrap();
            }
            let mut drive = Drive::new(RATE_HZ as f32);
            drive.apply_settings(&settings, true);
            let mut samples = sine(hz, 1e-4);
            drive.process([&mut samples]);
            10.0 * (2.0 * power(&samples, hz).1 / 1e-8).log10() - 20.0
        };
        let dark = level_db(500, Parameter::DriveTone, 0.0);
        let thin = level_db(1000, Parameter::DriveLowCut, 1000.0);
        assert!((dark + 3.0).abs() < 0.4 && (thin + 3.0).abs() < 0.6, "{dark} dB, {thin} dB");
    }

    #[test]
    fn low_frequencies_are_delayed_by_four_samples() {
        let mut samples = sine(1000, 1e-3);
        let input = samples.clone();
        drive(0.0).process([&mut samples]);
        let difference = |late: usize| -> f64 {
            let pairs = samples[RATE_HZ..].iter().zip(&input[RATE_HZ - late..]);
            pairs.map(|(a, b)| f64::from(a - b).powi(2)).sum()
        };
        let best = (0..20).min_by(|a, b| difference(*a).total_cmp(&difference(*b))).unwrap();
        assert_eq!(best, 4);
    }

    #[test]
    fn silence_ends_at_zero() {
        let mut drive = drive(40.0);
        let _flushed = crate::simd::flush_denormals();
        drive.process([&mut sine(100, 1.0)]);
        let mut silence = vec![0.0; RATE_HZ];
        drive.process([&mut silence]);
        assert_eq!(silence[RATE_HZ - 100..], [0.0; 100]);
        assert_eq!(silence.iter().filter(|sample| sample.is_subnormal()).count(), 0);
    }
}
