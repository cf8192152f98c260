//! Consecutive convolutions with only an activation between them, computed in one function. Common activations are
//! applied while the sums are in registers.

use super::{
    Activation, Convolution, Op, Pass, Simd,
    functions::{Elementwise, LeakyRelu, TANH_SCALE, scaled_tanh},
};
use crate::memory::{DelayLine, Rows};

/// Consecutive convolutions, each followed by an activation.
#[derive(Debug, Default)]
pub struct ConvStack {
    layers: Vec<Layer>,
}

#[derive(Debug)]
struct Layer {
    convolution: Convolution,
    /// Applied while the sums are in registers.
    fused: FusedActivation,
    /// Applied afterwards, if it cannot be fused.
    unfused: Option<Activation>,
}

/// Activations that are fused with the convolution.
#[derive(Debug, Clone, Copy)]
enum FusedActivation {
    Identity,
    Tanh,
    Relu,
    LeakyRelu(f32),
}

impl FusedActivation {
    /// The activation, if it can be fused.
    fn new(activation: &Activation) -> Option<Self> {
        match activation {
            Activation::Identity => Some(Self::Identity),
            Activation::Tanh => Some(Self::Tanh),
            Activation::Relu => Some(Self::Relu),
            Activation::LeakyRelu(slopes) if slopes.len() == 1 => Some(Self::LeakyRelu(slopes[0])),
            _ => None,
        }
    }
}

impl Activation {
    /// True if a [`ConvStack`] applies the function while the sums are in registers.
    #[must_use]
    pub fn is_fusible(&self) -> bool {
        FusedActivation::new(self).is_some()
    }
}

impl Elementwise for FusedActivation {
    #[inline(always)]
    fn apply<S: Simd>(self, simd: S, x: S::V) -> S::V {
        match self {
            Self::Identity => x,
            Self::Tanh => scaled_tanh(simd, x),
            Self::Relu => simd.max(x, simd.splat(0.0)),
            Self::LeakyRelu(slope) => LeakyRelu(slope).apply(simd, x),
        }
    }
}

impl ConvStack {
    /// Appends a convolution, with the arguments of [`Convolution::new`], and its activation.
    ///
    /// # Panics
    /// If `input` has other channels than the output of the convolution before, or less history than `delays`.
    pub fn push(
        &mut self,
        input: DelayLine,
        delays: Vec<usize>,
        outputs: usize,
        activation: &Activation,
        weight: impl Fn(usize, usize, usize) -> f32,
        bias: impl Fn(usize) -> f32,
    ) {
        let fits = self.layers.last().is_none_or(|before| before.convolution.outputs() == input.current().count);
        assert!(fits, "channels do not match");
        let (fused, unfused) = match FusedActivation::new(activation) {
            Some(fused) => (fused, None),
            None => (FusedActivation::Identity, Some(activation.clone())),
        };
        let scale = if matches!(fused, FusedActivation::Tanh) { TANH_SCALE } else { 1.0 };
        let weight = |output, input, tap| scale * weight(output, input, tap);
        let convolution = Convolution::new(input, delays, outputs, weight, |output| scale * bias(output));
        self.layers.push(Layer { convolution, fused, unfused });
    }

    /// The rows that the first convolution takes its input from.
    #[must_use]
    pub fn input(&self) -> Rows {
        self.layers[0].convolution.input()
    }

    /// Resets the positions; the caller clears the memory.
    pub fn reset(&mut self) {
        self.layers.iter_mut().for_each(|layer| layer.convolution.reset());
    }

    /// Computes a block of at most `BLOCK` frames into `last`. Also writes the frames after it up to a multiple of 16.
    ///
    /// # Panics
    /// If signals are outside `memory`, or `last` has another number of channels.
    pub fn run(&mut self, pass: Pass, memory: &mut [f32], last: Rows) {
        pass.instructions.run(Run { stack: self, pass, memory, last });
    }
}

struct Run<'a> {
    stack: &'a mut ConvStack,
    pass: Pass,
    memory: &'a mut [f32],
    last: Rows,
}

impl Op for Run<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { stack: ConvStack { layers }, pass, memory, last } = self;
        for index in 0..layers.len() {
            let next = layers.get(index + 1).map_or(last, |next| next.convolution.input());
            let Layer { convolution, fused, unfused } = &mut layers[index];
            convolution.run(simd, memory, pass.frames, next, *fused);
            if let Some(activation) = unfused {
                activation.apply(pass, memory, next);
            }
        }
    }
}
