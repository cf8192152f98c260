//! Networks of every kind, one a file.

pub mod conv;
pub mod convnet;
pub mod linear;
pub mod recurrent;
pub mod wavenet;
pub mod weights;

use crate::simd::InstructionSet;

/// A network with one signal in: what a model computes, without its gains and parameters.
pub trait Net: Send {
    /// Number of signals that come out.
    fn outputs(&self) -> usize;

    /// Frames of silence after which nothing changes any more, as its kind defines it.
    fn prewarm_frames(&self) -> usize;

    /// Computes one block: `input` holds at most [`BLOCK`](crate::memory::BLOCK) frames, of which signal `i` is written to
    /// `output[i * BLOCK..]`.
    fn block(&mut self, input: &[f32], output: &mut [f32]);

    /// Back to the state that it was made in.
    fn reset(&mut self);

    /// Number of knobs.
    fn knobs(&self) -> usize {
        0
    }

    /// Turns a knob, counted from 0, to a value of 0 to 1, where it gets within some milliseconds; at once before the
    /// network is reset. A knob that it has not is not turned.
    fn turn(&mut self, _knob: usize, _value: f32) {}

    /// Multiplications and additions a frame.
    fn work(&self) -> u64;

    /// The instructions that it is played with.
    fn instructions(&self) -> InstructionSet;
}
