//! Replacements of models and impulse responses.

use super::amplifier::Amplifier;
use crate::cabinet::Cabinet;

/// A change of a part.
#[derive(Debug, Default)]
pub enum Change<T> {
    /// The part stays.
    #[default]
    Keep,
    /// The part is replaced, or removed.
    Replace(Option<T>),
}

impl<T> Change<T> {
    /// True if the part is replaced or removed.
    pub fn is_replace(&self) -> bool {
        matches!(self, Self::Replace(_))
    }
}

/// Replacements of models and impulse responses, built outside the audio thread.
#[derive(Debug, Default)]
pub struct Exchange {
    pub(crate) models: [Change<Amplifier>; 2],
    pub(crate) cabinet: Change<Cabinet>,
    pub(crate) reverb_ir: Change<Cabinet>,
}

impl Exchange {
    /// True if nothing is replaced.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.parts() == 0
    }

    /// Number of parts that are replaced, 0 to 4.
    pub(super) fn parts(&self) -> usize {
        let responses = [&self.cabinet, &self.reverb_ir];
        self.models.iter().filter(|model| model.is_replace()).count()
            + responses.into_iter().filter(|response| response.is_replace()).count()
    }
}
