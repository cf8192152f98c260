//! A model, ready to play.

use crate::{
    memory::BLOCK,
    net::Net,
    simd::{InstructionSet, flush_denormals},
};

/// A model of an amplifier: one signal in, one out, without delay.
pub struct Model {
    net: Box<dyn Net>,
    input_gain: f32,
    output_gain: f32,
    /// Whether the input is added to what the network makes of it.
    skip: bool,
    /// Whether it made something that is no finite number.
    is_muted: bool,
    input: [f32; BLOCK],
    output: Vec<f32>,
}

impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Model").field("work", &self.work()).finish_non_exhaustive()
    }
}

impl Model {
    pub(crate) fn new(net: Box<dyn Net>, (input_gain, output_gain): (f32, f32), skip: bool) -> Self {
        let output = vec![0.0; net.outputs() * BLOCK];
        Self { net, input_gain, output_gain, skip, is_muted: false, input: [0.0; BLOCK], output }
    }

    /// Plays `input` into `output`, at the sample rate that the file tells. What comes out does not depend on how a
    /// signal is cut into calls, to the bit. A model that makes something that is no finite number is muted from there on,
    /// see [`Model::is_muted`]. Denormal numbers count as zero, so that silence costs what sound does.
    ///
    /// # Panics
    /// When the two are of different lengths.
    pub fn process(&mut self, input: &[f32], output: &mut [f32]) {
        assert!(input.len() == output.len(), "a model makes as many samples as it gets");
        let _flushed = flush_denormals();
        for (input, output) in input.chunks(BLOCK).zip(output.chunks_mut(BLOCK)) {
            if self.is_muted {
                output.fill(0.0);
                continue;
            }
            let scaled = &mut self.input[..input.len()];
            for (scaled, sample) in scaled.iter_mut().zip(input) {
                *scaled = sample * self.input_gain;
            }
            self.net.block(scaled, &mut self.output);
            for ((output, made), sample) in output.iter_mut().zip(&self.output).zip(scaled) {
                *output = (made + if self.skip { *sample } else { 0.0 }) * self.output_gain;
            }
            // Without a way out in between, so that it is done in vectors.
            if !output.iter().fold(true, |all, sample| all & sample.is_finite()) {
                self.is_muted = true;
                output.fill(0.0);
            }
        }
    }

    /// Forgets what was played: with `prewarm` as after long silence, else as the network was made. Takes as long as
    /// playing [`Model::prewarm_frames`] frames.
    pub fn reset(&mut self, prewarm: bool) {
        let _flushed = flush_denormals();
        self.net.reset();
        self.is_muted = false;
        let silence = [0.0; BLOCK];
        let mut left = if prewarm { self.net.prewarm_frames() } else { 0 };
        while left > 0 {
            let frames = left.min(BLOCK);
            self.net.block(&silence[..frames], &mut self.output);
            left -= frames;
        }
    }

    /// Whether the model made something that is no finite number since the last [`Model::reset`].
    #[must_use]
    pub fn is_muted(&self) -> bool {
        self.is_muted
    }

    /// Frames of silence that prewarm the model: after them it has settled.
    #[must_use]
    pub fn prewarm_frames(&self) -> usize {
        self.net.prewarm_frames()
    }

    /// Number of knobs that the model was trained with.
    #[must_use]
    pub fn knobs(&self) -> usize {
        self.net.knobs()
    }

    /// Turns a knob, counted from 0, to a value of 0 to 1; it gets there within 1024 frames, or at once by
    /// [`Model::reset`]. A knob that the model has not is not turned.
    pub fn turn(&mut self, knob: usize, value: f32) {
        self.net.turn(knob, value.clamp(0.0, 1.0));
    }

    /// Multiplications and additions a frame.
    #[must_use]
    pub fn work(&self) -> u64 {
        self.net.work()
    }

    /// The instructions that it is played with: those asked for, or the next less wide where they take less time.
    #[must_use]
    pub fn instructions(&self) -> InstructionSet {
        self.net.instructions()
    }
}
