//! Finds the kernel's tracefs, or mounts it privately.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    os::fd::{AsRawFd, OwnedFd},
    path::{Path, PathBuf},
    sync::Arc,
};

use rustix::{
    io::Errno,
    mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen},
};

use super::error::{TraceError, is_locked_down};

const MOUNTED_AT: &str = "/sys/kernel/tracing";
/// Mount point used by kernels before 5.2, which have no detached mounts. Accessing it mounts tracefs, so it is tried
/// last.
const BELOW_DEBUGFS: &str = "/sys/kernel/debug/tracing";

/// A mounted tracefs.
#[derive(Debug, Clone)]
pub struct Tracefs {
    dir: PathBuf,
    /// Keeps a detached mount alive.
    _mount: Option<Arc<OwnedFd>>,
}

impl Tracefs {
    /// Opens this machine's tracefs. If it is not mounted, mounts it detached, which no other process sees and which
    /// ends with this value.
    ///
    /// # Errors
    /// The kernel has no tracefs, or this process lacks the right to use it.
    pub fn open() -> Result<Self, TraceError> {
        let mounted = Self::at(MOUNTED_AT);
        if mounted.is_tracefs() {
            return Ok(mounted);
        }
        Self::mounted_privately().or_else(|error| {
            let below_debugfs = Self::at(BELOW_DEBUGFS);
            if below_debugfs.is_tracefs() { Ok(below_debugfs) } else { Err(error) }
        })
    }

    /// The tracefs, or a copy of one, in this folder.
    #[must_use]
    pub fn at(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into(), _mount: None }
    }

    fn mounted_privately() -> Result<Self, TraceError> {
        let mount = mount().map_err(|error| match error {
            Errno::NODEV => TraceError::NoTracefs,
            Errno::NOSYS => TraceError::NotMounted,
            other => TraceError::of("a mount", other.into()),
        })?;
        let dir = format!("/proc/self/fd/{}", mount.as_raw_fd()).into();
        let tracefs = Self { dir, _mount: Some(Arc::new(mount)) };
        match tracefs.is_tracefs() {
            true => Ok(tracefs),
            // Lockdown at boot leaves tracefs empty.
            false if is_locked_down() => Err(TraceError::LockedDown),
            false => Err(TraceError::NoTracefs),
        }
    }

    fn is_tracefs(&self) -> bool {
        fs::metadata(self.path("trace_clock")).is_ok()
    }

    /// Path of a file or folder in it.
    #[must_use]
    pub fn path(&self, part: impl AsRef<Path>) -> PathBuf {
        self.dir.join(part)
    }

    /// The names in one of its folders, sorted; empty if there is no such folder.
    pub(crate) fn list(&self, part: impl AsRef<Path>) -> Vec<String> {
        let entries = fs::read_dir(self.path(part)).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort_unstable();
        names
    }

    /// Reads one of its files.
    pub(crate) fn read(&self, part: impl AsRef<Path>) -> Result<String, TraceError> {
        let part = part.as_ref();
        let bytes = self.try_read(part).map_err(|error| TraceError::of(part.to_string_lossy(), error))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Reads in large pieces, because the kernel returns `events/header_page` only to the first `read`, whatever its
    /// size.
    fn try_read(&self, part: &Path) -> io::Result<Vec<u8>> {
        const CHUNK: usize = 64 << 10;
        let mut file = File::open(self.path(part))?;
        let mut bytes = Vec::new();
        loop {
            let length = bytes.len();
            bytes.resize(length + CHUNK, 0);
            let more = file.read(&mut bytes[length..])?;
            bytes.truncate(length + more);
            if more == 0 {
                return Ok(bytes);
            }
        }
    }

    /// Writes to one of its files, which must exist. Does not truncate, because truncation has a meaning for some
    /// files.
    pub(crate) fn write(&self, part: impl AsRef<Path>, text: &str) -> Result<(), TraceError> {
        let part = part.as_ref();
        self.try_write(part, text).map_err(|error| TraceError::of(part.to_string_lossy(), error))
    }

    /// Like [`write`](Self::write), but returns the original error.
    pub(crate) fn try_write(&self, part: impl AsRef<Path>, text: &str) -> io::Result<()> {
        self.open_for_writing(part)?.write_all(text.as_bytes())
    }

    /// Opens one of its files for repeated writing.
    pub(crate) fn open_for_writing(&self, part: impl AsRef<Path>) -> io::Result<File> {
        OpenOptions::new().write(true).open(self.path(part))
    }
}

/// Creates a detached mount, which is in no mount table.
fn mount() -> Result<OwnedFd, Errno> {
    let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())
}
