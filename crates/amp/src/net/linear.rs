//! Linear: an impulse response.

use super::Net;
use crate::{convolver::Convolver, error::LoadError, net::weights::WeightReader, simd::InstructionSet, work::Work};

/// A linear filter, ready to play. As in Neural Amp Modeler's core, the first weight is that of the current frame.
#[derive(Debug)]
pub struct Linear {
    instructions: InstructionSet,
    convolver: Convolver,
    bias: f32,
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
        let mut reader = WeightReader::new(weights, plan.weights())?;
        let (response, bias) = (reader.take(plan.taps), reader.take(1));
        let bias = bias.first().copied().unwrap_or_default();
        Ok(Self { instructions, convolver: Convolver::new(&[response], instructions), bias })
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
        self.convolver.process(input, &mut [&mut *output]);
        for output in &mut output[..input.len()] {
            *output += self.bias;
        }
    }

    fn reset(&mut self) {
        self.convolver.reset();
    }

    fn work(&self) -> Work {
        self.convolver.work()
    }

    fn instructions(&self) -> InstructionSet {
        self.instructions
    }
}
