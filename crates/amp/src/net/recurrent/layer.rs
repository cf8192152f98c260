//! Layers that are computed frame by frame, ready to play. A layer processes a whole block before the next layer, or together
//! with it.

use super::plan::{self, DenseWeights, PiecewiseLinear, Plan};
use crate::{
    memory::{Aligned, BLOCK, Rows},
    simd::{
        Activation, Cell, ColumnMajor, Frames, GateWeights, Gru, Head, InstructionSet, Lstm, RecurrentCall, Simd, dot,
        padded,
    },
};

/// One layer; its output is the input of the next one.
#[derive(Debug, Clone)]
pub enum Layer {
    /// Long short-term memory.
    Lstm(RecurrentLayer<Lstm>),
    /// Gated recurrent units.
    Gru(RecurrentLayer<Gru>),
    /// Weighted sums.
    Dense(Dense),
    /// One weighted sum.
    Dot(Dot),
    /// Weighted sums of several past frames.
    Conv(KerasConv),
    /// An activation function of each value.
    Activation(ActivationLayer),
    /// A piecewise linear function of each value.
    PiecewiseLinear(PiecewiseLinearLayer),
}

/// The output of a layer: a row of values for each frame of a block.
type Output = Aligned;

/// An activation function of each value.
#[derive(Debug, Clone)]
pub struct ActivationLayer {
    activation: Activation,
    output: Output,
}

/// A piecewise linear function of each value.
#[derive(Debug, Clone)]
pub struct PiecewiseLinearLayer {
    functions: Vec<PiecewiseLinear>,
    output: Output,
}

/// A layer of recurrent units.
#[derive(Debug, Clone)]
pub struct RecurrentLayer<C> {
    cell: C,
    gates: GateWeights,
    units: usize,
    hidden: Aligned,
    cell_state: Aligned,
    output: Output,
    /// Initial hidden state and cell state.
    initial_state: [Aligned; 2],
    /// The following layer, if it is a single weighted sum: it is computed while the units of the next frame depend on
    /// this one.
    head: Option<Dot>,
}

/// A dense layer: weighted sums.
#[derive(Debug, Clone)]
pub struct Dense {
    matrix: ColumnMajor,
    inputs: usize,
    outputs: usize,
    output: Output,
}

/// A dense layer with one output.
#[derive(Debug, Clone)]
pub struct Dot {
    row: Vec<f32>,
    bias: f32,
    /// One value per frame.
    output: Vec<f32>,
}

/// A convolution of Keras: weighted sums of the inputs of several frames.
#[derive(Debug, Clone)]
pub struct KerasConv {
    dense: Dense,
    kernel: usize,
    dilation: usize,
    /// Inputs of the last frames: a ring.
    history: Vec<f32>,
    position: usize,
    gathered: Vec<f32>,
}

impl Layer {
    /// Appends the layer of a plan, which has `inputs` inputs.
    pub fn add(all: &mut Vec<Self>, plan: &Plan, inputs: usize, instructions: InstructionSet) {
        match (Self::new(plan, inputs, instructions), all.last_mut()) {
            (
                Self::Dot(dot),
                Some(Self::Lstm(RecurrentLayer { head, .. }) | Self::Gru(RecurrentLayer { head, .. })),
            ) if head.is_none() => {
                *head = Some(dot);
            }
            (layer, _) => all.push(layer),
        }
    }

    fn new(plan: &Plan, inputs: usize, instructions: InstructionSet) -> Self {
        match plan {
            Plan::Lstm(weights) => Self::Lstm(RecurrentLayer::new(Lstm, weights, instructions)),
            Plan::Gru(weights) => Self::Gru(RecurrentLayer::new(Gru, weights, instructions)),
            Plan::Dense(weights) if weights.biases.len() == 1 && inputs > 1 => Self::Dot(Dot::new(weights)),
            Plan::Dense(weights) => Self::Dense(Dense::new(weights)),
            Plan::Conv(weights) => Self::Conv(KerasConv::new(weights)),
            Plan::Activation(activation) => {
                Self::Activation(ActivationLayer { activation: activation.clone(), output: silent_output(inputs) })
            }
            Plan::PiecewiseLinear(functions) => Self::PiecewiseLinear(PiecewiseLinearLayer {
                functions: functions.clone(),
                output: silent_output(functions.len()),
            }),
        }
    }

    /// Restores the initial state.
    pub fn reset(&mut self) {
        match self {
            Self::Lstm(layer) => layer.reset(),
            Self::Gru(layer) => layer.reset(),
            Self::Conv(conv) => conv.history.fill(0.0),
            Self::Dense(_) | Self::Dot(_) | Self::Activation(_) | Self::PiecewiseLinear(_) => {}
        }
    }

