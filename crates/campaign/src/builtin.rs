//! The campaigns that ship with punctual: the files of `campaigns/`, in the binary.

use crate::file::{CampaignFileError, mistake::nearest};

macro_rules! files {
    ($($name:literal)*) => {
        [$(($name, include_str!(concat!("../../../campaigns/", $name, ".toml")))),*]
    };
}

/// Name and text of each file.
pub const FILES: [(&str, &str); 8] = files!(
    "avb-cyclic"
    "avb-endpoint"
    "cnc-matrix"
    "guitar-amp-buffer"
    "isolated-or-ordinary"
    "shielded-core"
    "udp-priorities"
    "vim3l-ladder"
);

/// The text of the file of that name.
///
/// # Errors
/// When no campaign has that name.
pub fn text(name: &str) -> Result<&'static str, CampaignFileError> {
    let unknown = || {
        let names: Vec<&str> = FILES.iter().map(|(name, _)| *name).collect();
        CampaignFileError::Unknown { name: name.to_owned(), nearest: nearest(name, &names) }
    };
    FILES.iter().find(|(known, _)| *known == name).map(|(_, text)| *text).ok_or_else(unknown)
}
