//! Programs of a newer Debian than this machine's, with everything that they need to run, their C library included.

use std::{fs, path::PathBuf};

use super::{
    apt::Apt,
    cache::{at_once, cache, lock},
};
use crate::{Arch, GuestError};

/// A package with programs for a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Package {
    /// Its name.
    pub name: &'static str,
    /// The release of Debian that it is taken from.
    pub suite: &'static str,
    /// What it runs on.
    pub arch: Arch,
}

/// The real-time tools of Linux 6.12: the first in Debian whose `timerlat` explains the latency that it stopped at.
pub const RTLA: Package = Package { name: "rtla", suite: "trixie", arch: Arch::X86_64 };

impl Package {
    /// The folder into which it was unpacked, together with all that it needs; fetched now if need be.
    ///
    /// # Errors
    /// When there is no network, no apt, or no such package.
    pub fn fetch(self, say: &mut dyn FnMut(&str)) -> Result<PathBuf, GuestError> {
        let _alone = lock()?;
        let folder = cache().join(format!("{}-{}-{}", self.name, self.suite, self.arch));
        if fs::exists(&folder).unwrap_or(false) {
            return Ok(folder);
        }
        let apt = Apt::new(self.arch, Some(self.suite), say)?;
        let packages = apt.closure(self.name)?;
        at_once(&folder, |new| packages.iter().try_for_each(|package| apt.unpack(package, new, say)))?;
        Ok(folder)
    }
}
