//! Layers that are computed frame by frame, as files have them.

use crate::simd::Activation;

/// One layer; its output is the next one's input.
#[derive(Debug, Clone)]
pub enum Plan {
    /// Long short-term memory: gates of input, forgetting, candidate and output.
    Lstm(RecurrentWeights),
    /// Gated recurrent units: gates of update and reset, the candidate of the inputs and that of the units.
    Gru(RecurrentWeights),
    /// Weighted sums.
    Dense(DenseWeights),
    /// Weighted sums of the inputs of several frames.
    Conv(KerasConvWeights),
    /// A function of each value.
    Activation(Activation),
    /// A piecewise linear function of each value, each of its own.
    PiecewiseLinear(Vec<PiecewiseLinear>),
}

/// A function of two lines that meet at 0.
#[derive(Debug, Clone, Copy)]
pub struct PiecewiseLinear {
    /// Its slope above 0.
    pub positive_slope: f32,
    /// Its slope below 0.
    pub negative_slope: f32,
    /// Its value at 0.
    pub offset: f32,
}

/// Weights of recurrent units of four sums each.
#[derive(Debug, Clone)]
pub struct RecurrentWeights {
    /// Values in.
    pub inputs: usize,
    /// Values out.
    pub units: usize,
    /// `[sum][unit][inputs, then units]`.
    pub weights: Vec<f32>,
    /// `[sum][unit]`.
    pub biases: Vec<f32>,
    /// Hidden and cell state that they begin with; empty for zeros.
    pub initial_state: [Vec<f32>; 2],
}

/// Weights of sums.
#[derive(Debug, Clone)]
pub struct DenseWeights {
    /// Values in.
    pub columns: usize,
    /// `[row][column]`.
    pub weights: Vec<f32>,
    /// One a row.
    pub biases: Vec<f32>,
}

/// Weights of a convolution as Keras has it: sums of the inputs of several frames.
#[derive(Debug, Clone)]
pub struct KerasConvWeights {
    /// The inputs of the oldest tap first.
    pub dense: DenseWeights,
    /// Taps.
    pub kernel: usize,
    /// Distance of the taps, frames.
    pub dilation: usize,
}

impl RecurrentWeights {
    /// Those of units whose columns are the inputs and then the units.
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
}

impl DenseWeights {
    /// Sums of `columns` values each.
    pub fn new(rows: usize, columns: usize, weight: impl Fn(usize, usize) -> f32, bias: impl Fn(usize) -> f32) -> Self {
        let mut weights = Vec::with_capacity(rows * columns);
        for row in 0..rows {
            weights.extend((0..columns).map(|column| weight(row, column)));
        }
        Self { columns, weights, biases: (0..rows).map(bias).collect() }
    }
}

impl Plan {
    /// Values out, of so many values in.
    pub fn outputs(&self, inputs: usize) -> usize {
        match self {
            Self::Lstm(weights) | Self::Gru(weights) => weights.units,
            Self::Dense(dense) => dense.biases.len(),
            Self::Conv(conv) => conv.dense.biases.len(),
            Self::Activation(_) | Self::PiecewiseLinear(_) => inputs,
        }
    }

    /// Recurrent units.
    pub fn units(&self) -> usize {
        match self {
            Self::Lstm(weights) | Self::Gru(weights) => weights.units,
            Self::Dense(_) | Self::Conv(_) | Self::Activation(_) | Self::PiecewiseLinear(_) => 0,
        }
    }

    /// Values of past frames that it keeps.
    pub fn history(&self) -> usize {
        match self {
            Self::Conv(conv) => ((conv.kernel - 1) * conv.dilation).saturating_mul(conv.dense.columns / conv.kernel),
            _ => 0,
        }
    }

    /// Multiplications and additions a frame.
    pub fn work(&self) -> u64 {
        let weights = match self {
            Self::Lstm(weights) | Self::Gru(weights) => weights.weights.len(),
            Self::Dense(dense) => dense.weights.len(),
            Self::Conv(conv) => conv.dense.weights.len(),
            Self::Activation(_) => 0,
            Self::PiecewiseLinear(functions) => 2 * functions.len(),
        };
        weights as u64
    }
}
