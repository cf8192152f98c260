//! A linear filter: an impulse response, convolved directly.

use super::Net;
use crate::{
    error::LoadError,
    memory::BLOCK,
    net::weights::WeightReader,
    simd::{InstructionSet, STEP, SUMS, fir},
};

/// A network without a nonlinearity: the response, the current frame's weight first, as Neural Amp Modeler's core reads it.
#[derive(Debug)]
pub struct Linear {
    instructions: InstructionSet,
    /// The response, the oldest frame's weight first, so that large late sums do not swallow small early ones.
    response: Vec<f32>,
    bias: f32,
    /// The last frames, and room for as many again until they are moved to the front.
    window: Vec<f32>,
    /// Where the next frame goes; at least one less than there are weights.
    at: usize,
    taps: usize,
}

/// The plan of the network.
#[derive(Debug)]
pub struct Plan {
    pub taps: usize,
    /// True if a constant is added.
    pub bias: bool,
}

impl Plan {
    /// Number of weights in the file.
    pub fn weights(&self) -> u64 {
        self.taps as u64 + u64::from(self.bias)
    }
}

impl Linear {
    /// Builds the network.
    ///
    /// # Errors
    /// If the number of weights does not match the plan.
    pub fn new(plan: &Plan, weights: &[f32], instructions: InstructionSet) -> Result<Self, LoadError> {
        let taps = plan.taps;
        let mut reader = WeightReader::new(weights, plan.weights())?;
        let (impulse_response, bias) = (reader.take(taps), reader.take(1));
        let mut response = vec![0.0; taps.next_multiple_of(SUMS) - taps];
        response.extend(impulse_response.iter().rev());
        let (at, bias) = (response.len() - 1, bias.first().copied().unwrap_or_default());
        Ok(Self { instructions, bias, window: vec![0.0; 2 * response.len() + BLOCK], response, at, taps })
    }
}

impl Net for Linear {
    fn outputs(&self) -> usize {
        1
    }

    fn prewarm_frames(&self) -> usize {
        0
    }

    fn block(&mut self, input: &[f32], output: &mut [f32]) {
        let Self { instructions, response, bias, window, at, .. } = self;
        let (frames, history) = (input.len(), response.len() - 1);
        if *at + BLOCK > window.len() {
            window.copy_within(*at - history..*at, 0);
            *at = history;
        }
        window[*at..*at + frames].copy_from_slice(input);
        let mut made = [0.0; BLOCK];
        let made = &mut made[..frames.next_multiple_of(STEP)];
        fir(*instructions, &window[*at - history..], response, made);
        for (output, made) in output.iter_mut().zip(&made[..frames]) {
            *output = made + *bias;
        }
        *at += frames;
    }

    fn reset(&mut self) {
        self.window.fill(0.0);
        self.at = self.response.len() - 1;
    }

    fn work(&self) -> u64 {
        self.taps as u64
    }

    fn instructions(&self) -> InstructionSet {
        self.instructions
    }
}
