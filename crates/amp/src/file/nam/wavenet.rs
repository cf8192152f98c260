//! The description of a WaveNet in a file.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Whole, activation::ActivationConfig, film::Film, one};

/// Consecutive arrays of dilated convolutions.
#[derive(Debug, Deserialize)]
pub struct WaveNet<'a> {
    /// The arrays of layers.
    #[serde(borrow)]
    pub layers: Vec<LayerArray<'a>>,
    /// Convolutions after all arrays.
    #[serde(default)]
    pub head: Option<PostHead>,
    /// Number of input signals.
    #[serde(default = "one")]
    pub in_channels: Whole,
    /// A network that computes the condition from the input: a nested file.
    #[serde(borrow, default)]
    pub condition_dsp: Option<&'a RawValue>,
}

/// Convolutions after all arrays.
#[derive(Debug, Clone, Deserialize)]
pub struct PostHead {
    /// Channels between the convolutions.
    pub channels: Whole,
    /// Number of output signals.
    pub out_channels: Whole,
    /// Number of taps, for each convolution.
    pub kernel_sizes: Vec<Whole>,
    /// Activation function before each convolution.
    pub activation: ActivationConfig,
}

/// An array of layers.
#[derive(Debug, Clone, Deserialize)]
pub struct LayerArray<'a> {
    /// Number of input signals.
    pub input_size: Whole,
    /// Number of condition signals.
    pub condition_size: Whole,
    /// Channels between layers.
    pub channels: Whole,
    /// Channels inside a layer, if different from `channels`.
    pub bottleneck: Option<Whole>,
    /// Number of taps of all layers. A file has this or `kernel_sizes`.
    pub kernel_size: Option<Whole>,
    /// Number of taps, for each layer.
    pub kernel_sizes: Option<Vec<Whole>>,
    /// Distance between the taps, for each layer.
    pub dilations: Vec<Whole>,
    /// Activation function of all layers, or of each.
    pub activation: OneOrEach<ActivationConfig>,
    /// True if half of the channels gates the other half; in older files, instead of `gating_mode`.
    #[serde(default)]
    pub gated: bool,
    /// Use of half of the channels to gate the other half, in all layers or in each.
    pub gating_mode: Option<OneOrEach<String>>,
    /// Activation function of the gates, of all layers or of each; any value in layers without gates.
    #[serde(borrow, default)]
    pub secondary_activation: Option<&'a RawValue>,
    /// Groups of the convolutions.
    #[serde(default = "one")]
    pub groups_input: Whole,
    /// Groups of the convolution of the condition.
    #[serde(default = "one")]
    pub groups_input_mixin: Whole,
    /// 1x1 convolution from the activation to the next layer.
    pub layer1x1: Option<Layer1x1Config>,
    /// 1x1 convolution from the activation to the sum of all layers.
    pub head1x1: Option<Head1x1Config>,
    /// Convolution from the sum of all layers to the outputs; since version 0.6.
    pub head: Option<Head>,
    /// Number of outputs, before version 0.6.
    pub head_size: Option<Whole>,
    /// True if each output has a bias, before version 0.6.
    pub head_bias: Option<bool>,
    /// A [`Slimmable`]; any value that is not an object is ignored.
    #[serde(borrow, default)]
    pub slimmable: Option<&'a RawValue>,
    /// Modulates the input of the convolution.
    #[serde(default)]
    pub conv_pre_film: Film,
    /// Modulates the output of the convolution.
    #[serde(default)]
    pub conv_post_film: Film,
    /// Modulates the condition before its convolution.
    #[serde(default)]
    pub input_mixin_pre_film: Film,
    /// Modulates the condition after its convolution.
    #[serde(default)]
    pub input_mixin_post_film: Film,
    /// Modulates the sum of both convolutions.
    #[serde(default)]
    pub activation_pre_film: Film,
    /// Modulates the output of the activation.
    #[serde(default)]
    pub activation_post_film: Film,
    /// Modulates the output of `layer1x1`.
    #[serde(default)]
    pub layer1x1_post_film: Film,
    /// Modulates the output of `head1x1`.
    #[serde(default)]
    pub head1x1_post_film: Film,
}

/// One value for all layers, or one for each.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum OneOrEach<T> {
    /// One value for each layer.
    Each(Vec<T>),
    /// The same value for all layers.
    One(T),
}

impl<T> OneOrEach<T> {
    /// Converts each value once, also if it is the same for all layers.
    pub fn map<U>(&self, convert: impl Fn(&T) -> U) -> OneOrEach<U> {
        match self {
            Self::Each(values) => OneOrEach::Each(values.iter().map(convert).collect()),
            Self::One(value) => OneOrEach::One(convert(value)),
        }
    }
}

/// The 1x1 convolution to the next layer.
#[derive(Debug, Clone, Deserialize)]
pub struct Layer1x1Config {
    /// True if there is one.
    pub active: bool,
    /// Groups.
    pub groups: Whole,
}

/// The 1x1 convolution to the sum of all layers.
#[derive(Debug, Clone, Deserialize)]
pub struct Head1x1Config {
    /// True if there is one.
    pub active: bool,
    /// Number of output channels.
    pub out_channels: Whole,
    /// Groups.
    pub groups: Whole,
}

/// The convolution from the sum of all layers to the outputs.
#[derive(Debug, Clone, Deserialize)]
pub struct Head {
    /// Number of outputs.
    pub out_channels: Whole,
    /// Number of taps.
    pub kernel_size: Whole,
    /// True if each output has a bias.
    pub bias: bool,
    /// Distance between the taps.
    #[serde(default = "one")]
    pub head_dilation: Whole,
}

/// Sizes that an array can be reduced to.
#[derive(Debug, Clone, Deserialize)]
pub struct Slimmable {
    /// Method of the reduction.
    #[serde(default)]
    pub method: String,
    /// Arguments of the method.
    #[serde(default)]
    pub kwargs: Option<Allowed>,
}

/// Arguments of the method `slice_channels_uniform`.
#[derive(Debug, Clone, Deserialize)]
pub struct Allowed {
    /// Allowed numbers of channels, in ascending order.
    pub allowed_channels: Option<Vec<Whole>>,
}
