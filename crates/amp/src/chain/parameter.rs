//! What can be set: one list, which settings, presets, command lines and controllers go by.

use std::fmt;

use thiserror::Error;

/// What the values of a parameter are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ValueKind {
    /// 0 for off, 1 for on.
    Switch,
    /// One of several words; its value is the word's place, from 0.
    Choice(&'static [&'static str]),
    /// A number from the least to the most, in a unit.
    Knob {
        /// Least.
        least: f32,
        /// Most.
        most: f32,
        /// Unit, as it is written.
        unit: &'static str,
    },
}

/// What is known of a parameter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Info {
    /// Its name in presets and on the command line: section and key.
    pub name: &'static str,
    /// What its values are.
    pub kind: ValueKind,
    /// What it is unless it is set.
    pub default: f32,
    /// What it does, in a line.
    pub about: &'static str,
}

const fn db(least: f32, most: f32) -> ValueKind {
    ValueKind::Knob { least, most, unit: "dB" }
}

macro_rules! parameters {
    ($($(#[doc = $about:literal])+ $variant:ident: $name:literal, $kind:expr, $default:literal;)+) => {
        /// What can be set while playing.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Parameter {
            $($(#[doc = $about])+ $variant,)+
        }

        impl Parameter {
            /// All of them, in the order of the chain.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// What is known of it.
            #[must_use]
            pub fn info(self) -> Info {
                match self {
                    $(Self::$variant => Info {
                        name: $name, kind: $kind, default: $default, about: concat!($($about),+).trim_ascii(),
                    },)+
                }
            }
        }
    };
}

parameters! {
    /// Gain before everything, and before a model's own calibration.
    InputGain: "input.gain_db", db(-40.0, 40.0), 0.0;
    /// Brings the input to the level that a model was trained with, where both are known.
    InputCalibrated: "input.calibrated", ValueKind::Switch, 0.0;
    /// Level of a sine that reaches full scale at the interface's input.
    InputFullScale: "input.full_scale_dbu", ValueKind::Knob { least: -20.0, most: 40.0, unit: "dBu" }, 12.0;
    /// The gate: closes after the amplifier when the input falls silent.
    GateOn: "gate.on", ValueKind::Switch, 0.0;
    /// Level of the input that opens the gate; 6 dB below it, it closes.
    GateThreshold: "gate.threshold_db", db(-100.0, 0.0), -65.0;
    /// How long the gate takes to close, to -60 dB, once the input was below its threshold for 30 ms.
    GateRelease: "gate.release_ms", ValueKind::Knob { least: 5.0, most: 2000.0, unit: "ms" }, 100.0;
    /// The models; off, the input goes on as it is.
    ModelsOn: "amp.on", ValueKind::Switch, 1.0;
    /// One model after the other, or side by side.
    Routing: "amp.routing", ValueKind::Choice(&["series", "parallel"]), 0.0;
    /// Share of the second model, side by side.
    Mix: "amp.mix", ValueKind::Knob { least: 0.0, most: 1.0, unit: "" }, 0.5;
    /// The three bands of tone.
    ToneOn: "tone.on", ValueKind::Switch, 1.0;
    /// Low shelf at 120 Hz.
    Bass: "tone.bass_db", db(-15.0, 15.0), 0.0;
    /// Peak at 600 Hz, of quality 0.7.
    Middle: "tone.middle_db", db(-15.0, 15.0), 0.0;
    /// High shelf at 2.5 kHz.
    Treble: "tone.treble_db", db(-15.0, 15.0), 0.0;
    /// The cabinet; off, what the amplifier makes goes on as it is.
    CabinetOn: "cabinet.on", ValueKind::Switch, 1.0;
    /// Gain of the cabinet.
    CabinetGain: "cabinet.gain_db", db(-40.0, 40.0), 0.0;
    /// Takes steady offsets away, below 8 Hz.
    DcBlockOn: "output.dc_block", ValueKind::Switch, 1.0;
    /// What a model's output is brought to: nothing, -18 dB RMS on its trainer's signal, or its level in dBu; where it tells them.
    OutputLevel: "output.level", ValueKind::Choice(&["raw", "loudness", "calibrated"]), 1.0;
    /// Level of a sine that reaches full scale at the interface's output.
    OutputFullScale: "output.full_scale_dbu", ValueKind::Knob { least: -20.0, most: 40.0, unit: "dBu" }, 12.0;
    /// Gain behind everything but the limiter.
    OutputGain: "output.gain_db", db(-60.0, 20.0), 0.0;
    /// The limiter: nothing comes out above its ceiling.
    LimiterOn: "limiter.on", ValueKind::Switch, 1.0;
    /// Highest sample that comes out.
    Ceiling: "limiter.ceiling_db", db(-24.0, 0.0), 0.0;
}

/// Why something cannot be set.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum ParameterError {
    /// No parameter has this name.
    #[error("there is no {name:?}: did you mean {nearest:?}?")]
    Unknown {
        /// The name that was asked for.
        name: String,
        /// The parameter whose name is most like it.
        nearest: String,
    },
    /// A value that it cannot have.
    #[error("{name} is {value}, and must be {allowed}")]
    Value {
        /// The parameter's name.
        name: &'static str,
        /// The value that was asked for, as it was written.
        value: String,
        /// The values that it can have, in words and with their unit.
        allowed: String,
    },
}

impl Parameter {
    /// The one of this name.
    ///
    /// # Errors
    /// [`ParameterError::Unknown`].
    pub fn named(name: &str) -> Result<Self, ParameterError> {
        let found = Self::ALL.iter().find(|parameter| parameter.info().name == name);
        found.copied().ok_or_else(|| ParameterError::Unknown {
            name: name.to_owned(),
            nearest: nearest(name, Self::ALL.iter().map(|parameter| parameter.info().name)),
        })
    }

    /// `value`, if it can have it.
    ///
    /// # Errors
    /// [`ParameterError::Value`].
    pub fn check(self, value: f32) -> Result<f32, ParameterError> {
        let fits = match self.info().kind {
            ValueKind::Switch => value == 0.0 || value == 1.0,
            ValueKind::Choice(words) => value.fract() == 0.0 && (0.0..words.len() as f32).contains(&value),
            ValueKind::Knob { least, most, .. } => (least..=most).contains(&value),
        };
        if fits { Ok(value) } else { Err(self.refuse(&value.to_string())) }
    }

    /// The value that is written so: a number, `on` or `off`, or a word.
    ///
    /// # Errors
    /// [`ParameterError::Value`].
    pub fn parse(self, text: &str) -> Result<f32, ParameterError> {
        let value = match self.info().kind {
            ValueKind::Switch => ["off", "on"].iter().position(|word| *word == text).map(|place| place as f32),
            ValueKind::Choice(words) => words.iter().position(|word| *word == text).map(|place| place as f32),
            ValueKind::Knob { .. } => text.parse().ok(),
        };
        let bool = || {
            matches!(self.info().kind, ValueKind::Switch).then(|| text.parse::<bool>().ok().map(f32::from)).flatten()
        };
        value.or_else(bool).ok_or_else(|| self.refuse(text)).and_then(|value| self.check(value))
    }

    /// Its value where a controller stands at this part of its way, 0 to 1 (what is beyond counts as the end): a knob from end to
    /// end, a switch on from the middle up, words one after the other.
    #[must_use]
    pub fn denormalized(self, position: f32) -> f32 {
        let position = position.clamp(0.0, 1.0);
        match self.info().kind {
            ValueKind::Switch => f32::from(position >= 0.5),
            ValueKind::Choice(words) => (position * words.len() as f32).floor().min(words.len() as f32 - 1.0),
            ValueKind::Knob { least, most, .. } => (least + (most - least) * position).clamp(least, most),
        }
    }

    /// Whether its values are numbers in a range.
    #[must_use]
    pub fn is_knob(self) -> bool {
        matches!(self.info().kind, ValueKind::Knob { .. })
    }

    /// Which values it can have, in words.
    #[must_use]
    pub fn allowed(self) -> String {
        match self.info().kind {
            ValueKind::Switch => "on or off".to_owned(),
            ValueKind::Choice(words) => words.iter().map(|word| format!("{word:?}")).collect::<Vec<_>>().join(" or "),
            ValueKind::Knob { least, most, unit } => format!("{least} to {most} {unit}").trim_end().to_owned(),
        }
    }

    pub(crate) fn refuse(self, value: &str) -> ParameterError {
        let info = self.info();
        ParameterError::Value { name: info.name, value: value.to_owned(), allowed: self.allowed() }
    }

    /// A value as it is written in a preset.
    #[must_use]
    pub fn written(self, value: f32) -> String {
        match self.info().kind {
            ValueKind::Switch => (value != 0.0).to_string(),
            ValueKind::Choice(words) => format!("{:?}", words.get(value as usize).unwrap_or(&words[0])),
            ValueKind::Knob { .. } => format!("{value:?}"),
        }
    }
}

impl fmt::Display for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.info().name)
    }
}

