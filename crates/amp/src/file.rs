//! Model files of all formats. The content decides the format; the whole file is checked before a network is built.

mod guitarml;
mod keras;
mod metadata;
mod nam;
mod network;
mod number;

use serde::{Deserialize, de::IgnoredAny};

pub use self::metadata::About;
use self::network::Network;
use crate::{error::LoadError, model::Model, simd::InstructionSet};

/// Endings of the names of model files, in lower case.
pub const EXTENSIONS: [&str; 3] = ["nam", "json", "aidax"];
/// Maximum nesting depth of the JSON, deeper than that of any known model.
const MAX_DEPTH: usize = 40;

/// The largest file of a model, a cabinet or a preset that is worth reading, bytes. Models with most parameters take
/// about 10 MiB; a cabinet of 60 s with two channels at 192 kHz takes 88 MiB.
pub const MAX_FILE_BYTES: u64 = 256 << 20;
/// Some editors write this before UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// File formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Neural Amp Modeler.
    Nam,
    /// GuitarML: NeuralPi, Proteus.
    GuitarMl,
    /// AIDA-X, in the format of RTNeural.
    Keras,
}

/// A checked model file.
#[derive(Debug)]
pub struct ModelFile {
    /// File format.
    pub format: Format,
    /// Kind of network, as named in the file.
    pub architecture: String,
    /// Sample rate of the training signals, Hz.
    pub sample_rate: f64,
    /// True if the file contains the sample rate; otherwise it is the default of the format.
    pub has_sample_rate: bool,
    /// Description of the model.
    pub about: About,
    /// Problems that do not prevent playing.
    pub warnings: Vec<String>,
    network: Network,
    /// Gains of input and output, factors.
    gains: (f32, f32),
    skip: bool,
}

/// Options for building a model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// Size for files that contain several: 0 for the smallest to 1 for the whole network.
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
    /// Reads a file of any format.
    ///
    /// # Errors
    /// [`LoadError`]. Until the file has been checked, at most a few times its size is allocated.
    pub fn read(bytes: &[u8]) -> Result<Self, LoadError> {
        let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
        if bytes.is_empty() {
            return Err(LoadError::Empty);
        }
        let text = std::str::from_utf8(bytes).map_err(|_| LoadError::NotJson("not UTF-8 text".to_owned()))?;
        if depth(bytes) > MAX_DEPTH {
            return Err(LoadError::TooDeep);
        }
        let text = text.trim_end_matches('\0');
        let keys: Keys = serde_json::from_str(text).map_err(LoadError::from)?;
        match keys {
            Keys { layers: Some(_), in_shape: Some(_), .. } => keras::read(text),
            Keys { model_data: Some(_), state_dict: Some(_), .. } => guitarml::read(text),
            Keys { architecture: Some(_), .. } | Keys { version: Some(_), .. } => Self::nam(text),
            // An incomplete file is read as its most likely format, whose error names the missing key.
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
            return Err(LoadError::NotOne { what: "outputs", count: i64::try_from(outputs).unwrap_or(i64::MAX) });
        }
        Ok(Self {
            format: Format::Nam,
            architecture: file.architecture,
            sample_rate: file.sample_rate.unwrap_or(nam::SAMPLE_RATE),
            has_sample_rate: file.sample_rate.is_some(),
            about: About::read(file.metadata, &mut warnings),
            warnings,
            network,
            gains: (1.0, 1.0),
            skip: false,
        })
    }

    /// Builds the model and prewarms it with silence.
    ///
    /// # Errors
    /// [`LoadError`] if the requested size is not possible.
    pub fn model(&self, options: Options) -> Result<Model, LoadError> {
        let net = self.network.net(options, self.sample_rate)?;
        let mut model = Model::new(net, self.gains, self.skip);
        model.reset(true);
        Ok(model)
    }

    /// The sample rate, Hz, if it is a whole number.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a whole number within the range")]
    pub fn whole_rate_hz(&self) -> Option<u32> {
        let is_whole = self.sample_rate.fract() == 0.0 && (1.0..=f64::from(u32::MAX)).contains(&self.sample_rate);
        is_whole.then_some(self.sample_rate as u32)
    }

    /// True if the file contains several sizes.
    #[must_use]
    pub fn is_slimmable(&self) -> bool {
        self.network.is_slimmable()
    }
}

/// Keys that distinguish the formats.
#[derive(Deserialize)]
struct Keys {
    architecture: Option<IgnoredAny>,
    version: Option<IgnoredAny>,
    model_data: Option<IgnoredAny>,
    state_dict: Option<IgnoredAny>,
    layers: Option<IgnoredAny>,
    in_shape: Option<IgnoredAny>,
}

/// Maximum nesting depth of brackets, ignoring strings.
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
/// [`LoadError::WeightNotFinite`], with the number of the weight, from 1.
fn finite(weights: &[f32]) -> Result<(), LoadError> {
    match weights.iter().position(|weight| !weight.is_finite()) {
        Some(index) => Err(LoadError::WeightNotFinite(index + 1)),
        None => Ok(()),
    }
}
