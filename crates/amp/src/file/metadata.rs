//! The metadata of a model file.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

/// Levels of this and above are ignored, dB.
const MAX_DB: f64 = 100.0;

/// Description of a model. It does not affect the network.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct About {
    /// Name of the model.
    pub name: Option<String>,
    /// Author of the model.
    pub modeled_by: Option<String>,
    /// Manufacturer of the amplifier.
    pub gear_make: Option<String>,
    /// Model of the amplifier.
    pub gear_model: Option<String>,
    /// Loudness of the model's output on the trainer's test signal, dB of full scale (RMS).
    pub loudness: Option<f64>,
    /// Level of a 1 kHz sine that reaches full scale at the input, dBu.
    pub input_level_dbu: Option<f64>,
    /// Level of a 1 kHz sine that reaches full scale at the output, dBu.
    pub output_level_dbu: Option<f64>,
}

impl About {
    /// Reads the metadata. Fields that cannot be read are left out with a warning.
    pub(super) fn read(metadata: Option<&RawValue>, warnings: &mut Vec<String>) -> Self {
        let Some(metadata) = metadata else { return Self::default() };
        let fields = match serde_json::from_str::<Option<BTreeMap<String, &RawValue>>>(metadata.get()) {
            Ok(fields) => fields.unwrap_or_default(),
            Err(error) => {
                warnings.push(format!("ignored the metadata of the file, which cannot be read ({error})"));
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

/// Fields of the metadata. Each is parsed separately, so that a malformed one does not affect the others.
struct Metadata<'a> {
    fields: BTreeMap<String, &'a RawValue>,
    warnings: &'a mut Vec<String>,
}

impl Metadata<'_> {
    fn field<T: DeserializeOwned>(&mut self, name: &str) -> Option<T> {
        serde_json::from_str(self.fields.get(name)?.get()).unwrap_or_else(|error| {
            self.warnings.push(format!("ignored {name} in the metadata of the file, which cannot be read ({error})"));
            None
        })
    }

    /// A level in dB, if it is plausible.
    fn level(&mut self, name: &str) -> Option<f64> {
        let level = self.field(name)?;
        if f64::abs(level) < MAX_DB {
            return Some(level);
        }
        self.warnings.push(format!(
            "ignored {name} in the metadata of the file: {level} dB is outside -{MAX_DB} to {MAX_DB} dB"
        ));
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_malformed_field_does_not_affect_the_others() {
        let text = r#"{"name": 5, "gear_make": ["a"], "loudness": -25, "input_level_dbu": 1e9, "output_level_dbu": null, "date": {}}"#;
        let mut warnings = Vec::new();
        let about = About::read(Some(&RawValue::from_string(text.to_owned()).unwrap()), &mut warnings);
        assert_eq!(about, About { loudness: Some(-25.0), ..About::default() });
        let expected = [
            "ignored name in the metadata",
            "ignored gear_make",
            "ignored input_level_dbu in the metadata of the file: 1000000000 dB is",
        ];
        assert!(
            warnings.len() == 3 && warnings.iter().zip(expected).all(|(warning, text)| warning.starts_with(text)),
            "{warnings:?}"
        );
    }
}
