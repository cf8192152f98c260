//! Layers of a WaveNet of the common kind, with code for each common number of channels.

mod tile;

use self::tile::{GatedTanh, Job, LayerActivation, MAX_CHANNELS, Run};
use super::{
    Activation, InstructionSet, Simd,
    functions::{LeakyRelu, SIGMOID_SCALE, ScaledTanh, TANH_SCALE},
    strip::TILE,
};
use crate::memory::{BLOCK, DelayLine, Rows};

/// Consecutive layers with the same number of channels. Each layer has a convolution, a convolution of the condition,
/// which is one signal, and an activation of their sum. The activation is added to the sum of all layers. A 1x1
/// convolution of the activation, plus the input, is the input of the next layer.
#[derive(Debug, Clone)]
pub struct Stack {
    channels: usize,
    activation: FusedActivation,
    /// Number of rows per strip of the weights.
    strip: usize,
    layers: Vec<Layer>,
    /// End of the memory that the layers' inputs use at any position.
    reach: usize,
}

#[derive(Debug, Clone)]
struct Layer {
    input: DelayLine,
    /// Delay of each tap, frames; the oldest tap first.
    delays: Vec<usize>,
    /// Slope for negative values, if the activation has one.
    slope: f32,
    /// For each strip of rows: weights of each tap's channels, weights of the condition, then biases; each followed by
    /// those of the rows' gates, if any.
    conv: Vec<f32>,
    /// For each strip of rows: biases, then the weights of each channel.
    pointwise: Vec<f32>,
}

/// Activations of the common kind, which are compiled into the loops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FusedActivation {
    Tanh,
    LeakyRelu,
    GatedTanh,
}

/// Functions that return the weights of a layer. The rows of the convolution are the channels, then their gates.
pub struct LayerWeights<'a> {
    /// Weight of the convolution: row, channel, tap (the oldest first).
    pub conv: &'a dyn Fn(usize, usize, usize) -> f32,
    /// Bias of the convolution: row.
    pub conv_bias: &'a dyn Fn(usize) -> f32,
    /// Weight of the condition: row.
    pub condition: &'a dyn Fn(usize) -> f32,
    /// Weight of the 1x1 convolution to the next layer: row, channel.
    pub pointwise: &'a dyn Fn(usize, usize) -> f32,
    /// Bias of the 1x1 convolution: row.
    pub pointwise_bias: &'a dyn Fn(usize) -> f32,
}

/// Signals of a stack in the memory of a model, in addition to the layers' inputs.
#[derive(Debug, Clone, Copy)]
pub struct Signals {
    /// The condition: one row.
    pub condition: Rows,
    /// The sum that the activations are added to.
    pub sum: Rows,
    /// Output of the last layer; `None` if it is not needed.
    pub next: Option<Rows>,
}

/// Number of rows, not counting gates, that are summed at once; limited by the registers. The last strip may be
/// shorter. [`enter`] has a match arm for each value. If the two disagreed, weights would be applied to the wrong rows;
/// memory accesses would still be in bounds, because the number of weights does not depend on the strips.
fn strip(activation: FusedActivation, channels: usize, lanes: usize) -> usize {
    match channels {
        4 | 8 | 12 | 16 if activation == FusedActivation::GatedTanh && lanes == 16 => 4,
        channels if activation == FusedActivation::GatedTanh => 2 - channels % 2,
        6 | 12 => 6,
        16 if lanes == 8 => 6,
        8 | 16 if lanes == 16 => 8,
        4 | 8 | 16 => 4,
        channels => channels,
    }
}

impl Stack {
    /// One layer, if it is of the common kind: 2, 3, 4, 6, 8, 12 or 16 channels with [`Activation::Tanh`], or with
    /// [`Activation::LeakyRelu`] of one slope; or up to 16 channels with [`Activation::Tanh`] and a `gate` of
    /// [`Activation::Sigmoid`]. Calls `input` only then. The layer is only valid for vectors of `instructions`.
    ///
    /// # Panics
    /// If `input` has another number of channels, or less history than `delays`.
    #[must_use]
    pub fn new(
        instructions: InstructionSet,
        channels: usize,
        input: impl FnOnce() -> DelayLine,
        delays: Vec<usize>,
        (activation, gate): (&Activation, Option<&Activation>),
        weights: &LayerWeights<'_>,
    ) -> Option<Self> {
        let (fused, slope, scale) = match (activation, gate) {
            (Activation::Tanh, None) => (FusedActivation::Tanh, 0.0, TANH_SCALE),
            (Activation::Tanh, Some(Activation::Sigmoid)) => (FusedActivation::GatedTanh, 0.0, TANH_SCALE),
            (Activation::LeakyRelu(slopes), None) if slopes.len() == 1 => (FusedActivation::LeakyRelu, slopes[0], 1.0),
            _ => return None,
        };
        if !matches!(
            (fused, channels),
            (FusedActivation::GatedTanh, 1..=MAX_CHANNELS) | (_, 2 | 3 | 4 | 6 | 8 | 12 | 16)
        ) {
            return None;
        }
        let input = input();
        let fits = input.current().count == channels && delays.iter().all(|&delay| input.reaches(delay));
        assert!(fits, "the input has other channels or less history");
        let strip = strip(fused, channels, instructions.lanes());
        let halves = if gate.is_some() { 2 } else { 1 };
        let scale = |row: usize| if row < channels { scale } else { SIGMOID_SCALE };
        let (mut conv, mut pointwise) = (Vec::new(), Vec::new());
        for first in (0..channels).step_by(strip) {
            let rows = first..channels.min(first + strip);
            let both = || (0..halves).flat_map(|half| rows.clone().map(move |row| half * channels + row));
            for (tap, channel) in (0..delays.len()).flat_map(|tap| (0..channels).map(move |channel| (tap, channel))) {
                conv.extend(both().map(|row| scale(row) * (weights.conv)(row, channel, tap)));
            }
            conv.extend(both().map(|row| scale(row) * (weights.condition)(row)));
            conv.extend(both().map(|row| scale(row) * (weights.conv_bias)(row)));
            pointwise.extend(rows.clone().map(weights.pointwise_bias));
            for channel in 0..channels {
                pointwise.extend(rows.clone().map(|row| (weights.pointwise)(row, channel)));
            }
        }
        let reach = input.end();
        Some(Self {
            channels,
            activation: fused,
            strip,
            layers: vec![Layer { input, delays, slope, conv, pointwise }],
            reach,
        })
    }

