//! A model that is ready to play.

use crate::{
    memory::BLOCK,
    net::Net,
    simd::{InstructionSet, flush_denormals},
    work::Work,
};

/// A model of an amplifier: one input, one output, no delay.
pub struct Model {
    net: Box<dyn Net>,
    input_gain: f32,
    output_gain: f32,
    /// True if the input is added to the output of the network.
    skip: bool,
    /// True after an output was NaN or infinite.
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

    /// Plays `input` into `output`, at the sample rate of the model file. The output bits do not depend on how a signal
    /// is divided into calls. If an output is NaN or infinite, the model is muted until the next reset, see
    /// [`Model::is_muted`]. Denormal numbers count as zero, so that silence takes no longer than sound.
    ///
    /// # Panics
    /// If the slices have different lengths.
    pub fn process(&mut self, input: &[f32], output: &mut [f32]) {
        assert!(input.len() == output.len(), "input and output have different lengths");
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
            for ((output, value), sample) in output.iter_mut().zip(&self.output).zip(scaled) {
                *output = (value + if self.skip { *sample } else { 0.0 }) * self.output_gain;
            }
            // A fold without an early exit is vectorised.
            if !output.iter().fold(true, |all, sample| all & sample.is_finite()) {
                self.is_muted = true;
                output.fill(0.0);
            }
        }
    }

    /// Resets the state: with `prewarm` to that after long silence, otherwise to the initial state. Takes as long as
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

    /// True if an output was NaN or infinite since the last [`Model::reset`].
    #[must_use]
    pub fn is_muted(&self) -> bool {
        self.is_muted
    }

    /// Number of frames of silence that prewarm the model.
    #[must_use]
    pub fn prewarm_frames(&self) -> usize {
        self.net.prewarm_frames()
    }

    /// Number of knobs of the model.
    #[must_use]
    pub fn knobs(&self) -> usize {
        self.net.knobs()
    }

    /// Turns a knob, counted from 0, to a value of 0 to 1. The value is reached within 1024 frames, or at the next
    /// [`Model::reset`]. Ignored if the model has no such knob.
    pub fn turn(&mut self, knob: usize, value: f32) {
        self.net.turn(knob, value.clamp(0.0, 1.0));
    }

    /// The work per frame.
    #[must_use]
    pub fn work(&self) -> Work {
        self.net.work()
    }

    /// The instruction set that plays the model: the requested one, or the next narrower one if that is faster.
    #[must_use]
    pub fn instructions(&self) -> InstructionSet {
        self.net.instructions()
    }
}
