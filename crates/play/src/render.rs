//! Offline rendering of recordings through a model or a whole chain, in constant memory.

use std::io::{self, Seek, Write};

use amp::{
    Chain, Controls, Model, Rig,
    recording::{self, Recording, RecordingError},
    resample::{RateError, RecordingResampler},
    wav::WavWriter,
};
use thiserror::Error;

use crate::rig_loader::{RigLoadError, RigLoader};

/// The model or the chain that plays a recording.
#[derive(Debug)]
pub enum Through<'r> {
    /// A model alone, at its own rate.
    Model {
        /// The model, boxed because it is large.
        model: Box<Model>,
        /// Its sample rate, Hz.
        rate_hz: u32,
    },
    /// A whole chain, at the rate of the first model, because audio can be resampled better offline than while it plays.
    Chain {
        /// The parts of the chain and its settings.
        rig: &'r Rig,
        /// Loads the parts.
        loader: RigLoader,
    },
}

/// The form of the input and the output.
#[derive(Debug, Clone, Copy, Default)]
pub struct Form {
    /// The channel of the recording that is played, counted from 0; `None` for the mean of all.
    pub channel: Option<usize>,
    /// Sample rate of the output, Hz; `None` for that of the recording.
    pub rate_hz: Option<u32>,
    /// True to write the mean of left and right.
    pub mono: bool,
}

