//! Writing a file so that it is whole at every moment.

use std::{
    fs::{File, Metadata, Permissions},
    io::{self, Write},
    os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown},
    path::Path,
};

use tempfile::NamedTempFile;

use super::{FileError, target::Target};

/// Of a mode: what all may have. A program's file that runs as its owner is not made here.
const RIGHTS: u32 = 0o777;

/// Writes `bytes` to `path` so that the file holds the old content or the new at every moment, power cuts included.
///
/// The bytes go to a new file beside it, which then takes its place. Of what is replaced, the new file keeps the
/// permission bits and, as far as the kernel allows this user, owner and group; not its access lists, extended
/// attributes and further names. A link stays, and what it leads to is written; but in a folder that all may write to,
/// what someone else has put there is neither followed nor are its rights kept. A process that is killed meanwhile may
/// leave a `.punctual-*.new` behind, which nothing needs.
///
/// # Errors
/// When the folder is not writable, the disk is full, or `path` is no regular file; what was there is unchanged then.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    replace(path, |file| file.write_all(bytes)).map_err(|source| FileError::Write { path: path.to_owned(), source })
}

/// Checks, without touching the file itself, that [`write_atomic`] will be able to write it.
///
/// # Errors
/// When the folder does not exist or is not writable, or `path` is no regular file.
pub fn check_writable(path: &Path) -> Result<(), FileError> {
    let tried = Target::find(path).and_then(|target| beside(&target)?.close());
    tried.map_err(|source| FileError::Write { path: path.to_owned(), source })
}

/// The new file is gone again if anything fails.
fn replace(path: &Path, fill: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let target = Target::find(path)?;
    let mut new = beside(&target)?;
    fill(new.as_file_mut())?;
    new.as_file().sync_data()?;
    new.persist(&target.path)?;
    Ok(())
}

/// A new, empty file in the same folder, with the rights that the target is to have.
fn beside(target: &Target) -> io::Result<NamedTempFile> {
    // Nobody else gets a hold of it before it is as private as what it replaces.
    let mode = if target.old.is_some() { 0o600 } else { 0o666 };
    let create = |path: &Path| File::options().write(true).create_new(true).mode(mode).open(path);
    // The target's name is not in it: that may be as long as a name can be.
    let new = tempfile::Builder::new().prefix(".punctual-").suffix(".new").make_in(target.folder(), create)?;
    if let Some(old) = &target.old {
        keep_rights(new.as_file(), old)?;
    }
    Ok(new)
}

