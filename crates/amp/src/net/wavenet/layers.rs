//! Layers of a WaveNet.

use super::{
    general::GeneralLayer,
    plan::{self, Gate, Shapes},
};
use crate::{
    memory::{Layout, Rows, Scratch},
    net::weights::{ConvShape, WeightReader},
    simd::{InstructionSet, LayerWeights, Pass, Signals, Simd, Stack},
};

/// Layers one after the other, ready to play.
pub enum Layers {
    /// Of the kind that nearly all files have.
    Common(Stack),
    /// Whatever a file may ask for.
    General(Box<GeneralLayer>),
}

impl Layers {
    /// Adds the layer with the next weights to `all`: `whole` is what the weights are of, `slimmed` what is played of it.
    pub fn add(
        all: &mut Vec<Self>,
        (whole, slimmed): (Shapes, Shapes),
        layer: &plan::Layer,
        weights: &mut WeightReader<'_>,
        layout: &mut Layout,
        scratch: Scratch,
        instructions: InstructionSet,
    ) {
        let Some(one) = common((whole, slimmed), layer, weights.clone(), layout, instructions) else {
            all.push(Self::General(Box::new(GeneralLayer::new((whole, slimmed), layer, weights, layout, scratch))));
            return;
        };
        weights.take(whole.weights() as usize);
        let apart = match all.last_mut() {
            Some(Self::Common(stack)) => stack.append(one).err(),
            _ => Some(one),
        };
        all.extend(apart.map(Self::Common));
    }

    /// Where the first of them takes its input from.
    pub fn input(&self) -> Rows {
        match self {
            Self::Common(stack) => stack.input(),
            Self::General(layer) => layer.input.current(),
        }
    }

    /// Computes a block: activations are added to the sum, and `next` becomes what the next ones see.
    #[inline(always)]
    pub fn run<S: Simd>(&mut self, simd: S, pass: Pass, memory: &mut [f32], signals: Signals) {
        match self {
            Self::Common(stack) => stack.run(simd, memory, pass.frames, signals),
            Self::General(layer) => {
                layer.run(pass, memory, signals);
                layer.advance(pass.frames);
            }
        }
    }

    /// Back to the beginning.
    pub fn reset(&mut self) {
        match self {
            Self::Common(stack) => stack.reset(),
            Self::General(layer) => layer.reset(),
        }
    }
}

/// The layer, where it is of the common kind: nothing but one convolution, what one signal adds to it, and the way to the
/// next layer.
fn common(
    (whole, slimmed): (Shapes, Shapes),
    layer: &plan::Layer,
    mut weights: WeightReader<'_>,
    layout: &mut Layout,
    instructions: InstructionSet,
) -> Option<Stack> {
    let channels = slimmed.conv.inputs;
    let (gate, sums) = match &layer.gate {
        Gate::None => (None, channels),
        Gate::Gated(gate) => (Some(gate), 2 * channels),
        Gate::Blended(_) => return None,
    };
    if !whole.is_plain() || slimmed.conv.outputs != sums || slimmed.mixin.inputs != 1 {
        return None;
    }
    let mut take = |whole: ConvShape, slimmed: ConvShape| weights.conv(whole).slice(slimmed.inputs, slimmed.outputs);
    let conv = take(whole.conv, slimmed.conv);
    let mixin = take(whole.mixin, slimmed.mixin);
    let pointwise = take(whole.layer1x1?, slimmed.layer1x1?);
    let weights = LayerWeights {
        conv: &|row, channel, tap| conv.at(row, channel, tap),
        conv_bias: &|row| conv.bias(row),
        condition: &|row| mixin.at(row, 0, 0),
        pointwise: &|row, channel| pointwise.at(row, channel, 0),
        pointwise_bias: &|row| pointwise.bias(row),
    };
    let input = || layout.delay_line(channels, layer.history());
    Stack::new(instructions, channels, input, slimmed.conv.delays(layer.dilation), (&layer.activation, gate), &weights)
}
