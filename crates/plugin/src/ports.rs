//! The ports of the plugins, and the files that a host can set.

use std::path::Path;

use amp::Parameter;

/// A plugin of the bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Variant {
    /// Its URI.
    pub uri: &'static str,
    /// Its name.
    pub name: &'static str,
    /// Number of audio outputs, 1 or 2.
    pub outputs: u32,
}

/// The plugins of the bundle.
pub const VARIANTS: [Variant; 2] = [
    Variant { uri: "urn:punctual:amp", name: "Punctual Amp", outputs: 1 },
    Variant { uri: "urn:punctual:amp-stereo", name: "Punctual Amp Stereo", outputs: 2 },
];

/// A port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Port {
    /// Messages of the host.
    Control,
    /// Messages to the host.
    Notify,
    /// The guitar.
    Input,
    /// An output: 0 is the left or only one.
    Output(usize),
    /// 1 while the plugin is on, 0 while it is bypassed.
    Enabled,
    /// Delay of the outputs, samples.
    Latency,
    /// A parameter of the chain.
    Parameter(Parameter),
}

impl Variant {
    /// The port with this index; `None` if there is none.
    #[must_use]
    pub fn port(&self, index: u32) -> Option<Port> {
        let outputs = self.outputs;
        Some(match index {
            0 => Port::Control,
            1 => Port::Notify,
            2 => Port::Input,
            index if index < 3 + outputs => Port::Output((index - 3) as usize),
            index if index == 3 + outputs => Port::Enabled,
            index if index == 4 + outputs => Port::Latency,
            index => Port::Parameter(*Parameter::ALL.get((index - 5 - outputs) as usize)?),
        })
    }

    /// All ports in the order of their indices.
    pub fn ports(&self) -> impl Iterator<Item = Port> {
        (0..).map_while(|index| self.port(index))
    }
}

/// A file that the host can set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileProperty {
    /// A preset of `punctual amp`: models and cabinets with their own settings.
    Preset,
    /// The model.
    Model,
    /// The impulse response of the cabinet.
    Cabinet,
    /// The impulse response of the reverb.
    ReverbIr,
}

impl FileProperty {
    /// All of them, in the order in which a state is restored: a preset is followed by what replaces its parts.
    pub const ALL: [Self; 4] = [Self::Preset, Self::Model, Self::Cabinet, Self::ReverbIr];

    /// Its URI.
    #[must_use]
    pub fn uri(self) -> &'static str {
        match self {
            Self::Preset => "urn:punctual:amp:preset",
            Self::Model => "urn:punctual:amp:model",
            Self::Cabinet => "urn:punctual:amp:cabinet",
            Self::ReverbIr => "urn:punctual:amp:reverb-ir",
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Preset => "Preset",
            Self::Model => "Model",
            Self::Cabinet => "Cabinet",
            Self::ReverbIr => "Reverb",
        }
    }

    /// The kinds of files that MOD devices offer for it, separated by commas; `None` if they have no kind for it.
    #[must_use]
    pub fn kinds_of_mod(self) -> Option<&'static str> {
        match self {
            Self::Preset => None,
            Self::Model => Some("nammodel,aidadspmodel"),
            Self::Cabinet => Some("cabsim"),
            Self::ReverbIr => Some("ir"),
        }
    }

    /// The endings of files, each with the file that a host sets with it. A recording is a cabinet, because cabinets are more
    /// frequent than responses of reverbs.
    pub fn endings() -> impl Iterator<Item = (&'static str, Self)> {
        let models = amp::file::EXTENSIONS.into_iter().map(|ending| (ending, Self::Model));
        let cabinets = amp::recording::EXTENSIONS.into_iter().map(|ending| (ending, Self::Cabinet));
        models.chain(cabinets).chain([("toml", Self::Preset)])
    }

    /// The file that a path is by its ending; `None` if it has none of them.
    #[must_use]
    pub fn of(path: &Path) -> Option<Self> {
        let ending = path.extension()?;
        Self::endings().find(|(own, _)| ending.eq_ignore_ascii_case(own)).map(|(_, file)| file)
    }

    /// Its number in messages between the threads, from 1.
    #[must_use]
    pub fn number(self) -> u8 {
        match self {
            Self::Preset => 1,
            Self::Model => 2,
            Self::Cabinet => 3,
            Self::ReverbIr => 4,
        }
    }

    /// The property with this number.
    #[must_use]
    pub fn with_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|file| file.number() == number)
    }

    /// The place of the property in [`Self::ALL`].
    #[must_use]
    pub fn index(self) -> usize {
        self as usize
    }
}
