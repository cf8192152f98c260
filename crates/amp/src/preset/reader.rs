//! Parsing a preset key by key, with the line of each error.

use std::{borrow::Cow, collections::BTreeMap};

use toml::{
    Spanned,
    de::{DeInteger, DeTable, DeValue},
};

use super::{IrPart, ModelPart, PresetError};
use crate::{
    chain::{Parameter, Settings, nearest},
    convert::to_f32,
};

/// Range of the gain of an impulse response, dB.
const GAINS_DB: std::ops::RangeInclusive<f32> = -60.0..=40.0;
const MODEL_KEYS: [&str; 3] = ["file", "slim", "knobs"];
const IR_KEYS: [&str; 4] = ["file", "gain_db", "normalised", "without_delay"];
/// The file of an impulse response, for messages.
const IR_FILE: &str = "the name of a WAV, FLAC or AIFF file";

/// Parses one text.
pub struct Reader<'a> {
    text: &'a str,
}

type Value<'a> = Spanned<DeValue<'a>>;

impl<'a> Reader<'a> {
    pub fn new(text: &'a str) -> Self {
        Self { text }
    }

    /// Line of a byte offset, from 1.
    pub fn line(&self, offset: usize) -> usize {
        1 + self.text.bytes().take(offset).filter(|&byte| byte == b'\n').count()
    }

