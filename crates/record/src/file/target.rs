//! The file that an output goes to, and whose permissions the new file keeps.
//!
//! Links are followed one by one, and each folder is opened before the next part of the path is read. Somebody who
//! renames a folder meanwhile therefore cannot move the output elsewhere.

use std::{
    collections::BTreeSet,
    ffi::{OsStr, OsString},
    fs::File,
    io,
    os::{
        fd::OwnedFd,
        unix::{ffi::OsStrExt, fs::MetadataExt},
    },
    path::{Component, Path},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use rustix::{
    fs::{
        AtFlags, CWD, Dir, FileType, Mode, OFlags, RenameFlags, Stat, fstat, linkat, mkdirat, openat, readlinkat,
        renameat, renameat_with, statat, unlinkat,
    },
    io::Errno,
};

/// Limit of symbolic links to follow, as in the kernel; more count as a loop.
const MAX_LINKS: usize = 40;
/// Start and end of the name of a file that is not complete; the process and a number are between them.
const UNFINISHED: &str = ".punctual-";
const NEW: &str = ".new";

/// The id of the process that writes, or was killed while it wrote, the incomplete file of this name; `None` for other files.
#[must_use]
pub fn writer_of_unfinished(name: &str) -> Option<u32> {
    let (process, number) = name.strip_prefix(UNFINISHED)?.strip_suffix(NEW)?.split_once('-')?;
    number.parse::<u64>().ok().and(process.parse().ok())
}

/// Names of temporary files that are tried.
const MAX_NAMES: usize = 1000;
/// Number of the next temporary file of this process.
static NEXT: AtomicU64 = AtomicU64::new(1);
/// The mode bit of a folder that everyone may write to.
const ALL_WRITE: u32 = 0o002;
/// The mode bits of a folder that its group or everyone may write to.
const OTHERS_WRITE: u32 = 0o022;
/// Flags to open a folder of a path.
const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// The file to create or replace.
#[derive(Debug)]
pub(super) struct Target {
    /// Its folder.
    folder: OwnedFd,
    name: OsString,
    /// Data of the existing file, if the new file must keep its permissions.
    pub old: Option<Stat>,
}

/// A pipe, a device or a socket.
#[derive(Debug)]
pub(super) struct Special {
    folder: OwnedFd,
    name: OsString,
    found: Stat,
}

/// The destination that a path leads to.
#[derive(Debug)]
pub(super) enum Destination {
    /// A regular file, which may not exist yet.
    File(Target),
    /// A pipe, a device or a socket.
    Special(Special),
}

impl Target {
    /// Follows the links of `path`. The target of a dangling link is the file that will be created.
    ///
    /// # Errors
    /// If the folder cannot be read, the target exists and is not a regular file, or other users chose where the path
    /// leads.
    pub(super) fn find(path: &Path) -> io::Result<Self> {
        match Destination::find(path)? {
            Destination::File(target) => Ok(target),
            Destination::Special(_) => Err(not_regular()),
        }
    }

    /// The file of this name, which is not followed if it is a link.
    ///
    /// # Errors
    /// If the folder cannot be read, or other users chose where it leads.
    pub(super) fn unfollowed(path: &Path) -> io::Result<Self> {
        let mut walk = Walk::begin(path)?;
        let name = walk.descend()?.ok_or_else(not_regular)?;
        Ok(Self { folder: walk.folder, name, old: None })
    }

    /// Creates an empty file in the same folder, with these permission bits. Removes the incomplete files of killed
    /// processes there first.
    ///
    /// # Errors
    /// If the folder is not writable.
    pub(super) fn create_new(&self, mode: u32) -> io::Result<NewFile<'_>> {
        self.remove_abandoned_once();
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        for _ in 0..MAX_NAMES {
            // Without the target's name in it, which may already be as long as names can be.
            let number = NEXT.fetch_add(1, Relaxed);
            let name = format!("{UNFINISHED}{}-{number}{NEW}", std::process::id());
            match openat(&self.folder, &name, flags, Mode::from_raw_mode(mode)) {
                Ok(file) => {
                    let file = File::from(file);
                    // Shows processes of other namespaces that this one is alive. Some file systems have no locks.
                    let _ = file.try_lock();
                    return Ok(NewFile { target: self, name, file: Some(file) });
                }
                // A process that was killed, or one of another namespace, has this name.
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(io::Error::other("all names of temporary files are taken; delete .punctual-*.new in its folder"))
    }

    /// Removes the incomplete files of killed processes in the folder, at the first write of this process there.
    fn remove_abandoned_once(&self) {
        static DONE: Mutex<BTreeSet<(u64, u64)>> = Mutex::new(BTreeSet::new());
        let Ok(folder) = fstat(&self.folder) else { return };
        if DONE.lock().unwrap_or_else(PoisonError::into_inner).insert((folder.st_dev, folder.st_ino)) {
            self.remove_abandoned();
        }
    }

    /// Removes the incomplete files of this user in the folder whose writers were killed. What cannot be removed stays.
    fn remove_abandoned(&self) {
        let has_proc = Path::new("/proc/self").exists();
        // The descriptor of the folder is only for paths, and cannot be read.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let Ok(entries) = openat(&self.folder, ".", flags, Mode::empty()).and_then(Dir::new) else { return };
        for entry in entries.flatten() {
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            let writer = name.to_str().and_then(writer_of_unfinished);
            let has_ended = writer.is_some_and(|writer| has_proc && !Path::new(&format!("/proc/{writer}")).exists());
            if has_ended && self.is_abandoned(name) {
                let _ = unlinkat(&self.folder, name, AtFlags::empty());
            }
        }
    }

    /// True for a file of this user that no process has locked. A process of another namespace of process ids locks its file
    /// at once.
    fn is_abandoned(&self, name: &OsStr) -> bool {
        const LOCKED_WITHIN: Duration = Duration::from_secs(1);
        let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let Ok(file) = openat(&self.folder, name, flags, Mode::empty()).map(File::from) else { return false };
        let Ok(data) = file.metadata() else { return false };
        let is_old = data.modified().ok().and_then(|at| at.elapsed().ok()).is_some_and(|age| age > LOCKED_WITHIN);
        let is_own = data.is_file() && data.uid() == rustix::process::geteuid().as_raw();
        is_own && is_old && file.try_lock().is_ok()
    }
}

/// A file that replaces its target when it is complete. It is deleted on drop.
#[derive(Debug)]
pub(super) struct NewFile<'a> {
    target: &'a Target,
    name: String,
    /// `None` once it has replaced the target.
    file: Option<File>,
}

impl NewFile<'_> {
    /// The file, for writing.
    pub(super) fn file(&mut self) -> &mut File {
        self.file.as_mut().expect("it has not replaced the target yet")
    }

    /// Gives it the name of the target, and replaces the old file.
    ///
    /// # Errors
    /// If the target has become a folder, or the folder is not writable.
    pub(super) fn replace(mut self) -> io::Result<File> {
        let Target { folder, name, .. } = self.target;
        renameat(folder, &self.name, folder, name)?;
        Ok(self.file.take().expect("it has not replaced the target yet"))
    }

    /// Gives it the name of the target, unless something has this name.
    ///
    /// # Errors
    /// If something has this name, or the folder is not writable.
    pub(super) fn persist_new(mut self) -> io::Result<()> {
        let Target { folder, name, .. } = self.target;
        match renameat_with(folder, &self.name, folder, name, RenameFlags::NOREPLACE) {
            // Some file systems do not know the flag. The temporary name is deleted on drop.
            Err(Errno::INVAL) => linkat(folder, &self.name, folder, name, AtFlags::empty())?,
            renamed => {
                renamed?;
                self.file = None;
            }
        }
        Ok(())
    }
}

