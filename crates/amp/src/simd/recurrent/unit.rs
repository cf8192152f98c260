//! What recurrent units of each kind make of their sums.

use crate::simd::{
    Simd,
    functions::{SIGMOID_SCALE, TANH_SCALE, scaled_sigmoid, scaled_tanh, tanh_in_parts},
};

/// What a unit makes of its four sums.
pub trait Unit: Copy {
    /// What the sums are multiplied by before a step sees them: powers of two, which weights take without rounding.
    const SCALES: [f32; 4];
    /// The same of what is kept.
    const KEPT_SCALE: f32;
    /// What it keeps, of its sums and what it kept before.
    fn keep<S: Simd>(self, simd: S, sums: [S::V; 4], kept: S::V) -> S::V;
    /// What it tells, of its last sum and what it keeps now.
    fn tell<S: Simd>(self, simd: S, output: S::V, kept: S::V) -> S::V;
}

/// Long short-term memory: gates of input, forgetting, candidate and output.
#[derive(Debug, Clone, Copy)]
pub struct Lstm;

/// A gated recurrent unit as Keras has it: gates of update and reset, then the candidate of the input and that of the units
/// apart, since the reset acts on the latter's sum.
#[derive(Debug, Clone, Copy)]
pub struct Gru;

/// For [`scaled_tanh`].
const WHOLE: f32 = TANH_SCALE;
/// For [`scaled_sigmoid`].
const HALF: f32 = SIGMOID_SCALE;

impl Unit for Lstm {
    const SCALES: [f32; 4] = [HALF, HALF, WHOLE, HALF];
    const KEPT_SCALE: f32 = WHOLE;

    #[inline(always)]
    fn keep<S: Simd>(self, simd: S, [input, forget, candidate, _]: [S::V; 4], kept: S::V) -> S::V {
        let (input, below_input) = logistic_in_parts(simd, input);
        let (forget, below_forget) = logistic_in_parts(simd, forget);
        let (x, above, below) = tanh_in_parts(simd, candidate);
        // Two divisions side by side, of which one need not wait for what it is multiplied with.
        let before = simd.div(simd.mul(forget, kept), simd.add(below_forget, below_forget));
        let part = simd.div(simd.splat(Self::KEPT_SCALE / 2.0), simd.mul(below_input, below));
        let candidate = simd.mul(x, above);
        simd.mul_add(simd.mul(input, candidate), part, before)
    }

    #[inline(always)]
    fn tell<S: Simd>(self, simd: S, output: S::V, kept: S::V) -> S::V {
        let (output, below_output) = logistic_in_parts(simd, output);
        let (x, above, below) = tanh_in_parts(simd, kept);
        let above = simd.mul(simd.mul(output, x), above);
        simd.div(above, simd.mul(simd.add(below_output, below_output), below))
    }
}

impl Unit for Gru {
    const SCALES: [f32; 4] = [HALF, HALF, WHOLE, WHOLE];
    const KEPT_SCALE: f32 = 1.0;

    #[inline(always)]
    fn keep<S: Simd>(self, simd: S, [update, reset, input, units]: [S::V; 4], kept: S::V) -> S::V {
        let update = scaled_sigmoid(simd, update);
        let candidate = scaled_tanh(simd, simd.mul_add(scaled_sigmoid(simd, reset), units, input));
        let taken = simd.sub(simd.splat(1.0), update);
        simd.mul_add(taken, candidate, simd.mul(update, kept))
    }

    #[inline(always)]
    fn tell<S: Simd>(self, _simd: S, _output: S::V, kept: S::V) -> S::V {
        kept
    }
}

/// [`scaled_sigmoid`] as what is divided, and half of what it is divided by.
#[inline(always)]
fn logistic_in_parts<S: Simd>(simd: S, half: S::V) -> (S::V, S::V) {
    let (x, above, below) = tanh_in_parts(simd, half);
    (simd.mul_add(x, above, below), below)
}
