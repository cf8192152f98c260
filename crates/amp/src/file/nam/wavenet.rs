//! What a WaveNet is made of.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{ActivationConfig, Film, Whole, one};

/// Arrays of dilated convolutions.
#[derive(Debug, Deserialize)]
pub struct WaveNet<'a> {
    /// One after the other.
    #[serde(borrow)]
    pub layers: Vec<LayerArray<'a>>,
    /// After all of them.
    #[serde(default)]
    pub head: Option<PostHead>,
    /// Signals in.
    #[serde(default = "one")]
    pub in_channels: Whole,
    /// A network that makes the condition of what is played.
    #[serde(borrow, default)]
    pub condition_dsp: Option<&'a RawValue>,
}

/// Convolutions after all arrays.
#[derive(Debug, Clone, Deserialize)]
pub struct PostHead {
    /// Channels between them.
    pub channels: Whole,
    /// Signals out.
    pub out_channels: Whole,
    /// Taps of each.
    pub kernel_sizes: Vec<Whole>,
    /// Before each.
    pub activation: ActivationConfig,
}

/// One array of layers.
#[derive(Debug, Clone, Deserialize)]
pub struct LayerArray<'a> {
    /// Signals in.
    pub input_size: Whole,
    /// Signals of the condition.
    pub condition_size: Whole,
    /// Channels from layer to layer.
    pub channels: Whole,
    /// Channels within a layer, where they differ.
    pub bottleneck: Option<Whole>,
    /// Taps of all layers,
    pub kernel_size: Option<Whole>,
    /// or of each.
    pub kernel_sizes: Option<Vec<Whole>>,
    /// Distance of the taps of each layer.
    pub dilations: Vec<Whole>,
    /// Of all layers, or of each.
    pub activation: OneOrEach<ActivationConfig>,
    /// Whether half of the channels weighs the other half.
    #[serde(default)]
    pub gated: bool,
    /// How half of the channels weighs the other half, in all layers or in each.
    pub gating_mode: Option<OneOrEach<String>>,
    /// Of the half that weighs, in all layers or in each: anything where there is no such half.
    #[serde(borrow, default)]
    pub secondary_activation: Option<&'a RawValue>,
    /// Groups of the convolutions.
    #[serde(default = "one")]
    pub groups_input: Whole,
    /// Groups of what the condition adds.
    #[serde(default = "one")]
    pub groups_input_mixin: Whole,
    /// From the activation to the next layer.
    pub layer1x1: Option<Layer1x1Config>,
    /// From the activation to the sum of all layers.
    pub head1x1: Option<Head1x1Config>,
    /// The sum of all layers, made signals: since 0.6.
    pub head: Option<Head>,
    /// The same before.
    pub head_size: Option<Whole>,
    /// The same before.
    pub head_bias: Option<bool>,
    /// [`Slimmable`]; what is no object says nothing.
    #[serde(borrow, default)]
    pub slimmable: Option<&'a RawValue>,
    /// Modulated by the condition: the input of the convolution,
    #[serde(default)]
    pub conv_pre_film: Film,
    /// its output,
    #[serde(default)]
    pub conv_post_film: Film,
    /// the condition before it is added,
    #[serde(default)]
    pub input_mixin_pre_film: Film,
    /// what it adds,
    #[serde(default)]
    pub input_mixin_post_film: Film,
    /// the sum of both,
    #[serde(default)]
    pub activation_pre_film: Film,
    /// its activation,
    #[serde(default)]
    pub activation_post_film: Film,
    /// what goes to the next layer,
    #[serde(default)]
    pub layer1x1_post_film: Film,
    /// and what goes to the sum of all layers.
    #[serde(default)]
    pub head1x1_post_film: Film,
}

/// One value for all layers, or one for each.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum OneOrEach<T> {
    /// One for each.
    Each(Vec<T>),
    /// The same for all.
    One(T),
}

/// The convolution of one tap to the next layer.
#[derive(Debug, Clone, Deserialize)]
pub struct Layer1x1Config {
    /// Whether it is there.
    pub active: bool,
    /// Its groups.
    pub groups: Whole,
}

/// The convolution of one tap to the sum of all layers.
#[derive(Debug, Clone, Deserialize)]
pub struct Head1x1Config {
    /// Whether it is there.
    pub active: bool,
    /// Channels out.
    pub out_channels: Whole,
    /// Its groups.
    pub groups: Whole,
}

/// How the sum of all layers becomes signals.
#[derive(Debug, Clone, Deserialize)]
pub struct Head {
    /// How many.
    pub out_channels: Whole,
    /// Taps.
    pub kernel_size: Whole,
    /// Whether each has a bias.
    pub bias: bool,
    /// Distance of the taps.
    #[serde(default = "one")]
    pub head_dilation: Whole,
}

/// Sizes that an array can be cut down to.
#[derive(Debug, Clone, Deserialize)]
pub struct Slimmable {
    /// How.
    #[serde(default)]
    pub method: String,
    /// To what.
    #[serde(default)]
    pub kwargs: Option<Allowed>,
}

/// Sizes that an array can be cut down to.
#[derive(Debug, Clone, Deserialize)]
pub struct Allowed {
    /// Channels, the fewest first.
    pub allowed_channels: Option<Vec<Whole>>,
}