fn keep_rights(new: &File, old: &Metadata) -> io::Result<()> {
    // Only root may give files away; a file of one's own is as good.
    let _ = fchown(new, Some(old.uid()), Some(old.gid()));
    new.set_permissions(Permissions::from_mode(old.mode() & RIGHTS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, os::unix::fs::symlink, path::PathBuf};
    use tempfile::TempDir;

    /// A folder with a file `a` that holds `old`.
    fn with_old() -> (TempDir, PathBuf) {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("a");
        fs::write(&path, "old").unwrap();
        (scratch, path)
    }

    /// All that is in the folder: names, and what files hold. Links are told, not followed.
    fn all(folder: &TempDir) -> Vec<(String, String)> {
        let entries = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap());
        let mut all: Vec<_> = entries
            .map(|entry| {
                let held = match fs::read_link(entry.path()) {
                    Ok(to) => format!("-> {}", to.display()),
                    Err(_) => fs::read_to_string(entry.path()).unwrap(),
                };
                (entry.file_name().into_string().unwrap(), held)
            })
            .collect();
        all.sort();
        all
    }

    fn told(all: &[(&str, &str)]) -> Vec<(String, String)> {
        all.iter().map(|&(name, held)| (name.to_owned(), held.to_owned())).collect()
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o7777
    }

    #[test]
    fn what_else_is_in_the_folder_stays() {
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
        assert_eq!(all(&scratch), told(&expected));
    }

    #[test]
    fn the_check_leaves_everything_as_it_was() {
        let (scratch, path) = with_old();
        symlink("a", scratch.path().join("link")).unwrap();
        symlink("none", scratch.path().join("dangling")).unwrap();
        let (before, number) = (all(&scratch), fs::metadata(&path).unwrap().ino());
        for name in ["a", "link", "dangling", "new"] {
            check_writable(&scratch.path().join(name)).unwrap();
        }
        assert_eq!((all(&scratch), fs::metadata(&path).unwrap().ino()), (before, number));
        assert!(check_writable(&scratch.path().join("none/a")).is_err());
        assert!(check_writable(scratch.path()).is_err());
    }

    #[test]
    fn the_mode_is_kept_and_a_new_file_has_the_usual_one() {
        let (scratch, path) = with_old();
        for kept in [0o600, 0o640, 0o664, 0o755] {
            fs::set_permissions(&path, Permissions::from_mode(kept)).unwrap();
            // From the beginning: who opens it before it is full may go on reading.
            let begun = |file: &mut File| {
                assert_eq!(file.metadata()?.mode() & 0o7777, kept);
                file.write_all(b"new")
            };
            replace(&path, begun).unwrap();
            assert_eq!((mode(&path), fs::read(&path).unwrap()), (kept, b"new".to_vec()));
        }
        fs::set_permissions(&path, Permissions::from_mode(0o6755)).unwrap();
        write_atomic(&path, b"new").unwrap();
        assert_eq!(mode(&path), 0o755);
        let (usual, fresh) = (scratch.path().join("usual"), scratch.path().join("fresh"));
        fs::write(&usual, "").unwrap();
        write_atomic(&fresh, b"new").unwrap();
        assert_eq!(mode(&fresh), mode(&usual));
    }

    #[test]
    fn what_a_link_leads_to_is_written() {
        let (scratch, _) = with_old();
        symlink("a", scratch.path().join("link")).unwrap();
        symlink("b", scratch.path().join("dangling")).unwrap();
        write_atomic(&scratch.path().join("link"), b"new").unwrap();
        write_atomic(&scratch.path().join("dangling"), b"newer").unwrap();
        let expected = [("a", "new"), ("b", "newer"), ("dangling", "-> b"), ("link", "-> a")];
        assert_eq!(all(&scratch), told(&expected));
    }

    #[test]
    fn a_failed_write_leaves_the_old_content_and_nothing_else() {
        let (scratch, path) = with_old();
        let full = |file: &mut File| {
            file.write_all(b"half")?;
            Err(io::ErrorKind::StorageFull.into())
        };
        assert_eq!(replace(&path, full).unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert!(replace(&scratch.path().join("b"), full).is_err());
        assert_eq!(all(&scratch), told(&[("a", "old")]));
    }

    #[test]
    fn a_name_that_was_taken_meanwhile_is_left_to_its_owner() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("a");
        let taken = |_: &mut File| fs::create_dir(&path);
        assert!(replace(&path, taken).is_err());
        let names: Vec<_> = fs::read_dir(scratch.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(names, [path]);
    }

    #[test]
    fn an_error_names_what_was_asked_for() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("none/a");
        let expected = format!("cannot write {}: No such file or directory (os error 2)", path.display());
        assert_eq!(write_atomic(&path, b"").unwrap_err().to_string(), expected);
        assert_eq!(check_writable(&path).unwrap_err().to_string(), expected);
    }

    #[test]
    fn a_name_may_be_as_long_as_names_can_be() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("a".repeat(255));
        check_writable(&path).unwrap();
        write_atomic(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
    }

    /// Tests that need root; `tools/test` leaves them out loudly elsewhere.
    mod rights {
        use super::*;
        use std::os::unix::fs::{chown, lchown};

        #[test]
        fn what_root_replaces_stays_its_owners() {
            let (_scratch, path) = with_old();
            chown(&path, Some(4711), Some(4712)).unwrap();
            fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
            write_atomic(&path, b"new").unwrap();
            let there = fs::metadata(&path).unwrap();
            assert_eq!((there.uid(), there.gid(), mode(&path)), (4711, 4712, 0o600));
        }

        #[test]
        fn what_a_stranger_has_laid_is_replaced_itself() {
            let (scratch, _) = with_old();
            symlink("a", scratch.path().join("link")).unwrap();
            lchown(scratch.path().join("link"), Some(4711), None).unwrap();
            fs::set_permissions(scratch.path(), Permissions::from_mode(0o1777)).unwrap();
            write_atomic(&scratch.path().join("link"), b"new").unwrap();
            assert_eq!(all(&scratch), told(&[("a", "old"), ("link", "new")]));
        }
    }
}
