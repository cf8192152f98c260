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

/// Consecutive layers, ready to play.
pub enum Layers {
    /// Layers of the common kind, which nearly all files have.
    Common(Stack),
    /// A layer with any other options.
    General(Box<GeneralLayer>),
}

impl Layers {
    /// Appends the layer with the next weights: `whole` has the shapes of the weights, `slimmed` those that are played.
    pub fn add(
        all: &mut Vec<Self>,
        (whole, slimmed): (Shapes, Shapes),
        layer: &plan::Layer,
        weights: &mut WeightReader<'_>,
        layout: &mut Layout,
        scratch: Scratch,
        instructions: InstructionSet,
    ) {
        let Some(stack) = common((whole, slimmed), layer, weights.clone(), layout, instructions) else {
            all.push(Self::General(Box::new(GeneralLayer::new((whole, slimmed), layer, weights, layout, scratch))));
            return;
        };
        weights.take(usize::try_from(whole.weights()).unwrap_or(usize::MAX));
        let separate = match all.last_mut() {
            Some(Self::Common(last)) => last.append(stack).err(),
            _ => Some(stack),
        };
        all.extend(separate.map(Self::Common));
    }

    /// The rows that the first layer takes its input from.
    pub fn input(&self) -> Rows {
        match self {
            Self::Common(stack) => stack.input(),
            Self::General(layer) => layer.input.current(),
        }
    }

    /// Computes a block: adds the activations to the sum, and writes the input of the next layers to `next`.
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

    /// Restores the initial state.
    pub fn reset(&mut self) {
        match self {
            Self::Common(stack) => stack.reset(),
            Self::General(layer) => layer.reset(),
        }
    }
}

/// The layer as a stack, if it is of the common kind: only a convolution, a convolution of a single condition signal,
/// and a 1x1 convolution to the next layer.
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
