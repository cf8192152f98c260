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

/// The content of a preset file. The files that it names have not been read.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Preset {
    /// At most two models, in order.
    pub models: Vec<ModelPart>,
    /// At most two impulse responses, which are mixed.
    pub irs: Vec<IrPart>,
    /// The impulse response of the reverb.
    pub reverb_ir: Option<IrPart>,
    /// The value of every parameter.
    pub settings: Settings,
    /// MIDI controllers, 0 to 127, each with the parameter that it controls over its range.
    pub midi: BTreeMap<u8, Parameter>,
}

/// A model of a preset.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelPart {
    /// File name, relative to the preset's folder.
    pub file: String,
    /// Size for files that contain several: 0 for the smallest to 1 for the whole network.
    pub slim: f64,
    /// Positions of the first knobs, each 0 to 1; the others remain at 0.
    pub knobs: Vec<f32>,
}

/// An impulse response of a preset.
#[derive(Debug, Clone, PartialEq)]
pub struct IrPart {
    /// File name, relative to the preset's folder.
    pub file: String,
    /// Gain, -60 to 40 dB.
    pub gain_db: f32,
    /// True to scale the response so that white noise keeps its level.
    pub normalised: bool,
    /// True to cut off the silence before the response.
    pub without_delay: bool,
}

impl ModelPart {
    /// The whole model of a file, with all knobs at 0.
    #[must_use]
    pub fn new(file: String) -> Self {
        Self { file, slim: 1.0, knobs: Vec::new() }
    }
}

impl IrPart {
    /// The unchanged response of a file, at 0 dB.
    #[must_use]
    pub fn new(file: String) -> Self {
        Self { file, gain_db: 0.0, normalised: false, without_delay: false }
    }

    /// The response of a file for the reverb: scaled so that white noise keeps its level, because the levels of
    /// reverbs differ widely.
    #[must_use]
    pub fn reverb(file: String) -> Self {
        Self { normalised: true, ..Self::new(file) }
    }

    /// The lines of its section in a preset.
    fn to_toml(&self) -> String {
        let Self { file, gain_db, normalised, without_delay } = self;
        let file = quoted(file);
        format!("file = {file}\ngain_db = {gain_db:?}\nnormalised = {normalised}\nwithout_delay = {without_delay}\n")
    }
}

/// Why a preset is invalid.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum PresetError {
    /// The file is not valid TOML.
    #[error("line {line}: {text}")]
    Toml {
        /// Line, from 1.
        line: usize,
        /// Message of the parser, in one line.
        text: String,
    },
    /// An unknown word.
    #[error("line {line}: unknown {name:?} in {what}; did you mean {nearest:?}?")]
    Unknown {
        /// Line, from 1.
        line: usize,
        /// The place of the word, such as `a preset` or `[gate]`.
        what: String,
        /// The word as written.
        name: String,
        /// The most similar known word.
        nearest: String,
    },
    /// A parameter does not allow the value.
    #[error("line {line}: {error}")]
    Parameter {
        /// Line, from 1.
        line: usize,
        /// The parameter, the value and the allowed values.
        error: ParameterError,
    },
    /// A key that is not a parameter does not allow the value.
    #[error("line {line}: {name} must be {allowed}")]
    Value {
        /// Line, from 1.
        line: usize,
        /// The key or section.
        name: &'static str,
        /// The allowed values.
        allowed: &'static str,
    },
}

impl Preset {
    /// Parses a preset. File names are kept as written.
    ///
    /// # Errors
    /// [`PresetError`], for the first error in the text.
    pub fn parse(text: &str) -> Result<Self, PresetError> {
        let reader = Reader::new(text);
        let table = DeTable::parse(text).map_err(|error| PresetError::Toml {
            line: reader.line(error.span().map_or(0, |span| span.start)),
            text: error.message().replace('\n', ", "),
        })?;
        let mut preset = Self::default();
        for (key, value) in table.get_ref() {
            match key.get_ref().as_ref() {
                "model" => {
                    preset.models = reader.list("model", "one or two [[model]] sections", value, Reader::model)?;
                }
                "ir" => preset.irs = reader.list("ir", "one or two [[ir]] sections", value, Reader::ir)?,
                "midi" => preset.midi = reader.midi(value)?,
                "reverb_ir" => {
                    preset.reverb_ir = reader.reverb_ir(key.span().start, value, &mut preset.settings)?;
                }
                section => reader.section(section, key.span().start, value, &mut preset.settings)?,
            }
        }
        Ok(preset)
    }

