//! The values of all parameters.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::parameter::{Parameter, ParameterError};

/// The value of every parameter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(into = "BTreeMap<String, f32>", try_from = "BTreeMap<String, f32>")]
pub struct Settings {
    values: Vec<f32>,
}

/// Target of a model's output level, if its file contains the required levels; in the order of the words of
/// [`Parameter::OutputLevel`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputLevel {
    /// The level of the model.
    Raw,
    /// [`LOUDNESS_DB`](super::LOUDNESS_DB) for the trainer's test signal.
    Loudness,
    /// The level of the real amplifier in dBu, at the output of the audio interface.
    Calibrated,
}

impl Default for Settings {
    fn default() -> Self {
        Self { values: Parameter::ALL.iter().map(|parameter| parameter.info().default).collect() }
    }
}

impl Settings {
    /// Settings with models and cabinet only: no level, effect, tone, gate, filter or limiter changes the
    /// signal.
    #[must_use]
    pub fn neutral() -> Self {
        let mut settings = Self::default();
        for off in [
            Parameter::ToneOn,
            Parameter::ReverbIrOn,
            Parameter::DcBlockOn,
            Parameter::OutputLevel,
            Parameter::LimiterOn,
        ] {
            settings.values[off as usize] = 0.0;
        }
        settings
    }

    /// The parameters that are 0 while everything but output gain, removal of offsets and limiter is bypassed.
    pub const BYPASSED: [Parameter; 9] = [
        Parameter::InputGain,
        Parameter::GateOn,
        Parameter::DriveOn,
        Parameter::ModelsOn,
        Parameter::ToneOn,
        Parameter::CabinetOn,
        Parameter::DelayOn,
        Parameter::ReverbOn,
        Parameter::ReverbIrOn,
    ];

    /// These settings with everything bypassed but output gain, removal of offsets and limiter, so that the guitar sounds
    /// as it enters and the volume stays as it was set.
    #[must_use]
    pub fn bypassed(&self) -> Self {
        let mut settings = self.clone();
        for neutral in Self::BYPASSED {
            settings.values[neutral as usize] = 0.0;
        }
        settings
    }

    /// The value of a parameter.
    #[must_use]
    pub fn get(&self, parameter: Parameter) -> f32 {
        self.values[parameter as usize]
    }

    /// True if a parameter is on.
    #[must_use]
    pub fn is_on(&self, parameter: Parameter) -> bool {
        self.get(parameter) != 0.0
    }

    /// True if two models play in parallel, false in series.
    #[must_use]
    pub fn is_parallel(&self) -> bool {
        self.is_on(Parameter::Routing)
    }

    /// Target of a model's output level.
    #[must_use]
    pub fn output_level(&self) -> OutputLevel {
        match self.get(Parameter::OutputLevel) {
            0.0 => OutputLevel::Raw,
            1.0 => OutputLevel::Loudness,
            _ => OutputLevel::Calibrated,
        }
    }

    /// The parameters whose values differ from those in `other`, with their values here.
    pub(super) fn differing(&self, other: &Self) -> impl Iterator<Item = (Parameter, f32)> {
        let values = Parameter::ALL.iter().map(|&parameter| (parameter, self.get(parameter)));
        values.filter(|&(parameter, value)| value != other.get(parameter))
    }

    /// Sets a parameter.
    ///
    /// # Errors
    /// [`ParameterError::Value`] if the value is not allowed.
    pub fn set(&mut self, parameter: Parameter, value: f32) -> Result<(), ParameterError> {
        self.values[parameter as usize] = parameter.check(value)?;
        Ok(())
    }
}

impl From<Settings> for BTreeMap<String, f32> {
    fn from(settings: Settings) -> Self {
        Parameter::ALL.iter().map(|&parameter| (parameter.to_string(), settings.get(parameter))).collect()
    }
}

impl TryFrom<BTreeMap<String, f32>> for Settings {
    type Error = ParameterError;

    fn try_from(values: BTreeMap<String, f32>) -> Result<Self, ParameterError> {
        let mut settings = Self::default();
        for (name, value) in values {
            settings.set(Parameter::named(&name)?, value)?;
        }
        Ok(settings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_follow_their_words() {
        let mut settings = Settings::default();
        let mut choose = |parameter: Parameter, word: &str| {
            settings.set(parameter, parameter.parse(word).unwrap()).unwrap();
            (settings.is_parallel(), settings.output_level())
        };
        assert_eq!(choose(Parameter::OutputLevel, "raw"), (false, OutputLevel::Raw));
        assert_eq!(choose(Parameter::OutputLevel, "loudness"), (false, OutputLevel::Loudness));
        assert_eq!(choose(Parameter::OutputLevel, "calibrated"), (false, OutputLevel::Calibrated));
        assert_eq!(choose(Parameter::Routing, "parallel"), (true, OutputLevel::Calibrated));
        assert_eq!(choose(Parameter::Routing, "series"), (false, OutputLevel::Calibrated));
    }

    #[test]
    fn settings_round_trip_by_name() {
        let mut settings = Settings::default();
        settings.set(Parameter::Bass, 3.5).unwrap();
        let text = serde_json::to_string(&settings).unwrap();
        assert_eq!(serde_json::from_str::<Settings>(&text).unwrap(), settings);
        assert!(serde_json::from_str::<Settings>(r#"{"tone.bass_db": 99}"#).is_err());
    }
}
