//! Numbers, however a file writes them.

use serde::Deserialize;
use serde_json::value::RawValue;

/// Up to here an `f64` holds every whole number.
const MAX: f64 = 9_007_199_254_740_992.0;

/// A whole number, which some programs write as 8.0.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(try_from = "f64")]
pub struct Whole(pub i64);

impl TryFrom<f64> for Whole {
    type Error = String;

    fn try_from(value: f64) -> Result<Self, String> {
        match value.fract() == 0.0 && value.abs() <= MAX {
            true => Ok(Self(value as i64)),
            false => Err(format!("{value} where a whole number belongs")),
        }
    }
}

/// What stands in a field, if it is a number.
pub fn number(field: Option<&RawValue>) -> Option<f64> {
    field?.get().parse().ok()
}
