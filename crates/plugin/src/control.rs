//! The parameters as CLAP numbers and shows them, and their values, which the threads of a host share.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use amp::{Parameter, Settings, chain::ValueKind};

use crate::{describe, player::Player};

/// A value that the host can set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Control {
    /// 1 while the plugin is bypassed.
    Bypass,
    /// A parameter of the chain.
    Parameter(Parameter),
}

impl Control {
    /// All controls, in the order of a host's list.
    pub fn all() -> impl ExactSizeIterator<Item = Self> {
        (0..1 + Parameter::ALL.len()).map(|index| match index {
            0 => Self::Bypass,
            index => Self::Parameter(Parameter::ALL[index - 1]),
        })
    }

    /// Its name in states: that of the parameter in presets.
    #[must_use]
    pub fn key(self) -> &'static str {
        match self {
            Self::Bypass => "bypass",
            Self::Parameter(parameter) => parameter.info().name,
        }
    }

    /// Its number in sessions and automation: a hash of the name, which stays when other parameters are added
    /// (FNV-1a with 32 bits, <http://www.isthe.com/chongo/tech/comp/fnv/>).
    #[must_use]
    pub fn id(self) -> u32 {
        self.key().bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
    }

    /// Its name for people.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::Bypass => "Bypass".to_owned(),
            Self::Parameter(parameter) => describe::name(parameter),
        }
    }

    /// Its group of parameters, e.g. `tone`.
    #[must_use]
    pub fn group(self) -> &'static str {
        self.key().split_once('.').map_or("", |(group, _)| group)
    }

    /// Its kind of values.
    #[must_use]
    pub fn kind(self) -> ValueKind {
        match self {
            Self::Bypass => ValueKind::Switch,
            Self::Parameter(parameter) => parameter.info().kind,
        }
    }

    /// The least and the largest value, and the default.
    #[must_use]
    pub fn range(self) -> [f32; 3] {
        let default = match self {
            Self::Bypass => 0.0,
            Self::Parameter(parameter) => parameter.info().default,
        };
        match self.kind() {
            ValueKind::Switch => [0.0, 1.0, default],
            ValueKind::Choice(words) => [0.0, words.len() as f32 - 1.0, default],
            ValueKind::Knob { least, most, .. } => [least, most, default],
        }
    }

    /// The allowed value that is nearest to `value`; `None` for NaN.
    #[must_use]
    pub fn nearest_to(self, value: f64) -> Option<f32> {
        #[expect(clippy::cast_possible_truncation, reason = "rounded to the precision of the chain, or infinite")]
        let value = value as f32;
        match self {
            Self::Bypass => (!value.is_nan()).then_some(f32::from(value >= 0.5)),
            Self::Parameter(parameter) => parameter.nearest_to(value),
        }
    }

    /// A value as text for people: `3.5 dB`, `on`, `parallel`.
    #[must_use]
    pub fn to_text(self, value: f32) -> String {
        match self.kind() {
            ValueKind::Switch => if value == 0.0 { "off" } else { "on" }.to_owned(),
            ValueKind::Choice(words) => {
                let word = (0..).zip(words).find(|(number, _)| *number as f32 == value);
                word.map_or_else(String::new, |(_, word)| (*word).to_owned())
            }
            ValueKind::Knob { unit, .. } => format!("{value:?} {unit}").trim_end().to_owned(),
        }
    }

    /// The value of a text, with or without its unit; `None` if it is not allowed.
    #[must_use]
    pub fn from_text(self, text: &str) -> Option<f32> {
        let text = text.trim();
        match (self, self.kind()) {
            (Self::Bypass, _) => ["off", "on"].iter().position(|word| *word == text).map(|value| value as f32),
            (Self::Parameter(parameter), ValueKind::Knob { unit, .. }) => {
                parameter.parse(text.strip_suffix(unit).unwrap_or(text).trim_end()).ok()
            }
            (Self::Parameter(parameter), _) => parameter.parse(text).ok(),
        }
    }
}

/// The values of all controls. Any thread may read and set them; none waits.
#[derive(Debug)]
pub struct Values(Box<[Value]>);

#[derive(Debug)]
struct Value {
    control: Control,
    id: u32,
    /// The bits of an `f32`.
    bits: AtomicU32,
}

impl Default for Values {
    fn default() -> Self {
        let value = |control: Control| {
            let [_, _, default] = control.range();
            Value { control, id: control.id(), bits: AtomicU32::new(default.to_bits()) }
        };
        Self(Control::all().map(value).collect())
    }
}

impl Values {
    /// The control with this number.
    #[must_use]
    pub fn control(&self, id: u32) -> Option<Control> {
        self.0.iter().find(|value| value.id == id).map(|value| value.control)
    }

    /// The value of a control.
    #[must_use]
    pub fn get(&self, control: Control) -> f32 {
        let value = self.0.iter().find(|value| value.control == control);
        value.map_or(0.0, |value| f32::from_bits(value.bits.load(Relaxed)))
    }

    /// Sets a control to the nearest value that it allows. NaN changes nothing.
    pub fn set(&self, control: Control, value: f64) {
        let own = self.0.iter().find(|own| own.control == control);
        if let (Some(own), Some(value)) = (own, control.nearest_to(value)) {
            own.bits.store(value.to_bits(), Relaxed);
        }
    }

    /// The values of the parameters.
    #[must_use]
    pub fn settings(&self) -> Settings {
        let mut settings = Settings::default();
        for &parameter in Parameter::ALL {
            // The value is allowed.
            let _ = settings.set(parameter, self.get(Control::Parameter(parameter)));
        }
        settings
    }

    /// Sets all parameters.
    pub fn set_all(&self, settings: &Settings) {
        for &parameter in Parameter::ALL {
            self.set(Control::Parameter(parameter), settings.get(parameter).into());
        }
    }

    /// Passes all values to the player of the audio thread.
    pub fn apply(&self, player: &mut Player) {
        for own in &self.0 {
            let value = f32::from_bits(own.bits.load(Relaxed));
            match own.control {
                Control::Bypass => player.enable(value == 0.0),
                Control::Parameter(parameter) => player.set(parameter, value),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn numbers_are_unique_and_stay() {
        let ids: BTreeSet<u32> = Control::all().map(Control::id).collect();
        assert_eq!(ids.len(), Control::all().len());
        // The number of CLAP for "no parameter".
        assert!(!ids.contains(&u32::MAX));
        // Sessions contain them.
        assert_eq!(
            [Control::Bypass, Control::Parameter(Parameter::Bass)].map(Control::id),
            [1_573_592_237, 748_827_921]
        );
    }

    #[test]
    fn values_are_read_from_their_text() {
        for control in Control::all() {
            let [least, most, default] = control.range();
            for value in [least, most, default, least + 0.37 * (most - least)] {
                let value = control.nearest_to(value.into()).unwrap();
                let text = control.to_text(value);
                assert_eq!(control.from_text(&text), Some(value), "{}: {text}", control.key());
            }
            assert_eq!(control.from_text("much"), None);
            assert_eq!(control.nearest_to(f64::NAN), None);
        }
        assert_eq!(Control::Parameter(Parameter::Bass).to_text(3.5), "3.5 dB");
        assert_eq!(Control::Parameter(Parameter::Bass).from_text("3.5"), Some(3.5));
        assert_eq!(Control::Parameter(Parameter::Bass).from_text("99 dB"), None);
    }
}
