//! Linear: an impulse response, convolved directly.

use super::Net;
use crate::{
    error::LoadError,
    memory::BLOCK,
    net::weights::WeightReader,
    simd::{InstructionSet, STEP, SUMS, fir},
};

/// A linear filter, ready to play. As in Neural Amp Modeler's core, the first weight is that of the current frame.
#[derive(Debug)]
pub struct Linear {
    instructions: InstructionSet,
    /// The weights, that of the oldest frame first, so that small early sums are not rounded off by large late ones.
    response: Vec<f32>,
    bias: f32,
    /// The last frames, and space for as many again until they are moved to the front.
    window: Vec<f32>,
    /// Index of the next frame; at least the number of weights minus 1.
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
        let mut sums = [0.0; BLOCK];
        let sums = &mut sums[..frames.next_multiple_of(STEP)];
        fir(*instructions, &window[*at - history..], response, sums);
        for (output, sum) in output.iter_mut().zip(&sums[..frames]) {
            *output = sum + *bias;
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
