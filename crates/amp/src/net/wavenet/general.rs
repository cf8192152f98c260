//! A layer of a WaveNet with all options of the file format: gates, modulations, groups, 1x1 convolutions.

use super::plan::{self, Gate, Shapes};
use crate::{
    memory::{DelayLine, Layout, Rows, Scratch},
    net::{
        conv::Conv,
        weights::{ConvShape, WeightReader},
    },
    simd::{Activation, Combine, Pass, Signals, combine, multiply},
};

/// A layer with all options of the file format, ready to play.
pub struct GeneralLayer {
    /// Output of the layer before.
    pub input: DelayLine,
    /// The modulated input, which the convolution reads.
    modulated: Option<(Film, DelayLine)>,
    /// The convolution. It includes that of the condition if nothing is between the two.
    conv: Conv,
    conv_post: Option<Film>,
    mixin: Option<Mixin>,
    z: Rows,
    activation_pre: Option<Film>,
    activation: Activation,
    gate: Gate,
    /// Input of the activation; for blending.
    before: Rows,
    activation_post: Option<Film>,
    head1x1: Option<(Conv, Rows, Option<Film>)>,
    layer1x1: Option<Conv>,
    /// Modulates the layer's output before it is added to its input.
    layer1x1_post: Option<(Film, Rows)>,
}

/// The convolution of the condition.
struct Mixin {
    pre: Option<(Film, Rows)>,
    conv: Conv,
    post: Option<Film>,
    output: Rows,
}

/// A modulation by the condition: it scales the channels and may shift them.
struct Film {
    conv: Conv,
    factors: Rows,
    channels: usize,
}

impl GeneralLayer {
    /// Builds the layer from the next weights: `whole` has the shapes of the weights, `slimmed` those that are played.
    pub fn new(
        (whole, slimmed): (Shapes, Shapes),
        layer: &plan::Layer,
        weights: &mut WeightReader<'_>,
        layout: &mut Layout,
        mut scratch: Scratch,
    ) -> Self {
        let mut take =
            |whole: ConvShape, slimmed: ConvShape| weights.conv(whole).slice(slimmed.inputs, slimmed.outputs);
        let conv = take(whole.conv, slimmed.conv);
        let mixin = take(whole.mixin, slimmed.mixin);
        let mut both = |whole: Option<ConvShape>, slimmed: Option<ConvShape>| Some(take(whole?, slimmed?));
        let layer1x1 = both(whole.layer1x1, slimmed.layer1x1).map(|weights| Conv::new(weights, 1));
        let head1x1 = both(whole.head1x1, slimmed.head1x1).map(|weights| Conv::new(weights, 1));
        let z = slimmed.conv.outputs;
        let halves = if layer.gate == Gate::None { 1 } else { 2 };
        let mut film = |whole: Option<ConvShape>, slimmed: Option<ConvShape>, channels: usize| {
            let conv = Conv::new(both(whole, slimmed)?, 1);
            Some(Film { conv, factors: scratch.take(slimmed?.outputs), channels })
        };
        let conv_pre = film(whole.conv_pre, slimmed.conv_pre, slimmed.conv.inputs);
        let conv_post = film(whole.conv_post, slimmed.conv_post, z);
        let mixin_pre = film(whole.mixin_pre, slimmed.mixin_pre, slimmed.mixin.inputs);
        let mixin_post = film(whole.mixin_post, slimmed.mixin_post, z);
        let activation_pre = film(whole.activation_pre, slimmed.activation_pre, z);
        let activation_post = film(whole.activation_post, slimmed.activation_post, z / halves);
        let layer1x1_post = film(whole.layer1x1_post, slimmed.layer1x1_post, slimmed.conv.inputs);
        let head_channels = slimmed.head1x1.map_or(0, |shape| shape.outputs);
        let head1x1_post = film(whole.head1x1_post, slimmed.head1x1_post, head_channels);

        let history = layer.history();
        let one_group = conv.shape.groups == 1 && mixin.shape.groups == 1;
        let is_combined = one_group && conv_post.is_none() && mixin_pre.is_none() && mixin_post.is_none();
        let (conv, mixin) = if is_combined {
            let weight = |output, input| mixin.at(output, input, 0);
            (Conv::with_extra_inputs(conv, layer.dilation, mixin.shape.inputs, weight), None)
        } else {
            let pre = mixin_pre.map(|film| (film, scratch.take(mixin.shape.inputs)));
            let mixin = Mixin { pre, conv: Conv::new(mixin, 1), post: mixin_post, output: scratch.take(z) };
            (Conv::new(conv, layer.dilation), Some(mixin))
        };
        let is_modulated = conv_pre.is_some();
        Self {
            input: layout.delay_line(slimmed.conv.inputs, if is_modulated { 0 } else { history }),
            modulated: conv_pre.map(|film| (film, layout.delay_line(slimmed.conv.inputs, history))),
            conv,
            conv_post,
            mixin,
            z: scratch.take(z),
            activation_pre,
            activation: layer.activation.clone(),
            before: scratch.take(if matches!(layer.gate, Gate::Blended(_)) { z / 2 } else { 0 }),
            gate: layer.gate.clone(),
            activation_post,
            head1x1: head1x1.map(|conv| (conv, scratch.take(head_channels), head1x1_post)),
            layer1x1,
            // Neural Amp Modeler's core reads this modulation in every layer, but applies it only to blended channels.
            layer1x1_post: layer1x1_post
                .filter(|_| matches!(layer.gate, Gate::Blended(_)))
                .map(|film| (film, scratch.take(slimmed.conv.inputs))),
        }
    }

