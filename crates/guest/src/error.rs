//! What can go wrong between here and a guest, each with its remedy.

use std::{io, path::PathBuf, time::Duration};

use crate::{Arch, frame::FrameError};

/// Why a guest brought nothing back.
#[derive(Debug, thiserror::Error)]
pub enum GuestError {
    /// A file could not be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file could not be written.
    #[error("cannot write {}: {source}; is there room on the disk?", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file is no kernel image that can be booted.
    #[error(
        "{} is no kernel image: give an x86 bzImage (arch/x86/boot/bzImage) or vmlinux, or an arm64 Image (arch/arm64/boot/Image)",
        path.display()
    )]
    NotAKernel {
        /// The file.
        path: PathBuf,
    },
    /// The file is no program.
    #[error("{} is no program for x86-64 or arm64: give a static one, made with `make dist`", path.display())]
    NotAProgram {
        /// The file.
        path: PathBuf,
    },
    /// The program needs shared libraries, which the guest does not have.
    #[error("{} needs shared libraries, which a guest does not have: use the static one that `make dist` makes, {}", path.display(), arch.dist())]
    NotStatic {
        /// The program.
        path: PathBuf,
        /// Its architecture.
        arch: Arch,
    },
    /// Kernel and program are for different architectures.
    #[error("the kernel is for {kernel} and {} is not: give --binary {}, which `make dist` makes", path.display(), kernel.dist())]
    OtherArch {
        /// The kernel's architecture.
        kernel: Arch,
        /// The program.
        path: PathBuf,
    },
    /// The emulator is not installed.
    #[error("no {} on this machine: sudo apt-get install -y --no-install-recommends {}", arch.qemu(), arch.qemu_package())]
    NoQemu {
        /// The architecture that was to be emulated.
        arch: Arch,
    },
    /// The emulator ended without a word of the guest.
    #[error("{program} refused: {said}")]
    Qemu {
        /// The emulator.
        program: String,
        /// What it said.
        said: String,
    },
    /// The kernel printed nothing at all.
    #[error(
        "no output from the kernel within {} s: build it with CONFIG_TTY, CONFIG_PRINTK and a serial console ({})", after.as_secs(), arch.console_config()
    )]
    Silent {
        /// Its architecture.
        arch: Arch,
        /// How long it was waited for.
        after: Duration,
    },
    /// The kernel panicked.
    #[error("the kernel panicked: {reason}{}; its last lines:\n{console}", hint(reason))]
    Panic {
        /// What it said.
        reason: String,
        /// The end of its console.
        console: String,
    },
    /// The guest ended before it had said all.
    #[error("the guest ended before its end mark; the last lines of its console:\n{console}")]
    Ended {
        /// The end of its console.
        console: String,
    },
    /// Time is up.
    #[error("the guest was not done after {} s: give it more with --timeout; the last lines of its console:\n{console}", after.as_secs())]
    Timeout {
        /// How long it was given.
        after: Duration,
        /// The end of its console.
        console: String,
    },
    /// What came over the console is not whole.
    #[error("the serial console lost something ({source}); the last lines:\n{console}")]
    Transport {
        /// What is wrong.
        source: FrameError,
        /// The end of its console.
        console: String,
    },
    /// The files that came back are not whole.
    #[error("the files of the guest did not arrive whole: {0}")]
    Files(String),
    /// The guest could not do what it was to do.
    #[error("inside the guest: {0}")]
    Guest(String),
    /// A program that unpacks or fetches is missing.
    #[error("{program} is missing: sudo apt-get install -y --no-install-recommends {package}")]
    Missing {
        /// The program.
        program: String,
        /// The Debian package that has it.
        package: String,
    },
    /// A program that unpacks or fetches failed.
    #[error("`{command}` failed: {said}")]
    Command {
        /// The command line.
        command: String,
        /// What it said, in one line.
        said: String,
    },
    /// No kernel package of this name is known.
    #[error("no package {package} known to apt: a Debian 12 with its security updates has it")]
    NoPackage {
        /// The package.
        package: String,
    },
    /// The package lists could not be fetched, so that the package may only be unknown.
    #[error("cannot fetch {package} ({said}): is there a network?")]
    NoLists {
        /// The package.
        package: String,
        /// What apt said.
        said: String,
    },
    /// A kernel that nobody distributes was not given.
    #[error("no such kernel can be fetched: give one, as {variable}=arch/x86/boot/bzImage")]
    NotGiven {
        /// The variable of the environment that names it.
        variable: &'static str,
    },
    /// The kernel has no such module.
    #[error("kernel {release} has no module {module}")]
    NoModule {
        /// The kernel's release.
        release: String,
        /// The module.
        module: String,
    },
}

impl GuestError {
    /// Whether something is not there that comes from elsewhere: the emulator, another program, a package, the network.
    #[must_use]
    pub fn is_lack(&self) -> bool {
        matches!(
            self,
            Self::NoQemu { .. }
                | Self::Missing { .. }
                | Self::NoPackage { .. }
                | Self::NoLists { .. }
                | Self::NotGiven { .. }
                | Self::Command { .. }
        )
    }
}

fn hint(reason: &str) -> &'static str {
    if reason.contains("unable to mount root") || reason.contains("Unable to mount root") {
        " (build it with CONFIG_BLK_DEV_INITRD)"
    } else if reason.contains("No working init") || reason.contains("Requested init") {
        " (build it with CONFIG_BLK_DEV_INITRD, CONFIG_BINFMT_ELF and 64-bit programs)"
    } else if reason.contains("emory") {
        " (give the guest more with --memory)"
    } else {
        ""
    }
}

/// Adds the file to what the system said.
pub(crate) trait At<T> {
    fn reading(self, path: &std::path::Path) -> Result<T, GuestError>;
    fn writing(self, path: &std::path::Path) -> Result<T, GuestError>;
}

impl<T> At<T> for io::Result<T> {
    fn reading(self, path: &std::path::Path) -> Result<T, GuestError> {
        self.map_err(|source| GuestError::Read { path: path.to_owned(), source })
    }

    fn writing(self, path: &std::path::Path) -> Result<T, GuestError> {
        self.map_err(|source| GuestError::Write { path: path.to_owned(), source })
    }
}
