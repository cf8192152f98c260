//! One layer of a WaveNet.

use super::{
    plan::{self, Gate, Shapes},
    rich::Rich,
};
use crate::{
    memory::{Layout, Past, Scratch},
    net::dense::{Shape, Weights},
    simd::{self, Level, Pass, Rows, Signals, Simd},
};

/// A layer, ready to play.
pub enum Layer {
    /// Of the kind that nearly all files have, with its input.
    Common(Past, simd::Layer),
    /// Whatever a file may ask for.
    Rich(Box<Rich>),
}

impl Layer {
    /// The layer with the next weights: `whole` is what the weights are of, `kept` what is played of it.
    pub fn new(
        (whole, kept): (Shapes, Shapes),
        layer: &plan::Layer,
        weights: &mut Weights<'_>,
        layout: &mut Layout,
        scratch: Scratch,
        level: Level,
    ) -> Self {
        if let Some(common) = common((whole, kept), layer, weights.clone(), level) {
            weights.take(whole.weights() as usize);
            return Self::Common(layout.past(kept.conv.inputs, layer.history()), common);
        }
        Self::Rich(Box::new(Rich::new((whole, kept), layer, weights, layout, scratch)))
    }

    /// Where it takes its input from.
    pub fn input(&self) -> &Past {
        match self {
            Self::Common(input, _) => input,
            Self::Rich(rich) => &rich.input,
        }
    }

    /// Computes a block: its activations are summed up from `before` to `after`, `next` becomes what the next layer sees.
    #[inline(always)]
    pub fn run<S: Simd>(
        &mut self,
        simd: S,
        pass: Pass,
        memory: &mut [f32],
        condition: Rows,
        (before, after): (Option<Rows>, Rows),
        next: Option<Rows>,
    ) {
        match self {
            Self::Common(input, layer) => {
                layer.run(simd, memory, pass.frames, Signals { input, condition, before, after, next });
                input.advance(pass.frames);
            }
            Self::Rich(rich) => {
                rich.run(pass, memory, condition, (before, after), next);
                rich.advance(pass.frames);
            }
        }
    }

    /// Back to the beginning.
    pub fn rewind(&mut self) {
        match self {
            Self::Common(input, _) => input.rewind(),
            Self::Rich(rich) => rich.rewind(),
        }
    }
}

/// The layer, where it is of the common kind: nothing but one convolution, what one signal adds to it, and the way to the
/// next layer.
fn common(
    (whole, kept): (Shapes, Shapes),
    layer: &plan::Layer,
    mut weights: Weights<'_>,
    level: Level,
) -> Option<simd::Layer> {
    let is_square = kept.conv.inputs == kept.conv.outputs && kept.mixin.inputs == 1;
    if layer.gate != Gate::None || !whole.is_plain() || !is_square {
        return None;
    }
    let mut take = |whole: Shape, kept: Shape| weights.dense(whole).keep(kept.inputs, kept.outputs);
    let conv = take(whole.conv, kept.conv);
    let mixin = take(whole.mixin, kept.mixin);
    let mix = take(whole.layer1x1?, kept.layer1x1?);
    let weights = simd::Weights {
        conv: &|row, channel, tap| conv.at(row, channel, tap),
        conv_bias: &|row| conv.bias(row),
        condition: &|row| mixin.at(row, 0, 0),
        mix: &|row, channel| mix.at(row, channel, 0),
        mix_bias: &|row| mix.bias(row),
    };
    let delays = (0..layer.kernel).rev().map(|tap| tap * layer.dilation).collect();
    simd::Layer::new(level, kept.conv.inputs, delays, &layer.activation, &weights)
}