    /// True if this layer and the next one are computed together, which is quicker if each waits for its state.
    #[inline(always)]
    pub fn joins<S: Simd>(&self, next: &Self) -> bool {
        match (self, next) {
            (Self::Lstm(first), Self::Lstm(next)) => first.joins::<S>(next),
            (Self::Gru(first), Self::Gru(next)) => first.joins::<S>(next),
            _ => false,
        }
    }

    /// Computes the output of a block by this layer and the next one, which it joins.
    ///
    /// # Panics
    /// If it does not join that layer.
    #[inline(always)]
    pub fn block_with<'a, S: Simd>(
        &mut self,
        next: &'a mut Self,
        simd: S,
        frames: usize,
        input: Frames<'_>,
    ) -> Frames<'a> {
        match (self, next) {
            (Self::Lstm(first), Self::Lstm(next)) => first.block_with(next, simd, frames, input),
            (Self::Gru(first), Self::Gru(next)) => first.block_with(next, simd, frames, input),
            _ => unreachable!("layers that are not joined"),
        }
    }

    /// Computes the output of a block.
    #[inline(always)]
    pub fn block<S: Simd>(&mut self, simd: S, frames: usize, input: Frames<'_>) -> Frames<'_> {
        match self {
            Self::Lstm(layer) => layer.block(simd, frames, input),
            Self::Gru(layer) => layer.block(simd, frames, input),
            Self::Dense(dense) => dense.block(simd, frames, input),
            Self::Dot(dot) => dot.block(simd, frames, input),
            Self::Conv(conv) => conv.block(simd, frames, input),
            Self::Activation(activation) => activation.block(simd, frames, input),
            Self::PiecewiseLinear(layer) => layer.block(frames, input),
        }
    }
}

fn silent_output(count: usize) -> Output {
    Aligned::new(BLOCK * padded(count), [])
}

/// The rows of an output of `count` values per frame.
#[inline(always)]
fn rows(output: &[f32], count: usize) -> Frames<'_> {
    Frames { values: output, stride: padded(count), count }
}

/// Runs `$do` for each frame with its input values and space for `$count` output values.
macro_rules! for_each_frame {
    ($frames:ident, $input:ident, $output:expr, $count:expr, |$x:ident, $out:ident| $do:expr) => {{
        let stride = padded($count);
        for frame in 0..$frames {
            let $x = &$input.values[frame * $input.stride..][..$input.stride];
            let $out = &mut $output[frame * stride..][..stride];
            $do;
        }
        rows($output, $count)
    }};
}

impl<C: Cell> RecurrentLayer<C> {
    fn new(cell: C, weights: &plan::RecurrentWeights, instructions: InstructionSet) -> Self {
        let plan::RecurrentWeights { inputs, units, weights, biases, initial_state } = weights;
        let (units, columns) = (*units, inputs + units);
        let weight = |sum: usize, unit: usize, column: usize| weights[(sum * units + unit) * columns + column];
        let gates =
            GateWeights::new(instructions, cell, units, columns, weight, |sum, unit| biases[sum * units + unit]);
        let [hidden, cell_state] = initial_state;
        let initial_state = [(hidden, 1.0), (cell_state, C::CELL_SCALE)]
            .map(|(values, scale)| Aligned::new(padded(units), values.iter().map(|value| scale * value)));
        let (hidden, cell_state) = (initial_state[0].clone(), initial_state[1].clone());
        Self { cell, gates, units, hidden, cell_state, output: silent_output(units), initial_state, head: None }
    }

    fn reset(&mut self) {
        self.hidden.copy_from_slice(&self.initial_state[0]);
        self.cell_state.copy_from_slice(&self.initial_state[1]);
    }

    #[inline(always)]
    fn block<S: Simd>(&mut self, simd: S, frames: usize, input: Frames<'_>) -> Frames<'_> {
        let (cell, RecurrentCall { gates, state, outputs, head }) = (self.cell, self.call(frames));
        gates.run(simd, cell, input, state, outputs, head);
        self.finish(frames)
    }

    #[inline(always)]
    fn joins<S: Simd>(&self, next: &Self) -> bool {
        self.head.is_none() && self.gates.is_one_vector::<S>() && next.gates.is_one_vector::<S>()
    }

    #[inline(always)]
    fn block_with<'a, S: Simd>(&mut self, next: &'a mut Self, simd: S, frames: usize, input: Frames<'_>) -> Frames<'a> {
        GateWeights::run_both(simd, self.cell, input, [self.call(frames), next.call(frames)]);
        self.finish(frames);
        next.finish(frames)
    }

    /// The weights and the memory for a block.
    #[inline(always)]
    fn call(&mut self, frames: usize) -> RecurrentCall<'_> {
        let Self { gates, hidden, cell_state, output, head, .. } = self;
        let head = head.as_mut().map(|Dot { row, bias, output }| Head { row, bias: *bias, sums: output });
        let outputs = &mut output[..frames * cell_state.len()];
        RecurrentCall { gates, state: (hidden, cell_state), outputs, head }
    }

