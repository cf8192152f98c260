//! What a model's file tells of itself.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

/// Levels beyond are none, dB.
const MAX_DB: f64 = 100.0;

/// What a file tells of itself. The network computes the same whatever it is.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct About {
    /// Its name.
    pub name: Option<String>,
    /// Who made it.
    pub modeled_by: Option<String>,
    /// Who built the amplifier.
    pub gear_make: Option<String>,
    /// Which amplifier.
    pub gear_model: Option<String>,
    /// Level of its output on the trainer's own input, dB of full scale (RMS).
    pub loudness: Option<f64>,
    /// Level of a sine of 1 kHz that reaches full scale at its input, dBu.
    pub input_level_dbu: Option<f64>,
    /// The same at its output, dBu.
    pub output_level_dbu: Option<f64>,
}

impl About {
    /// Reads it; what of it cannot be read is told.
    pub(super) fn read(metadata: Option<&RawValue>, warnings: &mut Vec<String>) -> Self {
        let Some(metadata) = metadata else { return Self::default() };
        let fields = match serde_json::from_str::<Option<BTreeMap<String, &RawValue>>>(metadata.get()) {
            Ok(fields) => fields.unwrap_or_default(),
            Err(error) => {
                warnings.push(format!("the file's metadata cannot be read ({error}); it is played all the same"));
                return Self::default();
            }
        };
        let mut metadata = Metadata { fields, warnings };
        Self {
            name: metadata.field("name"),
            modeled_by: metadata.field("modeled_by"),
            gear_make: metadata.field("gear_make"),
            gear_model: metadata.field("gear_model"),
            loudness: metadata.level("loudness"),
            input_level_dbu: metadata.level("input_level_dbu"),
            output_level_dbu: metadata.level("output_level_dbu"),
        }
    }
}

/// The fields of the metadata, each read by itself: one that is odd takes none of the others away.
struct Metadata<'a> {
    fields: BTreeMap<String, &'a RawValue>,
    warnings: &'a mut Vec<String>,
}

impl Metadata<'_> {
    fn field<T: DeserializeOwned>(&mut self, name: &str) -> Option<T> {
        serde_json::from_str(self.fields.get(name)?.get()).unwrap_or_else(|error| {
            self.warnings.push(format!("{name} in the file's metadata cannot be read ({error}); it is played without"));
            None
        })
    }

    /// A level in dB, where a signal can have it.
    fn level(&mut self, name: &str) -> Option<f64> {
        let level = self.field(name)?;
        if f64::abs(level) < MAX_DB {
            return Some(level);
        }
        self.warnings
            .push(format!("{name} in the file's metadata is {level} dB, which no signal has; it is played without"));
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_odd_field_takes_no_other_one_away() {
        let text = r#"{"name": 5, "gear_make": ["a"], "loudness": -25, "input_level_dbu": 1e9, "output_level_dbu": null, "date": {}}"#;
        let mut warnings = Vec::new();
        let about = About::read(Some(&RawValue::from_string(text.to_owned()).unwrap()), &mut warnings);
        assert_eq!(about, About { loudness: Some(-25.0), ..About::default() });
        let of =
            ["name in the file's metadata", "gear_make", "input_level_dbu in the file's metadata is 1000000000 dB"];
        assert!(warnings.len() == 3 && warnings.iter().zip(of).all(|(told, of)| told.starts_with(of)), "{warnings:?}");
    }
}
