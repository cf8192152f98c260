//! The MIDI controllers that were learned: one file of the library folder, for all its presets.

use std::{
    collections::BTreeMap,
    fmt, io,
    path::{Path, PathBuf},
};

use amp::{Parameter, chain::ParameterError};
use record::file::{FileError, SETTINGS_BYTES_MAX, read_regular, write_unfollowed};
use serde::Deserialize;
use thiserror::Error;

use crate::midi::Event;

/// Name of the file. Hidden files are not listed as presets.
const FILE: &str = ".midi.toml";
/// A controller is learned if it moves at least this far, because some send small changes without being touched.
const MIN_MOVE: u8 = 8;
/// The extreme values, which a foot switch sends.
const ENDS: [u8; 2] = [0, 127];

/// The target of a controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// A parameter, over its range.
    Parameter(Parameter),
    /// An action, when the value rises to 64 or more.
    Action(Action),
}

/// An action of a pedal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Bypass,
    Compare,
    Undo,
    Previous,
    Next,
}

impl Action {
    /// All actions with their names and descriptions.
    pub const ALL: [(Self, &str, &str); 5] = [
        (Self::Next, "next", "next preset"),
        (Self::Previous, "previous", "previous preset"),
        (Self::Bypass, "bypass", "bypass"),
        (Self::Compare, "compare", "change between A and B"),
        (Self::Undo, "undo", "undo"),
    ];

    /// Name and description.
    fn texts(self) -> (&'static str, &'static str) {
        let found = Self::ALL.into_iter().find(|(action, ..)| *action == self);
        found.map_or(("", ""), |(_, name, description)| (name, description))
    }
}

impl Target {
    /// The parameter or action with this name.
    ///
    /// # Errors
    /// If there is none.
    pub fn named(name: &str) -> Result<Self, ParameterError> {
        match Action::ALL.iter().find(|(_, known, _)| *known == name) {
            Some((action, ..)) => Ok(Self::Action(*action)),
            None => Parameter::named(name).map(Self::Parameter),
        }
    }

    /// Description for messages.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Parameter(parameter) => parameter.info().name,
            Self::Action(action) => action.texts().1,
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Parameter(parameter) => parameter.fmt(f),
            Self::Action(action) => f.write_str(action.texts().0),
        }
    }
}

/// Why the file of the controllers cannot be used.
#[derive(Debug, Error)]
pub enum MidiMapError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The content is invalid.
    #[error("{}: {reason}; correct it, or delete the file to learn the controllers again", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
}

/// The learned controllers, 0 to 127.
#[derive(Debug)]
pub struct MidiMap {
    path: PathBuf,
    targets: BTreeMap<u8, Target>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    midi: BTreeMap<String, String>,
}

impl MidiMap {
    /// Reads the file of a folder, if it has one.
    ///
    /// # Errors
    /// [`MidiMapError`].
    pub fn read(folder: &Path) -> Result<Self, MidiMapError> {
        let path = folder.join(FILE);
        let bytes = match read_regular(&path, SETTINGS_BYTES_MAX) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Self { path, targets: BTreeMap::new() });
            }
            Err(source) => return Err(MidiMapError::Read { path, source }),
        };
        match parse(&bytes) {
            Ok(targets) => Ok(Self { path, targets }),
            Err(reason) => Err(MidiMapError::Invalid { path, reason }),
        }
    }

    /// The target of a controller.
    pub fn get(&self, controller: u8) -> Option<Target> {
        self.targets.get(&controller).copied()
    }

    /// All controllers with their targets.
    pub fn iter(&self) -> impl Iterator<Item = (u8, Target)> {
        self.targets.iter().map(|(controller, target)| (*controller, *target))
    }

    /// Assigns a controller, which replaces its target and the controller that the target had, and stores the file.
    ///
    /// # Errors
    /// If the file cannot be written. The assignment holds until the program ends.
    pub fn assign(&mut self, controller: u8, target: Target) -> Result<(), FileError> {
        self.targets.retain(|_, other| *other != target);
        self.targets.insert(controller, target);
        self.store()
    }

    /// Removes a controller, and stores the file.
    ///
    /// # Errors
    /// If the file cannot be written. The controller is removed until the program ends.
    pub fn forget(&mut self, controller: u8) -> Result<(), FileError> {
        self.targets.remove(&controller);
        self.store()
    }

    fn store(&self) -> Result<(), FileError> {
        let lines = self.iter().map(|(controller, target)| format!("{controller} = \"{target}\"\n"));
        let text = format!("# Written by punctual amp serve.\n[midi]\n{}", lines.collect::<String>());
        write_unfollowed(&self.path, text.as_bytes())
    }
}

