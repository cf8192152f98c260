//! Networks, one module per kind.

pub mod conv;
pub mod convnet;
pub mod linear;
pub mod recurrent;
pub mod wavenet;
pub mod weights;

use crate::{simd::InstructionSet, work::Work};

/// A network with one input signal: the part of a model that computes, without its gains.
pub trait Net: Send {
    /// Number of output signals.
    fn outputs(&self) -> usize;

    /// Number of frames of silence after which the state no longer changes, as defined for this kind of network.
    fn prewarm_frames(&self) -> usize;

    /// Computes one block of at most [`BLOCK`](crate::memory::BLOCK) frames. Output signal `i` is written to
    /// `output[i * BLOCK..]`.
    fn block(&mut self, input: &[f32], output: &mut [f32]);

    /// Restores the initial state.
    fn reset(&mut self);

    /// Number of knobs.
    fn knobs(&self) -> usize {
        0
    }

    /// Turns a knob, counted from 0, to a value of 0 to 1. The value is reached within 1024 frames, or at the next
    /// reset. Ignored if the network has no such knob.
    fn turn(&mut self, _knob: usize, _value: f32) {}

    /// The work per frame.
    fn work(&self) -> Work;

    /// The instruction set that computes the network.
    fn instructions(&self) -> InstructionSet;
}
