//! A loudspeaker cabinet: a signal is convolved with an impulse response, without delay and with evenly spread work.

mod ir;

pub use ir::{Ir, IrError};

use crate::{
    convolver::Convolver,
    simd::{InstructionSet, flush_denormals},
};

/// A cabinet, ready to play.
#[derive(Debug)]
pub struct Cabinet {
    convolver: Convolver,
}

impl Cabinet {
    /// A cabinet for the sample rate of the response.
    #[must_use]
    pub fn new(ir: &Ir) -> Self {
        Self::with_instructions(ir, InstructionSet::best())
    }

    /// A cabinet that uses the given instruction set.
    #[must_use]
    pub fn with_instructions(ir: &Ir, instructions: InstructionSet) -> Self {
        Self { convolver: Convolver::new(ir.channels(), instructions) }
    }

    /// Number of samples after which an input no longer affects the output.
    #[must_use]
    pub fn frames(&self) -> usize {
        self.convolver.frames()
    }

    /// True if the two outputs differ.
    #[must_use]
    pub fn is_stereo(&self) -> bool {
        self.convolver.outputs() > 1
    }

    /// Plays `input`. A mono cabinet fills both sides with the same samples. Denormal numbers count as zero, so that
    /// silence takes no longer than sound.
    ///
    /// # Panics
    /// If the slices have different lengths.
    pub fn process(&mut self, input: &[f32], left: &mut [f32], right: &mut [f32]) {
        assert!(input.len() == left.len() && input.len() == right.len(), "input and outputs have different lengths");
        let _flushed = flush_denormals();
        self.convolver.process(input, &mut [&mut *left, &mut *right]);
        if !self.is_stereo() {
            right.copy_from_slice(left);
        }
    }

    /// Clears the state.
    pub fn reset(&mut self) {
        self.convolver.reset();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(seed: u32, len: usize) -> Vec<f32> {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 23) as f32 - 1.0
        };
        (0..len).map(|_| next()).collect()
    }

    /// Decaying noise.
    fn response(seed: u32, len: usize) -> Vec<f32> {
        let decay = |n: usize| (-6.0 * n as f32 / len as f32).exp() * 0.3;
        noise(seed, len).into_iter().enumerate().map(|(n, x)| x * decay(n)).collect()
    }

    fn direct(input: &[f32], response: &[f32]) -> Vec<f64> {
        let at =
            |n: usize| (0..response.len().min(n + 1)).map(|k| f64::from(response[k]) * f64::from(input[n - k])).sum();
        (0..input.len()).map(at).collect()
    }

    fn play(cabinet: &mut Cabinet, input: &[f32], lengths: &[usize]) -> [Vec<f32>; 2] {
        let (mut left, mut right) = (vec![0.0; input.len()], vec![0.0; input.len()]);
        let (mut at, mut lengths) = (0, lengths.iter().cycle());
        while at < input.len() {
            let end = input.len().min(at + lengths.next().unwrap());
            cabinet.process(&input[at..end], &mut left[at..end], &mut right[at..end]);
            at = end;
        }
        [left, right]
    }

    #[test]
    fn output_is_the_convolution_for_every_response_length() {
        let input = noise(1, 5000);
        for len in [1, 2, 3, 100, 511, 512, 513, 700, 704, 705, 768, 769, 2048, 4999] {
            let channels = vec![response(2, len), response(3, len)];
            let ir = Ir::new(48_000, channels.clone()).unwrap();
            for instructions in InstructionSet::all() {
                let played = play(&mut Cabinet::with_instructions(&ir, instructions), &input, &[64]);
                for (played, response) in played.iter().zip(&channels) {
                    let errors =
                        direct(&input, response).into_iter().zip(played).map(|(a, &b)| (a - f64::from(b)).abs());
                    let worst = errors.fold(0.0, f64::max);
                    assert!(worst < 3e-6, "{len} samples with {}: {worst:e}", instructions.name());
                }
            }
        }
    }

    #[test]
    fn blocks_of_any_size_give_the_same_bits() {
        let input = noise(4, 6000);
        let mut cabinet = Cabinet::new(&Ir::new(48_000, vec![response(5, 3000)]).unwrap());
        let whole = play(&mut cabinet, &input, &[input.len()]);
        assert_eq!(whole[0], whole[1]);
        for lengths in [&[1][..], &[16], &[64], &[63, 2, 255, 1], &[1024], &[257, 7]] {
            cabinet.reset();
            assert!(play(&mut cabinet, &input, lengths) == whole, "{lengths:?}");
        }
    }
}
