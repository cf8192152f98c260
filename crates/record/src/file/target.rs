//! Which file an output goes to, and whose rights the new one gets.

use std::{
    fs::{self, Metadata},
    io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

/// Links that are followed before they count as a circle: as many as the kernel follows.
const MAX_LINKS: usize = 40;
/// In a folder's mode: all may write to it.
const ALL_WRITE: u32 = 0o002;

/// What is created or replaced.
#[derive(Debug)]
pub(super) struct Target {
    /// Where it is: behind all links.
    pub path: PathBuf,
    /// What stands there, if the new file is to have its rights.
    pub old: Option<Metadata>,
}

impl Target {
    /// What `path` leads to. A link to what is not there leads to what will be created.
    ///
    /// # Errors
    /// When the folder cannot be looked into, or what is there is neither a file nor leads to one.
    pub(super) fn find(path: &Path) -> io::Result<Self> {
        let mut path = path.to_owned();
        for _ in 0..MAX_LINKS {
            let there = match fs::symlink_metadata(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self { path, old: None }),
                there => there?,
            };
            if !there.is_file() && !there.is_symlink() {
                return Err(io::Error::other("it is not a regular file; choose another name"));
            }
            if is_strangers(&there, folder(&path))? {
                return Ok(Self { path, old: None });
            }
            if there.is_file() {
                return Ok(Self { path, old: Some(there) });
            }
            path = folder(&path).join(fs::read_link(&path)?);
        }
        Err(io::Error::other("its links lead in a circle; choose another name"))
    }

    /// The folder that it is in.
    pub(super) fn folder(&self) -> &Path {
        folder(&self.path)
    }
}

fn folder(path: &Path) -> &Path {
    let named = path.parent().filter(|folder| *folder != Path::new(""));
    named.unwrap_or(Path::new("."))
}

/// Whether someone else can have laid it there to catch us, as anyone can in `/tmp`: the kernel's `protected_symlinks`
/// and `protected_regular` draw the line there, too.
fn is_strangers(there: &Metadata, folder: &Path) -> io::Result<bool> {
    let folder = fs::metadata(folder)?;
    let is_ours = [rustix::process::geteuid().as_raw(), folder.uid()].contains(&there.uid());
    Ok(folder.mode() & ALL_WRITE != 0 && !is_ours)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_are_followed_from_the_folder_that_each_is_in() {
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
    fn what_cannot_be_replaced_is_refused() {
        let scratch = tempfile::tempdir().unwrap();
        let at = |name: &str| scratch.path().join(name);
        symlink("there", at("here")).unwrap();
        symlink("here", at("there")).unwrap();
        symlink("/dev/null", at("device")).unwrap();
        let why = |name| Target::find(&at(name)).unwrap_err().to_string();
        assert!(why("here").contains("circle"), "{}", why("here"));
        assert!(why("device").contains("not a regular file"), "{}", why("device"));
        assert!(why("").contains("not a regular file"), "{}", why(""));
    }

    #[test]
    fn a_name_alone_is_in_this_folder() {
        assert_eq!((folder(Path::new("a")), folder(Path::new("b/a"))), (Path::new("."), Path::new("b")));
    }

    /// Tests that need root; `tools/test` leaves them out loudly elsewhere.
    mod rights {
        use super::*;
        use std::os::unix::fs::{PermissionsExt, chown, lchown};

        #[test]
        fn what_a_stranger_has_laid_leads_nowhere() {
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
            // The folder's owner could do all this anyway.
            chown(scratch.path(), Some(4711), None).unwrap();
            assert_eq!(found("link"), (at("victim"), true));
        }
    }
}
