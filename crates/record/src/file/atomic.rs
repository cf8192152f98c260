//! Writing a file atomically.

use std::{
    fs::{File, Permissions},
    io::{self, Cursor, Seek, Write},
    os::unix::fs::{PermissionsExt, fchown},
    path::Path,
};

use rustix::fs::Stat;

use super::{
    FileError,
    target::{Destination, NewFile, Target},
};

/// The permission bits that a new file keeps. Set-user-id and similar bits are dropped.
const RIGHTS: u32 = 0o777;

/// Writes `bytes` to `path` atomically: the file contains the old or the new content at every moment, even after a
/// power cut.
///
/// The bytes go to a new file in the same folder, which then replaces the target. The new file keeps the permission
/// bits of the old one and, as far as this user may set them, owner and group; it does not keep access control lists,
/// extended attributes and other hard links. A symbolic link stays, and the file that it points to is written. In a
/// folder that everyone may write to, files and links of other users are replaced, and their permissions are not kept.
/// Elsewhere, and on the way to the folder, a link is refused unless it belongs to this user or to root. A process that is
/// killed meanwhile leaves a `.punctual-*.new` behind, which the next process that writes to the folder removes.
///
/// # Errors
/// If the folder is not writable, the disk is full, or `path` is not a regular file; the old content is unchanged then.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    replace(path, |file| file.write_all(bytes)).map_err(|source| FileError::Write { path: path.to_owned(), source })
}

/// Writes `bytes` as [`write_atomic`] does, but directly to a pipe or device, such as `/dev/stdout`. One that another
/// user put there is refused.
///
/// # Errors
/// Those of [`write_atomic`], and if the pipe or device refuses the bytes.
pub fn write_or_send(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    let written = match Destination::find(path) {
        Ok(Destination::Special(special)) => special.open().and_then(|mut file| file.write_all(bytes)),
        Ok(Destination::File(target)) => replace_target(&target, |file| file.write_all(bytes)),
        Err(error) => Err(error),
    };
    written.map_err(|source| FileError::Write { path: path.to_owned(), source })
}

/// An output that can be written in any order.
pub trait Output: Write + Seek {}

impl<T: Write + Seek> Output for T {}

/// Writes the output of `fill`, as [`write_or_send`] does: a file changes as a whole or not at all. The content for a pipe
/// or a device is collected in memory and sent at the end.
///
/// # Errors
/// The errors of `fill` and of [`write_or_send`].
pub fn fill_or_send<T, E: From<FileError>>(
    path: &Path,
    fill: impl FnOnce(&mut dyn Output) -> Result<T, E>,
) -> Result<T, E> {
    let failed = |source| E::from(FileError::Write { path: path.to_owned(), source });
    match Destination::find(path).map_err(failed)? {
        Destination::Special(special) => {
            let mut bytes = Cursor::new(Vec::new());
            let filled = fill(&mut bytes)?;
            special.open().and_then(|mut file| file.write_all(bytes.get_ref())).map_err(failed)?;
            Ok(filled)
        }
        Destination::File(target) => {
            let mut new = create_new(&target).map_err(failed)?;
            let filled = fill(new.file())?;
            new.file().sync_data().and_then(|()| new.replace().map(drop)).map_err(failed)?;
            Ok(filled)
        }
    }
}

/// Writes `bytes` to a new file as a whole or not at all. A file or link that exists is never replaced or followed.
///
/// # Errors
/// If something of this name exists, the folder is not writable, or the disk is full.
pub fn write_new(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    let written = Target::unfollowed(path).and_then(|target| {
        let mut new = create_new(&target)?;
        new.file().write_all(bytes)?;
        new.file().sync_data()?;
        new.persist_new()
    });
    written.map_err(|source| FileError::Write { path: path.to_owned(), source })
}

