//! Convolutions: taps of a delay line, weighted and summed.

use super::weights::ConvWeights;
use crate::{
    memory::Rows,
    simd::{Matrix, Pass, Sum, multiply},
};

/// A causal convolution.
#[derive(Debug)]
pub struct Conv {
    groups: Vec<Group>,
    /// How long ago each tap is, frames; the oldest first.
    delays: Vec<usize>,
    /// Rows that the taps are at; made anew for each block.
    taps: Vec<Rows>,
}

/// Outputs that see the same inputs.
#[derive(Debug)]
struct Group {
    matrix: Matrix,
    first_input: usize,
    inputs: usize,
    first_output: usize,
}

impl Conv {
    /// The convolution with these weights.
    pub fn new(weights: ConvWeights<'_>, dilation: usize) -> Self {
        Self::with(weights, dilation, 0, |_, _| 0.0)
    }

    /// The convolution with these weights, and `more` inputs of which only the current frames are seen, each with the
    /// weight `more_weight(output, input)`.
    pub fn with(
        weights: ConvWeights<'_>,
        dilation: usize,
        more: usize,
        more_weight: impl Fn(usize, usize) -> f32,
    ) -> Self {
        let shape = weights.shape;
        let (inputs, outputs) = (shape.inputs / shape.groups, shape.outputs / shape.groups);
        let of_taps = shape.kernel * inputs;
        let group = |group: usize| {
            let first_output = group * outputs;
            let weight = |row: usize, column: usize| match column.checked_sub(of_taps) {
                None => weights.at(first_output + row, column % inputs, column / inputs),
                Some(column) => more_weight(first_output + row, column),
            };
            let matrix = Matrix::new(outputs, of_taps + more, weight, |row| weights.bias(first_output + row));
            Group { matrix, first_input: group * inputs, inputs, first_output }
        };
        Self {
            groups: (0..shape.groups).map(group).collect(),
            delays: shape.delays(dilation),
            taps: Vec::with_capacity(shape.kernel + 1),
        }
    }

    /// Computes the frames of all outputs into `out`, added to `plus` where that is given; `from(delay)` is the signal so many
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

    /// What has to be computed for one group, counted from 0; `more` are the inputs of which only the current frames are
    /// seen.
    #[inline]
    pub fn sum(
        &mut self,
        group: usize,
        from: impl Fn(usize) -> Rows,
        more: Option<Rows>,
        plus: Option<Rows>,
        out: Rows,
    ) -> Sum<'_> {
        let Self { groups, delays, taps } = self;
        let group = &groups[group];
        taps.clear();
        taps.extend(delays.iter().map(|&delay| from(delay).part(group.first_input, group.inputs)));
        taps.extend(more);
        let of_group = |rows: Rows| rows.part(group.first_output, group.matrix.rows());
        Sum { matrix: &group.matrix, sources: taps, plus: plus.map(of_group), out: of_group(out) }
    }
}
