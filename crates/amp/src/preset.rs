//! Presets: models, cabinets and every setting in one TOML file.
//!
//! ```toml
//! [[model]]
//! file = "deluxe.nam"
//!
//! [[ir]]
//! file = "4x12.wav"
//!
//! [gate]
//! on = true
//! threshold_db = -60
//!
//! [midi]
//! 7 = "output.gain_db"
//! ```

mod reader;

use std::{collections::BTreeMap, fmt::Write};

use thiserror::Error;
use toml::de::DeTable;

use self::reader::Reader;
use crate::chain::{Parameter, ParameterError, Settings};

/// What a preset's file says, read and checked; the files that it names are not.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Preset {
    /// At most two models, the first one first.
    pub models: Vec<ModelPart>,
    /// At most two impulse responses, mixed.
    pub irs: Vec<IrPart>,
    /// Every parameter.
    pub settings: Settings,
    /// Controllers of MIDI, 0 to 127, and what each turns from end to end.
    pub midi: BTreeMap<u8, Parameter>,
}

/// A model of a preset.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelPart {
    /// Its file, from the preset's folder.
    pub file: String,
    /// Of files that hold several sizes, 0 for the smallest to 1 for the whole.
    pub slim: f64,
    /// What its knobs are turned to, the first one first, each 0 to 1; those behind them stay at 0.
    pub knobs: Vec<f32>,
}

/// An impulse response of a preset.
#[derive(Debug, Clone, PartialEq)]
pub struct IrPart {
    /// Its file, from the preset's folder.
    pub file: String,
    /// Gain, -60 to 40 dB.
    pub gain_db: f32,
    /// Whether it is brought to the level at which white noise keeps its own.
    pub normalised: bool,
    /// Whether the silence before it is cut off.
    pub without_delay: bool,
}

impl ModelPart {
    /// The whole model of a file, with no knob turned.
    #[must_use]
    pub fn new(file: String) -> Self {
        Self { file, slim: 1.0, knobs: Vec::new() }
    }
}

impl IrPart {
    /// The response of a file as it is: at 0 dB, with the silence before it.
    #[must_use]
    pub fn new(file: String) -> Self {
        Self { file, gain_db: 0.0, normalised: false, without_delay: false }
    }
}

/// What is wrong with a preset.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum PresetError {
    /// It is no TOML.
    #[error("line {line}: {text}")]
    Toml {
        /// Line, from 1.
        line: usize,
        /// What the parser says, in one line.
        text: String,
    },
    /// A word that means nothing here.
    #[error("line {line}: {what} has no {name:?}: did you mean {nearest:?}?")]
    Unknown {
        /// Line, from 1.
        line: usize,
        /// Where the word stands, as `a preset` or `[gate]`.
        what: String,
        /// The word as it was written.
        name: String,
        /// The word most like it that may stand there.
        nearest: String,
    },
    /// A value that a parameter cannot have.
    #[error("line {line}: {error}")]
    Parameter {
        /// Line, from 1.
        line: usize,
        /// The parameter, the value, and the values that it can have.
        error: ParameterError,
    },
    /// A value that something else cannot have.
    #[error("line {line}: {name} must be {allowed}")]
    Value {
        /// Line, from 1.
        line: usize,
        /// The key or section that has the value.
        name: &'static str,
        /// The values that it can have, in words.
        allowed: &'static str,
    },
}

impl Preset {
    /// Reads a preset. Paths are as they stand in it.
    ///
    /// # Errors
    /// [`PresetError`]: the first mistake, with its line.
    pub fn parse(text: &str) -> Result<Self, PresetError> {
        let reader = Reader::new(text);
        let table = DeTable::parse(text).map_err(|error| PresetError::Toml {
            line: reader.line(error.span().map_or(0, |span| span.start)),
            text: error.message().replace('\n', ", "),
        })?;
        let mut preset = Self::default();
        for (key, value) in table.get_ref() {
            match key.get_ref().as_ref() {
                "model" => preset.models = reader.list("model", "one or two of [[model]]", value, Reader::model)?,
                "ir" => preset.irs = reader.list("ir", "one or two of [[ir]]", value, Reader::ir)?,
                "midi" => preset.midi = reader.midi(value)?,
                section => reader.section(section, key.span().start, value, &mut preset.settings)?,
            }
        }
        Ok(preset)
    }

