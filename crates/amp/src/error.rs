//! Errors of reading a model file and of building its network.

use thiserror::Error;

/// Error of reading a model file or building its network. Each says what is wrong and what to do.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LoadError {
    /// The file has no bytes.
    #[error("the model file is empty; download it again")]
    Empty,
    /// The file is not JSON; the message of the parser.
    #[error("the model file is not valid JSON ({0}); it is damaged or not a model: download it again")]
    NotJson(String),
    /// The JSON is nested too deeply.
    #[error("the JSON is nested deeper than 40 levels; the file is damaged or not a model: download it again")]
    TooDeep,
    /// JSON without the keys of a known model format.
    #[error("unknown model format; supported are NAM (.nam), GuitarML and AIDA-X (.json, .aidax)")]
    UnknownFormat,
    /// The format version is too old or too new.
    #[error(
        "file version {0} is not supported, only 0.5.0 to 0.7.x (three numbers); update punctual or export the model again"
    )]
    UnsupportedVersion(String),
    /// The architecture of the network is not supported.
    #[error(
        "unsupported network architecture {0:?}; supported are WaveNet, LSTM, ConvNet, Linear and SlimmableContainer"
    )]
    UnknownArchitecture(String),
    /// A part of the network is not supported.
    #[error("unsupported {what} {name:?}; update punctual")]
    UnknownPart {
        /// Kind of part, such as `activation function`.
        what: &'static str,
        /// Its name in the file.
        name: String,
    },
    /// A required key is missing.
    #[error("missing {0}; the file is damaged or from another program: export the model again")]
    MissingKey(String),
    /// A value has the wrong type or is out of range.
    #[error("malformed model file: {0}; export the model again")]
    WrongType(String),
    /// A size of the network is 0 or negative.
    #[error("{name} must be at least 1 (got {value}); export the model again")]
    BadDimension {
        /// Name of the size.
        name: String,
        /// Its value in the file.
        value: i64,
    },
    /// The network exceeds a limit.
    #[error("the network is too large for real time: {0}; choose a smaller model")]
    TooLarge(String),
    /// The network has more inputs than the signal and two knobs: their number.
    #[error("the network has {0} inputs, only the signal and 2 knobs are supported; choose another model")]
    TooManyInputs(i64),
    /// The network has several inputs or outputs.
    #[error("the network has {count} {what}, only 1 is supported; choose a model with one input and one output")]
    NotOne {
        /// `inputs` or `outputs`.
        what: &'static str,
        /// Their number.
        count: i64,
    },
    /// Sizes in the file contradict each other.
    #[error("inconsistent network: {0}; export the model again")]
    InconsistentShapes(String),
    /// The file has fewer weights than the network needs.
    #[error("the network needs {needed} weights, the file has {present}; it is incomplete: download it again")]
    WeightsTooFew {
        /// Number of weights of the network.
        needed: u64,
        /// Number of weights in the file.
        present: u64,
    },
    /// The file has more weights than the network needs.
    #[error("the network needs {needed} weights, the file has {present}; export the model again")]
    WeightsTooMany {
        /// Number of weights of the network.
        needed: u64,
        /// Number of weights in the file.
        present: u64,
    },
    /// A weight is infinite or NaN: its number, from 1.
    #[error("weight {0} is NaN or infinite; retrain or re-export the model")]
    WeightNotFinite(usize),
}

impl LoadError {
    pub(crate) fn inconsistent(text: impl Into<String>) -> Self {
        Self::InconsistentShapes(text.into())
    }
}

impl From<serde_json::Error> for LoadError {
    fn from(error: serde_json::Error) -> Self {
        let text = error.to_string();
        match error.classify() {
            serde_json::error::Category::Data => match text.strip_prefix("missing field `") {
                Some(rest) => Self::MissingKey(rest.split('`').next().unwrap_or_default().to_owned()),
                None => Self::WrongType(without_rust_names(&text)),
            },
            _ => Self::NotJson(text),
        }
    }
}

/// The parser's message without Rust type names and line numbers. The line numbers would be wrong, because the parser
/// counts them from the start of the parsed part.
fn without_rust_names(text: &str) -> String {
    let text = text.split(" at line ").next().unwrap_or_default();
    match text.split_once(", expected struct ") {
        Some((found, _)) => format!("{found}, expected an object"),
        None if text.contains("untagged enum") => "a value has an unexpected type".to_owned(),
        None => text.to_owned(),
    }
}
