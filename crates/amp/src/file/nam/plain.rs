//! Networks that are described by a few numbers.

use serde::Deserialize;

use super::{
    MAX_CHANNELS, MAX_DILATION, MAX_LAYERS, MAX_TAPS, Whole, activation::ActivationConfig, length, one, one_signal,
    size,
};
use crate::{
    error::LoadError,
    net::{convnet, linear},
};

/// A linear filter: an impulse response.
#[derive(Debug, Clone, Deserialize)]
pub struct Linear {
    /// Number of taps.
    pub receptive_field: Whole,
    /// True if a constant is added.
    pub bias: bool,
    /// Number of input signals.
    #[serde(default = "one")]
    pub in_channels: Whole,
    /// Number of output signals.
    #[serde(default = "one")]
    pub out_channels: Whole,
}

/// Recurrent layers.
#[derive(Debug, Clone, Deserialize)]
pub struct Lstm {
    /// Number of layers.
    pub num_layers: Whole,
    /// Number of input signals.
    #[serde(default = "one")]
    pub in_channels: Whole,
    /// Number of inputs of the first layer.
    pub input_size: Whole,
    /// Units per layer.
    pub hidden_size: Whole,
    /// Number of output signals.
    #[serde(default = "one")]
    pub out_channels: Whole,
}

/// Consecutive convolutions of two taps.
#[derive(Debug, Clone, Deserialize)]
pub struct ConvNet {
    /// Channels of each convolution.
    pub channels: Whole,
    /// Distance between the taps, for each convolution.
    pub dilations: Vec<Whole>,
    /// True if a batch normalisation follows each convolution.
    pub batchnorm: bool,
    /// Activation function after each convolution.
    pub activation: ActivationConfig,
    /// Groups of each convolution.
    #[serde(default = "one")]
    pub groups: Whole,
    /// Number of input signals.
    #[serde(default = "one")]
    pub in_channels: Whole,
    /// Number of output signals.
    #[serde(default = "one")]
    pub out_channels: Whole,
}

impl Linear {
    /// The checked plan of the network.
    pub fn plan(&self) -> Result<linear::Plan, LoadError> {
        one_signal("inputs", self.in_channels)?;
        one_signal("outputs", self.out_channels)?;
        Ok(linear::Plan { taps: size("receptive_field", self.receptive_field, MAX_TAPS)?, bias: self.bias })
    }
}

impl ConvNet {
    /// The checked plan of the network.
    pub fn plan(&self) -> Result<convnet::Plan, LoadError> {
        one_signal("inputs", self.in_channels)?;
        length("the number of dilations", &self.dilations, MAX_LAYERS)?;
        let dilations = self.dilations.iter().map(|&dilation| size("a dilation", dilation, MAX_DILATION));
        let plan = convnet::Plan {
            channels: size("channels", self.channels, MAX_CHANNELS)?,
            outputs: size("out_channels", self.out_channels, MAX_CHANNELS)?,
            groups: size("groups", self.groups, MAX_CHANNELS)?,
            dilations: dilations.collect::<Result<_, _>>()?,
            is_normalised: self.batchnorm,
            activation: self.activation.build()?,
        };
        plan.check()?;
        Ok(plan)
    }
}