/// Properties of a rendered file, with the number of samples that had to be changed.
#[derive(Debug)]
pub struct Rendered {
    /// Sample rate, Hz.
    pub rate_hz: u32,
    /// Number of channels, 1 or 2.
    pub channels: u16,
    /// Number of frames.
    pub frames: u64,
    /// Duration of the recording, s.
    pub duration_s: f64,
    /// Sample rate of the chain or the model, Hz.
    pub inner_rate_hz: u32,
    /// Input samples more than 60 dB above full scale, which were played as silence.
    pub bad_input: u64,
    /// Samples that models or gains raised to more than 60 dB above full scale, and that were clipped there.
    pub overloads: u64,
    /// Output samples above full scale, which were not changed.
    pub clips: u64,
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
    /// The recording cannot be read.
    #[error(transparent)]
    Recording(#[from] RecordingError),
    /// The output cannot be written.
    #[error(transparent)]
    Write(#[from] io::Error),
    /// `on_progress` ended it.
    #[error("it was stopped")]
    Stopped,
    /// The model with this index, from 0, was muted.
    #[error("the output of model {} is NaN or infinite: choose another model", .0 + 1)]
    Muted(usize),
}

/// Renders a recording to a WAV file of the same duration, aligned sample for sample. It is stereo if the sides of the
/// chain can differ. `on_progress` receives the number of frames of the recording that have been played,
/// and ends it if it returns false.
///
/// # Errors
/// [`RenderError`]; then the output is incomplete.
pub fn render(
    recording: &mut Recording,
    through: Through,
    form: Form,
    output: impl Write + Seek,
    on_progress: &mut dyn FnMut(u64) -> bool,
) -> Result<Rendered, RenderError> {
    let input_hz = recording.properties().rate_hz;
    let to_hz = form.rate_hz.unwrap_or(input_hz);
    let mut player = Player::new(through, input_hz, form.mono)?;
    let mut to_inner = RecordingResampler::new(input_hz, player.rate_hz)?;
    let mut writer = OutputWriter::new(&player, to_hz, output)?;
    let (mut block, mut mono, mut inner) = (Vec::new(), Vec::new(), Vec::new());
    let mut consumed = 0;
    loop {
        recording.next_block(&mut block)?;
        recording::to_mono(&block, form.channel, &mut mono);
        inner.clear();
        to_inner.push(&mono, &mut inner);
        if mono.is_empty() {
            to_inner.finish(&mut inner);
            // The chain still contains the end of the recording.
            inner.resize(inner.len() + player.delay, 0.0);
        }
        let is_end = mono.is_empty();
        consumed += mono.len() as u64;
        for inner in inner.chunks(recording::BLOCK_FRAMES) {
            writer.write(player.play(inner))?;
        }
        if !on_progress(consumed) {
            return Err(RenderError::Stopped);
        }
        if is_end {
            break;
        }
    }
    let frames = (u128::from(consumed) * u128::from(to_hz)).div_ceil(u128::from(input_hz));
    let clips = writer.finish(u64::try_from(frames).unwrap_or(u64::MAX))?;
    let (bad_input, overloads) = player.finish()?;
    Ok(Rendered {
        rate_hz: to_hz,
        channels: player.channels,
        frames: u64::try_from(frames).unwrap_or(u64::MAX),
        duration_s: consumed as f64 / f64::from(input_hz),
        inner_rate_hz: player.rate_hz,
        bad_input,
        overloads,
        clips,
    })
}

/// Plays blocks through a model or a chain, without its delay.
struct Player {
    kind: PlayerKind,
    rate_hz: u32,
    channels: u16,
    delay: usize,
    /// Frames of the output that are still left out, because they come before the start of the recording.
    left_out: usize,
    /// Left and right, and the mean of both.
    sides: Vec<Vec<f32>>,
    mean: Vec<Vec<f32>>,
}

enum PlayerKind {
    Model(Box<Model>),
    Chain(Box<(Chain, Controls)>),
}

impl Player {
    fn new(through: Through, input_hz: u32, mono: bool) -> Result<Self, RenderError> {
        let (kind, rate_hz, channels, delay) = match through {
            Through::Model { model, rate_hz } => (PlayerKind::Model(model), rate_hz, 1, 0),
            Through::Chain { rig, loader } => {
                let rate_hz = rig.rate_hz().unwrap_or(input_hz);
                let (chain, controls) = Chain::new(rate_hz, &rig.settings, loader.parts(rig, rate_hz)?);
                let channels = if rig.is_stereo() && !mono { 2 } else { 1 };
                let delay = chain.delay();
                (PlayerKind::Chain(Box::new((chain, controls))), rate_hz, channels, delay)
            }
        };
        Ok(Self { kind, rate_hz, channels, delay, left_out: delay, sides: vec![Vec::new(); 2], mean: vec![Vec::new()] })
    }

    /// The output for a block, one list for each channel.
    fn play(&mut self, input: &[f32]) -> &[Vec<f32>] {
        let Self { kind, sides, mean, channels, left_out, .. } = self;
        sides.iter_mut().for_each(|side| side.resize(input.len(), 0.0));
        let [left, right] = &mut sides[..] else { unreachable!("two sides") };
        let output = match kind {
            PlayerKind::Model(model) => {
                model.process(input, left);
                &mut sides[..1]
            }
            PlayerKind::Chain(chain) => {
                chain.0.process(input, left, right);
                match *channels {
                    1 => {
                        recording::to_mono(sides, None, &mut mean[0]);
                        &mut mean[..]
                    }
                    _ => &mut sides[..],
                }
            }
        };
        let early = (*left_out).min(input.len());
        *left_out -= early;
        output.iter_mut().for_each(|side| drop(side.drain(..early)));
        output
    }

    /// Bad input samples and overloads.
    fn finish(&self) -> Result<(u64, u64), RenderError> {
        match &self.kind {
            PlayerKind::Model(model) if model.is_muted() => Err(RenderError::Muted(0)),
            PlayerKind::Model(_) => Ok((0, 0)),
            PlayerKind::Chain(chain) => {
                let meters = chain.1.meters();
                match meters.muted.iter().position(|&is_muted| is_muted) {
                    Some(index) => Err(RenderError::Muted(index)),
                    None => Ok((meters.bad_input, meters.overloads)),
                }
            }
        }
    }
}

/// Resamples and writes the output.
struct OutputWriter<W> {
    resamplers: Vec<RecordingResampler>,
    block: Vec<Vec<f32>>,
    writer: WavWriter<W>,
}

impl<W: Write + Seek> OutputWriter<W> {
    fn new(player: &Player, to_hz: u32, output: W) -> Result<Self, RenderError> {
        let resamplers = (0..player.channels).map(|_| RecordingResampler::new(player.rate_hz, to_hz));
        let resamplers: Vec<_> = resamplers.collect::<Result<_, RateError>>()?;
        let block = vec![Vec::new(); resamplers.len()];
        let writer = WavWriter::new(output, to_hz, player.channels)?;
        Ok(Self { resamplers, block, writer })
    }

    fn write(&mut self, channels: &[Vec<f32>]) -> io::Result<()> {
        for ((resampler, channel), block) in self.resamplers.iter_mut().zip(channels).zip(&mut self.block) {
            resampler.push(channel, block);
        }
        self.write_block()
    }

    /// Writes the rest, up to this number of frames in the file; returns the number of samples above full scale.
    fn finish(mut self, frames: u64) -> io::Result<u64> {
        let left = usize::try_from(frames.saturating_sub(self.writer.frames())).unwrap_or(usize::MAX);
        for (resampler, block) in self.resamplers.iter_mut().zip(&mut self.block) {
            resampler.finish(block);
            block.resize(left, 0.0);
        }
        self.write_block()?;
        self.writer.finish()
    }

    fn write_block(&mut self) -> io::Result<()> {
        self.writer.write(&self.block)?;
        self.block.iter_mut().for_each(Vec::clear);
        Ok(())
    }
}
