//! Neural Amp Modeler's files (`.nam`), as its core of 2026 reads them: versions 0.5.0 to 0.7.

mod activation;
mod film;
mod plain;
mod wavenet;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

pub use self::{
    activation::ActivationConfig,
    film::Film,
    plain::{ConvNet, Linear, Lstm},
    wavenet::{LayerArray, OneOrEach, PostHead, Slimmable, WaveNet},
};
use super::LoadError;
pub use super::number::Whole;

/// Most channels of a signal.
pub const MAX_CHANNELS: usize = 1024;
/// Most taps of a convolution.
pub const MAX_TAPS: usize = 1 << 17;
/// Most layers in a row.
pub const MAX_LAYERS: usize = 1024;
/// Longest distance between two taps, frames.
pub const MAX_DILATION: usize = 1 << 20;
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
    /// Of the signals that it was trained with, Hz, where it is known.
    #[serde(default, deserialize_with = "known_rate")]
    pub sample_rate: Option<f64>,
    /// Who made it of what.
    #[serde(borrow, default)]
    pub metadata: Option<&'a RawValue>,
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

/// A sample rate, Hz: one that is not above 0, as Neural Amp Modeler's core writes where it knows none, is none.
fn known_rate<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    Ok(Option::<f64>::deserialize(from)?.filter(|&rate| rate > 0.0))
}

/// What most numbers are that a file leaves out.
fn one() -> Whole {
    Whole(1)
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
