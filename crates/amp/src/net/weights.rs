//! Weights as files have them: read in their order, each block with its shape.

use crate::error::LoadError;

/// The weights of a file, taken one after the other.
#[derive(Debug, Clone)]
pub struct WeightReader<'a>(&'a [f32]);

/// The weights of one convolution: `[group][out][in][tap]`, the oldest tap first, as PyTorch stores them.
#[derive(Debug, Clone, Copy)]
pub struct ConvWeights<'a> {
    /// What is used of it.
    pub shape: ConvShape,
    /// Weights of one output as the file has them.
    stride: usize,
    weights: &'a [f32],
    biases: &'a [f32],
}

/// The shape of a convolution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConvShape {
    /// Channels in.
    pub inputs: usize,
    /// Channels out.
    pub outputs: usize,
    /// Taps.
    pub kernel: usize,
    /// Parts that know nothing of each other.
    pub groups: usize,
    /// Whether each output has a bias.
    pub bias: bool,
}

impl ConvShape {
    /// One tap, one group: a 1x1 convolution.
    pub fn pointwise(inputs: usize, outputs: usize, bias: bool) -> Self {
        Self { inputs, outputs, kernel: 1, groups: 1, bias }
    }

    /// How long ago each tap is where they are so many frames apart; the oldest first.
    pub fn delays(&self, dilation: usize) -> Vec<usize> {
        (0..self.kernel).rev().map(|tap| tap * dilation).collect()
    }

    /// Number of weights and biases.
    pub fn weights(&self) -> u64 {
        let [inputs, outputs, kernel, groups] = [self.inputs, self.outputs, self.kernel, self.groups].map(|n| n as u64);
        let of_taps = inputs.saturating_mul(outputs).saturating_mul(kernel) / groups.max(1);
        of_taps.saturating_add(if self.bias { outputs } else { 0 })
    }

    /// # Errors
    /// [`LoadError::InconsistentShapes`] where channels cannot be parted into the groups.
    pub fn check(&self, name: &str) -> Result<(), LoadError> {
        let Self { inputs, outputs, groups, .. } = *self;
        if groups == 0 || inputs % groups != 0 || outputs % groups != 0 {
            let text = format!("{inputs} and {outputs} channels in {groups} groups ({name})");
            return Err(LoadError::InconsistentShapes(text));
        }
        Ok(())
    }
}

impl<'a> WeightReader<'a> {
    /// All weights of a file, of which `needed` will be taken.
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

    /// The next `count`; fewer at the end.
    pub fn take(&mut self, count: usize) -> &'a [f32] {
        let (taken, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        taken
    }

    /// The next of this shape.
    pub fn conv(&mut self, shape: ConvShape) -> ConvWeights<'a> {
        let biases = if shape.bias { shape.outputs } else { 0 };
        let weights = self.take(shape.weights() as usize - biases);
        let stride = shape.inputs / shape.groups * shape.kernel;
        ConvWeights { shape, stride, weights, biases: self.take(biases) }
    }
}

impl ConvWeights<'_> {
    /// The first of its outputs, which see the first of its inputs; of a convolution in one group.
    #[must_use]
    pub fn slice(self, inputs: usize, outputs: usize) -> Self {
        Self { shape: ConvShape { inputs, outputs, ..self.shape }, ..self }
    }

    /// The weight of a tap of an input, which is counted within the group of the output.
    pub fn at(&self, output: usize, input: usize, tap: usize) -> f32 {
        self.weights[output * self.stride + input * self.shape.kernel + tap]
    }

    /// The bias of an output.
    pub fn bias(&self, output: usize) -> f32 {
        self.biases.get(output).copied().unwrap_or_default()
    }
}
