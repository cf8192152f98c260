//! Convolutions one after the other with nothing but an activation between them, in one piece: entered once, however many
//! they are, and the common activations while the sums are in registers.

use super::{
    Activation, Convolution, Op, Pass, Simd,
    functions::{Elementwise, LeakyRelu, TANH_SCALE, scaled_tanh},
};
use crate::memory::{DelayLine, Rows};

/// Convolutions one after the other, each with an activation behind it.
#[derive(Debug, Default)]
pub struct ConvStack {
    layers: Vec<Layer>,
}

#[derive(Debug)]
struct Layer {
    convolution: Convolution,
    /// Done while the sums are in registers.
    fused: FusedActivation,
    /// Done apart, where there is no loop for it.
    apart: Option<Activation>,
}

/// Activations that are fused with the convolution.
#[derive(Debug, Clone, Copy)]
enum FusedActivation {
    Identity,
    Tanh,
    Relu,
    LeakyRelu(f32),
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
    /// Adds a convolution, as [`Convolution::new`] makes it, with an activation behind it.
    ///
    /// # Panics
    /// When `input` is not what the convolution before makes, or keeps fewer frames than `delays` ask for.
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
        assert!(fits, "channels that do not fit");
        let (fused, apart) = match activation {
            Activation::Identity => (FusedActivation::Identity, None),
            Activation::Tanh => (FusedActivation::Tanh, None),
            Activation::Relu => (FusedActivation::Relu, None),
            Activation::LeakyRelu(slopes) if slopes.len() == 1 => (FusedActivation::LeakyRelu(slopes[0]), None),
            other => (FusedActivation::Identity, Some(other.clone())),
        };
        let scale = if matches!(fused, FusedActivation::Tanh) { TANH_SCALE } else { 1.0 };
        let weight = |output, input, tap| scale * weight(output, input, tap);
        let convolution = Convolution::new(input, delays, outputs, weight, |output| scale * bias(output));
        self.layers.push(Layer { convolution, fused, apart });
    }

    /// Where the first one takes its input from.
    #[must_use]
    pub fn input(&self) -> Rows {
        self.layers[0].convolution.input()
    }

    /// Back to the beginning; the memory is another's to restore.
    pub fn reset(&mut self) {
        self.layers.iter_mut().for_each(|layer| layer.convolution.reset());
    }

    /// Computes a block, at most `BLOCK` frames, into `last`. Frames beyond it up to a multiple of 16 are written, too.
    ///
    /// # Panics
    /// When signals do not lie within `memory`, or `last` has another number of channels.
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
            let Layer { convolution, fused, apart } = &mut layers[index];
            convolution.run(simd, memory, pass.frames, next, *fused);
            if let Some(activation) = apart {
                activation.apply(pass, memory, next);
            }
        }
    }
}