/// The word most like `name`.
pub(crate) fn nearest<'a>(name: &str, words: impl Iterator<Item = &'a str>) -> String {
    words
        .max_by(|a, b| strsim::jaro_winkler(a, name).total_cmp(&strsim::jaro_winkler(b, name)))
        .unwrap_or_default()
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_is_allowed_and_reads_back() {
        for &parameter in Parameter::ALL {
            let info = parameter.info();
            assert_eq!(parameter.check(info.default), Ok(info.default), "{parameter}");
            let written = parameter.written(info.default);
            assert_eq!(parameter.parse(written.trim_matches('"')), Ok(info.default), "{written}");
            assert_eq!(Parameter::named(info.name), Ok(parameter));
            assert!(info.about.ends_with('.'), "{parameter}");
        }
    }

    #[test]
    fn what_cannot_be_set_is_told_with_what_can() {
        let told = |parameter: Parameter, text: &str| parameter.parse(text).unwrap_err().to_string();
        assert_eq!(told(Parameter::Bass, "20"), "tone.bass_db is 20, and must be -15 to 15 dB");
        assert_eq!(told(Parameter::Mix, "NaN"), "amp.mix is NaN, and must be 0 to 1");
        assert_eq!(told(Parameter::GateOn, "yes"), "gate.on is yes, and must be on or off");
        assert_eq!(told(Parameter::Routing, "both"), r#"amp.routing is both, and must be "series" or "parallel""#);
        let unknown = Parameter::named("tone.base_db").unwrap_err().to_string();
        assert_eq!(unknown, r#"there is no "tone.base_db": did you mean "tone.bass_db"?"#);
    }

    #[test]
    fn a_controller_turns_from_end_to_end_within_what_can_be() {
        for &parameter in Parameter::ALL {
            for value in 0..128_u8 {
                let at = parameter.denormalized(f32::from(value) / 127.0);
                assert_eq!(parameter.check(at), Ok(at), "{parameter} at {value}");
            }
            let due = match parameter.info().kind {
                ValueKind::Switch => [0.0, 1.0],
                ValueKind::Choice(words) => [0.0, words.len() as f32 - 1.0],
                ValueKind::Knob { least, most, .. } => [least, most],
            };
            assert_eq!([0.0, 1.0].map(|end| parameter.denormalized(end)), due);
        }
    }
}
