//! A file that is nowhere on a disk, and gone with the process however that ends.

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
    // Kept open: the path below leads to it.
    _file: File,
    path: PathBuf,
}

impl MemoryFile {
    /// A file that holds `bytes`.
    ///
    /// # Errors
    /// When there is not enough memory.
    pub fn new(name: &str, bytes: &[u8]) -> Result<Self, GuestError> {
        let held = || {
            // Children inherit it, hence no CLOEXEC.
            let mut file = File::from(memfd_create(name, MemfdFlags::empty())?);
            file.write_all(bytes)?;
            Ok(file)
        };
        let file = held().writing(Path::new(name))?;
        let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
        Ok(Self { _file: file, path })
    }

    /// Where this process and its children find it.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_reads_what_was_put_in_from_its_beginning() {
        let file = MemoryFile::new("kernel", b"content").unwrap();
        let output = std::process::Command::new("cat").arg(file.path()).output().unwrap();
        assert_eq!(output.stdout, b"content");
    }
}
