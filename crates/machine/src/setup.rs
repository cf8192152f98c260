//! The rights of ordinary users to real-time priority and locked memory: a file of limits for a user or a group, or
//! capabilities of the binary.

use std::{
    fmt,
    fs::File,
    io::{self, Read, Write},
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    str::FromStr,
};

use rustix::{
    fs::{AtFlags, Mode, OFlags, RenameFlags, ResolveFlags, XattrFlags},
    io::Errno,
};
use thiserror::Error;

use crate::Root;

/// The folder of limits that `pam_limits` reads when a user logs in.
const FOLDER: &str = "etc/security/limits.d";
const NAME: &str = "90-punctual.conf";
/// First line of a file that punctual wrote. Other files are left alone.
const MARK: &str = "# Written by `punctual setup`; `punctual setup --undo` removes it.";
/// Size of the largest file that can be one of punctual, bytes.
const SIZE_MAX: u64 = 1 << 16;

/// The extended attribute of file capabilities, `capabilities(7)`.
const ATTRIBUTE: &str = "security.capability";
/// `struct vfs_cap_data` of `linux/capability.h`, revision 2 with the effective flag: CAP_IPC_LOCK and CAP_SYS_NICE are
/// permitted.
const CAPABILITIES: [u8; 20] = {
    let permitted = (1_u32 << 14 | 1 << 23).to_le_bytes();
    let [a, b, c, d] = permitted;
    [1, 0, 0, 2, a, b, c, d, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
};

/// A user, or with `@` a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account(String);

impl Account {
    /// The file below `/etc` that lists it, and its name there.
    #[must_use]
    pub fn listed_in(&self) -> (&'static str, &str) {
        self.0.strip_prefix('@').map_or(("etc/passwd", self.0.as_str()), |group| ("etc/group", group))
    }

    /// True if this machine's own files list the account. One of a directory service is not in them.
    #[must_use]
    pub fn is_listed(&self, root: &Root) -> bool {
        let (file, name) = self.listed_in();
        let text = root.read(file).unwrap_or_default();
        text.lines().any(|line| line.split(':').next() == Some(name))
    }
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Account {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let name = text.strip_prefix('@').unwrap_or(text);
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
        let begins_well = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        if begins_well && name.len() <= 32 && name.chars().all(is_allowed) {
            Ok(Self(text.to_owned()))
        } else {
            Err("must be a user, or a group with @, e.g. alice or @audio".to_owned())
        }
    }
}

/// A change of the rights was not made.
#[derive(Debug, Error)]
pub enum SetupError {
    /// The folder of limits does not exist.
    #[error("{0} does not exist, so this machine has no limits by user: use `punctual setup --capabilities`")]
    NoFolder(PathBuf),
    /// The file is not as punctual writes it.
    #[error("{0} is not as `punctual setup` writes it, so it is left alone: rename or remove it first")]
    Foreign(PathBuf),
    /// The binary has other capabilities.
    #[error("{0} has other capabilities, which are left alone: see `getcap`, and remove them with `setcap -r`")]
    OtherCapabilities(PathBuf),
    /// The kernel refused it.
    #[error("cannot change {path}: {source}")]
    Refused {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// The file of limits.
pub struct Limits {
    folder: OwnedFd,
    path: PathBuf,
    found: Found,
}

/// The file at the path.
enum Found {
    Nothing,
    Ours(Vec<Account>),
    Foreign,
}

impl Limits {
    /// Opens the folder below the root, whose links cannot lead out of it, and reads the file.
    ///
    /// # Errors
    /// If there is no such folder, or the file cannot be read.
    pub fn open(root: &Root) -> Result<Self, SetupError> {
        let folder_path = root.path(FOLDER);
        let path = folder_path.join(NAME);
        let refused = |source: io::Error| SetupError::Refused { path: path.clone(), source };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let top = rustix::fs::open(root.path(""), flags, Mode::empty()).map_err(|error| refused(error.into()))?;
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = match rustix::fs::openat2(top, FOLDER, flags, Mode::empty(), resolve) {
            Err(Errno::NOENT | Errno::NOTDIR) => return Err(SetupError::NoFolder(folder_path)),
            opened => opened.map_err(|error| refused(error.into()))?,
        };
        let found = find(&folder).map_err(refused)?;
        Ok(Self { folder, path, found })
    }

    /// The path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The text of the file with this account added; `None` if the file contains the account already.
    ///
    /// # Errors
    /// If the file is not one of punctual.
    pub fn with(&self, account: &Account) -> Result<Option<String>, SetupError> {
        match &self.found {
            Found::Nothing => Ok(Some(text(std::slice::from_ref(account)))),
            Found::Ours(accounts) if accounts.contains(account) => Ok(None),
            Found::Ours(accounts) => Ok(Some(text(&[accounts.as_slice(), std::slice::from_ref(account)].concat()))),
            Found::Foreign => Err(SetupError::Foreign(self.path.clone())),
        }
    }

    /// True if there is a file to remove.
    ///
    /// # Errors
    /// If the file is not one of punctual.
    pub fn is_written(&self) -> Result<bool, SetupError> {
        match self.found {
            Found::Nothing => Ok(false),
            Found::Ours(_) => Ok(true),
            Found::Foreign => Err(SetupError::Foreign(self.path.clone())),
        }
    }

    /// Writes the file as a whole. What appeared there meanwhile is not replaced.
    ///
    /// # Errors
    /// If the file has changed since it was read, or the folder is not writable.
    pub fn write(&self, text: &str) -> Result<(), SetupError> {
        let refused = |source| SetupError::Refused { path: self.path.clone(), source };
        let flags = match (&self.found, find(&self.folder).map_err(refused)?) {
            (Found::Nothing, Found::Nothing) => RenameFlags::NOREPLACE,
            (Found::Ours(_), Found::Ours(_)) => RenameFlags::empty(),
            _ => return Err(SetupError::Foreign(self.path.clone())),
        };
        let new = format!(".{NAME}.{}", std::process::id());
        let created = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.folder, &new, created, Mode::from_raw_mode(0o644));
        let mut file = File::from(file.map_err(|error| refused(error.into()))?);
        let mut written = || -> io::Result<()> {
            // Independent of the umask, because each login reads it.
            rustix::fs::fchmod(&file, Mode::from_raw_mode(0o644))?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            Ok(rustix::fs::renameat_with(&self.folder, &new, &self.folder, NAME, flags)?)
        };
        written().map_err(|source| {
            let _ = rustix::fs::unlinkat(&self.folder, &new, AtFlags::empty());
            refused(source)
        })
    }

    /// Removes the file, unless it has changed since it was read.
    ///
    /// # Errors
    /// If the file has changed, or the folder is not writable.
    pub fn remove(&self) -> Result<(), SetupError> {
        let refused = |source| SetupError::Refused { path: self.path.clone(), source };
        if !matches!(find(&self.folder).map_err(refused)?, Found::Ours(_)) {
            return Err(SetupError::Foreign(self.path.clone()));
        }
        rustix::fs::unlinkat(&self.folder, NAME, AtFlags::empty()).map_err(|error| refused(error.into()))
    }
}

/// Reads the file. A link is not followed, and is not a file of punctual.
fn find(folder: &OwnedFd) -> io::Result<Found> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match rustix::fs::openat(folder, NAME, flags, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(Found::Nothing),
        Err(Errno::LOOP) => return Ok(Found::Foreign),
        opened => File::from(opened?),
    };
    if !file.metadata()?.is_file() {
        return Ok(Found::Foreign);
    }
    let mut bytes = Vec::new();
    file.take(SIZE_MAX).read_to_end(&mut bytes)?;
    let accounts = String::from_utf8(bytes).ok().and_then(|found| accounts(&found));
    Ok(accounts.map_or(Found::Foreign, Found::Ours))
}

/// The text of the file for these accounts.
fn text(accounts: &[Account]) -> String {
    let lines = accounts.iter().map(|account| format!("{account} - rtprio 99\n{account} - memlock unlimited\n"));
    format!("{MARK}\n{}", lines.collect::<String>())
}

/// The accounts of a file; `None` if punctual does not write this text.
fn accounts(found: &str) -> Option<Vec<Account>> {
    let names = found.lines().skip(1).step_by(2).map(|line| line.split(' ').next().unwrap_or_default().parse().ok());
    let accounts: Vec<Account> = names.collect::<Option<_>>()?;
    (!accounts.is_empty() && text(&accounts) == found).then_some(accounts)
}

/// The capabilities of the running binary.
pub struct Binary {
    file: File,
    path: PathBuf,
    found: Option<Vec<u8>>,
}

impl Binary {
    /// Opens the binary of this process.
    ///
    /// # Errors
    /// If `/proc` is not mounted, or the binary or its attributes cannot be read.
    pub fn open() -> Result<Self, SetupError> {
        let path = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("/proc/self/exe"));
        let refused = |source| SetupError::Refused { path: path.clone(), source };
        let file = File::open("/proc/self/exe").map_err(refused)?;
        let mut bytes = vec![0; 64];
        let found = match rustix::fs::fgetxattr(&file, ATTRIBUTE, &mut bytes) {
            Ok(length) => {
                bytes.truncate(length);
                Some(bytes)
            }
            Err(Errno::NODATA | Errno::OPNOTSUPP) => None,
            Err(error) => return Err(refused(error.into())),
        };
        Ok(Self { file, path, found })
    }

    /// The path of the binary.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// True if the binary has the capabilities of [`RIGHTS`](crate::RIGHTS).
    ///
    /// # Errors
    /// If it has others.
    pub fn is_capable(&self) -> Result<bool, SetupError> {
        match self.found.as_deref() {
            None => Ok(false),
            Some(found) if found == CAPABILITIES => Ok(true),
            Some(_) => Err(SetupError::OtherCapabilities(self.path.clone())),
        }
    }

    /// Gives the binary the capabilities, or takes them.
    ///
    /// # Errors
    /// If this process has no CAP_SETFCAP, or the file system has no capabilities.
    pub fn set(&self, capable: bool) -> Result<(), SetupError> {
        let done = if capable {
            rustix::fs::fsetxattr(&self.file, ATTRIBUTE, &CAPABILITIES, XattrFlags::empty())
        } else {
            rustix::fs::fremovexattr(&self.file, ATTRIBUTE)
        };
        done.map_err(|error| SetupError::Refused { path: self.path.clone(), source: error.into() })
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    fn account(text: &str) -> Account {
        text.parse().unwrap()
    }

    /// A root with the folder of limits, and the path of the file.
    fn machine() -> (tempfile::TempDir, Root, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join(FOLDER)).unwrap();
        let (root, path) = (Root::at(folder.path()), folder.path().join(FOLDER).join(NAME));
        (folder, root, path)
    }

    fn add(root: &Root, name: &str) {
        let limits = Limits::open(root).unwrap();
        limits.write(&limits.with(&account(name)).unwrap().unwrap()).unwrap();
    }

    #[test]
    fn accounts_are_added_and_the_whole_file_is_removed() {
        let (folder, root, path) = machine();
        add(&root, "alice");
        add(&root, "@audio");
        let expected = format!(
            "{MARK}\nalice - rtprio 99\nalice - memlock unlimited\n@audio - rtprio 99\n@audio - memlock unlimited\n"
        );
        assert_eq!(fs::read_to_string(&path).unwrap(), expected);
        let limits = Limits::open(&root).unwrap();
        assert_eq!(limits.with(&account("alice")).unwrap(), None, "it is there");
        assert!(limits.is_written().unwrap());
        limits.remove().unwrap();
        assert_eq!(fs::read_dir(folder.path().join(FOLDER)).unwrap().count(), 0);
        assert!(!Limits::open(&root).unwrap().is_written().unwrap());
    }

    #[test]
    fn what_others_wrote_stays() {
        let (_folder, root, path) = machine();
        add(&root, "alice");
        let ours = fs::read_to_string(&path).unwrap();
        for foreign in [String::new(), ours.clone() + "bob - nofile 1\n", ours.replace("99", "98"), ours + "\n"] {
            fs::write(&path, &foreign).unwrap();
            let limits = Limits::open(&root).unwrap();
            assert!(limits.is_written().is_err() && limits.with(&account("bob")).is_err(), "{foreign}");
            assert!(limits.remove().is_err());
            assert_eq!(fs::read_to_string(&path).unwrap(), foreign);
        }
    }

    #[test]
    fn a_file_that_appears_meanwhile_is_not_replaced() {
        let (_folder, root, path) = machine();
        let limits = Limits::open(&root).unwrap();
        fs::write(&path, "of another").unwrap();
        assert!(limits.write("ours").is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "of another");
    }

    #[test]
    fn links_are_not_followed_out_of_the_root() {
        let (folder, root, path) = machine();
        let outside = tempfile::tempdir().unwrap();
        let target = outside.path().join("target");
        fs::write(&target, text(&[account("alice")])).unwrap();
        symlink(&target, &path).unwrap();
        assert!(Limits::open(&root).unwrap().is_written().is_err(), "a link is not ours");
        // A link of the way leads to a place below the root.
        fs::remove_dir_all(folder.path().join("etc/security")).unwrap();
        symlink(outside.path(), folder.path().join("etc/security")).unwrap();
        fs::create_dir(outside.path().join("limits.d")).unwrap();
        assert!(matches!(Limits::open(&root), Err(SetupError::NoFolder(_))));
    }

    #[test]
    fn names_cannot_add_lines() {
        for wrong in ["", "@", "*", "%audio", "a b", "a\nroot", "-a", "1000", "a:b", "a#"] {
            assert!(wrong.parse::<Account>().is_err(), "{wrong:?}");
        }
        assert_eq!(account("@audio").listed_in(), ("etc/group", "audio"));
    }
}
