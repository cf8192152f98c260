//! The files of journals: their owner and permissions are checked before they are read.

use std::{
    fs::{self, File},
    io::Read,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use rustix::fs::{Mode, OFlags};
use serde::{Deserialize, Serialize};

use super::{Purpose, Undo};
use crate::Root;

/// The largest journal that is read, bytes: the affinities of 100 000 threads take about 2 MB.
const BYTES_MAX: u64 = 16 << 20;
/// Permission bits that let other users write.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// The content of a journal.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Document {
    pub(super) process: u32,
    pub(super) start_ticks: u64,
    /// The namespace of process ids that `process` is in; versions before 0.3 did not write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) pid_namespace: Option<u64>,
    pub(super) boot_id: Option<String>,
    pub(super) purpose: Purpose,
    /// In the order of the changes; undone in reverse order.
    pub(super) undo: Vec<Undo>,
}

impl Document {
    /// The files and control groups of the machine below `root` that undoing changes.
    pub fn changed_files<'a>(&'a self, root: &'a Root) -> impl Iterator<Item = &'a str> {
        self.undo.iter().filter(|undo| undo.is_ours(root)).map(Undo::file).filter(|file| !file.is_empty())
    }
}

/// Parses a journal.
///
/// # Errors
/// The reason why it is not one.
pub fn parse(bytes: &[u8]) -> Result<Document, String> {
    serde_json::from_slice(bytes).map_err(|error| format!("it is not a journal ({error})"))
}

/// The journals in a folder of this user, each with its content or the reason why it is not used.
pub(super) fn all(folder: &Path) -> Vec<(PathBuf, Result<Document, String>)> {
    let files = fs::read_dir(folder).into_iter().flatten().flatten().map(|file| file.path());
    let mut files: Vec<PathBuf> =
        files.filter(|path| path.extension().is_some_and(|ending| ending == "json")).collect();
    files.sort();
    let read = |path: PathBuf| {
        let document = check_folder(folder).and_then(|()| read(&path));
        (path, document)
    };
    files.into_iter().map(read).collect()
}

/// Reads a journal. The error is the reason why it is not used.
pub(super) fn read(path: &Path) -> Result<Document, String> {
    // Not through a link, and without waiting for the other end of a pipe.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty()).map_err(|error| match error {
        rustix::io::Errno::LOOP => "it is a symbolic link".to_owned(),
        error => error.to_string(),
    })?);
    let data = file.metadata().map_err(|error| error.to_string())?;
    if !data.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    check_owner(&data)?;
    let mut bytes = Vec::new();
    file.take(BYTES_MAX).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    parse(&bytes)
}

/// Checks that only this user can add journals to the folder, because their contents are executed.
pub(super) fn check_folder(folder: &Path) -> Result<(), String> {
    let data = fs::symlink_metadata(folder).map_err(|error| error.to_string())?;
    if !data.is_dir() {
        return Err(format!("{} is not a folder", folder.display()));
    }
    check_owner(&data).map_err(|reason| format!("its folder {}: {reason}", folder.display()))
}

fn check_owner(data: &fs::Metadata) -> Result<(), String> {
    let user = rustix::process::geteuid().as_raw();
    if data.uid() != user {
        return Err(format!("it belongs to user {}, not to user {user}", data.uid()));
    }
    match data.mode() & WRITABLE_BY_OTHERS {
        0 => Ok(()),
        _ => Err(format!("other users can write to it (mode {:03o})", data.mode() & 0o777)),
    }
}
