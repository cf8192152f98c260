//! A row of dilated convolutions of two taps, without ways around them.

use super::{
    Net,
    conv::Conv,
    dense::{Dense, Shape, Weights},
};
use crate::{
    file::{
        LoadError,
        nam::{self, MOST_CHANNELS, MOST_DILATION, MOST_LAYERS, size},
    },
    memory::{BLOCK, Layout, Memory, Past},
    simd::{Activation, Level, Pass, Rows},
};

/// Taps of each convolution.
const TAPS: usize = 2;

/// A row of convolutions, ready to play.
#[derive(Debug)]
pub struct ConvNet {
    level: Level,
    activation: Activation,
    /// Each with its input.
    convs: Vec<(Past, Conv)>,
    last: Rows,
    head: Conv,
    output: Rows,
    memory: Memory,
    settles_after: usize,
    work: u64,
}

impl ConvNet {
    /// Makes it.
    ///
    /// # Errors
    /// When sizes do not fit together or with the weights.
    pub fn new(config: &nam::ConvNet, weights: &[f32], level: Level) -> Result<Self, LoadError> {
        let channels = size("channels", config.channels, MOST_CHANNELS)?;
        let outputs = size("out_channels", config.out_channels, MOST_CHANNELS)?;
        let groups = size("groups", config.groups, MOST_CHANNELS)?;
        size("the number of dilations", config.dilations.len() as i64, MOST_LAYERS)?;
        let dilations = config.dilations.iter().map(|&dilation| size("a dilation", dilation, MOST_DILATION));
        let dilations: Vec<usize> = dilations.collect::<Result<_, _>>()?;
        let shape = |index: usize| Shape {
            kernel: TAPS,
            groups,
            ..Shape::mix(if index == 0 { 1 } else { channels }, channels, !config.batchnorm)
        };
        (0..dilations.len()).try_for_each(|index| shape(index).check("a convolution"))?;
        let of_norm = if config.batchnorm { 4 * channels as u64 + 1 } else { 0 };
        let head = Shape::mix(channels, outputs, true);
        let of_convs: u64 = (0..dilations.len()).map(|index| shape(index).weights() + of_norm).sum();
        let needed = of_convs + head.weights();
        let mut weights = Weights::new(weights, needed)?;
        let mut layout = Layout::default();
        let mut convs = Vec::new();
        for (index, &dilation) in dilations.iter().enumerate() {
            let dense = weights.dense(shape(index));
            let input = layout.past(dense.shape.inputs, dilation * (TAPS - 1));
            let conv = match config.batchnorm {
                true => normalised(dense, &mut weights, dilation),
                false => Conv::new(dense, dilation),
            };
            convs.push((input, conv));
        }
        Ok(Self {
            level,
            activation: config.activation.build()?,
            convs,
            last: layout.rows(channels),
            head: Conv::new(weights.dense(head), 1),
            output: layout.rows(outputs),
            memory: layout.memory(),
            settles_after: 1 + dilations.iter().sum::<usize>() * (TAPS - 1),
            work: needed,
        })
    }
}

/// The convolution with the next normalisation in its weights: mean, variance, scale, shift, and what keeps the variance
/// from being nothing.
fn normalised(dense: Dense<'_>, weights: &mut Weights<'_>, dilation: usize) -> Conv {
    let channels = dense.shape.outputs;
    let [mean, variance, scale, shift] = [(); 4].map(|()| weights.take(channels));
    let epsilon = weights.take(1)[0];
    let factor = |channel: usize| scale[channel] / (epsilon + variance[channel]).sqrt();
    Conv::scaled(dense, dilation, factor, |channel| shift[channel] - factor(channel) * mean[channel])
}

impl Net for ConvNet {
    fn outputs(&self) -> usize {
        self.output.count
    }

    fn settles_after(&self) -> usize {
        self.settles_after
    }

    fn block(&mut self, input: &[f32], output: &mut [f32]) {
        let frames = input.len();
        let first = self.convs[0].0.now();
        self.memory[first.at..first.at + frames].copy_from_slice(input);
        self.run(frames);
        for (row, signal) in output.chunks_mut(BLOCK).enumerate().take(self.output.count) {
            let at = self.output.start(row);
            signal[..frames].copy_from_slice(&self.memory[at..at + frames]);
        }
    }

    fn restart(&mut self) {
        self.memory.fill(0.0);
        self.convs.iter_mut().for_each(|(input, _)| input.rewind());
    }

    fn work(&self) -> u64 {
        self.work
    }
}

impl ConvNet {
    fn run(&mut self, frames: usize) {
        let Self { level, activation, convs, last, head, output, memory, .. } = self;
        let pass = Pass { level: *level, frames };
        for index in 0..convs.len() {
            let next = convs.get(index + 1).map_or(*last, |(input, _)| input.now());
            let (input, conv) = &mut convs[index];
            input.complete(pass, memory);
            conv.apply(pass, memory, |delay| input.before(delay), None, next);
            activation.apply(pass, memory, next);
            input.advance(frames);
        }
        head.apply(pass, memory, |_| *last, None, *output);
    }
}
