//! The settings of an interface for a run, in the syntax of `--nic`.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use sys::hwstamp;

use super::{Parameter, parameter::Value};

/// The settings that a run changes: `coalesce=0,eee=off`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct NicSettings(Vec<(Parameter, Value)>);

/// The words of `--nic` and the settings of each.
const WORDS: [(&str, &[Parameter]); 11] = [
    ("coalesce", &[Parameter::RxUsecs]),
    ("rx-frames", &[Parameter::RxFrames]),
    ("tx-usecs", &[Parameter::TxUsecs]),
    ("tx-frames", &[Parameter::TxFrames]),
    ("adaptive", &[Parameter::AdaptiveRx]),
    ("eee", &[Parameter::Eee]),
    // Otherwise the result of autonegotiation would stay in force.
    ("pause", &[Parameter::PauseAutoneg, Parameter::PauseRx, Parameter::PauseTx]),
    ("rx-ring", &[Parameter::RxRing]),
    ("gro", &[Parameter::Gro]),
    ("lro", &[Parameter::Lro]),
    ("tso", &[Parameter::Tso]),
];

/// The name of `coalesce` in ethtool, which is accepted, too.
const RX_USECS: &str = "rx-usecs";

impl NicSettings {
    /// Hardware timestamps for every received frame, and for sent frames that request one.
    #[must_use]
    pub fn stamps() -> Self {
        let value = |number| Value::Number(number);
        Self(vec![(Parameter::RxFilter, value(hwstamp::RX_ALL)), (Parameter::TxType, value(hwstamp::TX_ON))])
    }

    /// Hardware timestamps for sent frames that request one.
    #[must_use]
    pub fn sent_stamps() -> Self {
        Self(vec![(Parameter::TxType, Value::Number(hwstamp::TX_ON))])
    }

    /// Adds settings.
    pub fn add(&mut self, others: Self) {
        self.0.extend(others.0);
    }

    /// The settings in their order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &(Parameter, Value)> {
        self.0.iter()
    }

    /// True if there are no settings.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromStr for NicSettings {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut settings = Vec::new();
        for part in text.split(',') {
            let (word, value) =
                part.split_once('=').ok_or_else(|| format!("{part:?} has no value: write e.g. coalesce=0,eee=off"))?;
            let known = if word == RX_USECS { "coalesce" } else { word };
            let Some((_, parameters)) = WORDS.iter().find(|(name, _)| *name == known) else {
                let words = WORDS.map(|(name, _)| name).join(", ");
                return Err(format!("{word:?} cannot be set: it must be one of {words}"));
            };
            let value: Value = value.parse().map_err(|error| format!("{word}: {error}"))?;
            for &parameter in *parameters {
                if parameter.is_number() != matches!(value, Value::Number(_)) {
                    let wanted = if parameter.is_number() { "a number" } else { "on or off" };
                    return Err(format!("{word} takes {wanted}, not {value}"));
                }
                if settings.iter().any(|(known, _)| *known == parameter) {
                    return Err(format!("{word} is given twice"));
                }
                settings.push((parameter, value));
            }
        }
        Ok(Self(settings))
    }
}

/// Writes the settings as they are parsed; timestamping has no word.
impl fmt::Display for NicSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = |parameters: &[Parameter]| {
            self.0.iter().find(|(parameter, _)| parameters.first() == Some(parameter)).map(|(_, value)| value)
        };
        let words = WORDS.iter().filter_map(|(name, parameters)| Some(format!("{name}={}", value(parameters)?)));
        f.write_str(&words.collect::<Vec<_>>().join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_settings_and_explains_errors() {
        let parse = |text: &str| text.parse::<NicSettings>();
        let written = "coalesce=0,pause=off,rx-ring=512";
        assert_eq!(parse(written).unwrap().to_string(), written);
        let interrupts = "coalesce=0,rx-frames=1,tx-usecs=0,tx-frames=1";
        assert_eq!(parse(interrupts).unwrap().to_string(), interrupts);
        assert_eq!(parse("rx-usecs=7").unwrap(), parse("coalesce=7").unwrap());
        assert_eq!(parse("pause=off").unwrap().0.len(), 3, "autonegotiation and both directions");
        for (wrong, words) in [
            ("", "has no value"),
            ("eee", "has no value"),
            ("speed=1", "must be one of coalesce, rx-frames, tx-usecs, tx-frames, adaptive, eee"),
            ("eee=1", "eee takes on or off, not 1"),
            ("coalesce=off", "coalesce takes a number, not off"),
            ("coalesce=x", "coalesce: \"x\" is neither a number nor on or off"),
            ("coalesce=-1", "coalesce: must be 0 to 4294967295 (got -1)"),
            ("coalesce=5000000000", "coalesce: must be 0 to 4294967295 (got 5000000000)"),
            ("gro=on,gro=off", "gro is given twice"),
            ("coalesce=0,rx-usecs=0", "rx-usecs is given twice"),
            ("tx-frames=off", "tx-frames takes a number, not off"),
        ] {
            assert!(parse(wrong).unwrap_err().contains(words), "{wrong}: {:?}", parse(wrong));
        }
    }
}
