//! A model as it was chosen of a file: in which size, with which knobs turned.

use thiserror::Error;

use crate::{LoadError, Model, ModelFile, file::Options};

/// Why a model cannot be had as it was chosen.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum ChoiceError {
    /// Not in any way.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// A size was chosen of a model that has one only.
    #[error("the model has one size: leave out --slim, or the preset's slim")]
    OneSize,
    /// More knobs are turned than there are.
    #[error(
        "so many knobs are turned: {turned}, and the model has {there}: leave out some of --param, or of the preset's knobs"
    )]
    Knobs {
        /// Number of knobs that are turned.
        turned: usize,
        /// Number of knobs that the model has.
        there: usize,
    },
}

impl ChoiceError {
    /// Whether the file is right, and what was chosen of it is not.
    #[must_use]
    pub fn is_choice(&self) -> bool {
        !matches!(self, Self::Load(_))
    }
}

/// The model of a file, its first knobs turned to these values, 0 to 1, and settled so.
///
/// # Errors
/// [`ChoiceError`].
pub fn model(file: &ModelFile, options: Options, knobs: &[f32]) -> Result<Model, ChoiceError> {
    if options.slim < 1.0 && !file.is_slimmable() {
        return Err(ChoiceError::OneSize);
    }
    let mut model = file.model(options)?;
    if knobs.len() > model.knobs() {
        return Err(ChoiceError::Knobs { turned: knobs.len(), there: model.knobs() });
    }
    if !knobs.is_empty() {
        knobs.iter().enumerate().for_each(|(knob, &value)| model.turn(knob, value));
        model.reset(true);
    }
    Ok(model)
}
