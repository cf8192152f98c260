//! ConvNet: consecutive dilated convolutions of two taps, without residual connections.

use super::{
    Net,
    weights::{ConvShape, WeightReader},
};
use crate::{
    error::LoadError,
    memory::{Aligned, BLOCK, DelayLine, Layout, Rows},
    simd::{Activation, ConvStack, InstructionSet, Pass},
    work::{Activations, Work},
};

/// Number of taps of each convolution.
const TAPS: usize = 2;

/// A ConvNet, ready to play.
#[derive(Debug)]
pub struct ConvNet {
    instructions: InstructionSet,
    convs: ConvStack,
    output: Rows,
    memory: Aligned,
    prewarm_frames: usize,
    work: Work,
}

/// The plan of the network.
#[derive(Debug)]
pub struct Plan {
    pub channels: usize,
    /// Number of output signals.
    pub outputs: usize,
    pub groups: usize,
    /// Distance between the taps, for each convolution.
    pub dilations: Vec<usize>,
    pub is_normalised: bool,
    pub activation: Activation,
}

impl Plan {
    /// Checks that the channels can be divided into the groups.
    ///
    /// # Errors
    /// [`LoadError::InconsistentShapes`].
    pub fn check(&self) -> Result<(), LoadError> {
        self.shapes().try_for_each(|shape| shape.check("a convolution"))
    }

    fn shapes(&self) -> impl Iterator<Item = ConvShape> {
        let Self { channels, groups, is_normalised, .. } = *self;
        let shape = move |index: usize| ConvShape {
            kernel: TAPS,
            groups,
            ..ConvShape::pointwise(if index == 0 { 1 } else { channels }, channels, !is_normalised)
        };
        (0..self.dilations.len()).map(shape)
    }

    fn head(&self) -> ConvShape {
        ConvShape::pointwise(self.channels, self.outputs, true)
    }

    /// Number of weights in the file.
    pub fn weights(&self) -> u64 {
        let of_norm = if self.is_normalised { 4 * self.channels as u64 + 1 } else { 0 };
        self.shapes().map(|shape| shape.weights() + of_norm).sum::<u64>() + self.head().weights()
    }

    /// The work per frame.
    fn work(&self) -> Work {
        let layers = self.shapes().chain([self.head()]);
        let mut activations = Activations::default();
        activations.add(&self.activation, self.dilations.len() * self.channels);
        let multiplications = layers.map(|shape| shape.multiplications()).sum();
        let work = Work::of_convolutions(multiplications, activations, self.dilations.len() + 1);
        if self.activation.is_fusible() { work } else { work.uncounted() }
    }

    /// Upper bound of the values in its delay lines.
    pub fn values(&self) -> usize {
        let line = |(shape, dilation): (ConvShape, &usize)| DelayLine::most_values(shape.inputs, dilation * (TAPS - 1));
        self.shapes().zip(&self.dilations).map(line).fold(0, usize::saturating_add)
    }
}

impl ConvNet {
    /// Builds the network.
    ///
    /// # Errors
    /// If the number of weights does not match the plan.
    pub fn new(plan: &Plan, weights: &[f32], instructions: InstructionSet) -> Result<Self, LoadError> {
        let mut weights = WeightReader::new(weights, plan.weights())?;
        let mut layout = Layout::default();
        let mut convs = ConvStack::default();
        for (shape, &dilation) in plan.shapes().zip(&plan.dilations) {
            let conv = weights.conv(shape);
            let norm = plan.is_normalised.then(|| Norm::new(&mut weights, plan.channels));
            let factor = |output: usize| norm.as_ref().map_or(1.0, |norm| norm.factor(output));
            let input = layout.delay_line(shape.inputs, dilation * (TAPS - 1));
            convs.push(
                input,
                shape.delays(dilation),
                shape.outputs,
                &plan.activation,
                |output, input, tap| factor(output) * conv.at(output, input, tap),
                |output| norm.as_ref().map_or_else(|| conv.bias(output), |norm| norm.bias(output)),
            );
        }
        let head = weights.conv(plan.head());
        convs.push(
            layout.delay_line(plan.channels, 0),
            head.shape.delays(1),
            plan.outputs,
            &Activation::Identity,
            |output, input, tap| head.at(output, input, tap),
            |output| head.bias(output),
        );
        Ok(Self {
            instructions,
            convs,
            output: layout.rows(plan.outputs),
            memory: layout.memory(),
            prewarm_frames: 1 + plan.dilations.iter().sum::<usize>() * (TAPS - 1),
            work: plan.work(),
        })
    }
}

/// A batch normalisation, which is folded into the weights of the convolution before it.
struct Norm<'a> {
    mean: &'a [f32],
    variance: &'a [f32],
    scale: &'a [f32],
    shift: &'a [f32],
    /// Added to the variance, so that it is never 0.
    epsilon: f32,
}

impl<'a> Norm<'a> {
    /// Reads the next weights.
    fn new(weights: &mut WeightReader<'a>, channels: usize) -> Self {
        let [mean, variance, scale, shift] = [(); 4].map(|()| weights.take(channels));
        Self { mean, variance, scale, shift, epsilon: weights.take(1)[0] }
    }

    fn factor(&self, channel: usize) -> f32 {
        self.scale[channel] / (self.epsilon + self.variance[channel]).sqrt()
    }

    fn bias(&self, channel: usize) -> f32 {
        self.shift[channel] - self.factor(channel) * self.mean[channel]
    }
}

impl Net for ConvNet {
    fn outputs(&self) -> usize {
        self.output.count
    }

    fn prewarm_frames(&self) -> usize {
        self.prewarm_frames
    }

    fn block(&mut self, input: &[f32], output: &mut [f32]) {
        let frames = input.len();
        let first = self.convs.input();
        self.memory[first.at..first.at + frames].copy_from_slice(input);
        let pass = Pass { instructions: self.instructions, frames };
        self.convs.run(pass, &mut self.memory, self.output);
        for (row, signal) in output.chunks_mut(BLOCK).enumerate().take(self.output.count) {
            let at = self.output.start(row);
            signal[..frames].copy_from_slice(&self.memory[at..at + frames]);
        }
    }

    fn reset(&mut self) {
        self.memory.fill(0.0);
        self.convs.reset();
    }

    fn work(&self) -> Work {
        self.work
    }

    fn instructions(&self) -> InstructionSet {
        self.instructions
    }
}
