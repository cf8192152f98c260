//! Networks that are computed frame by frame: recurrent layers, and what stands between and behind them.

use super::Net;
use crate::{
    memory::BLOCK,
    simd::{Activation, Columns, Level, Op, Rows, Simd, gru_step, lstm_step, padded},
};

/// One layer; its output is the next one's input.
#[derive(Debug, Clone)]
pub enum Layer {
    /// Long short-term memory.
    Lstm(Lstm),
    /// Gated recurrent units.
    Gru(Gru),
    /// Weighted sums.
    Dense(Dense),
    /// A function of each value.
    Activation(Activation),
    /// Weighted sums of what came so many frames ago.
    Conv(Conv),
}

/// Long short-term memory.
#[derive(Debug, Clone)]
pub struct Lstm {
    matrix: Columns,
    gates: Vec<f32>,
    /// The input, then what the units told last.
    seen: Vec<f32>,
    inputs: usize,
    units: usize,
    cell: Vec<f32>,
    first_hidden: Vec<f32>,
    first_cell: Vec<f32>,
}

impl Lstm {
    /// Units whose gates are those of input, forgetting, candidate and output: `weight(gate, unit, column)`, the columns
    /// being the inputs and then the units. They begin with `hidden` and `cell`, or with zeros where these are empty.
    #[must_use]
    pub fn new(
        inputs: usize,
        units: usize,
        weight: impl Fn(usize, usize, usize) -> f32,
        bias: impl Fn(usize, usize) -> f32,
        (hidden, cell): (&[f32], &[f32]),
    ) -> Self {
        let all = padded(units);
        let or_zero = |row: usize, value: &dyn Fn(usize, usize) -> f32| {
            if row % all < units { value(row / all, row % all) } else { 0.0 }
        };
        let matrix = Columns::new(
            4 * all,
            inputs + units,
            |row, column| or_zero(row, &|gate, unit| weight(gate, unit, column)),
            |row| or_zero(row, &bias),
        );
        let begin = |values: &[f32]| (0..all).map(|unit| values.get(unit).copied().unwrap_or_default()).collect();
        let mut lstm = Self {
            matrix,
            gates: vec![0.0; 4 * all],
            seen: vec![0.0; inputs + all],
            inputs,
            units,
            cell: vec![0.0; all],
            first_hidden: begin(hidden),
            first_cell: begin(cell),
        };
        lstm.restart();
        lstm
    }

    fn restart(&mut self) {
        self.seen[self.inputs..].copy_from_slice(&self.first_hidden);
        self.cell.copy_from_slice(&self.first_cell);
    }

    #[inline(always)]
    fn step<S: Simd>(&mut self, simd: S, input: &[f32]) -> &[f32] {
        self.seen[..self.inputs].copy_from_slice(&input[..self.inputs]);
        self.matrix.multiply(simd, &self.seen[..self.inputs + self.units], &mut self.gates);
        lstm_step(simd, &self.gates, &mut self.cell, &mut self.seen[self.inputs..]);
        &self.seen[self.inputs..]
    }
}

/// Gated recurrent units.
#[derive(Debug, Clone)]
pub struct Gru {
    of_input: Columns,
    of_hidden: Columns,
    from_input: Vec<f32>,
    from_hidden: Vec<f32>,
    hidden: Vec<f32>,
    inputs: usize,
    units: usize,
}

impl Gru {
    /// Units whose gates are those of update, reset and candidate: `input(gate, unit, column)` and `hidden` alike, with a
    /// bias for each of the two.
    #[must_use]
    pub fn new(
        inputs: usize,
        units: usize,
        input: &(impl Fn(usize, usize, usize) -> f32, impl Fn(usize, usize) -> f32),
        hidden: &(impl Fn(usize, usize, usize) -> f32, impl Fn(usize, usize) -> f32),
    ) -> Self {
        let all = padded(units);
        let or_zero = |row: usize, value: &dyn Fn(usize, usize) -> f32| {
            if row % all < units { value(row / all, row % all) } else { 0.0 }
        };
        let of_input = |row, column| or_zero(row, &|gate, unit| input.0(gate, unit, column));
        let of_hidden = |row, column| or_zero(row, &|gate, unit| hidden.0(gate, unit, column));
        Self {
            of_input: Columns::new(3 * all, inputs, of_input, |row| or_zero(row, &input.1)),
            of_hidden: Columns::new(3 * all, units, of_hidden, |row| or_zero(row, &hidden.1)),
            from_input: vec![0.0; 3 * all],
            from_hidden: vec![0.0; 3 * all],
            hidden: vec![0.0; all],
            inputs,
            units,
        }
    }

    #[inline(always)]
    fn step<S: Simd>(&mut self, simd: S, input: &[f32]) -> &[f32] {
        self.of_input.multiply(simd, &input[..self.inputs], &mut self.from_input);
        self.of_hidden.multiply(simd, &self.hidden[..self.units], &mut self.from_hidden);
        gru_step(simd, &self.from_input, &self.from_hidden, &mut self.hidden);
        &self.hidden
    }
}

/// Weighted sums.
#[derive(Debug, Clone)]
pub struct Dense {
    matrix: Columns,
    inputs: usize,
    output: Vec<f32>,
}

impl Dense {
    /// Sums with these weights.
    #[must_use]
    pub fn new(matrix: Columns, inputs: usize) -> Self {
        Self { output: vec![0.0; matrix.rows()], matrix, inputs }
    }

    #[inline(always)]
    fn step<S: Simd>(&mut self, simd: S, input: &[f32]) -> &[f32] {
        self.matrix.multiply(simd, &input[..self.inputs], &mut self.output);
        &self.output
    }
}

