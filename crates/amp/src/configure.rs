//! Building a model in a requested size and with its knobs turned.

use thiserror::Error;

use crate::{LoadError, Model, ModelFile, file::Options};

/// Why a model cannot be built as requested.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum ConfigureError {
    /// The file or its network.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// A size was requested, but the model has only one.
    #[error("the model has only one size; leave out --slim, or slim in the preset")]
    OneSize,
    /// More knobs were set than the model has.
    #[error("{turned} knobs are set, the model has {present}; leave out some --param, or knobs in the preset")]
    Knobs {
        /// Number of knobs that were set.
        turned: usize,
        /// Number of knobs of the model.
        present: usize,
    },
}

impl ConfigureError {
    /// True if the file is good and the requested size or knobs are not.
    #[must_use]
    pub fn is_invalid_option(&self) -> bool {
        !matches!(self, Self::Load(_))
    }
}

/// Builds the model of a file in the requested size, turns its first knobs to `knobs` (0 to 1) and prewarms it.
///
/// # Errors
/// [`ConfigureError`].
pub fn model(file: &ModelFile, options: Options, knobs: &[f32]) -> Result<Model, ConfigureError> {
    if options.slim < 1.0 && !file.is_slimmable() {
        return Err(ConfigureError::OneSize);
    }
    let mut model = file.model(options)?;
    if knobs.len() > model.knobs() {
        return Err(ConfigureError::Knobs { turned: knobs.len(), present: model.knobs() });
    }
    if !knobs.is_empty() {
        knobs.iter().enumerate().for_each(|(knob, &value)| model.turn(knob, value));
        model.reset(true);
    }
    Ok(model)
}
