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

/// What a model's output is brought to, where its file tells what is needed; in the order of the words of
/// [`Parameter::OutputLevel`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputLevel {
    /// It stays as the model makes it.
    Raw,
    /// [`LOUDNESS_DB`](super::LOUDNESS_DB) on the trainer's own signal.
    Loudness,
    /// As many dBu at the interface's output as the amplifier gave.
    Calibrated,
}

impl Default for Settings {
    fn default() -> Self {
        Self { values: Parameter::ALL.iter().map(|parameter| parameter.info().default).collect() }
    }
}

impl Settings {
    /// Nothing but models and cabinet: no level, tone, gate, filter or limiter changes anything.
    #[must_use]
    pub fn neutral() -> Self {
        let mut settings = Self::default();
        for off in [Parameter::ToneOn, Parameter::DcBlockOn, Parameter::OutputLevel, Parameter::LimiterOn] {
            settings.values[off as usize] = 0.0;
        }
        settings
    }

    /// The value of one.
    #[must_use]
    pub fn get(&self, parameter: Parameter) -> f32 {
        self.values[parameter as usize]
    }

    /// Whether one is on.
    #[must_use]
    pub fn is_on(&self, parameter: Parameter) -> bool {
        self.get(parameter) != 0.0
    }

    /// Whether two models play side by side, rather than one behind the other.
    #[must_use]
    pub fn is_parallel(&self) -> bool {
        self.is_on(Parameter::Routing)
    }

    /// What a model's output is brought to.
    #[must_use]
    pub fn output_level(&self) -> OutputLevel {
        match self.get(Parameter::OutputLevel) {
            0.0 => OutputLevel::Raw,
            1.0 => OutputLevel::Loudness,
            _ => OutputLevel::Calibrated,
        }
    }

    /// Every parameter whose value differs from that in `other`, with its value here.
    pub(super) fn differing(&self, other: &Self) -> impl Iterator<Item = (Parameter, f32)> {
        let values = Parameter::ALL.iter().map(|&parameter| (parameter, self.get(parameter)));
        values.filter(|&(parameter, value)| value != other.get(parameter))
    }

    /// Sets one.
    ///
    /// # Errors
    /// [`ParameterError::Value`], where it cannot have this value.
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
    fn choices_are_what_their_words_say() {
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
    fn settings_read_back_by_name() {
        let mut settings = Settings::default();
        settings.set(Parameter::Bass, 3.5).unwrap();
        let text = serde_json::to_string(&settings).unwrap();
        assert_eq!(serde_json::from_str::<Settings>(&text).unwrap(), settings);
        assert!(serde_json::from_str::<Settings>(r#"{"tone.bass_db": 99}"#).is_err());
    }
}