    /// Formats the preset as a file: the values that differ from the defaults.
    #[must_use]
    pub fn to_toml(&self) -> String {
        let mut text = String::new();
        for ModelPart { file, slim, knobs } in &self.models {
            let _ = writeln!(text, "[[model]]\nfile = {}\nslim = {slim:?}\nknobs = {knobs:?}\n", quoted(file));
        }
        for part in &self.irs {
            let _ = writeln!(text, "[[ir]]\n{}", part.to_toml());
        }
        let mut open = "";
        for &parameter in Parameter::ALL {
            if let (Parameter::ReverbIrOn, Some(part)) = (parameter, &self.reverb_ir) {
                let _ = write!(text, "[reverb_ir]\n{}", part.to_toml());
                open = "reverb_ir";
            }
            let (info, value) = (parameter.info(), self.settings.get(parameter));
            let Some((section, key)) = info.name.split_once('.').filter(|_| value != info.default) else { continue };
            if section != open {
                let _ = writeln!(text, "[{section}]");
                open = section;
            }
            let _ = writeln!(text, "{key} = {}", parameter.to_toml(value));
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

/// A string in TOML syntax.
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
    fn parses_a_preset() {
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
        let preset = Preset::parse("[reverb_ir]\nfile = 'hall.wav'\nmix = 0.5\ngain_db = -2\n").unwrap();
        let expected = IrPart { gain_db: -2.0, ..IrPart::reverb("hall.wav".to_owned()) };
        assert_eq!((preset.settings.get(Parameter::ReverbIrMix), preset.reverb_ir), (0.5, Some(expected)));
        let preset = Preset::parse("[reverb_ir]\nmix = 0.5\n").unwrap();
        assert_eq!((preset.settings.get(Parameter::ReverbIrMix), preset.reverb_ir), (0.5, None));
    }

    #[test]
    fn parses_whole_numbers_in_every_toml_notation() {
        for (written, value) in
            [("0x10", 16.0), ("0o17", 15.0), ("0b1_0001", 17.0), ("1_8", 18.0), ("0xA", 10.0), ("-3", -3.0)]
        {
            let text = format!("[[ir]]\nfile = 'a.wav'\ngain_db = {written}\n[input]\ngain_db = {written}\n");
            let preset = Preset::parse(&text).expect(written);
            let read = [preset.irs[0].gain_db, preset.settings.get(Parameter::InputGain)];
            assert_eq!(read, [value; 2], "{written}");
        }
        for (text, expected) in [
            ("[tone]\nbass_db = 0x10", "line 2: tone.bass_db must be -15 to 15 dB (got 16)"),
            ("[[model]]\nfile = 'a'\nslim = 0x10", "line 3: slim must be 0 to 1"),
            (
                "[tone]\nbass_db = 0xffffffffffffffffffffffffffffffffffff",
                "line 2: tone.bass_db must be -15 to 15 dB (got ",
            ),
        ] {
            let error = Preset::parse(text).expect_err(text).to_string();
            assert!(error.starts_with(expected), "{text}: {error}");
        }
    }

    #[test]
    fn errors_have_a_line_and_a_remedy() {
        let cases = [
            (
                "[gate]\n\nthreshhold_db = -50",
                r#"line 3: unknown "threshhold_db" in [gate]; did you mean "threshold_db"?"#,
            ),
            ("[gates]\non = true", r#"line 1: unknown "gates" in a preset; did you mean "gate"?"#),
            ("volume = 3", r#"line 1: unknown "volume" in a preset; did you mean "#),
            ("[tone]\nbass_db = 40", "line 2: tone.bass_db must be -15 to 15 dB (got 40)"),
            ("[tone]\nbass_db = nan", "line 2: tone.bass_db must be -15 to 15 dB (got NaN)"),
            ("[tone]\nbass_db = '4'", "line 2: tone.bass_db must be -15 to 15 dB (got 4)"),
            ("[tone]\non = 3", "line 2: tone.on must be on or off (got 3)"),
            ("[amp]\nrouting = 'both'", r#"line 2: amp.routing must be "series" or "parallel" (got both)"#),
            ("[[model]]\nslim = 0.5", "file must be the name of a model file"),
            ("[[model]]\nfile = 3", "line 2: file must be a file name in quotes"),
            ("[[model]]\nfile = 'a'\nslim = 3", "line 3: slim must be 0 to 1"),
            ("[[ir]]\nfile = 'a'\ngain = 3", r#"line 3: unknown "gain" in [[ir]]; did you mean "gain_db"?"#),
            ("[model]\nfile = 'a'", "model must be one or two [[model]] sections"),
            ("[gate\n", "line 1: "),
            ("[midi]\n128 = 'output.gain_db'", "line 2: [midi] must be controllers 0 to 127"),
            (
                "[midi]\n7 = 'output.gain_db'\n07 = 'tone.bass_db'",
                "line 2: [midi] must be one parameter per controller",
            ),
            (
                "[[ir]]\nfile = 'a'\n[[ir]]\nfile = 'b'\n[[ir]]\nfile = 'c'",
                "line 5: ir must be one or two [[ir]] sections",
            ),
            ("[reverb_ir]\nmix = 0.5\ngain_db = 3", "line 1: file must be the name of a WAV, FLAC or AIFF file"),
            ("[reverb_ir]\nfile = 'a'\nmixx = 0.5", r#"line 3: unknown "mixx" in [reverb_ir]; did you mean "mix"?"#),
            ("[reverb_ir]\nfile = 'a'\nmix = 2", "line 3: reverb_ir.mix must be 0 to 1 (got 2)"),
            ("[[reverb_ir]]\nfile = 'a'", r#"line 1: unknown "reverb_ir" in a preset"#),
            ("[midi]\n7 = 3", "line 2: [midi] must be"),
            ("[midi]\n7 = 'output.gain'", r#"line 2: unknown parameter "output.gain"; did you mean "output.gain_db"?"#),
        ];
        for (text, expected) in cases {
            let error = Preset::parse(text).expect_err(text).to_string();
            assert!(error.contains(expected) && !error.contains('\n'), "{text}: {error}");
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
        fn presets_round_trip(
            settings in any_settings(), file in "\\PC{1,20}", slim in 0.0..=1.0, knobs in prop::collection::vec(0.0_f32..=1.0, 0..4),
            gain_db in -60.0_f32..=40.0, normalised: bool, has_reverb_ir: bool,
            controllers in prop::collection::btree_map(0_u8..128, 0..Parameter::ALL.len(), 0..5),
        ) {
            let midi = controllers.into_iter().map(|(controller, index)| (controller, Parameter::ALL[index])).collect();
            let models = vec![ModelPart { file: file.clone(), slim, knobs }; 2];
            let ir = IrPart { file, gain_db, normalised, without_delay: !normalised };
            let reverb_ir = has_reverb_ir.then(|| ir.clone());
            let preset = Preset { models, irs: vec![ir], reverb_ir, settings, midi };
            prop_assert_eq!(Preset::parse(&preset.to_toml()), Ok(preset));
        }

        #[test]
        fn no_text_panics(text in "(\\[\\[?(model|ir|gate|tone|x)\\]?\\]|file|slim|on|bass_db|knobs|=|'a'|[0-9.-]|\\[|\\]|\n| |\\PC){0,40}") {
            if let Err(error) = Preset::parse(&text) {
                prop_assert!(!error.to_string().contains('\n'));
            }
        }
    }
}
