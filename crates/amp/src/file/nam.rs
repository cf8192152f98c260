//! Neural Amp Modeler's files (`.nam`), as its core of 2026 reads them: versions 0.5.0 to 0.7.

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::LoadError;

/// Most channels of a signal.
pub const MOST_CHANNELS: usize = 1024;
/// Most taps of a convolution.
pub const MOST_TAPS: usize = 1 << 17;
/// Most layers in a row.
pub const MOST_LAYERS: usize = 1024;
/// Longest distance between two taps, frames.
pub const MOST_DILATION: usize = 1 << 20;
/// The sample rate of files that tell none, Hz: those of versions 0.5.0 and 0.5.1.
pub const SAMPLE_RATE: f64 = 48_000.0;

/// A file, or one within a file.
#[derive(Debug, Deserialize)]
pub struct File<'a> {
    /// Of the format.
    pub version: String,
    /// Kind of network.
    pub architecture: String,
    /// Its description, which depends on the kind.
    #[serde(borrow)]
    pub config: &'a RawValue,
    /// All weights in a row.
    pub weights: Vec<f32>,
    /// Of the signals that it was trained with, Hz.
    #[serde(default)]
    pub sample_rate: Option<f64>,
    /// Who made it of what.
    #[serde(borrow, default)]
    pub metadata: Option<&'a RawValue>,
}

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

/// Networks of several sizes, of which one is played.
#[derive(Debug, Deserialize)]
pub struct Container<'a> {
    /// The smallest first.
    #[serde(borrow)]
    pub submodels: Vec<Submodel<'a>>,
}

/// One of several sizes.
#[derive(Debug, Deserialize)]
pub struct Submodel<'a> {
    /// Sizes below this are this one.
    pub max_value: f64,
    /// The network: a file within the file.
    #[serde(borrow)]
    pub model: &'a RawValue,
}

/// Arrays of dilated convolutions.
#[derive(Debug, Deserialize)]
pub struct WaveNet<'a> {
    /// One after the other.
    pub layers: Vec<LayerArray>,
    /// After all of them.
    #[serde(default)]
    pub head: Option<PostHead>,
    /// Signals in.
    #[serde(default = "one")]
    pub in_channels: i64,
    /// A network that makes the condition of what is played.
    #[serde(borrow, default)]
    pub condition_dsp: Option<&'a RawValue>,
}

/// Convolutions after all arrays.
#[derive(Debug, Clone, Deserialize)]
pub struct PostHead {
    /// Channels between them.
    pub channels: i64,
    /// Signals out.
    pub out_channels: i64,
    /// Taps of each.
    pub kernel_sizes: Vec<i64>,
    /// Before each.
    pub activation: Activation,
}

/// One array of layers.
#[derive(Debug, Clone, Deserialize)]
pub struct LayerArray {
    /// Signals in.
    pub input_size: i64,
    /// Signals of the condition.
    pub condition_size: i64,
    /// Channels from layer to layer.
    pub channels: i64,
    /// Channels within a layer, where they differ.
    pub bottleneck: Option<i64>,
    /// Taps of all layers,
    pub kernel_size: Option<i64>,
    /// or of each.
    pub kernel_sizes: Option<Vec<i64>>,
    /// Distance of the taps of each layer.
    pub dilations: Vec<i64>,
    /// Of all layers, or of each.
    pub activation: OneOrEach<Activation>,
    /// Whether half of the channels weighs the other half.
    #[serde(default)]
    pub gated: bool,
    /// How half of the channels weighs the other half, in all layers or in each.
    pub gating_mode: Option<OneOrEach<String>>,
    /// Of the half that weighs.
    pub secondary_activation: Option<OneOrEach<Option<Activation>>>,
    /// Groups of the convolutions.
    #[serde(default = "one")]
    pub groups_input: i64,
    /// Groups of what the condition adds.
    #[serde(default = "one")]
    pub groups_input_mixin: i64,
    /// From the activation to the next layer.
    pub layer1x1: Option<Mix>,
    /// From the activation to the sum of all layers.
    pub head1x1: Option<HeadMix>,
    /// The sum of all layers, made signals: since 0.6.
    pub head: Option<Head>,
    /// The same before.
    pub head_size: Option<i64>,
    /// The same before.
    pub head_bias: Option<bool>,
    /// Sizes that it can be cut down to.
    #[serde(default)]
    pub slimmable: Option<Slimmable>,
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

/// Whether and how channels are mixed.
#[derive(Debug, Clone, Deserialize)]
pub struct Mix {
    /// Whether it is there.
    pub active: bool,
    /// Its groups.
    pub groups: i64,
}

/// Whether and how channels are mixed into others.
#[derive(Debug, Clone, Deserialize)]
pub struct HeadMix {
    /// Whether it is there.
    pub active: bool,
    /// How many others.
    pub out_channels: i64,
    /// Its groups.
    pub groups: i64,
}

/// How the sum of all layers becomes signals.
#[derive(Debug, Clone, Deserialize)]
pub struct Head {
    /// How many.
    pub out_channels: i64,
    /// Taps.
    pub kernel_size: i64,
    /// Whether each has a bias.
    pub bias: bool,
    /// Distance of the taps.
    #[serde(default = "one")]
    pub head_dilation: i64,
}

/// Modulation by the condition.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Film {
    /// Whether it is there.
    pub active: bool,
    /// Whether it adds something, too.
    pub shift: bool,
    /// Its groups.
    pub groups: i64,
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
    pub allowed_channels: Option<Vec<i64>>,
}

