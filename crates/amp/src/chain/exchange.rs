//! What is to play instead of what plays.

use super::amplifier::Amplifier;
use crate::cabinet::Cabinet;

/// What becomes of a part that plays.
#[derive(Debug, Default)]
pub enum Change<T> {
    /// It plays on.
    #[default]
    Keep,
    /// This takes its place, or nothing does.
    Replace(Option<T>),
}

impl<T> Change<T> {
    /// Whether the part gives way.
    pub fn is_replace(&self) -> bool {
        matches!(self, Self::Replace(_))
    }
}

/// What takes the place of what plays: made beside the audio thread.
#[derive(Debug, Default)]
pub struct Exchange {
    pub(crate) models: [Change<Amplifier>; 2],
    pub(crate) cabinet: Change<Cabinet>,
}

impl Exchange {
    /// Whether nothing differs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.parts() == 0
    }

    /// How many parts are exchanged, 0 to 3.
    pub(super) fn parts(&self) -> usize {
        self.models.iter().filter(|model| model.is_replace()).count() + usize::from(self.cabinet.is_replace())
    }
}