/// Weighted sums of the input's past.
#[derive(Debug, Clone)]
pub struct Conv {
    matrix: Columns,
    inputs: usize,
    kernel: usize,
    dilation: usize,
    /// Inputs of the last frames, a ring.
    past: Vec<f32>,
    position: usize,
    gathered: Vec<f32>,
    output: Vec<f32>,
}

impl Conv {
    /// A convolution whose matrix has the inputs of the oldest tap first.
    #[must_use]
    pub fn new(matrix: Columns, inputs: usize, kernel: usize, dilation: usize) -> Self {
        let frames = (kernel - 1) * dilation + 1;
        Self {
            output: vec![0.0; matrix.rows()],
            matrix,
            inputs,
            kernel,
            dilation,
            past: vec![0.0; frames * inputs],
            position: 0,
            gathered: vec![0.0; kernel * inputs],
        }
    }

    #[inline(always)]
    fn step<S: Simd>(&mut self, simd: S, input: &[f32]) -> &[f32] {
        let Self { inputs, kernel, dilation, .. } = *self;
        let frames = self.past.len() / inputs;
        self.past[self.position * inputs..][..inputs].copy_from_slice(&input[..inputs]);
        // The frame after the current one is the oldest.
        for tap in 0..kernel {
            let frame = (self.position + 1 + tap * dilation) % frames;
            self.gathered[tap * inputs..][..inputs].copy_from_slice(&self.past[frame * inputs..][..inputs]);
        }
        self.position = (self.position + 1) % frames;
        self.matrix.multiply(simd, &self.gathered, &mut self.output);
        &self.output
    }
}

/// Frames in which a knob gets from one end to the other.
const KNOB_FRAMES: f32 = 1024.0;

/// Layers one after the other. The first sees the signal and the knobs.
#[derive(Debug, Clone)]
pub struct Recurrent {
    level: Level,
    layers: Vec<Layer>,
    /// Where each knob is, and where it goes.
    knobs: Vec<(f32, f32)>,
    /// Values between two layers.
    values: Vec<f32>,
    outputs: usize,
    settles_after: usize,
}

impl Recurrent {
    /// Layers that see the signal and `knobs` more inputs, with never more than `width` values between two of them.
    #[must_use]
    pub fn new(
        layers: Vec<Layer>,
        knobs: usize,
        outputs: usize,
        width: usize,
        settles_after: usize,
        level: Level,
    ) -> Self {
        let values = vec![0.0; padded(width.max(knobs + 1).max(outputs))];
        Self { level, layers, knobs: vec![(0.0, 0.0); knobs], values, outputs, settles_after }
    }
}

impl Net for Recurrent {
    fn outputs(&self) -> usize {
        self.outputs
    }

    fn settles_after(&self) -> usize {
        self.settles_after
    }

    fn block(&mut self, input: &[f32], output: &mut [f32]) {
        self.level.run(Block { net: self, input, output });
    }

    fn restart(&mut self) {
        self.layers.iter_mut().for_each(Layer::restart);
        self.knobs.iter_mut().for_each(|(now, aim)| *now = *aim);
    }

    fn knobs(&self) -> usize {
        self.knobs.len()
    }

    fn turn(&mut self, knob: usize, value: f32) {
        if let Some((_, aim)) = self.knobs.get_mut(knob) {
            *aim = value;
        }
    }

    fn work(&self) -> u64 {
        self.layers.iter().map(Layer::work).sum()
    }
}

impl Layer {
    fn restart(&mut self) {
        match self {
            Self::Lstm(lstm) => lstm.restart(),
            Self::Gru(gru) => gru.hidden.fill(0.0),
            Self::Conv(conv) => conv.past.fill(0.0),
            Self::Dense(_) | Self::Activation(_) => {}
        }
    }

    fn work(&self) -> u64 {
        let of = |matrix: &Columns| matrix.weights() as u64;
        match self {
            Self::Lstm(lstm) => of(&lstm.matrix),
            Self::Gru(gru) => of(&gru.of_input) + of(&gru.of_hidden),
            Self::Conv(conv) => of(&conv.matrix),
            Self::Dense(dense) => of(&dense.matrix),
            Self::Activation(_) => 0,
        }
    }
}

struct Block<'a> {
    net: &'a mut Recurrent,
    input: &'a [f32],
    output: &'a mut [f32],
}

impl Op for Block<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Recurrent { layers, knobs, values, outputs, .. } = self.net;
        for (frame, &x) in self.input.iter().enumerate() {
            values[0] = x;
            for ((now, aim), value) in knobs.iter_mut().zip(&mut values[1..]) {
                *now += (*aim - *now).clamp(-1.0 / KNOB_FRAMES, 1.0 / KNOB_FRAMES);
                *value = *now;
            }
            for layer in layers.iter_mut() {
                layer.step(simd, values);
            }
            for (signal, value) in values[..*outputs].iter().enumerate() {
                self.output[signal * BLOCK + frame] = *value;
            }
        }
    }
}

impl Layer {
    /// Replaces the input by the output.
    #[inline(always)]
    fn step<S: Simd>(&mut self, simd: S, values: &mut [f32]) {
        let told = match self {
            Self::Lstm(lstm) => lstm.step(simd, values),
            Self::Gru(gru) => gru.step(simd, values),
            Self::Conv(conv) => conv.step(simd, values),
            Self::Dense(dense) => dense.step(simd, values),
            Self::Activation(activation) => {
                let rows = Rows { at: 0, pitch: 0, count: 1 };
                return activation.apply_with(simd, values, rows, values.len());
            }
        };
        values[..told.len()].copy_from_slice(told);
    }
}
