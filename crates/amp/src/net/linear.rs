//! A linear filter: an impulse response, convolved directly.

use super::Net;
use crate::{
    file::{LoadError, nam},
    memory::{Layout, Past},
    net::dense::Weights,
    simd::{Aligned, Level, Matrix, Pass, Rows, Sum, multiply},
};

/// A network without a bend: the response, the current frame's weight first, as Neural Amp Modeler's core reads it.
#[derive(Debug)]
pub struct Linear {
    level: Level,
    taps: usize,
    matrix: Matrix,
    input: Past,
    output: Rows,
    memory: Aligned,
}

/// Number of taps.
///
/// # Errors
/// When no response has as many.
pub fn taps(config: &nam::Linear) -> Result<usize, LoadError> {
    nam::size("receptive_field", config.receptive_field, nam::MOST_TAPS)
}

impl Linear {
    /// Makes it.
    ///
    /// # Errors
    /// When the weights are not those that the description asks for.
    pub fn new(config: &nam::Linear, weights: &[f32], level: Level) -> Result<Self, LoadError> {
        let taps = taps(config)?;
        let mut taken = Weights::new(weights, taps as u64 + u64::from(config.bias))?;
        let (response, bias) = (taken.take(taps), taken.take(1));
        let mut layout = Layout::default();
        let (input, output) = (layout.past(1, taps - 1), layout.rows(1));
        // The oldest frame first, so that large late sums do not swallow small early ones.
        let matrix =
            Matrix::new(1, taps, |_, tap| response[taps - 1 - tap], |_| bias.first().copied().unwrap_or_default());
        Ok(Self { level, taps, matrix, input, output, memory: layout.memory() })
    }
}

impl Net for Linear {
    fn outputs(&self) -> usize {
        1
    }

    fn settles_after(&self) -> usize {
        0
    }

    fn block(&mut self, input: &[f32], output: &mut [f32]) {
        let Self { level, taps, matrix, input: past, output: made, memory } = self;
        let frames = input.len();
        let pass = Pass { level: *level, frames };
        let now = past.now();
        memory[now.at..now.at + frames].copy_from_slice(input);
        past.complete(pass, memory);
        let sources = &past.one_frame_apart(*taps);
        multiply(pass, memory, Sum { matrix, sources, plus: None, out: *made });
        output[..frames].copy_from_slice(&memory[made.at..made.at + frames]);
        past.advance(frames);
    }

    fn restart(&mut self) {
        self.memory.fill(0.0);
        self.input.rewind();
    }

    fn work(&self) -> u64 {
        self.taps as u64
    }
}
