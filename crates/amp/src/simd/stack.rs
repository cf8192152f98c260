//! Layers of a WaveNet of the common kind, built for each common number of channels.

mod tile;

use self::tile::{GatedTanh, Job, LayerActivation, MAX_CHANNELS, Run};
use super::{
    Activation, InstructionSet, Simd,
    functions::{LeakyRelu, SIGMOID_SCALE, ScaledTanh, TANH_SCALE},
    strip::TILE,
};
use crate::memory::{BLOCK, DelayLine, Rows};

/// Layers one after the other, of as many channels each: a convolution of as many channels as it has inputs, what one signal
/// adds to it, the activation of both, which is summed up, and a pointwise convolution of that, which is added to the input for
/// the next layer.
#[derive(Debug, Clone)]
pub struct Stack {
    channels: usize,
    activation: FusedActivation,
    /// Rows of a strip that the weights are laid out in.
    strip: usize,
    layers: Vec<Layer>,
    /// Values of memory that the layers' inputs lie within, whatever their positions.
    reach: usize,
}

#[derive(Debug, Clone)]
struct Layer {
    input: DelayLine,
    /// How long ago each tap is, frames; the oldest first.
    delays: Vec<usize>,
    /// Of negative values, where the activation has one.
    slope: f32,
    /// For each strip of rows: biases, weights of the condition, then those of each tap's channels; each followed by that of
    /// the rows' gates, where they have some.
    conv: Vec<f32>,
    /// For each strip of rows: biases, then weights of each channel.
    pointwise: Vec<f32>,
}

/// Activations of the common kind, each built into the loops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FusedActivation {
    Tanh,
    LeakyRelu,
    GatedTanh,
}

/// Weights of a layer, each by the row that it is for and what it is of. The convolution's rows are those of the channels,
/// then those of their gates.
pub struct LayerWeights<'a> {
    /// Of the convolution: row, channel, tap; the oldest first.
    pub conv: &'a dyn Fn(usize, usize, usize) -> f32,
    /// Its biases.
    pub conv_bias: &'a dyn Fn(usize) -> f32,
    /// Of the condition.
    pub condition: &'a dyn Fn(usize) -> f32,
    /// Of the pointwise convolution to the next layer: row, channel.
    pub pointwise: &'a dyn Fn(usize, usize) -> f32,
    /// Its biases.
    pub pointwise_bias: &'a dyn Fn(usize) -> f32,
}

/// Signals of a stack within a model's memory, besides its layers' inputs.
#[derive(Debug, Clone, Copy)]
pub struct Signals {
    /// One row.
    pub condition: Rows,
    /// What the activations are added to.
    pub sum: Rows,
    /// What comes behind the last layer; nothing where it is not needed.
    pub next: Option<Rows>,
}

/// How many rows are summed side by side, gates not counted: as many as there are registers for. The last strip is of what is
/// left. [`enter`] has a match arm for each: the two must agree, else weights meet the wrong rows. Memory is safe all the
/// same, because a layer has as many weights in all whatever its strips are.
fn strip(activation: FusedActivation, channels: usize, lanes: usize) -> usize {
    match channels {
        4 | 8 | 12 | 16 if activation == FusedActivation::GatedTanh && lanes == 16 => 4,
        few if activation == FusedActivation::GatedTanh => 2 - few % 2,
        6 | 12 => 6,
        16 if lanes == 8 => 6,
        8 | 16 if lanes == 16 => 8,
        4 | 8 | 16 => 4,
        few => few,
    }
}