/// Writes `bytes` to a file as a whole or not at all. A link of this name is replaced, not followed.
///
/// # Errors
/// If the folder is not writable, the disk is full, or `path` is a folder; the old content is unchanged then.
pub fn write_unfollowed(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    let written = Target::unfollowed(path).and_then(|target| replace_target(&target, |file| file.write_all(bytes)));
    written.map_err(|source| FileError::Write { path: path.to_owned(), source })
}

/// Checks that [`write_atomic`] will be able to write the file, without touching it.
///
/// # Errors
/// If the folder does not exist or is not writable, or `path` is not a regular file.
pub fn check_writable(path: &Path) -> Result<(), FileError> {
    let tried = Target::find(path).and_then(|target| create_new(&target).map(drop));
    tried.map_err(|source| FileError::Write { path: path.to_owned(), source })
}

/// Creates an empty file that replaces the one at `path`, for data that is written during a run. Links, permissions and
/// the folder are treated as by [`write_atomic`].
///
/// # Errors
/// If the folder is not writable, or `path` is not a regular file; the old file is unchanged then.
pub fn create(path: &Path) -> io::Result<File> {
    let target = Target::find(path)?;
    create_new(&target)?.replace()
}

/// Replaces the file with one that `fill` writes. If anything fails, the new file is deleted.
fn replace(path: &Path, fill: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    replace_target(&Target::find(path)?, fill)
}

fn replace_target(target: &Target, fill: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let mut new = create_new(target)?;
    fill(new.file())?;
    new.file().sync_data()?;
    new.replace().map(drop)
}

/// Creates an empty file in the same folder, with the permissions of the file that it replaces.
fn create_new(target: &Target) -> io::Result<NewFile<'_>> {
    // Private at first: nobody else may open it before it has its final permissions.
    let mut new = target.create_new(if target.old.is_some() { 0o600 } else { 0o666 })?;
    if let Some(old) = &target.old {
        keep_rights(new.file(), old)?;
    }
    Ok(new)
}

