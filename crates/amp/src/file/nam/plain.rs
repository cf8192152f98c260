//! Networks that a few numbers describe.

use serde::Deserialize;

use super::{Activation, one};

/// A response.
#[derive(Debug, Clone, Deserialize)]
pub struct Linear {
    /// Taps.
    pub receptive_field: i64,
    /// Whether a constant is added.
    pub bias: bool,
}

/// Recurrent layers.
#[derive(Debug, Clone, Deserialize)]
pub struct Lstm {
    /// Layers.
    pub num_layers: i64,
    /// Signals in.
    pub input_size: i64,
    /// Units of each layer.
    pub hidden_size: i64,
    /// Signals out.
    #[serde(default = "one")]
    pub out_channels: i64,
}

/// Convolutions of two taps.
#[derive(Debug, Clone, Deserialize)]
pub struct ConvNet {
    /// Channels of each.
    pub channels: i64,
    /// Distance of the taps of each.
    pub dilations: Vec<i64>,
    /// Whether values are normalised after each.
    pub batchnorm: bool,
    /// After each.
    pub activation: Activation,
    /// Parts that know nothing of each other.
    #[serde(default = "one")]
    pub groups: i64,
    /// Signals out.
    #[serde(default = "one")]
    pub out_channels: i64,
}
