//! Whole numbers, also written with a point.

use serde::{Deserialize, Deserializer, de::Error};

/// A whole number; `4.0` is one, `4.5` is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Whole(pub i64);

impl<'de> Deserialize<'de> for Whole {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let value = f64::deserialize(from)?;
        match value.fract() == 0.0 {
            // What is too large stays so.
            true => Ok(Self(value as i64)),
            false => Err(D::Error::custom(format_args!("{value} where a whole number must be"))),
        }
    }
}