    /// As a file: what differs from the defaults.
    #[must_use]
    pub fn written(&self) -> String {
        let mut text = String::new();
        for ModelPart { file, slim, knobs } in &self.models {
            let _ = writeln!(text, "[[model]]\nfile = {}\nslim = {slim:?}\nknobs = {knobs:?}\n", quoted(file));
        }
        for IrPart { file, gain_db, normalised, without_delay } in &self.irs {
            let _ = writeln!(text, "[[ir]]\nfile = {}\ngain_db = {gain_db:?}", quoted(file));
            let _ = writeln!(text, "normalised = {normalised}\nwithout_delay = {without_delay}\n");
        }
        let mut open = "";
        for &parameter in Parameter::ALL {
            let (info, value) = (parameter.info(), self.settings.get(parameter));
            let Some((section, key)) = info.name.split_once('.').filter(|_| value != info.default) else { continue };
            if section != open {
                let _ = writeln!(text, "[{section}]");
                open = section;
            }
            let _ = writeln!(text, "{key} = {}", parameter.written(value));
        }
        if !self.midi.is_empty() {
            let _ = writeln!(text, "[midi]");
        }
        for (controller, parameter) in &self.midi {
            let _ = writeln!(text, "{controller} = \"{parameter}\"");
        }
        text
    }
}

