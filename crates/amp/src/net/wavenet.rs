//! WaveNet: arrays of dilated convolutions, each with a delay line, whose activations are summed.

mod general;
mod layers;
pub mod plan;

use self::{layers::Layers, plan::Plan};
use super::{
    Net,
    weights::{ConvShape, ConvWeights, WeightReader},
};
use crate::{
    error::LoadError,
    memory::{Aligned, BLOCK, DelayLine, Layout, Rows, Scratch},
    simd::{Activation, ConvStack, Convolution, Identity, InstructionSet, Op, Pass, Signals, Simd, silence},
    work::Work,
};

/// A WaveNet, ready to play.
pub struct WaveNet {
    instructions: InstructionSet,
    /// Computes the condition from the input; without it, the input is the condition.
    condition_net: Option<Box<dyn Net>>,
    conditions: Vec<f32>,
    condition: Rows,
    arrays: Vec<Array>,
    /// The stages after the last array: an activation, then convolutions with the same activation between them.
    post_head: Option<(Activation, ConvStack)>,
    output: Rows,
    memory: Aligned,
    prewarm_frames: usize,
    work: Work,
}

/// An array of layers, ready to play.
struct Array {
    /// Computes the channels of the layers from the output of the array before.
    rechannel: Convolution,
    layers: Vec<Layers>,
    /// Computes the outputs from the sum, which starts with the outputs of the array before and adds all activations.
    head: Convolution,
}

impl WaveNet {
    /// Builds the network: `whole` is the plan of the weights, `slimmed` the part that is played.
    ///
    /// # Errors
    /// If the number of weights does not match the plan.
    pub fn new(
        whole: &Plan,
        slimmed: &Plan,
        weights: &[f32],
        condition_net: Option<Box<dyn Net>>,
        instructions: InstructionSet,
    ) -> Result<Self, LoadError> {
        // The last weight scales the output of the arrays. The weights of the last head are scaled instead.
        let scale = weights.last().copied().unwrap_or_default();
        let mut weights = WeightReader::new(weights, whole.weights())?;
        let mut layout = Layout::default();
        let condition = layout.rows(whole.condition);
        // All layers share the scratch memory, so that it stays in the first-level cache.
        let of_array =
            |array: &plan::Array| array.layers.iter().map(|layer| array.shapes(layer, whole.condition).scratch()).max();
        let scratch = layout.rows(slimmed.arrays.iter().filter_map(of_array).max().unwrap_or_default());
        let mut arrays = Vec::new();
        for (index, plans) in whole.arrays.iter().zip(&slimmed.arrays).enumerate() {
            let factor = if index + 1 == whole.arrays.len() { scale } else { 1.0 };
            let scratch = Scratch(scratch);
            arrays.push(Array::new(plans, whole.condition, factor, &mut weights, &mut layout, scratch, instructions));
        }
        let post_head = slimmed.head.as_ref().map(|plan| post_head(plan, &mut weights, &mut layout));
        let prewarm_before = condition_net.as_ref().map_or(0, |net| net.prewarm_frames());
        let work_before = condition_net.as_ref().map(|net| net.work()).unwrap_or_default();
        let is_common = arrays.iter().flat_map(|array| &array.layers).all(|layers| matches!(layers, Layers::Common(_)));
        let work = work_before + slimmed.work();
        Ok(Self {
            instructions,
            conditions: vec![0.0; whole.condition * BLOCK],
            condition_net,
            condition,
            arrays,
            post_head,
            output: layout.rows(slimmed.outputs()),
            memory: layout.memory(),
            prewarm_frames: prewarm_before + slimmed.receptive_field(),
            work: if is_common { work } else { work.uncounted() },
        })
    }
}

impl Array {
    /// Builds an array from the next weights and scales those of its head by `factor`: `whole` is the plan of the
    /// weights, `slimmed` the part that is played.
    fn new(
        (whole, slimmed): (&plan::Array, &plan::Array),
        condition: usize,
        factor: f32,
        weights: &mut WeightReader<'_>,
        layout: &mut Layout,
        scratch: Scratch,
        instructions: InstructionSet,
    ) -> Self {
        let rechannel = weights.conv(ConvShape::pointwise(whole.inputs, whole.channels, false));
        let rechannel = rechannel.slice(slimmed.inputs, slimmed.channels);
        let rechannel = convolution(layout.delay_line(slimmed.inputs, 0), rechannel, 1, 1.0);
        let mut layers = Vec::new();
        for layer in &whole.layers {
            let shapes = (whole.shapes(layer, condition), slimmed.shapes(layer, condition));
            Layers::add(&mut layers, shapes, layer, weights, layout, scratch, instructions);
        }
        let head = weights.conv(whole.head).slice(slimmed.head.inputs, slimmed.head.outputs);
        let sum = layout.delay_line(slimmed.sum(), slimmed.head_dilation * (slimmed.head.kernel - 1));
        Self { rechannel, layers, head: convolution(sum, head, slimmed.head_dilation, factor) }
    }
}

