//! Impulse responses: from a file to the response that is played.

use thiserror::Error;

use crate::{
    convert::{to_f32, whole},
    recording::{Properties, Recording, RecordingError},
    resample::{self, RateError},
    wav::WavError,
};

/// Maximum length of a response, samples: 10 s at 192 kHz.
const MAX_FRAMES: usize = 1_920_000;
/// Maximum sum of the samples that are cut off the end, relative to the largest sample (-110 dB). No output sample
/// changes by more.
const NEGLIGIBLE: f64 = 3.16e-6;
/// Samples below this level count as silence before a response, relative to its largest sample (-60 dB).
const SILENCE: f32 = 1e-3;

/// An impulse response of one or two channels.
#[derive(Debug, Clone, PartialEq)]
pub struct Ir {
    rate_hz: u32,
    channels: Vec<Vec<f32>>,
}

/// Why an impulse response cannot be played.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum IrError {
    /// The file cannot be read.
    #[error(transparent)]
    Recording(#[from] RecordingError),
    /// The number of channels, which is not 1 or 2.
    #[error("a cabinet must have 1 or 2 channels (got {0}); select two, e.g. sox in.wav out.wav remix 1 2")]
    Channels(usize),
    /// There are no samples other than 0.
    #[error("the impulse response is silent; export it again")]
    Silent,
    /// The response has more than 1920000 samples at the sample rate that is played.
    #[error(
        "the impulse response must have at most 1920000 samples (got {frames} at {rate_hz} Hz); shorten it, e.g. sox in.wav out.wav trim 0 2"
    )]
    TooLong {
        /// The number of samples.
        frames: usize,
        /// The sample rate, Hz.
        rate_hz: u32,
    },
    /// The response cannot be converted to the sample rate that is played.
    #[error(transparent)]
    Rate(#[from] RateError),
    /// The sample rates, Hz, of two responses that cannot be mixed.
    #[error("cannot mix impulse responses of {0} Hz and {1} Hz; resample one of them first")]
    Rates(u32, u32),
}

impl Ir {
    /// A response of one or two channels. Shorter channels are padded with zeros.
    ///
    /// # Errors
    /// [`IrError`] if it cannot be played.
    pub fn new(rate_hz: u32, mut channels: Vec<Vec<f32>>) -> Result<Self, IrError> {
        if !(1..=2).contains(&channels.len()) {
            return Err(IrError::Channels(channels.len()));
        }
        let frames = channels.iter().map(Vec::len).max().unwrap_or_default();
        if frames > MAX_FRAMES {
            return Err(IrError::TooLong { frames, rate_hz });
        }
        if let Some(at) = channels.iter().flatten().position(|sample| !sample.is_finite()) {
            return Err(RecordingError::from(WavError::NotFinite(at)).into());
        }
        if channels.iter().flatten().all(|&sample| sample == 0.0) {
            return Err(IrError::Silent);
        }
        channels.iter_mut().for_each(|channel| channel.resize(frames, 0.0));
        Ok(Self { rate_hz, channels })
    }

    /// Reads a response from a WAV, FLAC or AIFF file.
    ///
    /// # Errors
    /// [`IrError`] if the file cannot be read or the response cannot be played.
    pub fn from_file(bytes: &[u8]) -> Result<Self, IrError> {
        Self::with_properties(bytes).map(|(_, ir)| ir)
    }

    /// [`Ir::from_file`] with the properties of the file.
    ///
    /// # Errors
    /// [`IrError`] if the file cannot be read or the response cannot be played.
    pub fn with_properties(bytes: &[u8]) -> Result<(Properties, Self), IrError> {
        let (properties, channels) = Recording::read_all(bytes, MAX_FRAMES)?;
        let rate_hz = properties.rate_hz;
        match properties.frames.and_then(|frames| usize::try_from(frames).ok()) {
            Some(frames) if frames > MAX_FRAMES => Err(IrError::TooLong { frames, rate_hz }),
            _ => Ok((properties, Self::new(rate_hz, channels)?)),
        }
    }

    /// Sample rate, Hz.
    #[must_use]
    pub fn rate_hz(&self) -> u32 {
        self.rate_hz
    }

    /// Length, samples.
    #[must_use]
    pub fn frames(&self) -> usize {
        self.channels[0].len()
    }

    /// The samples of each channel.
    #[must_use]
    pub fn channels(&self) -> &[Vec<f32>] {
        &self.channels
    }

    /// The largest absolute sample.
    #[must_use]
    pub fn peak(&self) -> f32 {
        self.channels.iter().flatten().fold(0.0, |most, sample| most.max(sample.abs()))
    }

    /// The gain of white noise in the louder channel, a factor: the root of the sum of squares.
    #[must_use]
    pub fn gain(&self) -> f32 {
        let energy = |channel: &Vec<f32>| channel.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>();
        to_f32(self.channels.iter().map(energy).fold(0.0, f64::max).sqrt())
    }