    /// Keeps the last hidden state of a block, and returns its output.
    #[inline(always)]
    fn finish(&mut self, frames: usize) -> Frames<'_> {
        let stride = self.cell_state.len();
        if frames > 0 {
            self.hidden.copy_from_slice(&self.output[(frames - 1) * stride..][..stride]);
        }
        match &self.head {
            Some(dot) => dot.output(),
            None => rows(&self.output, self.units),
        }
    }
}

impl Dense {
    fn new(weights: &DenseWeights) -> Self {
        let DenseWeights { columns, weights, biases } = weights;
        let matrix =
            ColumnMajor::new(biases.len(), *columns, |row, column| weights[row * columns + column], |row| biases[row]);
        Self { output: silent_output(biases.len()), matrix, inputs: *columns, outputs: biases.len() }
    }

    #[inline(always)]
    fn block<S: Simd>(&mut self, simd: S, frames: usize, input: Frames<'_>) -> Frames<'_> {
        let Self { matrix, inputs, outputs, output } = self;
        for_each_frame!(frames, input, output, *outputs, |x, out| matrix.multiply(simd, &x[..*inputs], out))
    }
}

impl Dot {
    fn new(weights: &DenseWeights) -> Self {
        let mut row = weights.weights.clone();
        row.resize(padded(weights.columns), 0.0);
        Self { row, bias: weights.biases[0], output: vec![0.0; BLOCK] }
    }

    #[inline(always)]
    fn block<S: Simd>(&mut self, simd: S, frames: usize, input: Frames<'_>) -> Frames<'_> {
        for (frame, sum) in self.output[..frames].iter_mut().enumerate() {
            *sum = self.bias + dot(simd, &self.row, &input.values[frame * input.stride..][..input.stride]);
        }
        self.output()
    }

    fn output(&self) -> Frames<'_> {
        Frames { values: &self.output, stride: 1, count: 1 }
    }
}

impl KerasConv {
    fn new(weights: &plan::KerasConvWeights) -> Self {
        let plan::KerasConvWeights { dense, kernel, dilation } = weights;
        let frames = (kernel - 1) * dilation + 1;
        Self {
            dense: Dense::new(dense),
            kernel: *kernel,
            dilation: *dilation,
            history: vec![0.0; frames * (dense.columns / kernel)],
            position: 0,
            gathered: vec![0.0; dense.columns],
        }
    }

    #[inline(always)]
    fn block<S: Simd>(&mut self, simd: S, frames: usize, input: Frames<'_>) -> Frames<'_> {
        let Self { dense: Dense { matrix, inputs, outputs, output }, kernel, dilation, history, position, gathered } =
            self;
        let inputs = *inputs / *kernel;
        let ring = history.len() / inputs;
        for_each_frame!(frames, input, output, *outputs, |x, out| {
            history[*position * inputs..][..inputs].copy_from_slice(&x[..inputs]);
            // The frame after the current one is the oldest.
            for tap in 0..*kernel {
                let frame = (*position + 1 + tap * *dilation) % ring;
                gathered[tap * inputs..][..inputs].copy_from_slice(&history[frame * inputs..][..inputs]);
            }
            *position = (*position + 1) % ring;
            matrix.multiply(simd, gathered, out);
        })
    }
}

impl ActivationLayer {
    #[inline(always)]
    fn block<S: Simd>(&mut self, simd: S, frames: usize, input: Frames<'_>) -> Frames<'_> {
        let Self { activation, output } = self;
        let values = frames * input.stride;
        output[..values].copy_from_slice(&input.values[..values]);
        activation.apply_with(simd, output, Rows { at: 0, stride: 0, count: 1 }, values);
        Frames { values: output, ..input }
    }
}

impl PiecewiseLinearLayer {
    #[inline(always)]
    fn block(&mut self, frames: usize, input: Frames<'_>) -> Frames<'_> {
        let Self { functions, output } = self;
        for_each_frame!(frames, input, output, functions.len(), |x, out| {
            for ((out, &x), function) in out.iter_mut().zip(x).zip(&*functions) {
                let PiecewiseLinear { positive_slope, negative_slope, offset } = function;
                *out = x.max(0.0) * positive_slope + x.min(0.0) * negative_slope + offset;
            }
        })
    }
}
