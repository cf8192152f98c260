//! WaveNet: arrays of dilated convolutions, each with its delay line, whose activations are summed.

mod general;
mod layers;
mod plan;

use self::layers::Layers;
pub use self::plan::Plan;
use super::{
    Net,
    conv::Conv,
    weights::{ConvShape, WeightReader},
};
use crate::{
    delay_line::DelayLine,
    file::LoadError,
    memory::{BLOCK, Layout, Scratch},
    simd::{Activation, Aligned, InstructionSet, Op, Pass, Rows, Signals, Simd, silence},
};

/// A WaveNet, ready to play.
pub struct WaveNet {
    instructions: InstructionSet,
    /// Makes the condition of the input; without it the input is the condition.
    condition_net: Option<Box<dyn Net>>,
    conditions: Vec<f32>,
    input: Rows,
    condition: Rows,
    arrays: Vec<Array>,
    /// The output of the last array, then that of each convolution after it.
    ends: Vec<DelayLine>,
    head: Vec<(Activation, Conv)>,
    memory: Aligned,
    prewarm_frames: usize,
    work: u64,
}

/// An array of layers, ready to play.
struct Array {
    rechannel: Conv,
    layers: Vec<Layers>,
    /// Where the last layer's output goes.
    output: Rows,
    /// What the array before made, and all layers' activations.
    sum: DelayLine,
    head: Conv,
}

impl WaveNet {
    /// Makes it: `whole` is what the weights are of, `slimmed` what is played of it.
    ///
    /// # Errors
    /// When the number of weights is another.
    pub fn new(
        whole: &Plan,
        slimmed: &Plan,
        weights: &[f32],
        condition_net: Option<Box<dyn Net>>,
        instructions: InstructionSet,
    ) -> Result<Self, LoadError> {
        // What the arrays make is scaled by the last one of all: the last head's weights are.
        let scale = weights.last().copied().unwrap_or_default();
        let mut weights = WeightReader::new(weights, whole.weights())?;
        let mut layout = Layout::default();
        let input = layout.rows(1);
        let condition = if condition_net.is_some() { layout.rows(whole.condition) } else { input };
        // Shared by all layers, since one is computed after the other: it stays in the nearest cache.
        let of_array =
            |array: &plan::Array| array.layers.iter().map(|layer| array.shapes(layer, whole.condition).scratch()).max();
        let scratch = layout.rows(slimmed.arrays.iter().filter_map(of_array).max().unwrap_or_default());
        let mut arrays = Vec::new();
        for (index, (whole_array, array)) in whole.arrays.iter().zip(&slimmed.arrays).enumerate() {
            let rechannel = weights.conv(ConvShape::pointwise(whole_array.inputs, whole_array.channels, false));
            let mut layers = Vec::new();
            for layer in &whole_array.layers {
                let shapes = (whole_array.shapes(layer, whole.condition), array.shapes(layer, whole.condition));
                Layers::add(&mut layers, shapes, layer, &mut weights, &mut layout, Scratch(scratch), instructions);
            }
            let head = weights.conv(whole_array.head).slice(array.head.inputs, array.head.outputs);
            let factor = if index + 1 == whole.arrays.len() { scale } else { 1.0 };
            arrays.push(Array {
                rechannel: Conv::new(rechannel.slice(array.inputs, array.channels), 1),
                layers,
                output: layout.rows(array.channels),
                sum: layout.delay_line(array.sum(), array.head_dilation * (array.head.kernel - 1)),
                head: Conv::scaled(head, array.head_dilation, |_| factor, |output| factor * head.bias(output)),
            });
        }
        let last = slimmed.arrays.last().map_or(0, |array| array.head.outputs);
        let convs = slimmed.head.as_ref().map_or(&[][..], |head| &head.convs);
        let mut ends = Vec::new();
        let mut head = Vec::new();
        for shape in convs {
            ends.push(layout.delay_line(shape.inputs, shape.kernel - 1));
            let activation = slimmed.head.as_ref().map_or(Activation::Identity, |head| head.activation.clone());
            head.push((activation, Conv::new(weights.conv(*shape), 1)));
        }
        ends.push(layout.delay_line(convs.last().map_or(last, |shape| shape.outputs), 0));
        let before = condition_net.as_ref().map_or(0, |net| net.prewarm_frames());
        let work_before = condition_net.as_ref().map_or(0, |net| net.work());
        Ok(Self {
            instructions,
            conditions: vec![0.0; whole.condition * BLOCK],
            condition_net,
            input,
            condition,
            arrays,
            ends,
            head,
            memory: layout.memory(),
            prewarm_frames: before + slimmed.receptive_field(),
            work: work_before + slimmed.weights(),
        })
    }
}

