//! The newest record, named `LAST` on the command line.

use std::{env, fs, os::unix::fs::MetadataExt, path::PathBuf};

/// The name of the newest record.
pub const LAST: &str = "LAST";

/// The newest record in the current folder that this user, root, or the caller of sudo wrote.
pub fn newest_record() -> Result<PathBuf, String> {
    let name = |path: &PathBuf| path.to_string_lossy().ends_with(".punctual.json");
    let folder =
        fs::read_dir(".").map_err(|error| format!("cannot list the current folder ({error}): name a record"))?;
    let files = folder.flatten().map(|entry| PathBuf::from(entry.file_name()));
    // Other files may wait when they are opened.
    let metadata = |path: &PathBuf| fs::metadata(path).ok().filter(fs::Metadata::is_file).filter(is_ours);
    let written = |path: PathBuf| Some((metadata(&path)?.modified().ok()?, path));
    let newest = files.filter(name).filter_map(written).max();
    let none = || "there is no record of yours in the current folder: name one, or run `punctual` first".to_owned();
    newest.map(|(_, path)| path).ok_or_else(none)
}

/// True for a file of this user, of root, or, for root, of the user who called sudo. In a shared folder, the newest record
/// may be that of somebody else.
fn is_ours(file: &fs::Metadata) -> bool {
    let user = rustix::process::geteuid();
    let caller = env::var("SUDO_UID").ok().and_then(|id| id.parse::<u32>().ok()).filter(|_| user.is_root());
    file.uid() == 0 || file.uid() == user.as_raw() || Some(file.uid()) == caller
}