impl Drop for NewFile<'_> {
    fn drop(&mut self) {
        if self.file.is_some() {
            let _ = unlinkat(&self.target.folder, &self.name, AtFlags::empty());
        }
    }
}

impl Special {
    /// Opens it for writing.
    ///
    /// # Errors
    /// That of the system, or if another file has replaced it.
    pub(super) fn open(&self) -> io::Result<File> {
        let is_link = FileType::from_raw_mode(self.stat_name(AtFlags::SYMLINK_NOFOLLOW)?.st_mode).is_symlink();
        // A link in /proc leads to a file that is open already.
        let no_link = if is_link && is_proc(&self.folder) { OFlags::empty() } else { OFlags::NOFOLLOW };
        let flags = OFlags::WRONLY | OFlags::NOCTTY | OFlags::CLOEXEC | no_link;
        let file = openat(&self.folder, &self.name, flags, Mode::empty())?;
        let opened = fstat(&file)?;
        match (opened.st_dev, opened.st_ino) == (self.found.st_dev, self.found.st_ino) {
            true => Ok(file.into()),
            false => Err(io::Error::other("it was replaced by another file just now; choose another name")),
        }
    }

    fn stat_name(&self, flags: AtFlags) -> io::Result<Stat> {
        Ok(statat(&self.folder, &self.name, flags)?)
    }
}

