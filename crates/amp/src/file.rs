//! Files of every kind: told apart by what is in them, checked whole before anything is made of them.

mod guitarml;
mod keras;
mod metadata;
mod nam;
mod network;
mod number;

use serde::{Deserialize, de::IgnoredAny};

use self::network::Network;
pub use self::metadata::About;
use crate::{error::LoadError, model::Model, simd::InstructionSet};

/// Deeper than any model's file nests.
const MAX_DEPTH: usize = 40;
/// What some editors put before UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Kinds of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Neural Amp Modeler.
    Nam,
    /// GuitarML: NeuralPi, Proteus.
    GuitarMl,
    /// AIDA-X, as RTNeural reads them.
    Keras,
}

/// A model's file, checked.
#[derive(Debug)]
pub struct ModelFile {
    /// Kind of file.
    pub format: Format,
    /// Kind of network, in the file's own words.
    pub architecture: String,
    /// Sample rate of the signals that it was trained with, Hz.
    pub sample_rate: f64,
    /// Whether the file tells it; else it is what the format's files are made for.
    pub tells_sample_rate: bool,
    /// What it tells of itself.
    pub about: About,
    /// What is not as it could be.
    pub warnings: Vec<String>,
    network: Network,
    /// Of input and output, factors.
    gains: (f32, f32),
    skip: bool,
}

/// How a model is to be made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// Of files that hold several sizes, 0 for the smallest to 1 for the whole.
    pub slim: f64,
    /// Instructions to use.
    pub instructions: InstructionSet,
}

impl Default for Options {
    fn default() -> Self {
        Self { slim: 1.0, instructions: InstructionSet::best() }
    }
}

impl ModelFile {
    /// Reads a file of any kind.
    ///
    /// # Errors
    /// [`LoadError`]. Until the file has been found whole, no more is allotted than a few times its size.
    pub fn read(bytes: &[u8]) -> Result<Self, LoadError> {
        let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
        if bytes.is_empty() {
            return Err(LoadError::Empty);
        }
        let text = std::str::from_utf8(bytes).map_err(|_| LoadError::NotJson("it is not text".to_owned()))?;
        if depth(bytes) > MAX_DEPTH {
            return Err(LoadError::TooDeep);
        }
        let text = text.trim_end_matches('\0');
        let keys: Keys = serde_json::from_str(text).map_err(LoadError::from)?;
        match keys {
            Keys { layers: Some(_), in_shape: Some(_), .. } => keras::read(text),
            Keys { model_data: Some(_), state_dict: Some(_), .. } => guitarml::read(text),
            Keys { architecture: Some(_), .. } | Keys { version: Some(_), .. } => Self::nam(text),
            // Of what is cut short, the most likely kind says what is missing.
            Keys { model_data: Some(_), .. } | Keys { state_dict: Some(_), .. } => guitarml::read(text),
            Keys { layers: Some(_), .. } => keras::read(text),
            _ => Err(LoadError::UnknownFormat),
        }
    }

    fn nam(text: &str) -> Result<Self, LoadError> {
        let file: nam::File<'_> = serde_json::from_str(text)?;
        let mut warnings = Vec::new();
        let network = Network::of_nam(&file, &mut warnings)?;
        let outputs = network.outputs();
        if outputs != 1 {
            return Err(LoadError::NotOne { what: "outputs", count: outputs as i64 });
        }
        Ok(Self {
            format: Format::Nam,
            architecture: file.architecture,
            sample_rate: file.sample_rate.unwrap_or(nam::SAMPLE_RATE),
            tells_sample_rate: file.sample_rate.is_some(),
            about: About::read(file.metadata, &mut warnings),
            warnings,
            network,
            gains: (1.0, 1.0),
            skip: false,
        })
    }

    /// Makes the model, prewarmed as after long silence.
    ///
    /// # Errors
    /// [`LoadError`], where a size that was asked for does not fit together.
    pub fn model(&self, options: Options) -> Result<Model, LoadError> {
        let net = self.network.net(options, self.sample_rate)?;
        let mut model = Model::new(net, self.gains, self.skip);
        model.reset(true);
        Ok(model)
    }

    /// Whether it holds several sizes.
    #[must_use]
    pub fn is_slimmable(&self) -> bool {
        self.network.is_slimmable()
    }
}

/// What tells the kinds of files apart.
#[derive(Deserialize)]
struct Keys {
    architecture: Option<IgnoredAny>,
    version: Option<IgnoredAny>,
    model_data: Option<IgnoredAny>,
    state_dict: Option<IgnoredAny>,
    layers: Option<IgnoredAny>,
    in_shape: Option<IgnoredAny>,
}

/// How deep brackets stand within brackets, those in strings left out.
fn depth(bytes: &[u8]) -> usize {
    let (mut depth, mut most, mut in_string, mut escaped) = (0_usize, 0, false, false);
    for byte in bytes {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => {
                depth += 1;
                most = most.max(depth);
            }
            b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    most
}

/// # Errors
/// [`LoadError::WeightNotFinite`], counted from 1.
fn finite(weights: &[f32]) -> Result<(), LoadError> {
    match weights.iter().position(|weight| !weight.is_finite()) {
        Some(index) => Err(LoadError::WeightNotFinite(index + 1)),
        None => Ok(()),
    }
}