/// A string of TOML.
fn quoted(text: &str) -> String {
    let escaped = |c: char| match c {
        '"' | '\\' => format!("\\{c}"),
        c if c.is_control() => format!("\\u{:04X}", u32::from(c)),
        c => c.to_string(),
    };
    format!("\"{}\"", text.chars().map(escaped).collect::<String>())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::chain::ValueKind;

    #[test]
    fn a_preset_is_read() {
        let text = "[[model]]\nfile = 'a.nam'\nknobs = [0.5, 1]\n[[model]]\nfile = 'b.nam'\nslim = 0.25\n\
                    [[ir]]\nfile = 'c.wav'\ngain_db = -3\nnormalised = true\n\
                    [amp]\nrouting = 'parallel'\n[gate]\non = true\nthreshold_db = -50.5\n";
        let preset = Preset::parse(text).unwrap();
        assert_eq!(preset.models[0], ModelPart { file: "a.nam".to_owned(), slim: 1.0, knobs: vec![0.5, 1.0] });
        assert_eq!(preset.models[1].slim, 0.25);
        assert_eq!((preset.irs.len(), preset.irs[0].gain_db, preset.irs[0].normalised), (1, -3.0, true));
        let get = |parameter| preset.settings.get(parameter);
        assert_eq!([get(Parameter::Routing), get(Parameter::GateOn), get(Parameter::GateThreshold)], [1.0, 1.0, -50.5]);
        assert_eq!(Preset::parse(""), Ok(Preset::default()));
    }

    #[test]
    fn whole_numbers_are_read_in_every_form_that_toml_has() {
        for (written, value) in
            [("0x10", 16.0), ("0o17", 15.0), ("0b1_0001", 17.0), ("1_8", 18.0), ("0xA", 10.0), ("-3", -3.0)]
        {
            let text = format!("[[ir]]\nfile = 'a.wav'\ngain_db = {written}\n[input]\ngain_db = {written}\n");
            let preset = Preset::parse(&text).expect(written);
            let read = [preset.irs[0].gain_db, preset.settings.get(Parameter::InputGain)];
            assert_eq!(read, [value; 2], "{written}");
        }
        for (text, told) in [
            ("[tone]\nbass_db = 0x10", "line 2: tone.bass_db is 16, and must be -15 to 15 dB"),
            ("[[model]]\nfile = 'a'\nslim = 0x10", "line 3: slim must be 0 to 1"),
            ("[tone]\nbass_db = 0xffffffffffffffffffffffffffffffffffff", "line 2: tone.bass_db is "),
        ] {
            let error = Preset::parse(text).expect_err(text).to_string();
            assert!(error.starts_with(told), "{text}: {error}");
        }
    }

    #[test]
    fn each_mistake_has_its_line_and_its_remedy() {
        let cases = [
            ("[gate]\n\nthreshhold_db = -50", r#"line 3: [gate] has no "threshhold_db": did you mean "threshold_db"?"#),
            ("[gates]\non = true", r#"line 1: a preset has no "gates": did you mean "gate"?"#),
            ("volume = 3", r#"line 1: a preset has no "volume": did you mean "#),
            ("[tone]\nbass_db = 40", "line 2: tone.bass_db is 40, and must be -15 to 15 dB"),
            ("[tone]\nbass_db = nan", "line 2: tone.bass_db is NaN, and must be -15 to 15 dB"),
            ("[tone]\nbass_db = '4'", "line 2: tone.bass_db is 4, and must be"),
            ("[tone]\non = 3", "line 2: tone.on is 3, and must be on or off"),
            ("[amp]\nrouting = 'both'", r#"line 2: amp.routing is both, and must be "series" or "parallel""#),
            ("[[model]]\nslim = 0.5", "file must be the name of a model's file"),
            ("[[model]]\nfile = 3", "line 2: file must be the name of a file, in quotes"),
            ("[[model]]\nfile = 'a'\nslim = 3", "line 3: slim must be 0 to 1"),
            ("[[ir]]\nfile = 'a'\ngain = 3", r#"line 3: [[ir]] has no "gain": did you mean "gain_db"?"#),
            ("[model]\nfile = 'a'", "model must be one or two of [[model]]"),
            ("[gate\n", "line 1: "),
            ("[midi]\n128 = 'output.gain_db'", "line 2: [midi] must be a section of controllers, 0 to 127"),
            (
                "[midi]\n7 = 'output.gain_db'\n07 = 'tone.bass_db'",
                "line 2: [midi] must be one parameter for each controller",
            ),
            ("[[ir]]\nfile = 'a'\n[[ir]]\nfile = 'b'\n[[ir]]\nfile = 'c'", "line 5: ir must be one or two of [[ir]]"),
            ("[midi]\n7 = 3", "line 2: [midi] must be"),
            ("[midi]\n7 = 'output.gain'", r#"line 2: there is no "output.gain": did you mean "output.gain_db"?"#),
        ];
        for (text, told) in cases {
            let error = Preset::parse(text).expect_err(text).to_string();
            assert!(error.contains(told) && !error.contains('\n'), "{text}: {error}");
        }
    }

    prop_compose! {
        fn any_settings()(shares in prop::collection::vec(0.0_f32..=1.0, Parameter::ALL.len())) -> Settings {
            let mut settings = Settings::default();
            for (&parameter, share) in Parameter::ALL.iter().zip(shares) {
                let value = match parameter.info().kind {
                    ValueKind::Switch => share.round(),
                    ValueKind::Choice(words) => (share * (words.len() - 1) as f32).round(),
                    ValueKind::Knob { least, most, .. } => (least + share * (most - least)).clamp(least, most),
                };
                settings.set(parameter, value).unwrap();
            }
            settings
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(
            settings in any_settings(), file in "\\PC{1,20}", slim in 0.0..=1.0, knobs in prop::collection::vec(0.0_f32..=1.0, 0..4),
            gain_db in -60.0_f32..=40.0, normalised: bool,
            controllers in prop::collection::btree_map(0_u8..128, 0..Parameter::ALL.len(), 0..5),
        ) {
            let midi = controllers.into_iter().map(|(controller, place)| (controller, Parameter::ALL[place])).collect();
            let models = vec![ModelPart { file: file.clone(), slim, knobs }; 2];
            let irs = vec![IrPart { file, gain_db, normalised, without_delay: !normalised }];
            let preset = Preset { models, irs, settings, midi };
            prop_assert_eq!(Preset::parse(&preset.written()), Ok(preset));
        }

        #[test]
        fn no_text_is_too_bad(text in "(\\[\\[?(model|ir|gate|tone|x)\\]?\\]|file|slim|on|bass_db|knobs|=|'a'|[0-9.-]|\\[|\\]|\n| |\\PC){0,40}") {
            if let Err(error) = Preset::parse(&text) {
                prop_assert!(!error.to_string().contains('\n'));
            }
        }
    }
}
