//! Sources of models, and errors of audio probes.

use std::{fmt, io, path::PathBuf, str::FromStr};

use amp::{
    Amplifier, LoadError, ModelFile, SyntheticModel, cabinet::IrError, chain::AmplifierError, file::Options,
    rig::RigError,
};
use machine::sound::OpenError;

use super::read_part;

/// Prefix of the names of built-in models and cabinets.
pub(super) const BUILT_IN: &str = "builtin:";

/// The source of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelSource {
    /// A file: .nam, .json or .aidax.
    File(PathBuf),
    /// A common architecture with random weights. It takes as much CPU time as any model of that architecture.
    BuiltIn(SyntheticModel),
}

impl Default for ModelSource {
    fn default() -> Self {
        Self::BuiltIn(SyntheticModel::Standard)
    }
}

/// The reasons why the audio probe cannot run.
#[derive(Debug, thiserror::Error)]
pub enum AudioError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The file is not a valid model.
    #[error("{model}: {source}; see `punctual amp info`")]
    Load {
        /// The model.
        model: String,
        /// The error in the file.
        source: LoadError,
    },
    /// The model cannot be used in a signal chain.
    #[error("{model}: {source}")]
    Play {
        /// The model.
        model: String,
        /// The reason.
        source: AmplifierError,
    },
    /// The impulse response is not valid, or cannot be played at the sample rate.
    #[error("{cab}: {source}")]
    Cab {
        /// The cabinet.
        cab: String,
        /// The error in the file.
        source: IrError,
    },
    /// A preset, or a file that it names, cannot be used.
    #[error(transparent)]
    Rig(#[from] RigError),
    /// The sound card cannot be used.
    #[error(transparent)]
    Device(#[from] OpenError),
    /// The model was trained at another sample rate.
    #[error("{model} needs a sample rate of {has} Hz (got {requested} Hz): use --rate {has}, or another model")]
    Rate {
        /// The model.
        model: String,
        /// Sample rate of the model, Hz.
        has: f64,
        /// Requested sample rate, Hz.
        requested: u32,
    },
}

/// There is no built-in model of that name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no built-in model `{0}`: use builtin:standard, feather, nano or lstm, or a file")]
pub struct UnknownModel(String);

impl ModelSource {
    /// Loads the model with settled state for a sample rate, Hz. A model for another rate is refused: resampling takes
    /// more CPU time than the model, and would be measured, too.
    ///
    /// # Errors
    /// [`AudioError`].
    pub fn load(&self, rate_hz: u32) -> Result<Amplifier, AudioError> {
        let model = self.to_string();
        let broken = |source| AudioError::Load { model: model.clone(), source };
        let file = match self {
            Self::BuiltIn(shape) => shape.file(f64::from(rate_hz)),
            Self::File(path) => {
                let bytes = read_part(path).map_err(|source| AudioError::Read { path: path.clone(), source })?;
                ModelFile::read(&bytes)
            }
        };
        let file = file.map_err(broken)?;
        if file.sample_rate != f64::from(rate_hz) {
            return Err(AudioError::Rate { model, has: file.sample_rate, requested: rate_hz });
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
    fn reads_built_in_models_and_files() {
        for text in ["builtin:nano", "builtin:lstm", "models/deluxe.nam"] {
            assert_eq!(text.parse::<ModelSource>().unwrap().to_string(), text);
        }
        let error = "builtin:huge".parse::<ModelSource>().unwrap_err().to_string();
        assert!(error.starts_with("no built-in model `huge`"), "{error}");
        assert!(ModelSource::BuiltIn(SyntheticModel::Nano).load(44_100).is_ok(), "made for any rate");
        let error = ModelSource::File("/nonexistent.nam".into()).load(48_000).unwrap_err().to_string();
        assert!(error.starts_with("cannot read /nonexistent.nam"), "{error}");
    }

    #[test]
    fn refuses_a_model_for_another_rate() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../amp/tests/vectors/wn_a1_nano.nam");
        let source = ModelSource::File(path.into());
        assert!(source.load(48_000).is_ok());
        let error = source.load(44_100).unwrap_err().to_string();
        assert!(error.contains("needs a sample rate of 48000 Hz (got 44100 Hz): use --rate 48000"), "{error}");
    }
}
