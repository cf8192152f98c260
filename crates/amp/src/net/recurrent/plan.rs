//! Plans of layers that are computed frame by frame, with their weights.

use crate::{simd::Activation, work::Work};

/// One layer; its output is the input of the next one.
#[derive(Debug, Clone)]
pub enum Plan {
    /// Long short-term memory; the gates are input, forget, candidate and output.
    Lstm(RecurrentWeights),
    /// Gated recurrent units; the sums are update, reset, and the candidate's sums of the inputs and of the units.
    Gru(RecurrentWeights),
    /// Weighted sums.
    Dense(DenseWeights),
    /// Weighted sums of the inputs of several frames.
    Conv(KerasConvWeights),
    /// An activation function of each value.
    Activation(Activation),
    /// A piecewise linear function for each value.
    PiecewiseLinear(Vec<PiecewiseLinear>),
}

/// A function of two lines that meet at 0.
#[derive(Debug, Clone, Copy)]
pub struct PiecewiseLinear {
    /// Slope above 0.
    pub positive_slope: f32,
    /// Slope below 0.
    pub negative_slope: f32,
    /// Value at 0.
    pub offset: f32,
}

/// Weights of recurrent units with four sums each.
#[derive(Debug, Clone)]
pub struct RecurrentWeights {
    /// Number of inputs.
    pub inputs: usize,
    /// Number of units, which are the outputs.
    pub units: usize,
    /// `[sum][unit][inputs, then units]`.
    pub weights: Vec<f32>,
    /// `[sum][unit]`.
    pub biases: Vec<f32>,
    /// Initial hidden state and cell state; empty for zeros.
    pub initial_state: [Vec<f32>; 2],
}

/// Weights of a dense layer.
#[derive(Debug, Clone)]
pub struct DenseWeights {
    /// Number of inputs.
    pub columns: usize,
    /// `[row][column]`.
    pub weights: Vec<f32>,
    /// One bias per row.
    pub biases: Vec<f32>,
}

/// Weights of a convolution of Keras: sums of the inputs of several frames.
#[derive(Debug, Clone)]
pub struct KerasConvWeights {
    /// The weights; the inputs of the oldest tap come first.
    pub dense: DenseWeights,
    /// Number of taps.
    pub kernel: usize,
    /// Distance between the taps, frames.
    pub dilation: usize,
}

impl RecurrentWeights {
    /// Weights from the functions `weight(sum, unit, column)` and `bias(sum, unit)`; the columns are the inputs, then
    /// the units.
    pub fn new(
        inputs: usize,
        units: usize,
        weight: impl Fn(usize, usize, usize) -> f32,
        bias: impl Fn(usize, usize) -> f32,
        initial_state: [Vec<f32>; 2],
    ) -> Self {
        let rows = || (0..4).flat_map(|sum| (0..units).map(move |unit| (sum, unit)));
        let mut weights = Vec::with_capacity(4 * units * (inputs + units));
        for (sum, unit) in rows() {
            weights.extend((0..inputs + units).map(|column| weight(sum, unit, column)));
        }
        Self { inputs, units, weights, biases: rows().map(|(sum, unit)| bias(sum, unit)).collect(), initial_state }
    }

    /// Weights of gated recurrent units from the functions `weight(gate, unit, column)` and `bias(gate, unit)`, which
    /// returns the biases of the inputs and of the units. The gates are update, reset and candidate.
    pub fn gru(
        inputs: usize,
        units: usize,
        weight: impl Fn(usize, usize, usize) -> f32,
        bias: impl Fn(usize, usize) -> (f32, f32),
    ) -> Self {
        // The two sums of the candidate stay separate because the reset gate applies only to the sum of the units.
        let weight = |sum: usize, unit: usize, column: usize| match (sum, column < inputs) {
            (3, true) | (2, false) => 0.0,
            _ => weight(sum.min(2), unit, column),
        };
        let bias = |sum: usize, unit: usize| match (sum, bias(sum.min(2), unit)) {
            (2, (of_inputs, _)) => of_inputs,
            (3, (_, of_units)) => of_units,
            (_, (of_inputs, of_units)) => of_inputs + of_units,
        };
        Self::new(inputs, units, weight, bias, Default::default())
    }
}

impl DenseWeights {
    /// Weights from the functions `weight(row, column)` and `bias(row)`.
    pub fn new(rows: usize, columns: usize, weight: impl Fn(usize, usize) -> f32, bias: impl Fn(usize) -> f32) -> Self {
        let mut weights = Vec::with_capacity(rows * columns);
        for row in 0..rows {
            weights.extend((0..columns).map(|column| weight(row, column)));
        }
        Self { columns, weights, biases: (0..rows).map(bias).collect() }
    }
}

impl Plan {
    /// Number of outputs for a number of inputs.
    pub fn outputs(&self, inputs: usize) -> usize {
        match self {
            Self::Lstm(weights) | Self::Gru(weights) => weights.units,
            Self::Dense(dense) => dense.biases.len(),
            Self::Conv(conv) => conv.dense.biases.len(),
            Self::Activation(_) | Self::PiecewiseLinear(_) => inputs,
        }
    }

    /// Number of recurrent units.
    pub fn units(&self) -> usize {
        match self {
            Self::Lstm(weights) | Self::Gru(weights) => weights.units,
            Self::Dense(_) | Self::Conv(_) | Self::Activation(_) | Self::PiecewiseLinear(_) => 0,
        }
    }

    /// Number of values of past frames that the layer keeps.
    pub fn history(&self) -> usize {
        match self {
            Self::Conv(conv) => ((conv.kernel - 1) * conv.dilation).saturating_mul(conv.dense.columns / conv.kernel),
            Self::Lstm(_) | Self::Gru(_) | Self::Dense(_) | Self::Activation(_) | Self::PiecewiseLinear(_) => 0,
        }
    }

    /// The work per frame.
    pub fn work(&self) -> Work {
        let of_units = |weights: &RecurrentWeights, multiplications: usize, functions: usize| {
            let columns = weights.inputs + weights.units;
            Work::of_units(multiplications as u64, weights.units, columns, functions)
        };
        match self {
            Self::Lstm(weights) => of_units(weights, weights.weights.len(), 5),
            // A quarter of the weights are zeros between inputs or units and the other sum of the candidate.
            Self::Gru(weights) => of_units(weights, weights.weights.len() / 4 * 3, 3),
            Self::Dense(dense) => {
                let work = Work::of_sums(dense.weights.len() as u64);
                // Only a single sum was counted: the last layer of most files.
                if dense.biases.len() == 1 { work } else { work.uncounted() }
            }
            Self::Conv(conv) => Work::of_sums(conv.dense.weights.len() as u64).uncounted(),
            Self::Activation(_) => Work::default().uncounted(),
            Self::PiecewiseLinear(functions) => Work::of_sums(2 * functions.len() as u64).uncounted(),
        }
    }
}