impl Net for WaveNet {
    fn outputs(&self) -> usize {
        self.ends.last().map_or(0, |end| end.current().count)
    }

    fn prewarm_frames(&self) -> usize {
        self.prewarm_frames
    }

    fn block(&mut self, input: &[f32], output: &mut [f32]) {
        let frames = input.len();
        self.memory[self.input.at..self.input.at + frames].copy_from_slice(input);
        if let Some(net) = &mut self.condition_net {
            net.block(input, &mut self.conditions);
            for (row, signal) in self.conditions.chunks_exact(BLOCK).enumerate() {
                let at = self.condition.start(row);
                self.memory[at..at + frames].copy_from_slice(&signal[..frames]);
            }
        }
        self.run(frames);
        let Some(end) = self.ends.last() else { return };
        for (row, signal) in output.chunks_mut(BLOCK).enumerate().take(end.current().count) {
            let at = end.current().start(row);
            signal[..frames].copy_from_slice(&self.memory[at..at + frames]);
        }
    }

    fn reset(&mut self) {
        self.memory.fill(0.0);
        for array in &mut self.arrays {
            array.layers.iter_mut().for_each(Layers::reset);
            array.sum.reset();
        }
        self.ends.iter_mut().for_each(DelayLine::reset);
        if let Some(net) = &mut self.condition_net {
            net.reset();
        }
    }

    fn work(&self) -> u64 {
        self.work
    }

    fn instructions(&self) -> InstructionSet {
        self.instructions
    }
}

impl WaveNet {
    /// Computes what is behind the input, for `frames`.
    fn run(&mut self, frames: usize) {
        let Self { instructions, input, condition, arrays, ends, head, memory, .. } = self;
        let pass = Pass { instructions: *instructions, frames };
        instructions.run(Arrays {
            arrays,
            pass,
            memory,
            input: *input,
            condition: *condition,
            output: ends[0].current(),
        });
        for (index, (activation, conv)) in head.iter_mut().enumerate() {
            activation.apply(pass, memory, ends[index].current());
            ends[index].mirror_wrap(pass, memory);
            conv.apply(pass, memory, |delay| ends[index].delayed(delay), None, ends[index + 1].current());
            ends[index].advance(frames);
        }
    }
}

/// All arrays, entered once.
struct Arrays<'a> {
    arrays: &'a mut [Array],
    pass: Pass,
    memory: &'a mut [f32],
    input: Rows,
    condition: Rows,
    output: Rows,
}

impl Op for Arrays<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { arrays, pass, memory, mut input, condition, output } = self;
        silence(simd, memory, arrays[0].sum.current(), pass.frames);
        for index in 0..arrays.len() {
            // Each head's sums are what the next array's begin with.
            let out = arrays.get(index + 1).map_or(output, |next| next.sum.current());
            let is_last = index + 1 == arrays.len();
            let Array { rechannel, layers, output, sum, head } = &mut arrays[index];
            let first = |layers: &[Layers]| layers.first().map_or(*output, Layers::input);
            rechannel.apply_with(simd, pass, memory, |_| input, first(layers));
            for at in 0..layers.len() {
                let next = (!is_last || at + 1 < layers.len()).then(|| first(&layers[at + 1..]));
                layers[at].run(simd, pass, memory, Signals { condition, sum: sum.current(), next });
            }
            sum.mirror_wrap_with(simd, memory, pass.frames, BLOCK);
            head.apply_with(simd, pass, memory, |delay| sum.delayed(delay), out);
            sum.advance(pass.frames);
            input = *output;
        }
    }
}