impl Stack {
    /// One layer, where it is of the common kind: 2, 3, 4, 6, 8, 12 or 16 channels, [`Activation::Tanh`] or
    /// [`Activation::LeakyRelu`] with one slope; or up to 16 with [`Activation::Tanh`] and a `gate` of
    /// [`Activation::Sigmoid`]. Only then is it asked for its `input`. It plays with vectors of `instructions` alone.
    ///
    /// # Panics
    /// When `input` has another number of channels, or fewer frames than `delays` ask for.
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
        let all = input.current().count == channels && delays.iter().all(|&delay| input.reaches(delay));
        assert!(all, "other channels or delays beyond the line");
        let strip = strip(fused, channels, instructions.lanes());
        let halves = if gate.is_some() { 2 } else { 1 };
        let scale = |row: usize| if row < channels { scale } else { SIGMOID_SCALE };
        let (mut conv, mut pointwise) = (Vec::new(), Vec::new());
        for first in (0..channels).step_by(strip) {
            let rows = first..channels.min(first + strip);
            let both = || (0..halves).flat_map(|half| rows.clone().map(move |row| half * channels + row));
            conv.extend(both().map(|row| scale(row) * (weights.conv_bias)(row)));
            conv.extend(both().map(|row| scale(row) * (weights.condition)(row)));
            for (tap, channel) in (0..delays.len()).flat_map(|tap| (0..channels).map(move |channel| (tap, channel))) {
                conv.extend(both().map(|row| scale(row) * (weights.conv)(row, channel, tap)));
            }
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

    /// Takes the layers of `other`, which come behind its own, where they are of the same kind; else gives it back.
    ///
    /// # Errors
    /// `other`.
    pub fn append(&mut self, mut other: Self) -> Result<(), Self> {
        if (self.channels, self.activation, self.strip) != (other.channels, other.activation, other.strip) {
            return Err(other);
        }
        self.layers.append(&mut other.layers);
        self.reach = self.reach.max(other.reach);
        Ok(())
    }

    /// Where the first layer takes its input from.
    #[must_use]
    pub fn input(&self) -> Rows {
        self.layers[0].input.current()
    }

    /// Back to the beginning; the memory is another's to restore.
    pub fn reset(&mut self) {
        self.layers.iter_mut().for_each(|layer| layer.input.reset());
    }

    /// Computes a block, at most `BLOCK` frames. Frames beyond it up to a multiple of 16 are written, too.
    ///
    /// # Panics
    /// When signals do not lie within `memory`, or have another number of channels.
    #[inline(always)]
    pub fn run<S: Simd>(&mut self, simd: S, memory: &mut [f32], frames: usize, signals: Signals) {
        let Signals { condition, sum, next } = signals;
        let fits = |rows: &Rows| rows.count == self.channels && rows.fit(frames.next_multiple_of(TILE), memory.len());
        let inputs = frames <= BLOCK && self.reach <= memory.len();
        let signals_fit =
            condition.count == 1 && condition.fit(BLOCK, memory.len()) && fits(&sum) && next.as_ref().is_none_or(fits);
        assert!(inputs && signals_fit, "signals outside a model's memory");
        let (channels, laid_out) = (self.channels, self.strip);
        let job = Job { layers: &mut self.layers, memory, frames, signals };
        // SAFETY: all signals lie within the memory, as was checked, and there are weights for these channels: in strips of
        // this many rows, as `new` has laid them out, but as many in all for any strips.
        unsafe {
            match self.activation {
                FusedActivation::Tanh => enter::<S, ScaledTanh>(simd, channels, job, laid_out),
                FusedActivation::LeakyRelu => enter::<S, LeakyRelu>(simd, channels, job, laid_out),
                FusedActivation::GatedTanh => match strip(self.activation, channels, S::LANES) {
                    4 => simd.enter(Run::<GatedTanh, 0, 4>::new(job, laid_out)),
                    2 => simd.enter(Run::<GatedTanh, 0, 2>::new(job, laid_out)),
                    _ => simd.enter(Run::<GatedTanh, 0, 1>::new(job, laid_out)),
                },
            }
        }
    }
}

/// Each number of channels is entered by itself: what one of them keeps in registers is no burden to the others.
///
/// # Safety
/// As for [`Run::new`].
#[inline(always)]
unsafe fn enter<S: Simd, F: LayerActivation>(simd: S, channels: usize, job: Job<'_>, laid_out: usize) {
    // SAFETY: as the caller promises; strips as by `strip`.
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
