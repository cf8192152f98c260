//! WaveNet: arrays of dilated convolutions, each with its past, whose activations are summed.

mod layers;
mod plan;
mod rich;

use self::layers::Layers;
pub use self::plan::Plan;
use super::{
    Net,
    conv::Conv,
    dense::{Shape, Weights},
};
use crate::{
    file::LoadError,
    memory::{BLOCK, Layout, Past, Scratch},
    simd::{Activation, Aligned, Combine, Level, Op, Pass, Rows, Signals, Simd, begin_sum, combine},
};

/// A WaveNet, ready to play.
pub struct WaveNet {
    level: Level,
    /// Makes the condition of the input; without it the input is the condition.
    condition_net: Option<Box<dyn Net>>,
    conditions: Vec<f32>,
    input: Rows,
    condition: Rows,
    arrays: Vec<Array>,
    scale: f32,
    /// The scaled output of the last array, then that of each convolution after it.
    ends: Vec<Past>,
    head: Vec<(Activation, Conv)>,
    memory: Aligned,
    settles_after: usize,
    work: u64,
}

/// An array of layers, ready to play.
struct Array {
    rechannel: Conv,
    layers: Vec<Layers>,
    /// Where the last layer's output goes.
    output: Rows,
    /// The sum of all layers' activations.
    sum: Past,
    head: Conv,
    head_output: Rows,
}

impl WaveNet {
    /// Makes it: `whole` is what the weights are of, `kept` what is played of it.
    ///
    /// # Errors
    /// When the number of weights is another.
    pub fn new(
        whole: &Plan,
        kept: &Plan,
        weights: &[f32],
        condition_net: Option<Box<dyn Net>>,
        level: Level,
    ) -> Result<Self, LoadError> {
        let mut weights = Weights::new(weights, whole.weights())?;
        let mut layout = Layout::default();
        let input = layout.rows(1);
        let condition = if condition_net.is_some() { layout.rows(whole.condition) } else { input };
        // Shared by all layers, since one is computed after the other: it stays in the nearest cache.
        let of_array =
            |array: &plan::Array| array.layers.iter().map(|layer| array.shapes(layer, whole.condition).scratch()).max();
        let scratch = layout.rows(kept.arrays.iter().filter_map(of_array).max().unwrap_or_default());
        let mut arrays = Vec::new();
        for (whole_array, array) in whole.arrays.iter().zip(&kept.arrays) {
            let rechannel = weights.dense(Shape::mix(whole_array.inputs, whole_array.channels, false));
            let mut layers = Vec::new();
            for layer in &whole_array.layers {
                let shapes = (whole_array.shapes(layer, whole.condition), array.shapes(layer, whole.condition));
                Layers::add(&mut layers, shapes, layer, &mut weights, &mut layout, Scratch(scratch), level);
            }
            let head = weights.dense(whole_array.head).keep(array.head.inputs, array.head.outputs);
            arrays.push(Array {
                rechannel: Conv::new(rechannel.keep(array.inputs, array.channels), 1),
                layers,
                output: layout.rows(array.channels),
                sum: layout.past(array.sum(), array.head_dilation * (array.head.kernel - 1)),
                head: Conv::new(head, array.head_dilation),
                head_output: layout.rows(array.head.outputs),
            });
        }
        let last = kept.arrays.last().map_or(0, |array| array.head.outputs);
        let convs = kept.head.as_ref().map_or(&[][..], |head| &head.convs);
        let mut ends = Vec::new();
        let mut head = Vec::new();
        for shape in convs {
            ends.push(layout.past(shape.inputs, shape.kernel - 1));
            let activation = kept.head.as_ref().map_or(Activation::Identity, |head| head.activation.clone());
            head.push((activation, Conv::new(weights.dense(*shape), 1)));
        }
        ends.push(layout.past(convs.last().map_or(last, |shape| shape.outputs), 0));
        let before = condition_net.as_ref().map_or(0, |net| net.settles_after());
        let work_before = condition_net.as_ref().map_or(0, |net| net.work());
        Ok(Self {
            level,
            conditions: vec![0.0; whole.condition * BLOCK],
            condition_net,
            input,
            condition,
            arrays,
            scale: weights.take(1).first().copied().unwrap_or_default(),
            ends,
            head,
            memory: layout.memory(),
            settles_after: before + kept.receptive_field(),
            work: work_before + kept.weights(),
        })
    }
}

impl Net for WaveNet {
    fn outputs(&self) -> usize {
        self.ends.last().map_or(0, |end| end.now().count)
    }

    fn settles_after(&self) -> usize {
        self.settles_after
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
        for (row, signal) in output.chunks_mut(BLOCK).enumerate().take(end.now().count) {
            let at = end.now().start(row);
            signal[..frames].copy_from_slice(&self.memory[at..at + frames]);
        }
    }

    fn restart(&mut self) {
        self.memory.fill(0.0);
        for array in &mut self.arrays {
            array.layers.iter_mut().for_each(Layers::rewind);
            array.sum.rewind();
        }
        self.ends.iter_mut().for_each(Past::rewind);
        if let Some(net) = &mut self.condition_net {
            net.restart();
        }
    }

    fn work(&self) -> u64 {
        self.work
    }

    fn level(&self) -> Level {
        self.level
    }
}

impl WaveNet {
    /// Computes what is behind the input, for `frames`.
    fn run(&mut self, frames: usize) {
        let Self { level, input, condition, arrays, scale, ends, head, memory, .. } = self;
        let (pass, condition) = (Pass { level: *level, frames }, *condition);
        let mut from = *input;
        let mut head_before: Option<Rows> = None;
        let count = arrays.len();
        for (index, array) in arrays.iter_mut().enumerate() {
            let before = head_before;
            let is_last = index + 1 == count;
            level.run(ArrayPass { array, pass, memory, from, condition, before, is_last });
            from = array.output;
            head_before = Some(array.head_output);
        }
        let Some(last) = head_before else { return };
        combine(pass, memory, Combine::Scale(last, *scale), ends[0].now());
        for (index, (activation, conv)) in head.iter_mut().enumerate() {
            activation.apply(pass, memory, ends[index].now());
            ends[index].complete(pass, memory);
            conv.apply(pass, memory, |delay| ends[index].before(delay), None, ends[index + 1].now());
            ends[index].advance(frames);
        }
    }
}

/// A whole array, entered once.
struct ArrayPass<'a> {
    array: &'a mut Array,
    pass: Pass,
    memory: &'a mut [f32],
    from: Rows,
    condition: Rows,
    before: Option<Rows>,
    is_last: bool,
}

impl Op for ArrayPass<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self {
            array: Array { rechannel, layers, output, sum, head, head_output },
            pass,
            memory,
            from,
            condition,
            before,
            is_last,
        } = self;
        let input = |layers: &[Layers], index: usize| layers.get(index).map_or(*output, Layers::input);
        rechannel.apply_with(simd, pass, memory, |_| from, input(layers, 0));
        begin_sum(simd, memory, before, sum.now(), pass.frames);
        let count = layers.len();
        for at in 0..count {
            let next = (!is_last || at + 1 < count).then(|| input(layers, at + 1));
            layers[at].run(simd, pass, memory, Signals { condition, sum: sum.now(), next });
        }
        sum.complete_with(simd, memory, pass.frames);
        head.apply_with(simd, pass, memory, |delay| sum.before(delay), *head_output);
        sum.advance(pass.frames);
    }
}