    /// The response at another sample rate, with the same gain at every frequency that both rates have. It begins at
    /// the same sample, so that no delay is added; the first samples compensate for the ringing before a steep start.
    ///
    /// # Errors
    /// [`IrError::Rate`] if the ratio of the rates is not supported; [`IrError::TooLong`].
    pub fn resampled(&self, rate_hz: u32) -> Result<Self, IrError> {
        if rate_hz == self.rate_hz {
            return Ok(self.clone());
        }
        let frames = (self.frames() as f64 * f64::from(rate_hz) / f64::from(self.rate_hz)).ceil();
        if frames > MAX_FRAMES as f64 {
            return Err(IrError::TooLong { frames: whole(frames), rate_hz });
        }
        // A sample represents the time until the next one, so at a higher rate each sample has less weight.
        let weight = self.rate_hz as f32 / rate_hz as f32;
        let mut channels = Vec::new();
        for channel in &self.channels {
            let mut output = resample::response(channel, self.rate_hz, rate_hz)?;
            output.iter_mut().for_each(|sample| *sample *= weight);
            channels.push(output);
        }
        Ok(Self { rate_hz, channels })
    }

    /// The response without the inaudible part of its end: for input up to full scale, no output sample changes by more
    /// than -110 dB of the response's largest sample.
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

    /// The response without the silence before it (below -60 dB of its largest sample), which microphones and
    /// converters add.
    #[must_use]
    pub fn without_delay(mut self) -> Self {
        let least = self.peak() * SILENCE;
        let first =
            |channel: &Vec<f32>| channel.iter().position(|sample| sample.abs() >= least).unwrap_or(channel.len());
        let silent = self.channels.iter().map(first).min().unwrap_or_default();
        self.channels.iter_mut().for_each(|channel| drop(channel.drain(..silent)));
        self
    }

    /// The response scaled so that white noise keeps its level.
    #[must_use]
    pub fn normalised(self) -> Self {
        let factor = 1.0 / self.gain();
        self.scaled(factor)
    }

    /// The response with each sample multiplied by `factor`.
    #[must_use]
    pub fn scaled(mut self, factor: f32) -> Self {
        self.channels.iter_mut().flatten().for_each(|sample| *sample *= factor);
        self
    }

    /// The sum of both responses; stereo if one of them is.
    ///
    /// # Errors
    /// [`IrError::Rates`] if the sample rates differ.
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
    fn only_the_ends_are_trimmed() {
        let ir = mono(&[0.0, 0.0005, 1.0, 0.0, 0.01, 1e-6, 1e-6]);
        assert_eq!(ir.clone().trimmed().channels[0], [0.0, 0.0005, 1.0, 0.0, 0.01]);
        assert_eq!(ir.without_delay().channels[0], [1.0, 0.0, 0.01, 1e-6, 1e-6]);
        assert_eq!(mono(&[1.0, 2e-6, 2e-6]).trimmed().frames(), 2);
    }

    #[test]
    fn a_mix_is_as_wide_and_long_as_the_larger_response() {
        let stereo = Ir::new(48_000, vec![vec![1.0], vec![2.0]]).unwrap();
        let mixed = mono(&[0.5, 0.25]).scaled(2.0).mixed(&stereo).unwrap();
        assert_eq!(mixed.channels, [[2.0, 0.5], [3.0, 0.5]]);
        let other = Ir::new(44_100, vec![vec![1.0]]).unwrap();
        assert_eq!(mixed.mixed(&other), Err(IrError::Rates(48_000, 44_100)));
        assert_eq!(mono(&[1.0]).mixed(&mono(&[-1.0])), Err(IrError::Silent));
    }

    #[test]
    fn normalising_keeps_the_level_of_noise() {
        assert!((mono(&[3.0, 4.0]).normalised().channels[0][1] - 0.8).abs() < 1e-6);
    }

    #[test]
    fn resampling_keeps_the_gain_at_every_frequency() {
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
    fn a_long_file_is_not_read_as_a_whole() {
        let frames = MAX_FRAMES + 20_000;
        let mut wav = b"RIFF\xff\xff\xff\xffWAVEfmt \x10\0\0\0\x01\0\x01\0".to_vec();
        wav.extend([48_000_u32, 48_000].map(u32::to_le_bytes).concat());
        wav.extend(b"\x01\0\x08\0data\xff\xff\xff\xff");
        wav.resize(wav.len() + frames, 200);
        assert_eq!(Ir::from_file(&wav), Err(IrError::TooLong { frames, rate_hz: 48_000 }));
    }

    #[test]
    fn rejects_responses_that_cannot_be_played() {
        assert_eq!(Ir::new(48_000, vec![vec![1.0]; 3]), Err(IrError::Channels(3)));
        assert_eq!(Ir::new(48_000, vec![vec![]]), Err(IrError::Silent));
        assert_eq!(Ir::new(48_000, vec![vec![f32::NAN]]), Err(RecordingError::from(WavError::NotFinite(0)).into()));
        let too_long = |frames, rate_hz| Err(IrError::TooLong { frames, rate_hz });
        assert_eq!(Ir::new(48_000, vec![vec![1.0; MAX_FRAMES + 1]]), too_long(MAX_FRAMES + 1, 48_000));
        // A low rate in a header would multiply the samples.
        let low = Ir::new(8000, vec![vec![1.0; MAX_FRAMES / 2]]).unwrap();
        assert_eq!(low.resampled(48_000), too_long(MAX_FRAMES * 3, 48_000));
    }
}
