//! The cache directory.

use std::{
    env,
    fs::{self, File},
    path::{Path, PathBuf},
};

use rustix::fs::{FlockOperation, flock};

use crate::{GuestError, error::At};

/// The cache directory: `$PUNCTUAL_LAB_CACHE`, otherwise `punctual/lab` in the user's cache.
#[must_use]
pub fn cache() -> PathBuf {
    let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("PUNCTUAL_LAB_CACHE")
        .or_else(|| set("XDG_CACHE_HOME").map(|folder| folder.join("punctual/lab")))
        .or_else(|| set("HOME").map(|folder| folder.join(".cache/punctual/lab")))
        .unwrap_or_else(|| env::temp_dir().join("punctual-lab"))
}

/// Allows one download at a time. The lock is released when the file is closed.
pub(super) fn lock() -> Result<File, GuestError> {
    let path = cache().join("lock");
    fs::create_dir_all(cache()).writing(&cache())?;
    let file = File::create(&path).writing(&path)?;
    flock(&file, FlockOperation::LockExclusive).map_err(Into::into).writing(&path)?;
    Ok(file)
}

/// Fills a new directory and renames it to `folder` once it is complete, so that an interrupted download leaves no
/// partial one.
pub(super) fn create_complete(
    folder: &Path,
    fill: impl FnOnce(&Path) -> Result<(), GuestError>,
) -> Result<(), GuestError> {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let new = folder.with_file_name(format!(".{name}.new"));
    // Removes the remains of an earlier attempt. The lock excludes concurrent ones.
    let _ = fs::remove_dir_all(&new);
    fs::create_dir_all(&new).writing(&new)?;
    fill(&new)?;
    if folder.exists() {
        fs::remove_dir_all(folder).writing(folder)?;
    }
    fs::rename(&new, folder).writing(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interrupted_downloads_leave_no_folder() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().join("kernel");
        let interrupted = |new: &Path| {
            fs::write(new.join("partial"), "").unwrap();
            Err(GuestError::NoPackage { package: String::new() })
        };
        assert!(create_complete(&folder, interrupted).is_err());
        assert!(!folder.exists());
        create_complete(&folder, |new| fs::write(new.join("complete"), "").writing(new)).unwrap();
        assert_eq!((folder.join("complete").exists(), folder.join("partial").exists()), (true, false));
    }
}
