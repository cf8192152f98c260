//! Finds a campaign by name among the files of `campaigns/`, which are built into the binary, or by path.

use std::{
    io,
    path::{Path, PathBuf},
};

use record::file::{SETTINGS_BYTES_MAX, read_text, remedy_of_reading};

use crate::file::{CampaignFile, FileMistakes, mistake::nearest, parse};

/// The reasons why a campaign cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum CampaignFileError {
    /// No built-in campaign has that name.
    #[error("no built-in campaign {name:?}{nearest}: see `punctual campaigns`, or pass a file that ends in .toml")]
    Unknown {
        /// The name given.
        name: String,
        /// The most similar known name, as a question.
        nearest: String,
    },
    /// The file could not be read.
    #[error("cannot read the campaign {}: {source}{}", path.display(), remedy_of_reading(source))]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The file has mistakes.
    #[error(transparent)]
    Mistakes(#[from] FileMistakes),
}

/// Reads the file if `name_or_path` ends in `.toml`, else the built-in campaign of that name.
///
/// # Errors
/// No campaign has that name, or the file cannot be read or has mistakes.
pub fn find_campaign(name_or_path: &str) -> Result<CampaignFile, CampaignFileError> {
    if Path::new(name_or_path).extension().is_some_and(|ending| ending == "toml") {
        let path = Path::new(name_or_path);
        let text = read_text(path, SETTINGS_BYTES_MAX)
            .map_err(|source| CampaignFileError::Read { path: path.to_owned(), source })?;
        return Ok(parse(name_or_path, &text)?);
    }
    Ok(parse(&format!("campaigns/{name_or_path}.toml"), text(name_or_path)?)?)
}

macro_rules! files {
    ($($name:literal)*) => {
        [$(($name, include_str!(concat!("../../../campaigns/", $name, ".toml")))),*]
    };
}

/// Name and text of each built-in campaign.
pub const FILES: [(&str, &str); 12] = files!(
    "audio-engine"
    "avb-cyclic"
    "avb-endpoint"
    "avb-nic"
    "cnc-matrix"
    "guitar-amp-buffer"
    "irq-priorities"
    "isolated-or-ordinary"
    "shielded-core"
    "three-latencies"
    "udp-priorities"
    "vim3l-ladder"
);

/// The text of the built-in campaign of that name.
///
/// # Errors
/// No campaign has that name.
pub fn text(name: &str) -> Result<&'static str, CampaignFileError> {
    let unknown = || {
        let names: Vec<&str> = FILES.iter().map(|(name, _)| *name).collect();
        CampaignFileError::Unknown { name: name.to_owned(), nearest: nearest(name, &names) }
    };
    FILES.iter().find(|(known, _)| *known == name).map(|(_, text)| *text).ok_or_else(unknown)
}
