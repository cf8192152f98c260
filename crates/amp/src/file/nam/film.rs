//! Modulation of a signal by the condition (feature-wise linear modulation, FiLM).

use serde::{Deserialize, Deserializer};

use super::Whole;
use crate::net::wavenet::plan;

/// A modulation, if there is one.
#[derive(Debug, Clone, Copy, Default)]
pub struct Film(pub Option<plan::Film>);

impl<'de> Deserialize<'de> for Film {
    /// `false` for none, `true`, or an object with optional fields.
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Switch(bool),
            Parts { active: Option<bool>, shift: Option<bool>, groups: Option<Whole> },
        }
        let film = match Option::<Written>::deserialize(from)? {
            None | Some(Written::Switch(false)) => None,
            Some(Written::Switch(true)) => Some(plan::Film { shift: true, groups: 1 }),
            Some(Written::Parts { active: Some(false), .. }) => None,
            Some(Written::Parts { shift, groups, .. }) => Some(plan::Film {
                shift: shift.unwrap_or(true),
                // The check of the shapes rejects 0 groups.
                groups: groups.map_or(1, |groups| usize::try_from(groups.0).unwrap_or_default()),
            }),
        };
        Ok(Self(film))
    }
}
