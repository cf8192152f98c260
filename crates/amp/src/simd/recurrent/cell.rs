//! Recurrent cells: the new state of a unit from its sums.

use crate::simd::{
    Simd,
    functions::{SIGMOID_SCALE, TANH_SCALE, scaled_sigmoid, scaled_tanh, tanh_ratio},
};

/// A kind of recurrent unit, with four sums.
pub trait Cell: Copy {
    /// Factors of the sums, which are included in the weights: powers of two, so that nothing is rounded.
    const SCALES: [f32; 4];
    /// Factor of the cell state.
    const CELL_SCALE: f32;
    /// The next cell state.
    fn next_cell<S: Simd>(self, simd: S, sums: [S::V; 4], cell: S::V) -> S::V;
    /// The hidden state, which is the output, from the last sum and the current cell state.
    fn hidden<S: Simd>(self, simd: S, output: S::V, cell: S::V) -> S::V;
}

/// Long short-term memory; the gates are input, forget, candidate and output.
#[derive(Debug, Clone, Copy)]
pub struct Lstm;

/// A gated recurrent unit of Keras; the sums are update, reset, and the candidate's sums of the inputs and of the
/// units. The latter two are separate because the reset gate applies only to the sum of the units.
#[derive(Debug, Clone, Copy)]
pub struct Gru;

impl Cell for Lstm {
    const SCALES: [f32; 4] = [SIGMOID_SCALE, SIGMOID_SCALE, TANH_SCALE, SIGMOID_SCALE];
    const CELL_SCALE: f32 = TANH_SCALE;

    #[inline(always)]
    fn next_cell<S: Simd>(self, simd: S, [input, forget, candidate, _]: [S::V; 4], cell: S::V) -> S::V {
        let (input, input_q) = sigmoid_ratio(simd, input);
        let (forget, forget_q) = sigmoid_ratio(simd, forget);
        let (x, p, q) = tanh_ratio(simd, candidate);
        // Two divisions at once; the second one does not wait for the candidate.
        let before = simd.div(simd.mul(forget, cell), simd.add(forget_q, forget_q));
        let part = simd.div(simd.splat(Self::CELL_SCALE / 2.0), simd.mul(input_q, q));
        let candidate = simd.mul(x, p);
        simd.mul_add(simd.mul(input, candidate), part, before)
    }

    #[inline(always)]
    fn hidden<S: Simd>(self, simd: S, output: S::V, cell: S::V) -> S::V {
        let (output, output_q) = sigmoid_ratio(simd, output);
        let (x, p, q) = tanh_ratio(simd, cell);
        let numerator = simd.mul(simd.mul(output, x), p);
        simd.div(numerator, simd.mul(simd.add(output_q, output_q), q))
    }
}

impl Cell for Gru {
    const SCALES: [f32; 4] = [SIGMOID_SCALE, SIGMOID_SCALE, TANH_SCALE, TANH_SCALE];
    const CELL_SCALE: f32 = 1.0;

    #[inline(always)]
    fn next_cell<S: Simd>(self, simd: S, [update, reset, input, units]: [S::V; 4], cell: S::V) -> S::V {
        let update = scaled_sigmoid(simd, update);
        let candidate = scaled_tanh(simd, simd.mul_add(scaled_sigmoid(simd, reset), units, input));
        let taken = simd.sub(simd.splat(1.0), update);
        simd.mul_add(taken, candidate, simd.mul(update, cell))
    }

    #[inline(always)]
    fn hidden<S: Simd>(self, _simd: S, _output: S::V, cell: S::V) -> S::V {
        cell
    }
}

/// [`scaled_sigmoid`] as a ratio: the numerator, and half of the denominator.
#[inline(always)]
fn sigmoid_ratio<S: Simd>(simd: S, half: S::V) -> (S::V, S::V) {
    let (x, p, q) = tanh_ratio(simd, half);
    (simd.mul_add(x, p, q), q)
}