fn keep_rights(new: &File, old: &Stat) -> io::Result<()> {
    // Only root may change the owner; otherwise the file belongs to this user.
    let _ = fchown(new, Some(old.st_uid), Some(old.st_gid));
    new.set_permissions(Permissions::from_mode(old.st_mode & RIGHTS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        fs,
        os::unix::fs::{MetadataExt, symlink},
        path::PathBuf,
    };
    use tempfile::TempDir;

    /// Creates a folder with a file `a` that contains `old`.
    fn with_old() -> (TempDir, PathBuf) {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("a");
        fs::write(&path, "old").unwrap();
        (scratch, path)
    }

    /// Lists the folder: names with contents; for links, their targets.
    fn listing(folder: &TempDir) -> Vec<(String, String)> {
        let entries = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap());
        let mut listing: Vec<_> = entries
            .map(|entry| {
                let contents = match fs::read_link(entry.path()) {
                    Ok(to) => format!("-> {}", to.display()),
                    Err(_) => fs::read_to_string(entry.path()).unwrap(),
                };
                (entry.file_name().into_string().unwrap(), contents)
            })
            .collect();
        listing.sort();
        listing
    }

    fn expected_listing(listing: &[(&str, &str)]) -> Vec<(String, String)> {
        listing.iter().map(|&(name, contents)| (name.to_owned(), contents.to_owned())).collect()
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o7777
    }

    #[test]
    fn leaves_other_files_of_the_folder_alone() {
        let (scratch, path) = with_old();
        fs::write(scratch.path().join("mine"), "precious").unwrap();
        symlink("mine", scratch.path().join(".a.new")).unwrap();
        fs::write(scratch.path().join(".b.new"), "precious, too").unwrap();
        write_atomic(&path, b"new").unwrap();
        write_atomic(&scratch.path().join("b"), b"new").unwrap();
        check_writable(&path).unwrap();
        check_writable(&scratch.path().join("b")).unwrap();
        let expected =
            [(".a.new", "-> mine"), (".b.new", "precious, too"), ("a", "new"), ("b", "new"), ("mine", "precious")];
        assert_eq!(listing(&scratch), expected_listing(&expected));
    }

    #[test]
    fn the_check_changes_nothing() {
        let (scratch, path) = with_old();
        symlink("a", scratch.path().join("link")).unwrap();
        symlink("none", scratch.path().join("dangling")).unwrap();
        let (before, number) = (listing(&scratch), fs::metadata(&path).unwrap().ino());
        for name in ["a", "link", "dangling", "new"] {
            check_writable(&scratch.path().join(name)).unwrap();
        }
        assert_eq!((listing(&scratch), fs::metadata(&path).unwrap().ino()), (before, number));
        assert!(check_writable(&scratch.path().join("none/a")).is_err());
        assert!(check_writable(scratch.path()).is_err());
    }

    #[test]
    fn keeps_the_mode_and_gives_a_new_file_the_usual_one() {
        let (scratch, path) = with_old();
        for kept in [0o600, 0o640, 0o664, 0o755] {
            fs::set_permissions(&path, Permissions::from_mode(kept)).unwrap();
            // The mode must be right from the beginning, because a process that opens the file early can keep reading
            // it.
            let fill = |file: &mut File| {
                assert_eq!(file.metadata()?.mode() & 0o7777, kept);
                file.write_all(b"new")
            };
            replace(&path, fill).unwrap();
            assert_eq!((mode(&path), fs::read(&path).unwrap()), (kept, b"new".to_vec()));
        }
        fs::set_permissions(&path, Permissions::from_mode(0o6755)).unwrap();
        write_atomic(&path, b"new").unwrap();
        assert_eq!(mode(&path), 0o755);
        let (ordinary, fresh) = (scratch.path().join("ordinary"), scratch.path().join("fresh"));
        fs::write(&ordinary, "").unwrap();
        write_atomic(&fresh, b"new").unwrap();
        assert_eq!(mode(&fresh), mode(&ordinary));
    }

    #[test]
    fn writes_the_file_that_a_link_points_to() {
        let (scratch, _) = with_old();
        symlink("a", scratch.path().join("link")).unwrap();
        symlink("b", scratch.path().join("dangling")).unwrap();
        write_atomic(&scratch.path().join("link"), b"new").unwrap();
        write_atomic(&scratch.path().join("dangling"), b"newer").unwrap();
        let expected = [("a", "new"), ("b", "newer"), ("dangling", "-> b"), ("link", "-> a")];
        assert_eq!(listing(&scratch), expected_listing(&expected));
    }

    #[test]
    fn sends_to_pipes_and_devices() {
        let (mut reader, writer) = io::pipe().unwrap();
        let pipe = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&writer));
        write_or_send(Path::new(&pipe), b"new").unwrap();
        write_or_send(Path::new("/dev/null"), b"new").unwrap();
        drop(writer);
        let mut sent = String::new();
        io::Read::read_to_string(&mut reader, &mut sent).unwrap();
        assert_eq!(sent, "new");
        let (scratch, path) = with_old();
        write_or_send(&path, b"new").unwrap();
        assert_eq!(listing(&scratch), expected_listing(&[("a", "new")]));
    }

    #[test]
    fn a_file_that_is_filled_changes_as_a_whole() {
        let (scratch, path) = with_old();
        let fill = |fails: bool| {
            fill_or_send(&path, |out| {
                let failed = |source| FileError::Write { path: path.clone(), source };
                out.write_all(b"xew").and_then(|()| out.rewind()).and_then(|()| out.write_all(b"n")).map_err(failed)?;
                match fails {
                    true => Err(failed(io::ErrorKind::StorageFull.into())),
                    false => Ok(7),
                }
            })
        };
        assert!(fill(true).is_err());
        assert_eq!(listing(&scratch), expected_listing(&[("a", "old")]));
        assert_eq!(fill(false).unwrap(), 7);
        assert_eq!(listing(&scratch), expected_listing(&[("a", "new")]));
        assert!(fill_or_send::<_, FileError>(Path::new("/dev/null"), |_| Ok(())).is_ok());
        assert!(fill_or_send::<_, FileError>(scratch.path(), |_| Ok(())).is_err());
    }

    #[test]
    fn a_new_file_replaces_nothing() {
        let (scratch, path) = with_old();
        symlink("none", scratch.path().join("dangling")).unwrap();
        for taken in [&path, &scratch.path().join("dangling")] {
            let FileError::Write { source, .. } = write_new(taken, b"new").unwrap_err() else { panic!() };
            assert_eq!(source.kind(), io::ErrorKind::AlreadyExists);
        }
        write_new(&scratch.path().join("b"), b"new").unwrap();
        assert_eq!(listing(&scratch), expected_listing(&[("a", "old"), ("b", "new"), ("dangling", "-> none")]));
    }

    #[test]
    fn an_unfollowed_write_replaces_a_link() {
        let (scratch, _) = with_old();
        symlink("a", scratch.path().join("link")).unwrap();
        write_unfollowed(&scratch.path().join("link"), b"new").unwrap();
        write_unfollowed(&scratch.path().join("b"), b"other").unwrap();
        assert_eq!(listing(&scratch), expected_listing(&[("a", "old"), ("b", "other"), ("link", "new")]));
    }

    #[test]
    fn a_failed_write_leaves_only_the_old_content() {
        let (scratch, path) = with_old();
        let full = |file: &mut File| {
            file.write_all(b"half")?;
            Err(io::ErrorKind::StorageFull.into())
        };
        assert_eq!(replace(&path, full).unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert!(replace(&scratch.path().join("b"), full).is_err());
        assert_eq!(listing(&scratch), expected_listing(&[("a", "old")]));
    }

    #[test]
    fn fails_if_another_file_took_the_name_meanwhile() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("a");
        let taken = |_: &mut File| fs::create_dir(&path);
        assert!(replace(&path, taken).is_err());
        let names: Vec<_> = fs::read_dir(scratch.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(names, [path]);
    }

    #[test]
    fn an_error_names_the_requested_path() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("none/a");
        let expected = format!(
            "cannot write {}: No such file or directory (os error 2); create its folder, or choose another one",
            path.display()
        );
        assert_eq!(write_atomic(&path, b"").unwrap_err().to_string(), expected);
        assert_eq!(check_writable(&path).unwrap_err().to_string(), expected);
    }

    #[test]
    fn writes_a_file_with_the_longest_possible_name() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("a".repeat(255));
        check_writable(&path).unwrap();
        write_atomic(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
    }

    /// Tests that need root; `tools/test` reports that it skips them without root.
    mod rights {
        use super::*;
        use std::os::unix::fs::{chown, lchown};

        #[test]
        fn root_keeps_the_owner_of_the_replaced_file() {
            let (_scratch, path) = with_old();
            chown(&path, Some(4711), Some(4712)).unwrap();
            fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
            write_atomic(&path, b"new").unwrap();
            let there = fs::metadata(&path).unwrap();
            assert_eq!((there.uid(), there.gid(), mode(&path)), (4711, 4712, 0o600));
        }

        #[test]
        fn replaces_a_link_of_another_user_instead_of_following_it() {
            let (scratch, _) = with_old();
            symlink("a", scratch.path().join("link")).unwrap();
            lchown(scratch.path().join("link"), Some(4711), None).unwrap();
            fs::set_permissions(scratch.path(), Permissions::from_mode(0o1777)).unwrap();
            write_atomic(&scratch.path().join("link"), b"new").unwrap();
            assert_eq!(listing(&scratch), expected_listing(&[("a", "old"), ("link", "new")]));
        }
    }
}
