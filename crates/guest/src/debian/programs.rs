//! Programs from another Debian than this machine's, with all dependencies including the C library.

use std::{fs, path::PathBuf};

use super::{
    apt::Apt,
    cache::{cache, create_complete, lock},
};
use crate::{Arch, GuestError};

/// A package with programs for a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Package {
    /// Its name.
    pub name: &'static str,
    /// Other packages that it needs in the guest, without depending on them.
    pub with: &'static [&'static str],
    /// The Debian suite.
    pub suite: &'static str,
    /// Its architecture.
    pub arch: Arch,
}

/// The real-time tools of Linux 6.12: the first version in Debian whose `timerlat` explains the latency at which it
/// stopped.
pub const RTLA: Package = Package { name: "rtla", with: &[], suite: "trixie", arch: Arch::X86_64 };

/// Programs for GPIO lines, of libgpiod 2.
pub const GPIOD: Package = Package { name: "gpiod", with: &[], suite: "trixie", arch: Arch::X86_64 };

/// Programs for sources of a pulse per second.
pub const PPS_TOOLS: Package = Package { name: "pps-tools", with: &[], suite: "trixie", arch: Arch::X86_64 };

/// The package manager of the current Debian, with the essential programs that it calls.
pub const DPKG: Package = Package {
    name: "dpkg",
    with: &["coreutils", "dash", "diffutils", "libc-bin"],
    suite: "stable",
    arch: Arch::X86_64,
};

impl Package {
    /// The directory with the unpacked package and its dependencies, downloaded if necessary.
    ///
    /// # Errors
    /// If there is no network, no apt, or no such package.
    pub fn fetch(self, say: &mut dyn FnMut(&str)) -> Result<PathBuf, GuestError> {
        let _lock = lock()?;
        let folder = cache().join(format!("{}-{}-{}", self.name, self.suite, self.arch));
        if fs::exists(&folder).unwrap_or(false) {
            return Ok(folder);
        }
        let apt = Apt::new(self.arch, Some(self.suite), say)?;
        let mut packages = apt.closure(self.name)?;
        for name in self.with {
            packages.extend(apt.closure(name)?);
        }
        packages.sort_unstable();
        packages.dedup();
        create_complete(&folder, |new| packages.iter().try_for_each(|package| apt.unpack(package, new, say)))?;
        Ok(folder)
    }
}