impl Destination {
    /// Follows the links of `path`, also to pipes and devices.
    ///
    /// # Errors
    /// If the folder cannot be read, the path leads to a folder, or other users chose where it leads.
    pub(super) fn find(path: &Path) -> io::Result<Self> {
        let mut walk = Walk::begin(path)?;
        loop {
            let name = walk.descend()?.ok_or_else(not_regular)?;
            let found = match statat(&walk.folder, &name, AtFlags::SYMLINK_NOFOLLOW) {
                Err(Errno::NOENT) => return Ok(Self::File(Target { folder: walk.folder, name, old: None })),
                found => found?,
            };
            let folder = fstat(&walk.folder)?;
            match FileType::from_raw_mode(found.st_mode) {
                FileType::Directory => return Err(not_regular()),
                FileType::RegularFile | FileType::Symlink if is_untrusted(&found, &folder) => {
                    return Ok(Self::File(Target { folder: walk.folder, name, old: None }));
                }
                FileType::RegularFile => {
                    return Ok(Self::File(Target { folder: walk.folder, name, old: Some(found) }));
                }
                FileType::Symlink => match walk.open_pipe(&name) {
                    Some(found) => return Ok(Self::Special(Special { folder: walk.folder, name, found })),
                    None => walk.follow(&name, &found)?,
                },
                _ if is_trap(&found, &folder) => {
                    return Err(io::Error::other("it is a pipe or device of another user; choose another name"));
                }
                _ => return Ok(Self::Special(Special { folder: walk.folder, name, found })),
            }
        }
    }
}

