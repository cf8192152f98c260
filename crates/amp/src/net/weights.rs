//! Weights in the order of a file, and the shapes of convolutions.

use crate::error::LoadError;

/// Reads the weights of a file in order.
#[derive(Debug, Clone)]
pub struct WeightReader<'a>(&'a [f32]);

/// The weights of one convolution: `[group][output][input][tap]`, the oldest tap first, as PyTorch stores them.
#[derive(Debug, Clone, Copy)]
pub struct ConvWeights<'a> {
    /// The part that is used.
    pub shape: ConvShape,
    /// Number of weights per output in the file.
    stride: usize,
    weights: &'a [f32],
    biases: &'a [f32],
}

/// The shape of a convolution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConvShape {
    /// Number of input channels.
    pub inputs: usize,
    /// Number of output channels.
    pub outputs: usize,
    /// Number of taps.
    pub kernel: usize,
    /// Number of groups: the outputs of a group depend only on the inputs of the same group.
    pub groups: usize,
    /// True if each output has a bias.
    pub bias: bool,
}

impl ConvShape {
    /// A 1x1 convolution: one tap, one group.
    pub fn pointwise(inputs: usize, outputs: usize, bias: bool) -> Self {
        Self { inputs, outputs, kernel: 1, groups: 1, bias }
    }

    /// Delay of each tap, if the taps are `dilation` frames apart; the oldest tap first.
    pub fn delays(&self, dilation: usize) -> Vec<usize> {
        (0..self.kernel).rev().map(|tap| tap * dilation).collect()
    }

    /// Number of weights and biases.
    pub fn weights(&self) -> u64 {
        let [inputs, outputs, kernel, groups] = [self.inputs, self.outputs, self.kernel, self.groups].map(|n| n as u64);
        let of_taps = inputs.saturating_mul(outputs).saturating_mul(kernel) / groups.max(1);
        of_taps.saturating_add(if self.bias { outputs } else { 0 })
    }

    /// Number of multiplications per frame.
    pub fn multiplications(&self) -> u64 {
        Self { bias: false, ..*self }.weights()
    }

    /// Checks that the channels can be divided into the groups.
    ///
    /// # Errors
    /// [`LoadError::InconsistentShapes`].
    pub fn check(&self, name: &str) -> Result<(), LoadError> {
        let Self { inputs, outputs, groups, .. } = *self;
        if groups == 0 || inputs % groups != 0 || outputs % groups != 0 {
            let text = format!("{inputs} and {outputs} channels cannot be divided into {groups} groups ({name})");
            return Err(LoadError::inconsistent(text));
        }
        Ok(())
    }
}

impl<'a> WeightReader<'a> {
    /// All weights of a file; `needed` of them will be read.
    ///
    /// # Errors
    /// [`LoadError::WeightsTooFew`], [`LoadError::WeightsTooMany`].
    pub fn new(all: &'a [f32], needed: u64) -> Result<Self, LoadError> {
        let present = all.len() as u64;
        match present.cmp(&needed) {
            std::cmp::Ordering::Less => Err(LoadError::WeightsTooFew { needed, present }),
            std::cmp::Ordering::Equal => Ok(Self(all)),
            std::cmp::Ordering::Greater => Err(LoadError::WeightsTooMany { needed, present }),
        }
    }

    /// The next `count` weights, or fewer at the end.
    pub fn take(&mut self, count: usize) -> &'a [f32] {
        let (taken, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        taken
    }

    /// The next weights, of a convolution of this shape.
    pub fn conv(&mut self, shape: ConvShape) -> ConvWeights<'a> {
        let biases = if shape.bias { shape.outputs } else { 0 };
        let weights = self.take(usize::try_from(shape.weights()).unwrap_or(usize::MAX) - biases);
        let stride = shape.inputs / shape.groups * shape.kernel;
        ConvWeights { shape, stride, weights, biases: self.take(biases) }
    }
}

impl ConvWeights<'_> {
    /// The part of a convolution in one group with the first `inputs` and `outputs`.
    #[must_use]
    pub fn slice(self, inputs: usize, outputs: usize) -> Self {
        Self { shape: ConvShape { inputs, outputs, ..self.shape }, ..self }
    }

    /// The weight of a tap. `input` is counted within the group of the output.
    pub fn at(&self, output: usize, input: usize, tap: usize) -> f32 {
        self.weights[output * self.stride + input * self.shape.kernel + tap]
    }

    /// The bias of an output; 0 without biases.
    pub fn bias(&self, output: usize) -> f32 {
        self.biases.get(output).copied().unwrap_or_default()
    }
}