    /// Computes a block.
    pub fn run(&mut self, pass: Pass, memory: &mut [f32], signals: Signals) {
        let Signals { condition, sum, next } = signals;
        self.input.mirror_wrap(pass, memory);
        let activated = self.activated(pass, memory, condition);
        let to_sum = match &mut self.head1x1 {
            None => activated,
            Some((conv, output, film)) => {
                conv.apply(pass, memory, |_| activated, None, *output);
                if let Some(film) = film {
                    film.apply(pass, memory, condition, *output, *output);
                }
                *output
            }
        };
        combine(pass, memory, Combine::Add(sum, to_sum), sum);
        let Some(next) = next else { return };
        let input = self.input.current();
        match (&mut self.layer1x1, &mut self.layer1x1_post) {
            (None, _) => combine(pass, memory, Combine::Copy(input), next),
            (Some(conv), None) => conv.apply(pass, memory, |_| activated, Some(input), next),
            (Some(conv), Some((film, output))) => {
                conv.apply(pass, memory, |_| activated, None, *output);
                film.apply(pass, memory, condition, *output, *output);
                combine(pass, memory, Combine::Add(input, *output), next);
            }
        }
    }

    /// Computes the layer's activation.
    fn activated(&mut self, pass: Pass, memory: &mut [f32], condition: Rows) -> Rows {
        let z = self.z;
        let extra = self.mixin.is_none().then_some(condition);
        match &mut self.modulated {
            None => convolve(&mut self.conv, pass, memory, &self.input, extra, z),
            Some((film, modulated)) => {
                film.apply(pass, memory, condition, self.input.current(), modulated.current());
                modulated.mirror_wrap(pass, memory);
                convolve(&mut self.conv, pass, memory, modulated, extra, z);
            }
        }
        if let Some(film) = &mut self.conv_post {
            film.apply(pass, memory, condition, z, z);
        }
        if let Some(mixin) = &mut self.mixin {
            let added = mixin.run(pass, memory, condition);
            combine(pass, memory, Combine::Add(z, added), z);
        }
        if let Some(film) = &mut self.activation_pre {
            film.apply(pass, memory, condition, z, z);
        }
        let activated = self.gated(pass, memory);
        if let Some(film) = &mut self.activation_post {
            film.apply(pass, memory, condition, activated, activated);
        }
        activated
    }

    fn gated(&self, pass: Pass, memory: &mut [f32]) -> Rows {
        let half = self.z.count / 2;
        let (first, second) = (self.z.part(0, half), self.z.part(half, half));
        match &self.gate {
            Gate::None => {
                self.activation.apply(pass, memory, self.z);
                return self.z;
            }
            Gate::Gated(gate) => {
                self.activation.apply(pass, memory, first);
                gate.apply(pass, memory, second);
                combine(pass, memory, Combine::Multiply(first, second), first);
            }
            Gate::Blended(gate) => {
                let before = self.before;
                combine(pass, memory, Combine::Copy(first), before);
                self.activation.apply(pass, memory, first);
                gate.apply(pass, memory, second);
                combine(pass, memory, Combine::Lerp { weight: second, a: first, b: before }, first);
            }
        }
        first
    }

    /// Moves the delay lines on by `frames`.
    pub fn advance(&mut self, frames: usize) {
        self.input.advance(frames);
        if let Some((_, modulated)) = &mut self.modulated {
            modulated.advance(frames);
        }
    }

    /// Restores the initial state.
    pub fn reset(&mut self) {
        self.input.reset();
        if let Some((_, modulated)) = &mut self.modulated {
            modulated.reset();
        }
    }
}

fn convolve(conv: &mut Conv, pass: Pass, memory: &mut [f32], from: &DelayLine, extra: Option<Rows>, z: Rows) {
    match extra {
        None => conv.apply(pass, memory, |delay| from.delayed(delay), None, z),
        // Then all channels are in one group.
        extra => multiply(pass, memory, conv.sum(0, |delay| from.delayed(delay), extra, None, z)),
    }
}

impl Mixin {
    fn run(&mut self, pass: Pass, memory: &mut [f32], condition: Rows) -> Rows {
        let input = match &mut self.pre {
            None => condition,
            Some((film, output)) => {
                film.apply(pass, memory, condition, condition, *output);
                *output
            }
        };
        self.conv.apply(pass, memory, |_| input, None, self.output);
        if let Some(film) = &mut self.post {
            film.apply(pass, memory, condition, self.output, self.output);
        }
        self.output
    }
}

impl Film {
    fn apply(&mut self, pass: Pass, memory: &mut [f32], condition: Rows, from: Rows, to: Rows) {
        self.conv.apply(pass, memory, |_| condition, None, self.factors);
        let factors = self.factors.part(0, self.channels);
        if self.factors.count == self.channels {
            combine(pass, memory, Combine::Multiply(from, factors), to);
        } else {
            let extra = self.factors.part(self.channels, self.channels);
            combine(pass, memory, Combine::MultiplyAdd(from, factors, extra), to);
        }
    }
}
