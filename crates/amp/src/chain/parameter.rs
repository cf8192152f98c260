//! The parameters: one list for settings, presets, command lines and controllers.

use std::fmt;

use thiserror::Error;

use crate::convert::whole;

/// Kind of values of a parameter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ValueKind {
    /// 0 for off, 1 for on.
    Switch,
    /// One of several words; the value is the index of the word.
    Choice(&'static [&'static str]),
    /// A number in a range.
    Knob {
        /// Minimum.
        least: f32,
        /// Maximum.
        most: f32,
        /// Unit.
        unit: &'static str,
    },
}

/// Properties of a parameter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Info {
    /// Name in presets and on the command line: section and key.
    pub name: &'static str,
    /// Kind of values.
    pub kind: ValueKind,
    /// Default value.
    pub default: f32,
    /// Description in one line.
    pub about: &'static str,
}

const fn db(least: f32, most: f32) -> ValueKind {
    ValueKind::Knob { least, most, unit: "dB" }
}

/// A number from 0 to 1.
const SHARE: ValueKind = ValueKind::Knob { least: 0.0, most: 1.0, unit: "" };

macro_rules! parameters {
    ($($(#[doc = $about:literal])+ $variant:ident: $name:literal, $kind:expr, $default:literal;)+) => {
        /// A parameter that can be set while playing.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Parameter {
            $($(#[doc = $about])+ $variant,)+
        }

        impl Parameter {
            /// All parameters, in the order of the chain.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// Properties of the parameter.
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
    /// Gain at the input, before the calibration of a model.
    InputGain: "input.gain_db", db(-40.0, 40.0), 0.0;
    /// Converts the input level to that of the model's training, if both are known.
    InputCalibrated: "input.calibrated", ValueKind::Switch, 0.0;
    /// Level of a sine that reaches full scale at the interface's input.
    InputFullScale: "input.full_scale_dbu", ValueKind::Knob { least: -20.0, most: 40.0, unit: "dBu" }, 12.0;
    /// The gate: attenuates the output of the amplifier while the input is silent.
    GateOn: "gate.on", ValueKind::Switch, 0.0;
    /// Input level that opens the gate; it closes 6 dB below.
    GateThreshold: "gate.threshold_db", db(-100.0, 0.0), -65.0;
    /// Time in which the gate closes to -60 dB, after the input was below the threshold for 30 ms.
    GateRelease: "gate.release_ms", ValueKind::Knob { least: 5.0, most: 2000.0, unit: "ms" }, 100.0;
    /// The drive pedal before the models: a soft clipper with tone and level.
    DriveOn: "drive.on", ValueKind::Switch, 0.0;
    /// Gain before the clipper.
    DriveGain: "drive.gain_db", db(0.0, 50.0), 20.0;
    /// Cutoff of the high-pass filter before the clipper; keeps low strings from covering the others.
    DriveLowCut: "drive.low_cut_hz", ValueKind::Knob { least: 20.0, most: 1000.0, unit: "Hz" }, 100.0;
    /// Cutoff of the low-pass filter after the clipper: 500 Hz at 0, 4.6 kHz at 0.6, no filter at 1.
    DriveTone: "drive.tone", SHARE, 0.6;
    /// Level of the clipped signal, relative to full scale.
    DriveLevel: "drive.level_db", db(-40.0, 20.0), -12.0;
    /// The models; off passes the input through.
    ModelsOn: "amp.on", ValueKind::Switch, 1.0;
    /// Two models in series or in parallel.
    Routing: "amp.routing", ValueKind::Choice(&["series", "parallel"]), 0.0;
    /// Share of the second model in parallel routing.
    Mix: "amp.mix", SHARE, 0.5;
    /// The three tone controls.
    ToneOn: "tone.on", ValueKind::Switch, 1.0;
    /// Low shelf at 120 Hz.
    Bass: "tone.bass_db", db(-15.0, 15.0), 0.0;
    /// Peak at 600 Hz with Q = 0.7.
    Middle: "tone.middle_db", db(-15.0, 15.0), 0.0;
    /// High shelf at 2.5 kHz.
    Treble: "tone.treble_db", db(-15.0, 15.0), 0.0;
    /// The cabinet; off passes the output of the amplifier through.
    CabinetOn: "cabinet.on", ValueKind::Switch, 1.0;
    /// Gain of the cabinet.
    CabinetGain: "cabinet.gain_db", db(-40.0, 40.0), 0.0;
    /// The delay: echoes of the cabinet's output.
    DelayOn: "delay.on", ValueKind::Switch, 0.0;
    /// Time between echoes.
    DelayTime: "delay.time_ms", ValueKind::Knob { least: 1.0, most: 2000.0, unit: "ms" }, 350.0;
    /// Level of each echo relative to the one before it.
    DelayFeedback: "delay.feedback", ValueKind::Knob { least: 0.0, most: 0.95, unit: "" }, 0.35;
    /// Share of the echoes in the output.
    DelayMix: "delay.mix", SHARE, 0.25;
    /// Cutoff of the low-pass filter that every echo passes once more: 500 Hz at 0, 4.6 kHz at 0.6, no filter at 1.
    DelayTone: "delay.tone", SHARE, 0.6;
    /// The reverb, computed by a network of delays; left and right differ.
    ReverbOn: "reverb.on", ValueKind::Switch, 0.0;
    /// Time between reflections: 6 to 16 ms at 0, 45 to 120 ms at 1.
    ReverbSize: "reverb.size", SHARE, 0.5;
    /// Time in which low frequencies decay by 60 dB.
    ReverbDecay: "reverb.decay_s", ValueKind::Knob { least: 0.1, most: 10.0, unit: "s" }, 1.5;
    /// Sooner decay of high frequencies: at 1, 4 kHz decays in a tenth of the time.
    ReverbDamping: "reverb.damping", SHARE, 0.4;
    /// Share of the reverb in the output.
    ReverbMix: "reverb.mix", SHARE, 0.2;
    /// The reverb by impulse response; without a response, the signal passes through.
    ReverbIrOn: "reverb_ir.on", ValueKind::Switch, 1.0;
    /// Share of this reverb in the output.
    ReverbIrMix: "reverb_ir.mix", SHARE, 0.2;
    /// Removes constant offsets (high-pass filter at 8 Hz).
    DcBlockOn: "output.dc_block", ValueKind::Switch, 1.0;
    /// Output level of a model: raw, -18 dB RMS for its trainer's signal, or calibrated in dBu; needs levels in the
    /// model file.
    OutputLevel: "output.level", ValueKind::Choice(&["raw", "loudness", "calibrated"]), 1.0;
    /// Level of a sine that reaches full scale at the interface's output.
    OutputFullScale: "output.full_scale_dbu", ValueKind::Knob { least: -20.0, most: 40.0, unit: "dBu" }, 12.0;
    /// Gain at the output, before the limiter.
    OutputGain: "output.gain_db", db(-60.0, 20.0), 0.0;
    /// The limiter: no output sample exceeds the ceiling.
    LimiterOn: "limiter.on", ValueKind::Switch, 1.0;
    /// Maximum output level.
    Ceiling: "limiter.ceiling_db", db(-24.0, 0.0), 0.0;
}

/// Why a parameter cannot be set.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum ParameterError {
    /// No parameter has this name.
    #[error("unknown parameter {name:?}; did you mean {nearest:?}?")]
    Unknown {
        /// The unknown name.
        name: String,
        /// The most similar name of a parameter.
        nearest: String,
    },
    /// The parameter does not allow the value.
    #[error("{name} must be {allowed} (got {value})")]
    Value {
        /// Name of the parameter.
        name: &'static str,
        /// The value as written.
        value: String,
        /// The allowed values, with unit.
        allowed: String,
    },
}

impl Parameter {
    /// The parameter with this name.
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

    /// Returns `value` if it is allowed.
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

    /// Parses a value: a number, `on` or `off`, or a word.
    ///
    /// # Errors
    /// [`ParameterError::Value`].
    pub fn parse(self, text: &str) -> Result<f32, ParameterError> {
        let value = match self.info().kind {
            ValueKind::Switch => ["off", "on"].iter().position(|word| *word == text).map(|index| index as f32),
            ValueKind::Choice(words) => words.iter().position(|word| *word == text).map(|index| index as f32),
            ValueKind::Knob { .. } => text.parse().ok(),
        };
        let bool = || {
            matches!(self.info().kind, ValueKind::Switch).then(|| text.parse::<bool>().ok().map(f32::from)).flatten()
        };
        value.or_else(bool).ok_or_else(|| self.refuse(text)).and_then(|value| self.check(value))
    }

    /// The value for a controller position of 0 to 1 (clamped): a knob over its range, a switch on from 0.5, the words
    /// in equal parts.
    #[must_use]
    pub fn denormalized(self, position: f32) -> f32 {
        let position = position.clamp(0.0, 1.0);
        match self.info().kind {
            ValueKind::Switch => f32::from(position >= 0.5),
            ValueKind::Choice(words) => (position * words.len() as f32).floor().min(words.len() as f32 - 1.0),
            ValueKind::Knob { least, most, .. } => (least + (most - least) * position).clamp(least, most),
        }
    }

    /// The allowed value that is nearest to `value`; `None` for NaN.
    #[must_use]
    pub fn nearest_to(self, value: f32) -> Option<f32> {
        let (least, most) = match self.info().kind {
            ValueKind::Switch => (0.0, 1.0),
            ValueKind::Choice(words) => (0.0, words.len() as f32 - 1.0),
            ValueKind::Knob { least, most, .. } => (least, most),
        };
        let value = if self.is_knob() { value } else { value.round() };
        (!value.is_nan()).then(|| value.clamp(least, most))
    }

    /// True if its values are numbers in a range.
    #[must_use]
    pub fn is_knob(self) -> bool {
        matches!(self.info().kind, ValueKind::Knob { .. })
    }

    /// Description of the allowed values.
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

    /// Formats a value for a preset.
    #[must_use]
    pub fn to_toml(self, value: f32) -> String {
        match self.info().kind {
            ValueKind::Switch => (value != 0.0).to_string(),
            ValueKind::Choice(words) => format!("{:?}", words.get(whole(f64::from(value))).unwrap_or(&words[0])),
            ValueKind::Knob { .. } => format!("{value:?}"),
        }
    }
}

impl fmt::Display for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.info().name)
    }
}

/// The word most similar to `name`.
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
    fn defaults_are_allowed_and_round_trip() {
        for &parameter in Parameter::ALL {
            let info = parameter.info();
            assert_eq!(parameter.check(info.default), Ok(info.default), "{parameter}");
            let written = parameter.to_toml(info.default);
            assert_eq!(parameter.parse(written.trim_matches('"')), Ok(info.default), "{written}");
            assert_eq!(Parameter::named(info.name), Ok(parameter));
            assert!(info.about.ends_with('.'), "{parameter}");
        }
    }

    #[test]
    fn errors_list_the_allowed_values() {
        let error = |parameter: Parameter, text: &str| parameter.parse(text).unwrap_err().to_string();
        assert_eq!(error(Parameter::Bass, "20"), "tone.bass_db must be -15 to 15 dB (got 20)");
        assert_eq!(error(Parameter::Mix, "NaN"), "amp.mix must be 0 to 1 (got NaN)");
        assert_eq!(error(Parameter::GateOn, "yes"), "gate.on must be on or off (got yes)");
        assert_eq!(error(Parameter::Routing, "both"), r#"amp.routing must be "series" or "parallel" (got both)"#);
        let unknown = Parameter::named("tone.base_db").unwrap_err().to_string();
        assert_eq!(unknown, r#"unknown parameter "tone.base_db"; did you mean "tone.bass_db"?"#);
    }

    #[test]
    fn the_nearest_value_is_allowed() {
        for &parameter in Parameter::ALL {
            for value in [-1e9, -0.4, 0.3, 0.6, 1.4, 7.0, f32::INFINITY] {
                let nearest = parameter.nearest_to(value).unwrap();
                assert_eq!(parameter.check(nearest), Ok(nearest), "{parameter} for {value}");
            }
            assert_eq!(parameter.nearest_to(f32::NAN), None);
            assert_eq!(parameter.nearest_to(parameter.info().default), Some(parameter.info().default));
        }
    }

    #[test]
    fn a_controller_covers_the_range_of_every_parameter() {
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
