//! Files of Neural Amp Modeler (`.nam`), as its core of 2026 reads them: versions 0.5.0 to 0.7.

mod activation;
mod film;
mod plain;
mod plan;
mod wavenet;

use serde::{Deserialize, Deserializer, de::Error};
use serde_json::value::RawValue;

pub use self::{
    plain::{ConvNet, Linear, Lstm},
    wavenet::WaveNet,
};
use super::number::Whole;
use crate::error::LoadError;

/// Maximum number of channels of a signal.
pub const MAX_CHANNELS: usize = 1024;
/// Maximum number of taps of a convolution.
pub const MAX_TAPS: usize = 1 << 17;
/// Maximum number of consecutive layers.
pub const MAX_LAYERS: usize = 1024;
/// Maximum distance between two taps, frames.
pub const MAX_DILATION: usize = 1 << 20;
/// Sample rate of files without one (versions 0.5.0 and 0.5.1), Hz.
pub const SAMPLE_RATE: f64 = 48_000.0;
/// Maximum sample rate, Hz. The time that recurrent layers are prewarmed grows with it.
const MAX_RATE_HZ: f64 = 768_000.0;

/// A file, or a file nested in another one.
#[derive(Debug, Deserialize)]
pub struct File<'a> {
    /// Format version.
    pub version: String,
    /// Kind of network.
    pub architecture: String,
    /// Description of the network; its type depends on the architecture.
    #[serde(borrow)]
    pub config: &'a RawValue,
    /// All weights of the network, in the order of its layers.
    pub weights: Vec<f32>,
    /// Sample rate of the training signals, Hz, if known.
    #[serde(default, deserialize_with = "known_rate")]
    pub sample_rate: Option<f64>,
    /// Free-form description of the model and its author.
    #[serde(borrow, default)]
    pub metadata: Option<&'a RawValue>,
}

/// A network in several sizes. Only one is played.
#[derive(Debug, Deserialize)]
pub struct Container<'a> {
    /// The networks, the smallest first.
    #[serde(borrow)]
    pub submodels: Vec<Submodel<'a>>,
}

/// One size of a [`Container`].
#[derive(Debug, Deserialize)]
pub struct Submodel<'a> {
    /// Upper limit of the requested sizes that select this network, exclusive.
    pub max_value: f64,
    /// The network: a nested file.
    #[serde(borrow)]
    pub model: &'a RawValue,
}

/// A sample rate, Hz. Neural Amp Modeler's core writes -1 for an unknown rate, so values up to 0 mean none.
fn known_rate<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    match Option::<f64>::deserialize(from)?.filter(|&rate| rate > 0.0) {
        Some(rate) if rate > MAX_RATE_HZ => {
            Err(Error::custom(format!("sample_rate must be at most {MAX_RATE_HZ} Hz (got {rate})")))
        }
        rate => Ok(rate),
    }
}

/// Default of most numbers.
fn one() -> Whole {
    Whole(1)
}

/// Checks that a size is 1 to `most`.
///
/// # Errors
/// [`LoadError::BadDimension`], [`LoadError::TooLarge`].
pub fn size(name: &str, value: Whole, most: usize) -> Result<usize, LoadError> {
    match usize::try_from(value.0) {
        Ok(value) if value > most => Err(LoadError::TooLarge(format!("{name} is {value}, the maximum is {most}"))),
        Ok(value) if value > 0 => Ok(value),
        _ => Err(LoadError::BadDimension { name: name.to_owned(), value: value.0 }),
    }
}

/// Checks that a list has 1 to `most` elements; returns their number.
///
/// # Errors
/// [`LoadError::BadDimension`], [`LoadError::TooLarge`].
pub fn length<T>(name: &str, list: &[T], most: usize) -> Result<usize, LoadError> {
    size(name, Whole(i64::try_from(list.len()).unwrap_or(i64::MAX)), most)
}

/// Checks that there is one signal; `what` is `inputs` or `outputs`.
///
/// # Errors
/// [`LoadError::NotOne`].
pub fn one_signal(what: &'static str, count: Whole) -> Result<(), LoadError> {
    match count.0 {
        1 => Ok(()),
        count => Err(LoadError::NotOne { what, count }),
    }
}

/// True if the version is newer than the known ones; `None` if it is not supported.
pub fn is_newer(version: &str) -> Option<bool> {
    let numbers: Vec<u32> = version.split('.').map(str::parse).collect::<Result<_, _>>().ok()?;
    match numbers[..] {
        [0, 5..=6, _] => Some(false),
        [0, 7, patch] => Some(patch > 0),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_the_sample_rate() {
        let rate = |rate: &str| {
            let text =
                format!(r#"{{"version": "", "architecture": "", "config": 0, "weights": [], "sample_rate": {rate}}}"#);
            serde_json::from_str::<File>(&text).map(|file| file.sample_rate).map_err(|error| error.to_string())
        };
        assert_eq!([rate("-1"), rate("768000")], [Ok(None), Ok(Some(768_000.0))]);
        assert!(rate("1e300").unwrap_err().starts_with("sample_rate must be at most 768000 Hz (got 1"));
    }
}
