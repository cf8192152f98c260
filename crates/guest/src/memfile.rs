//! A file in memory that disappears with the process.

use std::{
    fs::File,
    io::Write,
    os::fd::AsRawFd,
    path::{Path, PathBuf},
};

use rustix::fs::{MemfdFlags, memfd_create};

use crate::{GuestError, error::At};

/// A file in memory that child processes can open.
#[derive(Debug)]
pub struct MemoryFile {
    // Must stay open, because the path refers to it.
    _file: File,
    path: PathBuf,
}

impl MemoryFile {
    /// Creates a file with content `bytes`.
    ///
    /// # Errors
    /// If there is not enough memory.
    pub fn new(name: &str, bytes: &[u8]) -> Result<Self, GuestError> {
        let create = || {
            // Without CLOEXEC, so that child processes inherit it.
            let mut file = File::from(memfd_create(name, MemfdFlags::empty())?);
            file.write_all(bytes)?;
            Ok(file)
        };
        let file = create().writing(Path::new(name))?;
        let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
        Ok(Self { _file: file, path })
    }

    /// The path for this process and its children.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn child_processes_can_read_the_file() {
        let file = MemoryFile::new("kernel", b"content").unwrap();
        let output = std::process::Command::new("cat").arg(file.path()).output().unwrap();
        assert_eq!(output.stdout, b"content");
    }
}
