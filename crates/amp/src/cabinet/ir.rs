//! Impulse responses, from what was recorded to what is played.

use thiserror::Error;

use crate::{
    resample::{self, RateError},
    wav::{self, WavError},
};

/// Longest response, samples: 10 s at 192 kHz.
const MAX_FRAMES: usize = 1_920_000;
/// What may be cut off an end: so little that no sample of the output could change by more, relative to the response's
/// largest sample (-110 dB).
const NEGLIGIBLE: f64 = 3.16e-6;
/// Silence before a response: samples below this, relative to its largest one (-60 dB).
const SILENCE: f32 = 1e-3;

/// An impulse response of one or two channels.
#[derive(Debug, Clone, PartialEq)]
pub struct Ir {
    rate_hz: u32,
    channels: Vec<Vec<f32>>,
}

/// Why something is no impulse response that can be played.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum IrError {
    /// The file cannot be read.
    #[error(transparent)]
    Wav(#[from] WavError),
    /// It has other than one or two channels: how many.
    #[error("a cabinet has one or two channels, and this one {0}: take two of them, as sox in.wav out.wav remix 1 2")]
    Channels(usize),
    /// No samples, or nothing but zeros.
    #[error("the impulse response is silent: export it again")]
    Silent,
    /// Longer than 1920000 samples: how many.
    #[error("the impulse response has {0} samples, and 1920000 can be played: cut it, as sox in.wav out.wav trim 0 2")]
    TooLong(usize),
    /// It cannot be had at the rate that is played.
    #[error(transparent)]
    Rate(#[from] RateError),
    /// Two that are to be mixed are of different sample rates, Hz.
    #[error("impulse responses of {0} Hz and {1} Hz cannot be mixed: resample one first")]
    Rates(u32, u32),
}

impl Ir {
    /// A response of one or two channels, of one length (what is missing is zeros).
    ///
    /// # Errors
    /// [`IrError`], where nothing can be played.
    pub fn new(rate_hz: u32, mut channels: Vec<Vec<f32>>) -> Result<Self, IrError> {
        if !(1..=2).contains(&channels.len()) {
            return Err(IrError::Channels(channels.len()));
        }
        let frames = channels.iter().map(Vec::len).max().unwrap_or_default();
        if frames > MAX_FRAMES {
            return Err(IrError::TooLong(frames));
        }
        if let Some(at) = channels.iter().flatten().position(|sample| !sample.is_finite()) {
            return Err(WavError::NotFinite(at).into());
        }
        if channels.iter().flatten().all(|&sample| sample == 0.0) {
            return Err(IrError::Silent);
        }
        channels.iter_mut().for_each(|channel| channel.resize(frames, 0.0));
        Ok(Self { rate_hz, channels })
    }

    /// A WAV file's.
    ///
    /// # Errors
    /// [`IrError`]: no WAV file that can be read, or no response that [`Ir::new`] takes.
    pub fn from_wav(bytes: &[u8]) -> Result<Self, IrError> {
        let wav = wav::read(bytes)?;
        Self::new(wav.rate_hz, wav.channels)
    }

    /// Samples a second.
    #[must_use]
    pub fn rate_hz(&self) -> u32 {
        self.rate_hz
    }

    /// Its length, samples.
    #[must_use]
    pub fn frames(&self) -> usize {
        self.channels[0].len()
    }

    /// Its samples, a list a channel.
    #[must_use]
    pub fn channels(&self) -> &[Vec<f32>] {
        &self.channels
    }

    /// The largest sample, without its sign.
    #[must_use]
    pub fn peak(&self) -> f32 {
        self.channels.iter().flatten().fold(0.0, |most, sample| most.max(sample.abs()))
    }

    /// What white noise gains in the louder channel, a factor: the root of the sum of squares.
    #[must_use]
    pub fn gain(&self) -> f32 {
        let energy = |channel: &Vec<f32>| channel.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>();
        self.channels.iter().map(energy).fold(0.0, f64::max).sqrt() as f32
    }

    /// At another sample rate, with the same response to every frequency that both have. It begins where it began, so that no
    /// delay is added: what a steep beginning would ring before it, the first samples make up for.
    ///
    /// # Errors
    /// [`RateError`], where the rates cannot be brought together.
    pub fn resampled(&self, rate_hz: u32) -> Result<Self, RateError> {
        if rate_hz == self.rate_hz {
            return Ok(self.clone());
        }
        // A sample stands for the time until the next one: more of them must each weigh less.
        let weight = self.rate_hz as f32 / rate_hz as f32;
        let mut channels = Vec::new();
        for channel in &self.channels {
            let mut made = resample::response(channel, self.rate_hz, rate_hz)?;
            made.iter_mut().for_each(|sample| *sample *= weight);
            channels.push(made);
        }
        Ok(Self { rate_hz, channels })
    }

    /// Without what its end adds below hearing: all that is cut together changes no sample of what is played by more than
    /// -110 dB of the response's largest sample, for input up to full scale.
    #[must_use]
    pub fn trimmed(mut self) -> Self {
        let most = f64::from(self.peak()) * NEGLIGIBLE;
        let needed = |channel: &Vec<f32>| {
            let mut left = 0.0;
            let cut = channel.iter().rev().take_while(|sample| {
                left += f64::from(sample.abs());
                left <= most
            });
            channel.len() - cut.count()
        };
        let frames = self.channels.iter().map(needed).max().unwrap_or_default().max(1);
        self.channels.iter_mut().for_each(|channel| channel.truncate(frames));
        self
    }

    /// Without the silence before it (below -60 dB of its largest sample): the delay that microphones and converters left.
    #[must_use]
    pub fn without_delay(mut self) -> Self {
        let least = self.peak() * SILENCE;
        let first =
            |channel: &Vec<f32>| channel.iter().position(|sample| sample.abs() >= least).unwrap_or(channel.len());
        let silent = self.channels.iter().map(first).min().unwrap_or_default();
        self.channels.iter_mut().for_each(|channel| drop(channel.drain(..silent)));
        self
    }

    /// As loud for white noise as what is played through it.
    #[must_use]
    pub fn normalised(self) -> Self {
        let factor = 1.0 / self.gain();
        self.scaled(factor)
    }

    /// Each sample times `factor`.
    #[must_use]
    pub fn scaled(mut self, factor: f32) -> Self {
        self.channels.iter_mut().flatten().for_each(|sample| *sample *= factor);
        self
    }

    /// Both at once, summed; stereo where one of them is.
    ///
    /// # Errors
    /// [`IrError::Rates`], where they are of different rates.
    pub fn mixed(self, other: &Self) -> Result<Self, IrError> {
        if self.rate_hz != other.rate_hz {
            return Err(IrError::Rates(self.rate_hz, other.rate_hz));
        }
        let frames = self.frames().max(other.frames());
        let side = |ir: &Self, side: usize, at: usize| {
            let channel = ir.channels.get(side).unwrap_or(&ir.channels[0]);
            channel.get(at).copied().unwrap_or_default()
        };
        let sides = self.channels.len().max(other.channels.len());
        let sum = |of: usize| (0..frames).map(|at| side(&self, of, at) + side(other, of, at)).collect();
        Self::new(self.rate_hz, (0..sides).map(sum).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mono(samples: &[f32]) -> Ir {
        Ir::new(48_000, vec![samples.to_vec()]).unwrap()
    }

    #[test]
    fn ends_are_cut_and_nothing_between() {
        let ir = mono(&[0.0, 0.0005, 1.0, 0.0, 0.01, 1e-6, 1e-6]);
        assert_eq!(ir.clone().trimmed().channels[0], [0.0, 0.0005, 1.0, 0.0, 0.01]);
        assert_eq!(ir.without_delay().channels[0], [1.0, 0.0, 0.01, 1e-6, 1e-6]);
        assert_eq!(mono(&[1.0, 2e-6, 2e-6]).trimmed().frames(), 2);
    }

    #[test]
    fn a_mix_is_as_wide_and_long_as_the_larger() {
        let stereo = Ir::new(48_000, vec![vec![1.0], vec![2.0]]).unwrap();
        let mixed = mono(&[0.5, 0.25]).scaled(2.0).mixed(&stereo).unwrap();
        assert_eq!(mixed.channels, [[2.0, 0.5], [3.0, 0.5]]);
        let other = Ir::new(44_100, vec![vec![1.0]]).unwrap();
        assert_eq!(mixed.mixed(&other), Err(IrError::Rates(48_000, 44_100)));
        assert_eq!(mono(&[1.0]).mixed(&mono(&[-1.0])), Err(IrError::Silent));
    }

    #[test]
    fn normalised_it_keeps_the_level_of_noise() {
        assert!((mono(&[3.0, 4.0]).normalised().channels[0][1] - 0.8).abs() < 1e-6);
    }

    #[test]
    fn at_another_rate_every_frequency_gets_what_it_got() {
        let samples: Vec<f32> =
            (0..400).map(|n| n as f32 - 150.0).map(|t| (-t * t / 500.0).exp() * (t * 0.4).cos()).collect();
        let ir = mono(&samples);
        let other = ir.resampled(44_100).unwrap();
        let size = |ir: &Ir, hz: f64| {
            let turn = std::f64::consts::TAU * hz / f64::from(ir.rate_hz);
            let part = |of: fn(f64) -> f64| -> f64 {
                ir.channels[0].iter().enumerate().map(|(n, &x)| f64::from(x) * of(turn * n as f64)).sum()
            };
            part(f64::cos).hypot(part(f64::sin))
        };
        for hz in [1500.0, 2500.0, 3056.0, 4000.0, 5000.0] {
            let (before, after) = (size(&ir, hz), size(&other, hz));
            assert!((before - after).abs() < 2e-3 * before.max(0.01), "{hz} Hz: {before} {after}");
        }
    }

    #[test]
    fn what_cannot_be_played_is_told() {
        assert_eq!(Ir::new(48_000, vec![vec![1.0]; 3]), Err(IrError::Channels(3)));
        assert_eq!(Ir::new(48_000, vec![vec![]]), Err(IrError::Silent));
        assert_eq!(Ir::new(48_000, vec![vec![f32::NAN]]), Err(IrError::Wav(WavError::NotFinite(0))));
        assert_eq!(Ir::new(48_000, vec![vec![1.0; MAX_FRAMES + 1]]), Err(IrError::TooLong(MAX_FRAMES + 1)));
    }
}
