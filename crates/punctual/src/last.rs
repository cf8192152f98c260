//! The newest record, named `LAST` on the command line.

use std::{fs, path::PathBuf};

/// The name of the newest record.
pub const LAST: &str = "LAST";

/// The newest record in the current folder.
pub fn newest_record() -> Result<PathBuf, String> {
    let name = |path: &PathBuf| path.to_string_lossy().ends_with(".punctual.json");
    let folder =
        fs::read_dir(".").map_err(|error| format!("cannot list the current folder ({error}): name a record"))?;
    let files = folder.flatten().map(|entry| PathBuf::from(entry.file_name()));
    // Other files may wait when they are opened.
    let metadata = |path: &PathBuf| fs::metadata(path).ok().filter(fs::Metadata::is_file);
    let written = |path: PathBuf| Some((metadata(&path)?.modified().ok()?, path));
    let newest = files.filter(name).filter_map(written).max();
    let none = || "there is no record in the current folder: name one, or run `punctual` first".to_owned();
    newest.map(|(_, path)| path).ok_or_else(none)
}
