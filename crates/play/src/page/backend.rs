//! The interface between the web server and the program that it shows.

use serde::Deserialize;
use serde_json::Value;

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
}

/// The slots that a file can be loaded into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
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