    /// Appends the layers of `other` if they are of the same kind; otherwise returns `other`.
    ///
    /// # Errors
    /// `other`, if its layers are of another kind.
    pub fn append(&mut self, mut other: Self) -> Result<(), Self> {
        if (self.channels, self.activation, self.strip) != (other.channels, other.activation, other.strip) {
            return Err(other);
        }
        self.layers.append(&mut other.layers);
        self.reach = self.reach.max(other.reach);
        Ok(())
    }

    /// The rows that the first layer takes its input from.
    #[must_use]
    pub fn input(&self) -> Rows {
        self.layers[0].input.current()
    }

    /// Resets the positions; the caller clears the memory.
    pub fn reset(&mut self) {
        self.layers.iter_mut().for_each(|layer| layer.input.reset());
    }

    /// Computes a block of at most `BLOCK` frames. Also writes the frames after it up to a multiple of 16.
    ///
    /// # Panics
    /// If signals are outside `memory`, or have another number of channels.
    #[inline(always)]
    pub fn run<S: Simd>(&mut self, simd: S, memory: &mut [f32], frames: usize, signals: Signals) {
        let Signals { condition, sum, next } = signals;
        let fits = |rows: &Rows| rows.count == self.channels && rows.fit(frames.next_multiple_of(TILE), memory.len());
        let inputs = frames <= BLOCK && self.reach <= memory.len();
        let signals_fit =
            condition.count == 1 && condition.fit(BLOCK, memory.len()) && fits(&sum) && next.as_ref().is_none_or(fits);
        assert!(inputs && signals_fit, "signals outside the memory of the model");
        let (channels, laid_out) = (self.channels, self.strip);
        let job = Job { layers: &mut self.layers, memory, frames, signals };
        // SAFETY: checked above: all signals are inside the memory, and there are weights for these channels. `new`
        // stored them in strips of this many rows; their number does not depend on the strips.
        unsafe {
            match self.activation {
                FusedActivation::Tanh => enter::<S, ScaledTanh>(simd, channels, job, laid_out),
                FusedActivation::LeakyRelu => enter::<S, LeakyRelu>(simd, channels, job, laid_out),
                FusedActivation::GatedTanh => match strip(self.activation, channels, S::LANES) {
                    // Without the guard, this would also be compiled for the other instruction sets.
                    4 if const { S::LANES == 16 } => simd.enter(Run::<GatedTanh, 0, 4>::new(job, laid_out)),
                    2 => simd.enter(Run::<GatedTanh, 0, 2>::new(job, laid_out)),
                    _ => simd.enter(Run::<GatedTanh, 0, 1>::new(job, laid_out)),
                },
            }
        }
    }
}

/// Calls a separate function for each number of channels, so that they do not compete for registers.
///
/// # Safety
/// As for [`Run::new`].
#[inline(always)]
unsafe fn enter<S: Simd, F: LayerActivation>(simd: S, channels: usize, job: Job<'_>, laid_out: usize) {
    // SAFETY: guaranteed by the caller; the strips agree with `strip`.
    unsafe {
        match (channels, S::LANES) {
            (2, _) => simd.enter(Run::<F, 2, 2>::new(job, laid_out)),
            (3, _) => simd.enter(Run::<F, 3, 3>::new(job, laid_out)),
            (4, _) => simd.enter(Run::<F, 4, 4>::new(job, laid_out)),
            (6, _) => simd.enter(Run::<F, 6, 6>::new(job, laid_out)),
            (8, 16) => simd.enter(Run::<F, 8, 8>::new(job, laid_out)),
            (8, _) => simd.enter(Run::<F, 8, 4>::new(job, laid_out)),
            (12, _) => simd.enter(Run::<F, 12, 6>::new(job, laid_out)),
            (16, 16) => simd.enter(Run::<F, 16, 8>::new(job, laid_out)),
            (16, 8) => simd.enter(Run::<F, 16, 6>::new(job, laid_out)),
            (16, _) => simd.enter(Run::<F, 16, 4>::new(job, laid_out)),
            _ => {}
        }
    }
}
