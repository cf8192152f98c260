//! The interface between the web server and the program that it shows.

use serde::Deserialize;
use serde_json::Value;
use thiserror::Error;

/// The program that the page shows and controls. Several threads call these methods at the same time.
pub trait Backend: Send + Sync {
    /// All files and parameters, with the ones in use.
    fn state(&self) -> Value;
    /// Current levels, load and counters.
    fn live(&self) -> Value;
    /// Sets a parameter; returns the new version of the state.
    ///
    /// # Errors
    /// A message for the user.
    fn set(&self, name: &str, value: f32) -> Result<u64, String>;
    /// Loads a file of the library into a slot, or empties the slot if `None`.
    ///
    /// # Errors
    /// A message for the user.
    fn choose(&self, slot: Slot, file: Option<&str>) -> Result<(), String>;
    /// Saves the current settings as a preset of this name; returns its file name.
    ///
    /// # Errors
    /// A message for the user.
    fn save(&self, name: &str) -> Result<String, String>;
    /// Does what a button of the page or of a pedal asks for; returns a message for the user, which may be empty.
    ///
    /// # Errors
    /// A message for the user.
    fn act(&self, act: Act) -> Result<String, String>;
    /// Adds a model or a cabinet to the library; returns its file name and slot.
    ///
    /// # Errors
    /// [`UploadError`].
    fn upload(&self, upload: Upload) -> Result<(String, Slot), UploadError>;
}

/// The slots that a file can be loaded into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Slot {
    /// All models, cabinets and settings.
    Preset,
    /// The first model.
    Model1,
    /// The second model.
    Model2,
    /// The cabinet.
    Cabinet,
}

/// One of the two states that a player compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// The first state.
    A,
    /// The second state.
    B,
}

/// An action of a button.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "do", rename_all = "lowercase")]
pub enum Act {
    /// Passes the guitar through unchanged, or ends that.
    Bypass {
        /// True to begin.
        on: bool,
    },
    /// Plays one of the two states.
    Side {
        /// The state.
        side: Side,
    },
    /// Copies the state that plays to the other one.
    Copy,
    /// Takes back the last change of the state that plays.
    Undo,
    /// Repeats the change that was taken back.
    Redo,
    /// Plays the next preset that can be played.
    Next,
    /// Plays the previous preset that can be played.
    Previous,
    /// Counts xruns and clipped samples from now on.
    Reset,
    /// Assigns the next MIDI controller that moves to a parameter or an action; `None` ends learning.
    Learn {
        /// Name of the parameter or the action.
        target: Option<String>,
    },
    /// Removes the assignment of a MIDI controller.
    Forget {
        /// The controller, 0 to 127.
        controller: u8,
    },
}

/// A file that a page sends.
#[derive(Debug)]
pub struct Upload {
    /// Its name as the page gives it.
    pub name: String,
    /// True if it may replace a file of this name.
    pub overwrite: bool,
    /// Its content.
    pub bytes: Vec<u8>,
}

/// Why a file was not added.
#[derive(Debug, Error)]
pub enum UploadError {
    /// A file of this name exists.
    #[error("{0} exists already: replace it, or rename the new file")]
    Exists(String),
    /// The file is refused, or cannot be written.
    #[error("{0}")]
    Refused(String),
}
