//! The root folder of a machine: `/`, or the folder of a recorded machine.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use record::file;
use rustix::io::Errno;

/// The largest file of a recorded machine that is read, bytes. Those of a real machine have at most some 100 KiB, apart
/// from the configuration of its kernel, and from the table of interrupts: 11 MB for 512 CPUs and 2000 interrupts.
const RECORDED_BYTES_MAX: u64 = 64 << 20;

/// The root folder of a machine. Paths below it are written without a leading slash: `proc/version`.
#[derive(Debug, Clone)]
pub struct Root {
    folder: PathBuf,
    /// Everything that was read, if each file is read once only.
    kept: Option<Arc<Mutex<Kept>>>,
}

/// The reads of a [`Root::at_once`].
#[derive(Debug, Default)]
struct Kept {
    seen: Seen,
    /// In the order of the reads, also of repeated ones.
    unread: Vec<Unread>,
}

/// A file or folder that exists, or may exist, but could not be read or understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unread {
    /// Its path, without a leading slash.
    pub path: String,
    /// The reason, which is not [`Unreadable::Absent`].
    pub why: Unreadable,
}

/// The files and folders of a machine that were read, by path.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Seen {
    /// Files with their contents, or the reason why they could not be read.
    pub files: BTreeMap<String, Result<Arc<Vec<u8>>, Unreadable>>,
    /// Folders with the names in them.
    pub folders: BTreeMap<String, Vec<String>>,
    /// Symbolic links with their targets.
    pub links: BTreeMap<String, String>,
    /// Files and folders that were found to exist.
    pub existing: BTreeSet<String>,
    /// Files, folders and links that exist, or may exist, but could not be read.
    pub unread: BTreeSet<String>,
}

/// The reason why a file could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// The file does not exist: this machine or kernel does not have it.
    #[error("it does not exist")]
    Absent,
    /// The file exists, or may exist, but this process has no right to read it.
    #[error("no right to read it: run as root")]
    Forbidden,
    /// The file exists, but the kernel is locked down, so that root may not read it either (kernel_lockdown(7)).
    #[error("the kernel is locked down, also for root, as usual with Secure Boot: see /{LOCKDOWN}")]
    LockedDown,
    /// The file exists, or may exist, but root may not read it either: a container lacks capabilities, or the kernel is locked
    /// down and does not show that.
    #[error("the kernel refuses it to root, too, as in a container, or if it is locked down: see `dmesg`")]
    Refused,
    /// The file exists, but the kernel returned another error.
    #[error("it cannot be read; see `dmesg`")]
    Failed,
    /// The file was read, but its content is not one that the kernel writes there.
    #[error("its content is not understood")]
    NotUnderstood,
}

impl Root {
    /// The machine that this process runs on: `/`.
    #[must_use]
    pub fn system() -> Self {
        Self::at("/")
    }

