//! Numbers in the forms that model files contain.

use serde::Deserialize;
use serde_json::value::RawValue;

/// 2^53. An `f64` represents every whole number up to this one exactly.
const MAX: f64 = 9_007_199_254_740_992.0;

/// A whole number; some programs write 8 as 8.0.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(try_from = "f64")]
pub struct Whole(pub i64);

impl TryFrom<f64> for Whole {
    type Error = String;

    #[expect(clippy::cast_possible_truncation, reason = "the value is a whole number within the range")]
    fn try_from(value: f64) -> Result<Self, String> {
        match value.fract() == 0.0 && value.abs() <= MAX {
            true => Ok(Self(value as i64)),
            false => Err(format!("{value} is not a whole number")),
        }
    }
}

/// The value of a field, if it is a number.
pub fn number(field: Option<&RawValue>) -> Option<f64> {
    field?.get().parse().ok()
}
