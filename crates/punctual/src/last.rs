//! The newest record, named `LAST` on the command line.

use std::{fs, path::PathBuf};

/// The name of the newest record.
pub const LAST: &str = "LAST";

/// The newest record in the current folder.
pub fn newest_record() -> Result<PathBuf, String> {
    let name = |path: &PathBuf| path.to_string_lossy().ends_with(".punctual.json");
    let files = fs::read_dir(".").into_iter().flatten().flatten().map(|entry| PathBuf::from(entry.file_name()));
    let written = |path: PathBuf| Some((fs::metadata(&path).ok()?.modified().ok()?, path));
    let newest = files.filter(name).filter_map(written).max();
    let none = || "there is no record in the current folder: name one, or run `punctual` first".to_owned();
    newest.map(|(_, path)| path).ok_or_else(none)
}
