//! Offline rendering of audio through a model or a whole chain.

use amp::{
    Chain, Model, Rig,
    resample::{self, RateError},
};
use thiserror::Error;

use crate::rig_loader::{RigLoadError, RigLoader};

/// Frames that are processed between two reports of progress.
const CHUNK: usize = 4096;

/// Audio samples, one list for each channel, all of equal length.
#[derive(Debug, Clone)]
pub struct Audio {
    /// Sample rate, Hz.
    pub rate_hz: u32,
    /// The samples.
    pub channels: Vec<Vec<f32>>,
}

impl Audio {
    /// Number of frames.
    #[must_use]
    pub fn frames(&self) -> usize {
        self.channels.first().map_or(0, Vec::len)
    }
}

/// The output of a chain, with the number of samples that had to be changed.
#[derive(Debug)]
pub struct RenderedChain {
    /// The output.
    pub audio: Audio,
    /// Sample rate of the chain, Hz.
    pub chain_rate_hz: u32,
    /// Input samples more than 60 dB above full scale, which were played as silence.
    pub bad_input: u64,
    /// Samples that models or gains raised to more than 60 dB above full scale, and that were clipped there.
    pub overloads: u64,
    /// Output samples above full scale, which were not changed.
    pub clips: usize,
}

/// Why audio cannot be rendered.
#[derive(Debug, Error)]
pub enum RenderError {
    /// The audio cannot be resampled.
    #[error(transparent)]
    Rate(#[from] RateError),
    /// A file cannot be played.
    #[error(transparent)]
    Load(#[from] RigLoadError),
    /// The model with this index, from 0, was muted.
    #[error("the output of model {} is NaN or infinite: choose another model", .0 + 1)]
    Muted(usize),
}

/// Receives the number of rendered frames and the total number.
pub type OnProgress<'a> = dyn FnMut(usize, usize) + 'a;

/// Renders the first channel of `input` through a model alone, at the rate of the model. The output has the sample rate
/// `to_hz` and the duration of the input.
///
/// # Errors
/// [`RenderError`].
pub fn render_model(
    model: &mut Model,
    model_hz: u32,
    input: &Audio,
    to_hz: u32,
    on_progress: &mut OnProgress,
) -> Result<Audio, RenderError> {
    let samples = resample::resample(&input.channels[0], input.rate_hz, model_hz)?;
    let mut output = vec![0.0; samples.len()];
    let mut done = 0;
    for (input, output) in samples.chunks(CHUNK).zip(output.chunks_mut(CHUNK)) {
        model.process(input, output);
        done += input.len();
        on_progress(done, samples.len());
    }
    if model.is_muted() {
        return Err(RenderError::Muted(0));
    }
    resample_output(&[output], model_hz, input, to_hz)
}

/// Renders the first channel of `input` through a whole chain. The chain runs at the rate of the first model, because
/// audio can be resampled better offline than while it plays. The output has the sample rate `to_hz` and the duration
/// of the input; it is stereo if a cabinet is, unless `mono` is true.
///
/// # Errors
/// [`RenderError`].
pub fn render_chain(
    rig: &Rig,
    loader: RigLoader,
    input: &Audio,
    to_hz: u32,
    mono: bool,
    on_progress: &mut OnProgress,
) -> Result<RenderedChain, RenderError> {
    let chain_rate_hz = rig.rate_hz().unwrap_or(input.rate_hz);
    let samples = resample::resample(&input.channels[0], input.rate_hz, chain_rate_hz)?;
    let (mut chain, controls) = Chain::new(chain_rate_hz, &rig.settings, loader.parts(rig, chain_rate_hz)?);
    let [left, right] = process(&mut chain, samples, on_progress);
    let meters = controls.meters();
    if let Some(index) = meters.muted.iter().position(|&is_muted| is_muted) {
        return Err(RenderError::Muted(index));
    }
    let channels = match rig.is_stereo() && !mono {
        true => vec![left, right],
        false => vec![left.iter().zip(&right).map(|(left, right)| 0.5 * (left + right)).collect()],
    };
    let audio = resample_output(&channels, chain_rate_hz, input, to_hz)?;
    let clips = audio.channels.iter().flatten().filter(|sample| sample.abs() > 1.0).count();
    let (bad_input, overloads) = (meters.bad_input, meters.overloads);
    Ok(RenderedChain { audio, chain_rate_hz, bad_input, overloads, clips })
}

/// Left and right output, aligned with the input: the delay of the chain is removed.
fn process(chain: &mut Chain, mut samples: Vec<f32>, on_progress: &mut OnProgress) -> [Vec<f32>; 2] {
    let delay = chain.delay();
    samples.resize(samples.len() + delay, 0.0);
    let (mut left, mut right) = (vec![0.0; samples.len()], vec![0.0; samples.len()]);
    let mut done = 0;
    let outputs = left.chunks_mut(CHUNK).zip(right.chunks_mut(CHUNK));
    for (input, (left, right)) in samples.chunks(CHUNK).zip(outputs) {
        chain.process(input, left, right);
        done += input.len();
        on_progress(done, samples.len());
    }
    [left.split_off(delay), right.split_off(delay)]
}

fn resample_output(channels: &[Vec<f32>], rate_hz: u32, input: &Audio, to_hz: u32) -> Result<Audio, RenderError> {
    let frames = (input.frames() as u128 * u128::from(to_hz)).div_ceil(u128::from(input.rate_hz.max(1)));
    let frames = usize::try_from(frames).unwrap_or(usize::MAX);
    let resampled = channels.iter().map(|channel| {
        let mut output = resample::resample(channel, rate_hz, to_hz)?;
        output.resize(frames, 0.0);
        Ok(output)
    });
    Ok(Audio { rate_hz: to_hz, channels: resampled.collect::<Result<_, RateError>>()? })
}
