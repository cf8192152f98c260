//! Finds a campaign: one of the files of `campaigns/`, which are in the binary, or a file of the user.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crate::file::{CampaignFile, FileMistakes, mistake::nearest, parse};

/// Why there is no campaign.
#[derive(Debug, thiserror::Error)]
pub enum CampaignFileError {
    /// No built-in campaign has that name.
    #[error(
        "no campaign is called {name:?}{nearest}: list them with `punctual campaigns`, or name a file that ends in .toml"
    )]
    Unknown {
        /// The name asked for.
        name: String,
        /// The most similar name, as a question.
        nearest: String,
    },
    /// The file could not be read.
    #[error("cannot read the campaign {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file has mistakes.
    #[error(transparent)]
    Mistakes(#[from] FileMistakes),
}

/// The campaign in a file when `name_or_path` ends in `.toml`, else the built-in one of that name.
///
/// # Errors
/// When no campaign has that name, or the file cannot be read or has mistakes.
pub fn find_campaign(name_or_path: &str) -> Result<CampaignFile, CampaignFileError> {
    if Path::new(name_or_path).extension().is_some_and(|ending| ending == "toml") {
        let path = Path::new(name_or_path);
        let text =
            fs::read_to_string(path).map_err(|source| CampaignFileError::Read { path: path.to_owned(), source })?;
        return Ok(parse(name_or_path, &text)?);
    }
    Ok(parse(&format!("campaigns/{name_or_path}.toml"), text(name_or_path)?)?)
}

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