/// Creates a folder and those above it. Returns true if it is new, and false if it existed.
///
/// # Errors
/// That of the system, or if a symbolic link of another user is in the path.
pub fn create_folder(path: &Path) -> io::Result<bool> {
    let mut walk = Walk { creates: true, ..Walk::begin(path)? };
    loop {
        let Some(name) = walk.descend()? else { return Ok(false) };
        match mkdirat(&walk.folder, &name, Mode::from_raw_mode(0o777)) {
            Ok(()) => return Ok(true),
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        let found = statat(&walk.folder, &name, AtFlags::SYMLINK_NOFOLLOW)?;
        match FileType::from_raw_mode(found.st_mode) {
            FileType::Directory => return Ok(false),
            FileType::Symlink => walk.follow(&name, &found)?,
            _ => return Err(io::Error::other("it is not a folder; choose another name")),
        }
    }
}

/// A path on the way to its last part.
struct Walk {
    /// The folder of the next part.
    folder: OwnedFd,
    /// The parts that follow, the last one first.
    parts: Vec<OsString>,
    links: usize,
    /// True to create missing folders.
    creates: bool,
}

impl Walk {
    fn begin(path: &Path) -> io::Result<Self> {
        let start = if path.is_absolute() { "/" } else { "." };
        let folder = openat(CWD, start, FOLDER, Mode::empty())?;
        Ok(Self { folder, parts: parts_of(path), links: 0, creates: false })
    }

    /// Opens all folders before the last part, which it returns; `None` if the path ends with a folder.
    fn descend(&mut self) -> io::Result<Option<OsString>> {
        while let Some(part) = self.parts.pop() {
            if part == ".." {
                self.folder = openat(&self.folder, "..", FOLDER, Mode::empty())?;
                continue;
            }
            if self.parts.is_empty() {
                return Ok(Some(part));
            }
            let found = match statat(&self.folder, &part, AtFlags::SYMLINK_NOFOLLOW) {
                Err(Errno::NOENT) if self.creates => {
                    mkdirat(&self.folder, &part, Mode::from_raw_mode(0o777))?;
                    statat(&self.folder, &part, AtFlags::SYMLINK_NOFOLLOW)
                }
                found => found,
            }?;
            if FileType::from_raw_mode(found.st_mode).is_symlink() {
                self.follow(&part, &found)?;
            } else {
                self.folder = openat(&self.folder, &part, FOLDER, Mode::empty())?;
            }
        }
        Ok(None)
    }

    /// Follows a link, unless another user put it there. The folder may have been open to others when it was put there.
    fn follow(&mut self, name: &OsStr, found: &Stat) -> io::Result<()> {
        if is_foreign(found) {
            let name = name.to_string_lossy();
            return Err(io::Error::other(format!(
                "{name} is a symbolic link of another user; remove it, or name the file or folder itself"
            )));
        }
        self.links += 1;
        if self.links > MAX_LINKS {
            return Err(io::Error::other("its symbolic links form a loop; choose another name"));
        }
        let text = readlinkat(&self.folder, name, Vec::new())?;
        let text = Path::new(OsStr::from_bytes(text.as_bytes()));
        if text.is_absolute() {
            self.folder = openat(CWD, "/", FOLDER, Mode::empty())?;
        }
        self.parts.extend(parts_of(text));
        Ok(())
    }

    /// The pipe or device that a link such as `/proc/self/fd/1` leads to, although its text, `pipe:[17]`, is no path.
    fn open_pipe(&self, link: &OsStr) -> Option<Stat> {
        if !is_proc(&self.folder) {
            return None;
        }
        let open = statat(&self.folder, link, AtFlags::empty()).ok()?;
        let kind = FileType::from_raw_mode(open.st_mode);
        (!kind.is_file() && !kind.is_dir()).then_some(open)
    }
}

/// The parts of a path, the last one first.
fn parts_of(path: &Path) -> Vec<OsString> {
    let parts = path.components().filter(|part| matches!(part, Component::Normal(_) | Component::ParentDir));
    parts.rev().map(|part| part.as_os_str().to_owned()).collect()
}

fn is_proc(folder: &OwnedFd) -> bool {
    rustix::fs::fstatfs(folder).is_ok_and(|file_system| file_system.f_type == rustix::fs::PROC_SUPER_MAGIC)
}

fn not_regular() -> io::Error {
    io::Error::other("it is not a regular file; choose another name")
}

/// True if another user may have put the file there as a trap, as anyone can in `/tmp`. The kernel's
/// `protected_symlinks` and `protected_regular` use the same rule.
fn is_untrusted(found: &Stat, folder: &Stat) -> bool {
    let is_ours = [rustix::process::geteuid().as_raw(), folder.st_uid].contains(&found.st_uid);
    folder.st_mode & ALL_WRITE != 0 && !is_ours
}

/// True if another user put the pipe or device into a folder that others can write to. Root must not write to it, because
/// names of outputs can be guessed.
fn is_trap(found: &Stat, folder: &Stat) -> bool {
    is_foreign(found) && (is_foreign(folder) || folder.st_mode & OTHERS_WRITE != 0)
}

/// True if the file belongs neither to this user nor to root.
fn is_foreign(found: &Stat) -> bool {
    ![rustix::process::geteuid().as_raw(), 0].contains(&found.st_uid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        fs,
        os::{fd::AsRawFd, unix::fs::symlink},
        path::PathBuf,
    };

    fn path_of(folder: &OwnedFd, name: &OsStr) -> PathBuf {
        fs::read_link(format!("/proc/self/fd/{}", folder.as_raw_fd())).unwrap().join(name)
    }

    /// The file that a path leads to, and true if the new file keeps its permissions.
    fn found(path: &Path) -> (PathBuf, bool) {
        let target = Target::find(path).unwrap();
        (path_of(&target.folder, &target.name), target.old.is_some())
    }

    #[test]
    fn follows_each_link_relative_to_its_own_folder() {
        let scratch = tempfile::tempdir().unwrap();
        let at = |name: &str| scratch.path().join(name);
        fs::create_dir(at("sub")).unwrap();
        fs::write(at("sub/real"), "").unwrap();
        symlink("sub/second", at("first")).unwrap();
        symlink("real", at("sub/second")).unwrap();
        symlink(at("sub/missing"), at("dangling")).unwrap();
        assert_eq!(found(&at("first")), (at("sub/real"), true));
        assert_eq!(found(&at("dangling")), (at("sub/missing"), false));
        symlink("sub", at("folder")).unwrap();
        assert_eq!(found(&at("folder/../folder/./second")), (at("sub/real"), true));
    }

    #[test]
    fn refuses_link_loops_and_devices() {
        let scratch = tempfile::tempdir().unwrap();
        let at = |name: &str| scratch.path().join(name);
        symlink("there", at("here")).unwrap();
        symlink("here", at("there")).unwrap();
        symlink("/dev/null", at("device")).unwrap();
        let why = |name| Target::find(&at(name)).unwrap_err().to_string();
        assert!(why("here").contains("loop"), "{}", why("here"));
        assert!(why("device").contains("not a regular file"), "{}", why("device"));
        assert!(why("").contains("not a regular file"), "{}", why(""));
    }

    #[test]
    fn a_renamed_folder_does_not_move_the_file() {
        let scratch = tempfile::tempdir().unwrap();
        let at = |name: &str| scratch.path().join(name);
        for folder in ["mine", "other"] {
            fs::create_dir(at(folder)).unwrap();
        }
        let target = Target::find(&at("mine/a")).unwrap();
        fs::rename(at("mine"), at("moved")).unwrap();
        symlink("other", at("mine")).unwrap();
        target.create_new(0o600).unwrap().replace().unwrap();
        assert!(at("moved/a").is_file() && !at("other/a").exists());
    }

    #[test]
    fn incomplete_files_of_killed_processes_are_removed() {
        let scratch = tempfile::tempdir().unwrap();
        let at = |name: &str| scratch.path().join(name);
        // The largest process id is 2^22.
        let [abandoned, locked, fresh] = [1, 2, 3].map(|number| format!(".punctual-5000000-{number}.new"));
        let alive = format!(".punctual-{}-99999.new", std::process::id());
        let others = [&*locked, &*fresh, &*alive, ".punctual-5000000-x.new", "mine.new"];
        for name in others.into_iter().chain([&*abandoned]) {
            let file = File::create(at(name)).unwrap();
            if name != fresh {
                file.set_modified(std::time::SystemTime::now() - Duration::from_secs(60)).unwrap();
            }
        }
        symlink("mine.new", at(".punctual-5000000-4.new")).unwrap();
        let writer = File::open(at(&locked)).unwrap();
        writer.lock().unwrap();
        Target::find(&at("a")).unwrap().remove_abandoned();
        assert!(!at(&abandoned).exists());
        assert!(others.iter().all(|name| at(name).exists()), "{:?}", fs::read_dir(scratch.path()).unwrap());
        assert!(at(".punctual-5000000-4.new").is_symlink());
    }

    #[test]
    fn creates_folders_once() {
        let scratch = tempfile::tempdir().unwrap();
        let at = |name: &str| scratch.path().join(name);
        assert!(create_folder(&at("a/b/c")).unwrap());
        assert!(!create_folder(&at("a/b/c")).unwrap());
        symlink("a/b", at("link")).unwrap();
        assert!(create_folder(&at("link/d")).unwrap() && at("a/b/d").is_dir());
        fs::write(at("file"), "").unwrap();
        assert!(create_folder(&at("file")).unwrap_err().to_string().contains("not a folder"));
    }

    #[test]
    fn finds_pipes_and_devices() {
        let scratch = tempfile::tempdir().unwrap();
        let at = |name: &str| scratch.path().join(name);
        let path = |path: &Path| match Destination::find(path).unwrap() {
            Destination::Special(Special { folder, name, .. }) => path_of(&folder, &name),
            Destination::File(target) => panic!("{target:?}"),
        };
        symlink("/dev/null", at("device")).unwrap();
        assert_eq!(path(&at("device")), Path::new("/dev/null"));
        let (_reader, writer) = io::pipe().unwrap();
        let open = format!("/proc/self/fd/{}", writer.as_raw_fd());
        symlink(&open, at("pipe")).unwrap();
        assert_eq!(path(&at("pipe")).file_name(), Path::new(&open).file_name());
    }

    /// Tests that need root; `tools/test` reports that it skips them without root.
    mod rights {
        use super::*;
        use std::os::unix::fs::{PermissionsExt, chown, lchown};

        #[test]
        fn does_not_follow_links_of_other_users_in_a_shared_folder() {
            let scratch = tempfile::tempdir().unwrap();
            let at = |name: &str| scratch.path().join(name);
            fs::write(at("victim"), "").unwrap();
            symlink("victim", at("link")).unwrap();
            fs::write(at("open"), "").unwrap();
            for name in ["link", "open"] {
                lchown(at(name), Some(4711), None).unwrap();
            }
            let found = |name| found(&at(name));
            assert_eq!(found("open"), (at("open"), true));
            // The folder may have been open to others when they made the link.
            let refused = || Target::find(&at("link")).unwrap_err().to_string();
            assert!(refused().contains("link is a symbolic link of another user; remove it"), "{}", refused());
            fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o1777)).unwrap();
            assert_eq!((found("link"), found("open")), ((at("link"), false), (at("open"), false)));
            // The folder's owner could replace the file anyway, but not what a link points to.
            chown(scratch.path(), Some(4711), None).unwrap();
            assert_eq!(found("open"), (at("open"), true));
            for mode in [0o1777, 0o755] {
                fs::set_permissions(scratch.path(), fs::Permissions::from_mode(mode)).unwrap();
                assert!(refused().contains("symbolic link of another user"), "{}", refused());
            }
            // Pipes and devices of other users are not opened.
            rustix::fs::mkfifoat(CWD, at("pipe"), Mode::RWXU).unwrap();
            let pipe = || Destination::find(&at("pipe"));
            assert!(matches!(pipe(), Ok(Destination::Special(..))));
            chown(at("pipe"), Some(4711), None).unwrap();
            assert!(pipe().unwrap_err().to_string().contains("pipe or device of another user"));
            // A link of this user is followed, whoever owns the folder.
            lchown(at("link"), Some(0), None).unwrap();
            assert_eq!(found("link"), (at("victim"), true));
            // Links to folders follow the same rules.
            fs::create_dir(at("sub")).unwrap();
            symlink("sub", at("folder")).unwrap();
            assert_eq!(found("folder/a"), (at("sub/a"), false));
            lchown(at("folder"), Some(4711), None).unwrap();
            for refused in [Target::find(&at("folder/a")).map(drop), create_folder(&at("folder/b")).map(drop)] {
                let refused = refused.unwrap_err().to_string();
                assert!(refused.contains("folder is a symbolic link of another user"), "{refused}");
            }
        }
    }
}
