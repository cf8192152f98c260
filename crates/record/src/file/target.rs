//! The file that an output goes to, and whose permissions the new file keeps.

use std::{
    fs::{self, Metadata},
    io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

/// Limit of symbolic links to follow, as in the kernel; more count as a loop.
const MAX_LINKS: usize = 40;
/// The mode bit of a folder that everyone may write to.
const ALL_WRITE: u32 = 0o002;
/// The mode bits of a folder that its group or everyone may write to.
const OTHERS_WRITE: u32 = 0o022;

/// The file to create or replace.
#[derive(Debug)]
pub(super) struct Target {
    /// Its path after following all links.
    pub path: PathBuf,
    /// Metadata of the existing file, if the new file must keep its permissions.
    pub old: Option<Metadata>,
}

impl Target {
    /// Follows the links of `path`. The target of a dangling link is the file that will be created.
    ///
    /// # Errors
    /// If the folder cannot be read, or the target exists and is not a regular file.
    pub(super) fn find(path: &Path) -> io::Result<Self> {
        let mut path = path.to_owned();
        for _ in 0..MAX_LINKS {
            let found = match fs::symlink_metadata(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self { path, old: None }),
                found => found?,
            };
            if !found.is_file() && !found.is_symlink() {
                return Err(io::Error::other("it is not a regular file; choose another name"));
            }
            if is_untrusted(&found, folder(&path))? {
                return Ok(Self { path, old: None });
            }
            if found.is_file() {
                return Ok(Self { path, old: Some(found) });
            }
            if is_foreign(&found) && others_write(folder(&path))? {
                return Err(io::Error::other("it is a symbolic link of another user; name the file itself"));
            }
            path = folder(&path).join(fs::read_link(&path)?);
        }
        Err(io::Error::other("its symbolic links form a loop; choose another name"))
    }

    /// Returns the folder of the file.
    pub(super) fn folder(&self) -> &Path {
        folder(&self.path)
    }
}

fn folder(path: &Path) -> &Path {
    let named = path.parent().filter(|folder| *folder != Path::new(""));
    named.unwrap_or(Path::new("."))
}

/// True if another user may have put the file there as a trap, as anyone can in `/tmp`. The kernel's
/// `protected_symlinks` and `protected_regular` use the same rule.
fn is_untrusted(found: &Metadata, folder: &Path) -> io::Result<bool> {
    let folder = fs::metadata(folder)?;
    let is_ours = [rustix::process::geteuid().as_raw(), folder.uid()].contains(&found.uid());
    Ok(folder.mode() & ALL_WRITE != 0 && !is_ours)
}

/// True if the file belongs neither to this user nor to root.
fn is_foreign(found: &Metadata) -> bool {
    ![rustix::process::geteuid().as_raw(), 0].contains(&found.uid())
}

/// True if another user than this one and root can create a link in the folder. Root must not follow such a link,
/// because names of outputs can be guessed.
fn others_write(folder: &Path) -> io::Result<bool> {
    let folder = fs::metadata(folder)?;
    Ok(is_foreign(&folder) || folder.mode() & OTHERS_WRITE != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn follows_each_link_relative_to_its_own_folder() {
        let scratch = tempfile::tempdir().unwrap();
        let at = |name: &str| scratch.path().join(name);
        fs::create_dir(at("sub")).unwrap();
        fs::write(at("sub/real"), "").unwrap();
        symlink("sub/second", at("first")).unwrap();
        symlink("real", at("sub/second")).unwrap();
        symlink(at("sub/missing"), at("dangling")).unwrap();
        let found = Target::find(&at("first")).unwrap();
        assert_eq!((found.path, found.old.is_some()), (at("sub/real"), true));
        let found = Target::find(&at("dangling")).unwrap();
        assert_eq!((found.path, found.old.is_some()), (at("sub/missing"), false));
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
    fn a_bare_name_is_in_the_current_folder() {
        assert_eq!((folder(Path::new("a")), folder(Path::new("b/a"))), (Path::new("."), Path::new("b")));
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
            let found = |name| Target::find(&at(name)).map(|target| (target.path, target.old.is_some())).unwrap();
            assert_eq!((found("link"), found("open")), ((at("victim"), true), (at("open"), true)));
            fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o1777)).unwrap();
            assert_eq!((found("link"), found("open")), ((at("link"), false), (at("open"), false)));
            // The folder's owner could replace the file anyway, but not what a link points to.
            chown(scratch.path(), Some(4711), None).unwrap();
            assert_eq!(found("open"), (at("open"), true));
            for mode in [0o1777, 0o755] {
                fs::set_permissions(scratch.path(), fs::Permissions::from_mode(mode)).unwrap();
                let refused = Target::find(&at("link")).unwrap_err().to_string();
                assert!(refused.contains("symbolic link of another user"), "{refused}");
            }
            // A link of this user is followed, whoever owns the folder.
            lchown(at("link"), Some(0), None).unwrap();
            assert_eq!(found("link"), (at("victim"), true));
        }
    }
}
