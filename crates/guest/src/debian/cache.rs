//! The folder that keeps what has been fetched.

use std::{
    env,
    fs::{self, File},
    path::{Path, PathBuf},
};

use rustix::fs::{FlockOperation, flock};

use crate::{GuestError, error::At};

/// The folder for what is fetched: `$PUNCTUAL_LAB_CACHE`, else `punctual/lab` in the user's cache.
#[must_use]
pub fn cache() -> PathBuf {
    let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("PUNCTUAL_LAB_CACHE")
        .or_else(|| set("XDG_CACHE_HOME").map(|folder| folder.join("punctual/lab")))
        .or_else(|| set("HOME").map(|folder| folder.join(".cache/punctual/lab")))
        .unwrap_or_else(|| env::temp_dir().join("punctual-lab"))
}

/// One fetch at a time; the lock is gone with the file.
pub(super) fn lock() -> Result<File, GuestError> {
    let path = cache().join("lock");
    fs::create_dir_all(cache()).writing(&cache())?;
    let file = File::create(&path).writing(&path)?;
    flock(&file, FlockOperation::LockExclusive).map_err(Into::into).writing(&path)?;
    Ok(file)
}

/// Fills a folder beside `folder` and renames it when it is complete, so that an interrupted fetch leaves no half of it.
pub(super) fn at_once(folder: &Path, fill: impl FnOnce(&Path) -> Result<(), GuestError>) -> Result<(), GuestError> {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let new = folder.with_file_name(format!(".{name}.new"));
    // What an earlier attempt left; the lock says that nobody is at it.
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
    fn an_interrupted_fetch_leaves_nothing_that_looks_complete() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().join("kernel");
        let half = |new: &Path| {
            fs::write(new.join("half"), "").unwrap();
            Err(GuestError::NoPackage { package: String::new() })
        };
        assert!(at_once(&folder, half).is_err());
        assert!(!folder.exists());
        at_once(&folder, |new| fs::write(new.join("whole"), "").writing(new)).unwrap();
        assert_eq!((folder.join("whole").exists(), folder.join("half").exists()), (true, false));
    }
}