    fn unknown<'w>(&self, at: usize, what: &str, name: &str, words: impl Iterator<Item = &'w str>) -> PresetError {
        PresetError::Unknown {
            line: self.line(at),
            what: what.to_owned(),
            name: name.to_owned(),
            nearest: nearest(name, words),
        }
    }

    fn value_error<T>(&self, value: &Value<'_>, name: &'static str, allowed: &'static str) -> Result<T, PresetError> {
        Err(PresetError::Value { line: self.line(value.span().start), name, allowed })
    }

    pub fn section(
        &self,
        section: &str,
        at: usize,
        value: &Value<'_>,
        settings: &mut Settings,
    ) -> Result<(), PresetError> {
        let names = || Parameter::ALL.iter().map(|parameter| parameter.info().name);
        let sections = || names().filter_map(|name| name.split('.').next()).chain(["model", "ir", "midi"]);
        if !sections().any(|known| known == section) {
            return Err(self.unknown(at, "a preset", section, sections()));
        }
        for (key, value) in self.table(section, at, value)? {
            self.parameter(section, key, value, &[], settings)?;
        }
        Ok(())
    }

    /// Parses the section `[reverb_ir]`, which has the parameters of the stage and the keys of an impulse response.
    pub fn reverb_ir(
        &self,
        at: usize,
        value: &Value<'_>,
        settings: &mut Settings,
    ) -> Result<Option<IrPart>, PresetError> {
        let mut part = IrPart::reverb(String::new());
        let mut has_part = false;
        for (key, value) in self.table("reverb_ir", at, value)? {
            match self.ir_key(key.get_ref(), value, &mut part)? {
                true => has_part = true,
                false => self.parameter("reverb_ir", key, value, &IR_KEYS, settings)?,
            }
        }
        if has_part && part.file.is_empty() {
            return self.value_error(value, "file", IR_FILE);
        }
        Ok(has_part.then_some(part))
    }

    fn table<'v>(&self, section: &str, at: usize, value: &'v Value<'a>) -> Result<&'v DeTable<'a>, PresetError> {
        let names = Parameter::ALL.iter().map(|parameter| parameter.info().name);
        match value.get_ref() {
            DeValue::Table(table) => Ok(table),
            _ => Err(self.unknown(at, "a preset", section, names)),
        }
    }

    /// Parses a parameter; `other_keys` are further keys of its section.
    fn parameter(
        &self,
        section: &str,
        key: &Spanned<Cow<'_, str>>,
        value: &Value<'_>,
        other_keys: &[&str],
        settings: &mut Settings,
    ) -> Result<(), PresetError> {
        let Ok(parameter) = Parameter::named(&format!("{section}.{}", key.get_ref())) else {
            let names = Parameter::ALL.iter().map(|parameter| parameter.info().name);
            let keys = names.filter_map(|name| name.strip_prefix(section)?.strip_prefix('.'));
            let keys = keys.chain(other_keys.iter().copied());
            return Err(self.unknown(key.span().start, &format!("[{section}]"), key.get_ref(), keys));
        };
        let read = match value.get_ref() {
            DeValue::String(text) if parameter.is_knob() => Err(parameter.refuse(text)),
            DeValue::String(text) => parameter.parse(text),
            DeValue::Integer(number) => parameter.parse(&decimal(number)),
            DeValue::Float(number) => parameter.parse(number.as_str()),
            DeValue::Boolean(is_on) => parameter.parse(if *is_on { "true" } else { "false" }),
            _ => Err(parameter.refuse("a list or a section")),
        };
        let line = self.line(value.span().start);
        read.and_then(|value| settings.set(parameter, value)).map_err(|error| PresetError::Parameter { line, error })
    }

    /// Parses the section `[midi]`.
    pub fn midi(&self, value: &Value<'_>) -> Result<BTreeMap<u8, Parameter>, PresetError> {
        const ALLOWED: &str = "controllers 0 to 127, each with a parameter, e.g. 7 = \"output.gain_db\"";
        let DeValue::Table(table) = value.get_ref() else { return self.value_error(value, "midi", ALLOWED) };
        let entry = |(key, value): (&Spanned<Cow<'_, str>>, &Value<'_>)| {
            let controller = key.get_ref().parse().ok().filter(|controller| *controller < 128);
            let (Some(controller), DeValue::String(name)) = (controller, value.get_ref()) else {
                return self.value_error(value, "[midi]", ALLOWED);
            };
            let line = self.line(value.span().start);
            let parameter = Parameter::named(name).map_err(|error| PresetError::Parameter { line, error })?;
            Ok((controller, parameter))
        };
        let mut all = BTreeMap::new();
        for (key, value) in table {
            let (controller, parameter) = entry((key, value))?;
            if all.insert(controller, parameter).is_some() {
                return self.value_error(value, "[midi]", "one parameter per controller: 07 is the same as 7");
            }
        }
        Ok(all)
    }

    pub fn list<T>(
        &self,
        name: &'static str,
        allowed: &'static str,
        value: &Value<'_>,
        read: impl Fn(&Self, &Value<'_>, &DeTable<'_>) -> Result<T, PresetError>,
    ) -> Result<Vec<T>, PresetError> {
        let DeValue::Array(list) = value.get_ref() else { return self.value_error(value, name, allowed) };
        if let Some(third) = list.get(2) {
            return self.value_error(third, name, allowed);
        }
        let each = list.iter().map(|value| match value.get_ref() {
            DeValue::Table(table) => read(self, value, table),
            _ => self.value_error(value, name, allowed),
        });
        each.collect()
    }

    pub fn model(&self, section: &Value<'_>, table: &DeTable<'_>) -> Result<ModelPart, PresetError> {
        let mut part = ModelPart::new(String::new());
        for (key, value) in table {
            match key.get_ref().as_ref() {
                "file" => part.file = self.string(value)?,
                "slim" => match number(value).filter(|slim| (0.0..=1.0).contains(slim)) {
                    Some(slim) => part.slim = slim,
                    None => return self.value_error(value, "slim", "0 to 1"),
                },
                "knobs" => {
                    let allowed = "a list of numbers from 0 to 1";
                    let DeValue::Array(list) = value.get_ref() else {
                        return self.value_error(value, "knobs", allowed);
                    };
                    let knob = |value| number(value).filter(|knob| (0.0..=1.0).contains(knob)).map(to_f32);
                    match list.iter().map(knob).collect() {
                        Some(knobs) => part.knobs = knobs,
                        None => return self.value_error(value, "knobs", allowed),
                    }
                }
                name => return Err(self.unknown(key.span().start, "[[model]]", name, MODEL_KEYS.into_iter())),
            }
        }
        if part.file.is_empty() { self.value_error(section, "file", "the name of a model file") } else { Ok(part) }
    }

    pub fn ir(&self, section: &Value<'_>, table: &DeTable<'_>) -> Result<IrPart, PresetError> {
        let mut part = IrPart::new(String::new());
        for (key, value) in table {
            if !self.ir_key(key.get_ref(), value, &mut part)? {
                return Err(self.unknown(key.span().start, "[[ir]]", key.get_ref(), IR_KEYS.into_iter()));
            }
        }
        if part.file.is_empty() { self.value_error(section, "file", IR_FILE) } else { Ok(part) }
    }

    /// Parses a key of an impulse response; `false` if it is not one of [`IR_KEYS`].
    fn ir_key(&self, key: &str, value: &Value<'_>, part: &mut IrPart) -> Result<bool, PresetError> {
        match key {
            "file" => part.file = self.string(value)?,
            "gain_db" => match number(value).map(to_f32).filter(|gain| GAINS_DB.contains(gain)) {
                Some(gain_db) => part.gain_db = gain_db,
                None => return self.value_error(value, "gain_db", "-60 to 40 dB"),
            },
            "normalised" => part.normalised = self.switch(value, "normalised")?,
            "without_delay" => part.without_delay = self.switch(value, "without_delay")?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn string(&self, value: &Value<'_>) -> Result<String, PresetError> {
        match value.get_ref() {
            DeValue::String(text) => Ok(text.to_string()),
            _ => self.value_error(value, "file", "a file name in quotes"),
        }
    }

    fn switch(&self, value: &Value<'_>, name: &'static str) -> Result<bool, PresetError> {
        match value.get_ref() {
            DeValue::Boolean(is_on) => Ok(*is_on),
            _ => self.value_error(value, name, "true or false"),
        }
    }
}

fn number(value: &Value<'_>) -> Option<f64> {
    match value.get_ref() {
        DeValue::Integer(number) => decimal(number).parse().ok(),
        DeValue::Float(number) => number.as_str().parse().ok(),
        _ => None,
    }
}

/// A whole number in decimal digits; TOML also allows 0x10, 0o20 and 0b10000.
fn decimal<'n>(number: &'n DeInteger<'_>) -> Cow<'n, str> {
    let radix = number.radix();
    if radix == 10 {
        return number.as_str().into();
    }
    let digits = number.as_str().chars().filter_map(|digit| digit.to_digit(radix));
    // An f64 can represent any number of digits, and all allowed values exactly.
    digits.fold(0.0_f64, |value, digit| value * f64::from(radix) + f64::from(digit)).to_string().into()
}
