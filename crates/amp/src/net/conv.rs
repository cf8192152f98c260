//! Convolutions: weighted sums of the taps of a delay line.

use super::weights::ConvWeights;
use crate::{
    memory::Rows,
    simd::{Matrix, Pass, Sum, multiply},
};

/// A causal convolution.
#[derive(Debug)]
pub struct Conv {
    groups: Vec<Group>,
    /// Delay of each tap, frames; the oldest tap first.
    delays: Vec<usize>,
    /// Rows of the taps, set anew for each block.
    taps: Vec<Rows>,
}

/// Outputs that depend on the same inputs.
#[derive(Debug)]
struct Group {
    matrix: Matrix,
    first_input: usize,
    inputs: usize,
    first_output: usize,
}

impl Conv {
    /// A convolution with these weights.
    pub fn new(weights: ConvWeights<'_>, dilation: usize) -> Self {
        Self::with_extra_inputs(weights, dilation, 0, |_, _| 0.0)
    }

    /// A convolution with these weights and `extra` additional inputs, of which only the current frame is used. Their
    /// weights are `extra_weight(output, input)`.
    pub fn with_extra_inputs(
        weights: ConvWeights<'_>,
        dilation: usize,
        extra: usize,
        extra_weight: impl Fn(usize, usize) -> f32,
    ) -> Self {
        let shape = weights.shape;
        let (inputs, outputs) = (shape.inputs / shape.groups, shape.outputs / shape.groups);
        let tap_columns = shape.kernel * inputs;
        let group = |group: usize| {
            let first_output = group * outputs;
            let weight = |row: usize, column: usize| match column.checked_sub(tap_columns) {
                None => weights.at(first_output + row, column % inputs, column / inputs),
                Some(column) => extra_weight(first_output + row, column),
            };
            let matrix = Matrix::new(outputs, tap_columns + extra, weight, |row| weights.bias(first_output + row));
            Group { matrix, first_input: group * inputs, inputs, first_output }
        };
        Self {
            groups: (0..shape.groups).map(group).collect(),
            delays: shape.delays(dilation),
            taps: Vec::with_capacity(shape.kernel + 1),
        }
    }

    /// Computes all outputs of a block into `out` and adds `plus`, if given. `from(delay)` returns the signal `delay`
    /// frames ago.
    pub fn apply(
        &mut self,
        pass: Pass,
        memory: &mut [f32],
        from: impl Fn(usize) -> Rows,
        plus: Option<Rows>,
        out: Rows,
    ) {
        for group in 0..self.groups.len() {
            multiply(pass, memory, self.sum(group, &from, None, plus, out));
        }
    }

    /// The sum that computes one group, counted from 0; `extra` are the additional inputs.
    #[inline]
    pub fn sum(
        &mut self,
        group: usize,
        from: impl Fn(usize) -> Rows,
        extra: Option<Rows>,
        plus: Option<Rows>,
        out: Rows,
    ) -> Sum<'_> {
        let Self { groups, delays, taps } = self;
        let group = &groups[group];
        taps.clear();
        taps.extend(delays.iter().map(|&delay| from(delay).part(group.first_input, group.inputs)));
        taps.extend(extra);
        let of_group = |rows: Rows| rows.part(group.first_output, group.matrix.rows());
        Sum { matrix: &group.matrix, sources: taps, plus: plus.map(of_group), out: of_group(out) }
    }
}
