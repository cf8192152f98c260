//! Modulation of a signal by the condition (feature-wise linear modulation).

use serde::{Deserialize, Deserializer};

use super::Whole;

/// Modulation by the condition.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Film {
    /// Whether it is there.
    pub active: bool,
    /// Whether it adds something, too.
    pub shift: bool,
    /// Its groups.
    pub groups: i64,
}

impl<'de> Deserialize<'de> for Film {
    /// `false` for none, or an object whose parts may be missing.
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            None(bool),
            Parts { active: Option<bool>, shift: Option<bool>, groups: Option<Whole> },
        }
        Ok(match Option::<Written>::deserialize(from)? {
            None | Some(Written::None(false)) => Self::default(),
            Some(Written::None(true)) => Self { active: true, shift: true, groups: 1 },
            Some(Written::Parts { active, shift, groups }) => Self {
                active: active.unwrap_or(true),
                shift: shift.unwrap_or(true),
                groups: groups.map_or(1, |groups| groups.0),
            },
        })
    }
}
