//! Why a file is no model that can be played.

use thiserror::Error;

/// Why a file is no model that can be played. Each says what is wrong and what to do.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LoadError {
    /// No bytes.
    #[error("the file is empty: fetch it again")]
    Empty,
    /// It is no JSON.
    #[error("the file is no JSON ({0}): it is damaged, or no model; fetch it again")]
    NotJson(String),
    /// Brackets within brackets.
    #[error("the file nests deeper than any model does: it is damaged, or no model; fetch it again")]
    TooDeep,
    /// JSON of another kind.
    #[error("the file is none of the kinds that can be played: NAM (.nam), GuitarML and AIDA-X (.json, .aidax)")]
    UnknownFormat,
    /// A version that nobody knows yet, or that is too old.
    #[error(
        "the file's version {0} cannot be read, only 0.5.0 to 0.7: look for a newer punctual, or export the model again"
    )]
    UnsupportedVersion(String),
    /// A network of a kind that is not built.
    #[error("a network of the kind {0:?} cannot be played: WaveNet, LSTM, ConvNet, Linear and SlimmableContainer can")]
    UnknownArchitecture(String),
    /// A part of the network of a kind that is not built.
    #[error("{what} {name:?} cannot be played: look for a newer punctual")]
    UnknownPart {
        /// What it is.
        what: &'static str,
        /// What it is called.
        name: String,
    },
    /// Something that must be there is not.
    #[error("the file lacks {0}: it is damaged, or from another program; export the model again")]
    MissingKey(String),
    /// Something is of another type than it must be.
    #[error("the file has {0}: it is damaged, or from another program; export the model again")]
    WrongType(String),
    /// A number that cannot be.
    #[error("{name} is {value}, which no network has: export the model again")]
    BadDimension {
        /// What it is of.
        name: String,
        /// What it is.
        value: i64,
    },
    /// Larger than anything that could be played.
    #[error("{0}, which is more than can be played in real time")]
    TooLarge(String),
    /// Several signals where an amplifier has one.
    #[error("the network has {count} {what}, not one: look for a model of one signal in and out")]
    NotOne {
        /// Inputs or outputs.
        what: &'static str,
        /// How many.
        count: i64,
    },
    /// Parts do not fit together.
    #[error("{0} do not fit together: export the model again")]
    InconsistentShapes(String),
    /// Fewer weights than the network has.
    #[error("the network needs {needed} weights, and {present} are there: the file is cut short; fetch it again")]
    WeightsTooFew {
        /// How many it takes.
        needed: u64,
        /// How many there are.
        present: u64,
    },
    /// More weights than the network has.
    #[error(
        "the network needs {needed} weights, and {present} are there: what they belong to is not known; export the model again"
    )]
    WeightsTooMany {
        /// How many it takes.
        needed: u64,
        /// How many there are.
        present: u64,
    },
    /// Infinite, or no number.
    #[error("weight {0} is no finite number: training went wrong; train the model again")]
    WeightNotFinite(usize),
}

impl From<serde_json::Error> for LoadError {
    fn from(error: serde_json::Error) -> Self {
        let text = error.to_string();
        match error.classify() {
            serde_json::error::Category::Data => match text.strip_prefix("missing field `") {
                Some(rest) => Self::MissingKey(rest.split('`').next().unwrap_or_default().to_owned()),
                None => Self::WrongType(in_words(&text)),
            },
            _ => Self::NotJson(text),
        }
    }
}

/// What the parser says without its own names, and without a place: it counts from the part that it was given.
fn in_words(text: &str) -> String {
    let text = text.split(" at line ").next().unwrap_or_default();
    match text.split_once(", expected struct ") {
        Some((found, _)) => format!("{found}, where a section belongs"),
        None if text.contains("untagged enum") => "a value of a type that does not belong there".to_owned(),
        None => text.to_owned(),
    }
}