/// # Errors
/// The reason in one line.
fn parse(bytes: &[u8]) -> Result<BTreeMap<u8, Target>, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "it is not UTF-8 text".to_owned())?;
    let content: Content = toml::from_str(text).map_err(|error| error.message().replace('\n', ", "))?;
    let target = |(controller, name): (String, String)| {
        let number = controller.parse().ok().filter(|number| *number < 128);
        let number = number.ok_or_else(|| format!("controllers must be 0 to 127 (got {controller})"))?;
        Ok((number, Target::named(&name).map_err(|error| error.to_string())?))
    };
    content.midi.into_iter().map(target).collect()
}

/// The state of learning.
#[derive(Debug)]
pub struct Learning {
    pub target: Target,
    /// The first value of each controller that moved since learning began.
    first: BTreeMap<u8, u8>,
}

impl Learning {
    pub fn new(target: Target) -> Self {
        Self { target, first: BTreeMap::new() }
    }

    /// The controller to learn, if this event shows that the player moves it.
    pub fn hear(&mut self, event: Event) -> Option<u8> {
        let Event::Control { controller, value, .. } = event else { return None };
        let first = *self.first.entry(controller).or_insert(value);
        (ENDS.contains(&value) || first.abs_diff(value) >= MIN_MOVE).then_some(controller)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn assignments_are_stored_and_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let mut map = MidiMap::read(folder.path()).unwrap();
        let (next, bass) = (Target::named("next").unwrap(), Target::named("tone.bass_db").unwrap());
        map.assign(64, next).unwrap();
        map.assign(7, bass).unwrap();
        // The other switch takes over; the pedal keeps one function.
        map.assign(65, next).unwrap();
        map.assign(8, bass).unwrap();
        let read = || MidiMap::read(folder.path()).unwrap().iter().collect::<Vec<_>>();
        assert_eq!(read(), [(8, bass), (65, next)]);
        map.forget(8).unwrap();
        assert_eq!(read(), [(65, next)]);
        assert_eq!((map.get(65), map.get(64)), (Some(next), None));
    }

    #[test]
    fn errors_name_the_file_and_the_reason() {
        let folder = tempfile::tempdir().unwrap();
        for (text, expected) in [
            ("[midi]\n128 = 'next'", "controllers must be 0 to 127 (got 128)"),
            ("[midi]\n7 = 'tone.bas_db'", "did you mean \"tone.bass_db\""),
            ("[mid]\n", "unknown field"),
            ("[midi", ".midi.toml: "),
        ] {
            fs::write(folder.path().join(FILE), text).unwrap();
            let error = MidiMap::read(folder.path()).unwrap_err().to_string();
            assert!(error.contains(expected) && error.contains(".midi.toml") && !error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn learns_the_controller_that_is_moved() {
        let control = |controller, value| Event::Control { channel: 0, controller, value };
        let mut learning = Learning::new(Target::Action(Action::Next));
        // A pedal that trembles, then another that moves.
        let heard = [(7, 60), (7, 62), (11, 40), (7, 59), (11, 44), (11, 48)]
            .map(|(n, value)| learning.hear(control(n, value)));
        assert_eq!(heard, [None, None, None, None, None, Some(11)]);
        // A foot switch sends an extreme value at once.
        assert_eq!(Learning::new(Target::Action(Action::Next)).hear(control(64, 127)), Some(64));
        assert_eq!(learning.hear(Event::Program { channel: 0, program: 3 }), None);
    }
}
