//! Where a model comes from.

use std::{fmt, io, path::PathBuf, str::FromStr};

use amp::{
    Amplifier, LoadError, ModelFile, SyntheticModel, cabinet::IrError, chain::AmplifierError, file::Options,
    resample::RateError, rig::RigError,
};
use machine::sound::OpenError;

/// What stands before the name of a model that needs no file.
pub(super) const BUILT_IN: &str = "builtin:";

/// A model's file, or one that needs none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelSource {
    /// A file: .nam, .json or .aidax.
    File(PathBuf),
    /// A usual shape with weights at random: it costs what a file of that shape costs.
    BuiltIn(SyntheticModel),
}

impl Default for ModelSource {
    fn default() -> Self {
        Self::BuiltIn(SyntheticModel::Standard)
    }
}

/// Why nothing can be played through.
#[derive(Debug, thiserror::Error)]
pub enum AudioError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It is no model.
    #[error("{model}: {source}; see `punctual amp info`")]
    Load {
        /// The model.
        model: String,
        /// What is wrong with it.
        source: LoadError,
    },
    /// It cannot be played in a chain.
    #[error("{model}: {source}")]
    Play {
        /// The model.
        model: String,
        /// Why.
        source: AmplifierError,
    },
    /// It is no cabinet's response.
    #[error("{cab}: {source}")]
    Cab {
        /// The cabinet.
        cab: String,
        /// What is wrong with it.
        source: IrError,
    },
    /// Its rate cannot be changed to the one asked for.
    #[error("{cab}: {source}")]
    CabRate {
        /// The cabinet.
        cab: String,
        /// Why.
        source: RateError,
    },
    /// A preset, or what it names, cannot be played.
    #[error(transparent)]
    Rig(#[from] RigError),
    /// The card cannot be played on.
    #[error(transparent)]
    Device(#[from] OpenError),
    /// It was made for another sample rate.
    #[error("{model} plays {has} Hz, and {asked} Hz was asked for: use --rate {has}, or another model")]
    Rate {
        /// The model.
        model: String,
        /// What it plays, Hz.
        has: f64,
        /// What was asked for, Hz.
        asked: u32,
    },
}

/// There is no such model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no built-in model is called `{0}`: use builtin:standard, feather, nano or lstm, or a file")]
pub struct UnknownModel(String);

impl ModelSource {
    /// The model, settled, for a sample rate, Hz. One that was made for another is refused: resampling it costs more than it
    /// does, and would be measured with it.
    ///
    /// # Errors
    /// [`AudioError`].
    pub fn load(&self, rate_hz: u32) -> Result<Amplifier, AudioError> {
        let model = self.to_string();
        let broken = |source| AudioError::Load { model: model.clone(), source };
        let file = match self {
            Self::BuiltIn(shape) => shape.file(f64::from(rate_hz)),
            Self::File(path) => {
                let bytes = sys::file::read(path).map_err(|source| AudioError::Read { path: path.clone(), source })?;
                ModelFile::read(&bytes)
            }
        };
        let file = file.map_err(broken)?;
        if file.sample_rate != f64::from(rate_hz) {
            return Err(AudioError::Rate { model, has: file.sample_rate, asked: rate_hz });
        }
        Amplifier::new(&file, Options::default(), &[], rate_hz).map_err(|source| AudioError::Play { model, source })
    }
}

impl FromStr for ModelSource {
    type Err = UnknownModel;

    fn from_str(text: &str) -> Result<Self, UnknownModel> {
        match text.strip_prefix(BUILT_IN) {
            Some(name) => SyntheticModel::named(name).map(Self::BuiltIn).ok_or_else(|| UnknownModel(name.to_owned())),
            None => Ok(Self::File(text.into())),
        }
    }
}

impl fmt::Display for ModelSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "{}", path.display()),
            Self::BuiltIn(shape) => write!(f, "{BUILT_IN}{}", shape.name()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_by_name_and_by_file() {
        for text in ["builtin:nano", "builtin:lstm", "models/deluxe.nam"] {
            assert_eq!(text.parse::<ModelSource>().unwrap().to_string(), text);
        }
        let error = "builtin:huge".parse::<ModelSource>().unwrap_err().to_string();
        assert!(error.starts_with("no built-in model is called `huge`"), "{error}");
        assert!(ModelSource::BuiltIn(SyntheticModel::Nano).load(44_100).is_ok(), "made for any rate");
        let error = ModelSource::File("/nonexistent.nam".into()).load(48_000).unwrap_err().to_string();
        assert!(error.starts_with("cannot read /nonexistent.nam"), "{error}");
    }

    #[test]
    fn a_model_for_another_rate_is_refused() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../amp/tests/vectors/wn_a1_nano.nam");
        let source = ModelSource::File(path.into());
        assert!(source.load(48_000).is_ok());
        let error = source.load(44_100).unwrap_err().to_string();
        assert!(error.contains("plays 48000 Hz, and 44100 Hz was asked for: use --rate 48000"), "{error}");
    }
}