/// The stages after the arrays, with the next weights.
fn post_head(plan: &plan::PostHead, weights: &mut WeightReader<'_>, layout: &mut Layout) -> (Activation, ConvStack) {
    let mut stack = ConvStack::default();
    for (index, &shape) in plan.convs.iter().enumerate() {
        let conv = weights.conv(shape);
        let activation = if index + 1 == plan.convs.len() { &Activation::Identity } else { &plan.activation };
        let (weight, bias) = (|output, input, tap| conv.at(output, input, tap), |output| conv.bias(output));
        let input = layout.delay_line(shape.inputs, shape.kernel - 1);
        stack.push(input, shape.delays(1), shape.outputs, activation, weight, bias);
    }
    (plan.activation.clone(), stack)
}

/// A convolution with these weights, scaled by `factor`.
fn convolution(input: DelayLine, conv: ConvWeights<'_>, dilation: usize, factor: f32) -> Convolution {
    let weight = |output, input, tap| factor * conv.at(output, input, tap);
    Convolution::new(input, conv.shape.delays(dilation), conv.shape.outputs, weight, |output| {
        factor * conv.bias(output)
    })
}

impl Net for WaveNet {
    fn outputs(&self) -> usize {
        self.output.count
    }

    fn prewarm_frames(&self) -> usize {
        self.prewarm_frames
    }

    fn block(&mut self, input: &[f32], output: &mut [f32]) {
        let frames = input.len();
        let first = self.arrays[0].rechannel.input();
        self.memory[first.at..first.at + frames].copy_from_slice(input);
        let condition = if let Some(net) = &mut self.condition_net {
            net.block(input, &mut self.conditions);
            for (row, signal) in self.conditions.chunks_exact(BLOCK).enumerate() {
                let at = self.condition.start(row);
                self.memory[at..at + frames].copy_from_slice(&signal[..frames]);
            }
            self.condition
        } else {
            first
        };
        let pass = Pass { instructions: self.instructions, frames };
        let output_rows = self.post_head.as_ref().map_or(self.output, |(_, stack)| stack.input());
        let Self { arrays, memory, .. } = self;
        self.instructions.run(Arrays { arrays, pass, memory, condition, output: output_rows });
        if let Some((activation, stack)) = &mut self.post_head {
            activation.apply(pass, memory, output_rows);
            stack.run(pass, memory, self.output);
        }
        for (row, signal) in output.chunks_mut(BLOCK).enumerate().take(self.output.count) {
            let at = self.output.start(row);
            signal[..frames].copy_from_slice(&self.memory[at..at + frames]);
        }
    }

    fn reset(&mut self) {
        self.memory.fill(0.0);
        for array in &mut self.arrays {
            array.layers.iter_mut().for_each(Layers::reset);
            array.head.reset();
        }
        if let Some((_, stack)) = &mut self.post_head {
            stack.reset();
        }
        if let Some(net) = &mut self.condition_net {
            net.reset();
        }
    }

    fn work(&self) -> Work {
        self.work
    }

    fn instructions(&self) -> InstructionSet {
        self.instructions
    }
}

/// Computes all arrays in one function.
struct Arrays<'a> {
    arrays: &'a mut [Array],
    pass: Pass,
    memory: &'a mut [f32],
    condition: Rows,
    output: Rows,
}

impl Op for Arrays<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { arrays, pass, memory, condition, output } = self;
        silence(simd, memory, arrays[0].head.input(), pass.frames);
        for index in 0..arrays.len() {
            // The output of each head is the start of the next array's sum.
            let following = arrays.get(index + 1).map(|next| (next.rechannel.input(), next.head.input()));
            let Array { rechannel, layers, head } = &mut arrays[index];
            rechannel.run(simd, memory, pass.frames, layers[0].input(), Identity);
            for at in 0..layers.len() {
                let next = layers.get(at + 1).map(Layers::input).or(following.map(|(input, _)| input));
                layers[at].run(simd, pass, memory, Signals { condition, sum: head.input(), next });
            }
            head.run(simd, memory, pass.frames, following.map_or(output, |(_, sum)| sum), Identity);
        }
    }
}
