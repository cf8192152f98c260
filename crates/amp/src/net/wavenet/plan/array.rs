//! The plan of one array of layers.

use crate::{convert::whole, net::weights::ConvShape, simd::Activation};

/// An array of layers.
#[derive(Debug, Clone, PartialEq)]
pub struct Array {
    pub inputs: usize,
    pub channels: usize,
    pub bottleneck: usize,
    pub layers: Vec<Layer>,
    pub groups_input: usize,
    pub groups_mixin: usize,
    /// Groups of the 1x1 convolution to the next layer, if there is one.
    pub layer1x1: Option<usize>,
    /// Output channels and groups of the 1x1 convolution to the sum, if there is one.
    pub head1x1: Option<(usize, usize)>,
    pub head: ConvShape,
    pub head_dilation: usize,
    pub films: Films,
    /// Numbers of channels that the array can be reduced to, in ascending order; empty if it cannot be reduced.
    pub allowed_channels: Vec<usize>,
}

/// One layer.
#[derive(Debug, Clone, PartialEq)]
pub struct Layer {
    pub kernel: usize,
    pub dilation: usize,
    pub activation: Activation,
    pub gate: Gate,
}

/// Use of the second half of a layer's channels.
#[derive(Debug, Clone, PartialEq)]
pub enum Gate {
    /// There is no second half.
    None,
    /// The activation of the second half multiplies that of the first.
    Gated(Activation),
    /// The activation of the second half is the mix between the first half (0) and its activation (1).
    Blended(Activation),
}

/// Modulations by the condition, in the order of their weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Films {
    pub conv_pre: Option<Film>,
    pub conv_post: Option<Film>,
    pub mixin_pre: Option<Film>,
    pub mixin_post: Option<Film>,
    pub activation_pre: Option<Film>,
    pub activation_post: Option<Film>,
    pub layer1x1_post: Option<Film>,
    pub head1x1_post: Option<Film>,
}

/// One modulation: the condition scales the channels of a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Film {
    /// True if the condition also shifts them.
    pub shift: bool,
    /// Groups of the convolution that computes the factors.
    pub groups: usize,
}

impl Layer {
    /// Number of past input frames that the layer uses.
    pub fn history(&self) -> usize {
        self.dilation * (self.kernel - 1)
    }
}

impl Array {
    /// Channels of the sum of all layers.
    pub fn sum(&self) -> usize {
        self.head1x1.map_or(self.bottleneck, |(outputs, _)| outputs)
    }

    /// Number of channels for a size of 0 to 1.
    pub fn slimmed_channels(&self, slim: f64) -> usize {
        match self.allowed_channels.len() {
            0 => self.channels,
            count => self.allowed_channels[whole(slim * count as f64).min(count - 1)],
        }
    }
}
