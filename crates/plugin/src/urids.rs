//! The names of LV2 as numbers, which the host assigns.

use crate::ports::FileProperty;

/// The numbers of the names that the plugin uses.
#[derive(Debug, Clone, Copy)]
pub struct Urids {
    pub(crate) object: u32,
    pub(crate) path: u32,
    pub(crate) sequence: u32,
    pub(crate) urid: u32,
    pub(crate) patch_get: u32,
    pub(crate) patch_set: u32,
    pub(crate) patch_property: u32,
    pub(crate) patch_value: u32,
    pub(crate) log_error: u32,
    files: [u32; FileProperty::ALL.len()],
}

const ATOM: &str = "http://lv2plug.in/ns/ext/atom#";
const PATCH: &str = "http://lv2plug.in/ns/ext/patch#";

impl Urids {
    /// Asks the host for the numbers.
    #[must_use]
    pub fn new(map: impl Fn(&str) -> u32) -> Self {
        let atom = |name: &str| map(&format!("{ATOM}{name}"));
        let patch = |name: &str| map(&format!("{PATCH}{name}"));
        Self {
            object: atom("Object"),
            path: atom("Path"),
            sequence: atom("Sequence"),
            urid: atom("URID"),
            patch_get: patch("Get"),
            patch_set: patch("Set"),
            patch_property: patch("property"),
            patch_value: patch("value"),
            log_error: map("http://lv2plug.in/ns/ext/log#Error"),
            files: FileProperty::ALL.map(|file| map(file.uri())),
        }
    }

    /// True if the host knows the names; LV2 has no number 0. Without them there are no messages and no state.
    #[must_use]
    pub fn are_known(&self) -> bool {
        self.object != 0
    }

    /// The number of a file property.
    #[must_use]
    pub fn of(&self, file: FileProperty) -> u32 {
        self.files[file.index()]
    }

    /// The file property with this number.
    #[must_use]
    pub fn file(&self, urid: u32) -> Option<FileProperty> {
        FileProperty::ALL.into_iter().find(|file| self.of(*file) == urid)
    }
}