    /// The machine recorded in a folder.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), kept: None }
    }

    /// The same machine at one moment: each file is read once, and later reads return the same result.
    #[must_use]
    pub fn at_once(&self) -> Self {
        Self { folder: self.folder.clone(), kept: Some(Arc::default()) }
    }

    /// This machine at the moment of an earlier [`at_once`](Self::at_once), or else at one of its own.
    pub(crate) fn kept_at_once(&self) -> Self {
        if self.kept.is_some() { self.clone() } else { self.at_once() }
    }

    /// The same machine without [`at_once`](Self::at_once): it does not remember its reads.
    pub(crate) fn not_kept(&self) -> Self {
        Self::at(&self.folder)
    }

    /// Everything that was read so far; nothing without [`at_once`](Self::at_once).
    #[must_use]
    pub fn seen(&self) -> Seen {
        self.kept().map(|kept| kept.seen.clone()).unwrap_or_default()
    }

    /// Everything that could not be read or understood since the last call, although it exists, or may exist: files,
    /// folders, links, and those whose existence was asked. Nothing without [`at_once`](Self::at_once).
    pub(crate) fn take_unread(&self) -> Vec<Unread> {
        self.kept().map(|mut kept| std::mem::take(&mut kept.unread)).unwrap_or_default()
    }

    /// Adds reads that [`take_unread`](Self::take_unread) will return.
    pub(crate) fn add_unread(&self, unread: impl IntoIterator<Item = Unread>) {
        if let Some(mut kept) = self.kept() {
            kept.unread.extend(unread);
        }
    }

    /// Remembers a read that failed for another reason than that the path is absent.
    fn noted<T>(&self, path: &str, read: Result<T, Unreadable>) -> Result<T, Unreadable> {
        if let (Err(why), Some(mut kept)) = (&read, self.kept()) {
            let path = path.trim_start_matches('/').to_owned();
            match why {
                Unreadable::Absent => return read,
                Unreadable::NotUnderstood => {}
                Unreadable::Forbidden | Unreadable::LockedDown | Unreadable::Refused | Unreadable::Failed => {
                    kept.seen.unread.insert(path.clone());
                }
            }
            kept.unread.push(Unread { path, why: *why });
        }
        read
    }

    fn kept(&self) -> Option<MutexGuard<'_, Kept>> {
        Some(self.kept.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// True for the machine that the process runs on.
    #[must_use]
    pub fn is_system(&self) -> bool {
        self.folder == Path::new("/")
    }

    /// The path in the file system. A leading slash in `path` is ignored.
    #[must_use]
    pub fn path(&self, path: &str) -> PathBuf {
        self.folder.join(path.trim_start_matches('/'))
    }

    /// The text of a file without white space and NULs at both ends; `None` if it cannot be read.
    #[must_use]
    pub fn read(&self, path: &str) -> Option<String> {
        self.try_read(path).ok()
    }

    /// Like [`read`](Self::read), but returns the error.
    ///
    /// # Errors
    /// [`Unreadable`], which distinguishes a missing file from a forbidden one.
    pub fn try_read(&self, path: &str) -> Result<String, Unreadable> {
        Ok(trimmed(&text(&self.read_bytes(path)?)).to_owned())
    }

    /// The bytes of a file, unchanged. They are shared with [`seen`](Self::seen), because some files have megabytes.
    ///
    /// # Errors
    /// The errors of [`try_read`](Self::try_read).
    pub fn read_bytes(&self, path: &str) -> Result<Arc<Vec<u8>>, Unreadable> {
        let path = path.trim_start_matches('/');
        let Some(mut kept) = self.kept() else { return self.read_now(path).map(Arc::new) };
        let read = kept.seen.files.entry(path.to_owned()).or_insert_with(|| {
            let mut read = self.read_now(path);
            // Buffers are larger than most files.
            read.iter_mut().for_each(Vec::shrink_to_fit);
            read.map(Arc::new)
        });
        let read = read.clone();
        drop(kept);
        self.noted(path, read)
    }

    fn read_now(&self, path: &str) -> Result<Vec<u8>, Unreadable> {
        let read = match self.is_system() {
            true => read_at_once(&self.path(path)),
            false => self.inside(path).and_then(|path| file::read_regular(&path, RECORDED_BYTES_MAX)),
        };
        read.map_err(|error| Unreadable::from(&error))
    }

    /// The path without links, unless a link leads out of the folder: a recorded machine may come from somebody else.
    fn inside(&self, path: &str) -> io::Result<PathBuf> {
        let (real, root) = (fs::canonicalize(self.path(path))?, fs::canonicalize(&self.folder)?);
        if real.starts_with(root) { Ok(real) } else { Err(io::ErrorKind::NotFound.into()) }
    }

    /// The path of a file to create, change or remove, unless a link leads out of the folder. The last part of the path may
    /// be a link: the caller does not follow it, or has read the file.
    ///
    /// # Errors
    /// A link leads out of the folder, or a part of the path cannot be read.
    pub(crate) fn for_writing(&self, path: &str) -> io::Result<PathBuf> {
        let whole = self.path(path);
        if self.is_system() {
            return Ok(whole);
        }
        let root = fs::canonicalize(&self.folder)?;
        // Folders that do not exist yet are made later.
        let above = whole.ancestors().skip(1).find(|folder| folder.symlink_metadata().is_ok()).unwrap_or(&self.folder);
        match fs::canonicalize(above) {
            Ok(real) if !real.starts_with(root) => {
                let folder = self.folder.display();
                Err(io::Error::other(format!("{} leads out of {folder}", above.display())))
            }
            Ok(_) => Ok(whole),
            Err(error) => Err(error),
        }
    }

    /// The result of `parse` for the text of a file. The kernel ends each text with a newline, so it is not called for a file
    /// of no bytes, such as one hidden by `/dev/null`.
    ///
    /// # Errors
    /// The errors of [`try_read`](Self::try_read), and [`Unreadable::NotUnderstood`].
    pub fn parsed<T>(&self, path: &str, parse: impl FnOnce(&str) -> Option<T>) -> Result<T, Unreadable> {
        let bytes = self.read_bytes(path)?;
        let value = if bytes.is_empty() { None } else { parse(trimmed(&text(&bytes))) };
        self.noted(path, value.ok_or(Unreadable::NotUnderstood))
    }

    /// The same for a file that can be empty, which has the default value.
    ///
    /// # Errors
    /// The errors of [`parsed`](Self::parsed).
    pub fn parsed_or_empty<T: Default>(
        &self,
        path: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, Unreadable> {
        if self.read_bytes(path)?.is_empty() { Ok(T::default()) } else { self.parsed(path, parse) }
    }

    /// The text of a file, if it is valid.
    ///
    /// # Errors
    /// The errors of [`parsed`](Self::parsed).
    pub fn text_if(&self, path: &str, is_valid: impl FnOnce(&str) -> bool) -> Result<String, Unreadable> {
        self.parsed(path, |text| is_valid(text).then(|| text.to_owned()))
    }

    /// The number in a file that contains only one number.
    #[must_use]
    pub fn number<T: std::str::FromStr>(&self, path: &str) -> Option<T> {
        self.parsed(path, |text| text.parse().ok()).ok()
    }

    /// The text of a file that contains one word, such as the name of a governor.
    ///
    /// # Errors
    /// The errors of [`parsed`](Self::parsed).
    pub fn word(&self, path: &str) -> Result<String, Unreadable> {
        let is_part = |c: char| c.is_ascii_alphanumeric() || "_-.+/:~".contains(c);
        self.text_if(path, |text| !text.is_empty() && text.chars().all(is_part))
    }

    /// The stored target of a symbolic link.
    #[must_use]
    pub fn link(&self, path: &str) -> Option<String> {
        let link = match (self.is_system(), path.rsplit_once('/')) {
            (false, Some((folder, name))) => {
                let folder = self.inside(folder).map_err(|error| Unreadable::from(&error));
                self.noted(path, folder).ok()?.join(name)
            }
            _ => self.path(path),
        };
        let target = match fs::read_link(link) {
            // A file or folder, not a link.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => return None,
            read => self.noted(path, read.map_err(|error| Unreadable::from(&error))).ok()?,
        };
        let target = target.to_string_lossy().into_owned();
        if let Some(mut kept) = self.kept() {
            kept.seen.links.insert(path.trim_start_matches('/').to_owned(), target.clone());
        }
        Some(target)
    }

    /// True if the file or folder exists, as far as this process can see.
    #[must_use]
    pub fn exists(&self, path: &str) -> bool {
        let found =
            if self.is_system() { fs::metadata(self.path(path)).map(drop) } else { self.inside(path).map(drop) };
        let exists = self.noted(path, found.map_err(|error| Unreadable::from(&error))).is_ok();
        if let Some(mut kept) = self.kept().filter(|_| exists) {
            kept.seen.existing.insert(path.trim_start_matches('/').to_owned());
        }
        exists
    }

    /// True if the path is a folder, as far as this process can see.
    #[must_use]
    pub fn is_folder(&self, path: &str) -> bool {
        if self.is_system() { self.path(path).is_dir() } else { self.inside(path).is_ok_and(|path| path.is_dir()) }
    }

    /// True if this process may write to the file; `None` for a recorded machine, whose rights are not known.
    #[must_use]
    pub fn may_write(&self, path: &str) -> Option<bool> {
        self.is_system().then(|| rustix::fs::access(self.path(path), rustix::fs::Access::WRITE_OK).is_ok())
    }

    /// True if the mode of a file lets nobody write it, not even root: the kernel offers no change.
    pub(crate) fn is_fixed(&self, path: &str) -> bool {
        fs::metadata(self.path(path)).is_ok_and(|file| file.permissions().mode() & 0o222 == 0)
    }

    /// The names in a folder, sorted; empty if it cannot be read.
    #[must_use]
    pub fn list(&self, path: &str) -> Vec<String> {
        let folder = if self.is_system() { Ok(self.path(path)) } else { self.inside(path) };
        let entries = folder.and_then(fs::read_dir).map_err(|error| Unreadable::from(&error));
        let Ok(entries) = self.noted(path, entries) else { return Vec::new() };
        let mut names: Vec<String> =
            entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        // A name with control characters is none of a kernel's.
        names.retain(|name| !name.contains(char::is_control));
        names.sort();
        if let Some(mut kept) = self.kept() {
            kept.seen.folders.insert(path.trim_start_matches('/').to_owned(), names.clone());
        }
        names
    }
}

/// True for a text that people or firmware chose: any text that can be printed.
pub(crate) fn is_printable(text: &str) -> bool {
    text.chars().all(|c| (!c.is_control() || c.is_whitespace()) && c != char::REPLACEMENT_CHARACTER)
}

fn text(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// The text without white space and NULs at both ends.
fn trimmed(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || c == '\0')
}

/// The bytes of a file. The kernel reports no size of most files in proc and sysfs: [`fs::read`] begins with 32 bytes
/// and needs several calls, which costs more than the kernel's work.
fn read_at_once(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(4096);
    File::open(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The mode of the kernel's lockdown in brackets, among all modes.
const LOCKDOWN: &str = "sys/kernel/security/lockdown";

impl Unreadable {
    /// The reason why root has no right to read a file, by the text of the file with the lockdown.
    fn of_root(lockdown: Option<&str>) -> Self {
        let is_locked_down = lockdown.is_some_and(|modes| modes.contains('[') && !modes.contains("[none]"));
        if is_locked_down { Self::LockedDown } else { Self::Refused }
    }
}

impl From<&io::Error> for Unreadable {
    fn from(error: &io::Error) -> Self {
        match error.kind() {
            // Its process has ended.
            _ if error.raw_os_error() == Some(Errno::SRCH.raw_os_error()) => Self::Absent,
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Self::Absent,
            io::ErrorKind::PermissionDenied if rustix::process::geteuid().is_root() => {
                // The same for each file, so it is read once.
                static OF_ROOT: OnceLock<Unreadable> = OnceLock::new();
                *OF_ROOT.get_or_init(|| Self::of_root(fs::read_to_string(format!("/{LOCKDOWN}")).ok().as_deref()))
            }
            io::ErrorKind::PermissionDenied => Self::Forbidden,
            _ => Self::Failed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `/proc/interrupts` of a machine with many CPUs and interrupts has megabytes.
    #[test]
    fn the_bytes_of_a_file_are_in_memory_once() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("file"), "text").unwrap();
        let root = Root::at(folder.path()).at_once();
        let [first, second] = [0, 1].map(|_| root.read_bytes("file").unwrap());
        assert!(Arc::ptr_eq(&first, &second));
        assert!(Arc::ptr_eq(&first, root.seen().files["file"].as_ref().unwrap()));
    }

    #[test]
    fn reads_trimmed_text_and_reports_why_a_file_is_unreadable() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        fs::create_dir_all(root.path("proc/device-tree")).unwrap();
        fs::write(root.path("proc/device-tree/model"), b"Some Board\0").unwrap();
        fs::write(root.path("/proc/limit"), " 42\n").unwrap();

        assert_eq!(root.read("proc/device-tree/model").as_deref(), Some("Some Board"));
        assert_eq!(root.number::<u32>("proc/limit"), Some(42));
        assert_eq!(root.list("proc"), ["device-tree", "limit"]);
        assert!(root.exists("proc/limit") && !root.exists("proc/other"));
        assert_eq!(root.try_read("proc/other"), Err(Unreadable::Absent));
        assert_eq!(root.try_read("proc/limit/below"), Err(Unreadable::Absent));
        assert_eq!(root.try_read("proc"), Err(Unreadable::Failed));
        let denied = Unreadable::from(&io::Error::from(io::ErrorKind::PermissionDenied));
        let is_root = rustix::process::geteuid().is_root();
        assert_eq!(denied == Unreadable::Forbidden, !is_root, "{denied}");
        assert_eq!(denied.to_string().ends_with("run as root"), !is_root, "{denied}");
        for (modes, expected) in [
            (Some("none [integrity] confidentiality\n"), Unreadable::LockedDown),
            (Some("none integrity [confidentiality]\n"), Unreadable::LockedDown),
            (Some("[none] integrity confidentiality\n"), Unreadable::Refused),
            (None, Unreadable::Refused),
        ] {
            assert_eq!(Unreadable::of_root(modes), expected, "{modes:?}");
        }
        assert!(root.list("nowhere").is_empty());
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("secret"), "1").unwrap();
        for (name, to) in [("proc/zero", "/dev/zero"), ("proc/out", &*outside.path().to_string_lossy()), ("in", "proc")]
        {
            std::os::unix::fs::symlink(to, root.path(name)).unwrap();
        }
        rustix::fs::mkfifoat(rustix::fs::CWD, root.path("proc/pipe"), rustix::fs::Mode::RWXU).unwrap();
        File::create(root.path("proc/huge")).unwrap().set_len(1 << 40).unwrap();
        assert_eq!(root.number::<u32>("in/limit"), Some(42));
        for path in ["proc/zero", "proc/out/secret", "proc/pipe", "proc/huge", "../secret"] {
            assert!(root.read(path).is_none(), "{path}");
        }
        std::os::unix::fs::symlink("secret", outside.path().join("link")).unwrap();
        std::os::unix::fs::symlink("limit", root.path("proc/link")).unwrap();
        assert_eq!((root.link("proc/link").as_deref(), root.link("proc/out/link")), (Some("limit"), None));
        assert!(root.list("proc/out").is_empty() && !root.exists("proc/out/secret"));
        assert!(!root.is_system() && Root::system().is_system());
    }
}
