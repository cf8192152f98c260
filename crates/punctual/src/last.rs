//! The newest record, named `LAST` on the command line.

use std::{fs, os::unix::fs::MetadataExt, path::PathBuf};

/// The name of the newest record.
pub const LAST: &str = "LAST";

/// The newest record in the current folder that this user, root, or the caller of sudo wrote.
pub fn newest_record() -> Result<PathBuf, String> {
    let name = |path: &PathBuf| path.to_string_lossy().ends_with(".punctual.json");
    let folder =
        fs::read_dir(".").map_err(|error| format!("cannot list the current folder ({error}): name a record"))?;
    let files = folder.flatten().map(|entry| PathBuf::from(entry.file_name()));
    // Other files may wait when they are opened.
    let is_written = |file: &fs::Metadata| file.is_file() && file.len() > 0;
    let metadata = |path: &PathBuf| fs::metadata(path).ok().filter(is_written).filter(is_ours);
    let written = |path: PathBuf| Some((metadata(&path)?.modified().ok()?, path));
    let newest = files.filter(name).filter_map(written).max();
    let none = || "there is no record of yours in the current folder: name one, or run `punctual` first".to_owned();
    newest.map(|(_, path)| path).ok_or_else(none)
}

/// True for a file of this user or of root. In a shared folder, the newest record may be that of somebody else.
fn is_ours(file: &fs::Metadata) -> bool {
    file.uid() == 0 || record::file::is_of_this_user(file)
}
