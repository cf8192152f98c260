//! Networks that a few numbers describe.

use serde::Deserialize;

use super::{ActivationConfig, Whole, one};

/// A response.
#[derive(Debug, Clone, Deserialize)]
pub struct Linear {
    /// Taps.
    pub receptive_field: Whole,
    /// Whether a constant is added.
    pub bias: bool,
}

/// Recurrent layers.
#[derive(Debug, Clone, Deserialize)]
pub struct Lstm {
    /// Layers.
    pub num_layers: Whole,
    /// Signals in.
    pub input_size: Whole,
    /// Units of each layer.
    pub hidden_size: Whole,
    /// Signals out.
    #[serde(default = "one")]
    pub out_channels: Whole,
}

/// Convolutions of two taps.
#[derive(Debug, Clone, Deserialize)]
pub struct ConvNet {
    /// Channels of each.
    pub channels: Whole,
    /// Distance of the taps of each.
    pub dilations: Vec<Whole>,
    /// Whether values are normalised after each.
    pub batchnorm: bool,
    /// After each.
    pub activation: ActivationConfig,
    /// Parts that know nothing of each other.
    #[serde(default = "one")]
    pub groups: Whole,
    /// Signals out.
    #[serde(default = "one")]
    pub out_channels: Whole,
}