/// An activation function by its name, or with its numbers.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum Activation {
    /// Its name.
    Named(String),
    /// With its numbers.
    Detailed {
        /// Its name.
        #[serde(rename = "type")]
        name: String,
        /// What negative values are scaled by.
        negative_slope: Option<f32>,
        /// The same for each channel.
        negative_slopes: Option<Vec<f32>>,
        /// Where the lower slope begins.
        min_val: Option<f32>,
        /// Where the upper slope begins.
        max_val: Option<f32>,
        /// The lower slope.
        min_slope: Option<f32>,
        /// The upper slope.
        max_slope: Option<f32>,
    },
}

impl Activation {
    /// The function.
    ///
    /// # Errors
    /// [`LoadError::UnknownPart`].
    pub fn build(&self) -> Result<crate::simd::Activation, LoadError> {
        use crate::simd::Activation as A;
        let (name, slopes, [min, max, min_slope, max_slope]) = match self {
            Self::Named(name) => (name, vec![0.01], [-1.0, 1.0, 0.01, 0.01]),
            Self::Detailed { name, negative_slope, negative_slopes, min_val, max_val, min_slope, max_slope } => {
                let one = negative_slope.map(|slope| vec![slope]);
                let slopes = one.or_else(|| negative_slopes.clone()).unwrap_or_else(|| vec![0.01]);
                let or = |value: &Option<f32>, other| value.unwrap_or(other);
                (name, slopes, [or(min_val, -1.0), or(max_val, 1.0), or(min_slope, 0.01), or(max_slope, 0.01)])
            }
        };
        Ok(match name.as_str() {
            "Tanh" => A::Tanh,
            "Hardtanh" => A::HardTanh,
            "Fasttanh" => A::FastTanh,
            "ReLU" => A::Relu,
            "LeakyReLU" | "PReLU" => A::LeakyRelu(slopes),
            "Sigmoid" => A::Sigmoid,
            "SiLU" => A::Silu,
            "Hardswish" => A::HardSwish,
            "LeakyHardtanh" | "LeakyHardTanh" => A::LeakyHardTanh { min, max, min_slope, max_slope },
            "Softsign" => A::SoftSign,
            _ => return Err(LoadError::UnknownPart { what: "the activation function", name: name.clone() }),
        })
    }
}

impl<'de> Deserialize<'de> for Film {
    /// `false` for none, or an object whose parts may be missing.
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            None(bool),
            Parts { active: Option<bool>, shift: Option<bool>, groups: Option<i64> },
        }
        Ok(match Option::<Written>::deserialize(from)? {
            None | Some(Written::None(false)) => Self::default(),
            Some(Written::None(true)) => Self { active: true, shift: true, groups: 1 },
            Some(Written::Parts { active, shift, groups }) => {
                Self { active: active.unwrap_or(true), shift: shift.unwrap_or(true), groups: groups.unwrap_or(1) }
            }
        })
    }
}

fn one() -> i64 {
    1
}

/// A number of something: at least 1, at most `most`.
///
/// # Errors
/// [`LoadError::BadDimension`], [`LoadError::TooLarge`].
pub fn size(name: &str, value: i64, most: usize) -> Result<usize, LoadError> {
    match usize::try_from(value) {
        Ok(value) if value > most => Err(LoadError::TooLarge(format!("{name} is {value}"))),
        Ok(value) if value > 0 => Ok(value),
        _ => Err(LoadError::BadDimension { name: name.to_owned(), value }),
    }
}

/// Whether a version can be read, and whether it is newer than those known: `None` where it cannot.
pub fn is_newer(version: &str) -> Option<bool> {
    let numbers: Vec<u32> = version.split('.').map(str::parse).collect::<Result<_, _>>().ok()?;
    match numbers[..] {
        [0, 5..=6, _] => Some(false),
        [0, 7, patch] => Some(patch > 0),
        _ => None,
    }
}
