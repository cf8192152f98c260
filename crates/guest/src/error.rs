//! Errors of running a guest.

use std::{io, path::PathBuf, time::Duration};

use crate::{Arch, frame::FrameError};

/// Why a guest returned no results.
#[derive(Debug, thiserror::Error)]
pub enum GuestError {
    /// A file could not be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system error.
        source: io::Error,
    },
    /// A file could not be written.
    #[error("cannot write {}: {source}; check the free disk space", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system error.
        source: io::Error,
    },
    /// The file is not a bootable kernel image.
    #[error(
        "{} is not a kernel image: give an x86 bzImage (arch/x86/boot/bzImage) or vmlinux, or an arm64 Image (arch/arm64/boot/Image)",
        path.display()
    )]
    NotAKernel {
        /// The file.
        path: PathBuf,
    },
    /// The kernel image is damaged, or too large after decompression.
    #[error("cannot unpack {}: {source}; give the unpacked image (arch/arm64/boot/Image)", path.display())]
    Unpack {
        /// The file.
        path: PathBuf,
        /// The error of the decompression.
        source: io::Error,
    },
    /// The file is not a program for a supported architecture.
    #[error("{} is not a program for x86-64 or arm64: give a static one, built with `make dist`", path.display())]
    NotAProgram {
        /// The file.
        path: PathBuf,
    },
    /// The program needs shared libraries, which guests do not have.
    #[error("{} needs shared libraries, which guests do not have: use the static one built by `make dist`, {}", path.display(), arch.dist())]
    NotStatic {
        /// The program.
        path: PathBuf,
        /// Its architecture.
        arch: Arch,
    },
    /// The kernel and the program have different architectures.
    #[error("{} is not for {kernel}, the architecture of the kernel: give --binary {}, built by `make dist`", path.display(), kernel.dist())]
    OtherArch {
        /// The kernel's architecture.
        kernel: Arch,
        /// The program.
        path: PathBuf,
    },
    /// QEMU is not installed.
    #[error("{} is not installed: sudo apt-get install -y --no-install-recommends {}", arch.qemu(), arch.qemu_package())]
    NoQemu {
        /// The guest's architecture.
        arch: Arch,
    },
    /// QEMU ended without any output of the guest.
    #[error("{program} failed: {said}")]
    Qemu {
        /// The QEMU program.
        program: String,
        /// Its last error message.
        said: String,
    },
    /// The kernel printed nothing.
    #[error(
        "no output from the kernel within {} s: build it with CONFIG_TTY, CONFIG_PRINTK and a serial console ({})", after.as_secs(), arch.console_config()
    )]
    Silent {
        /// The kernel's architecture.
        arch: Arch,
        /// The time waited.
        after: Duration,
    },
    /// The guest ended, and the kernel had printed nothing.
    #[error(
        "the guest ended without output from the kernel: check that the image is complete, and built with CONFIG_TTY, \
         CONFIG_PRINTK and a serial console ({})", arch.console_config()
    )]
    EndedSilent {
        /// The kernel's architecture.
        arch: Arch,
    },
    /// The kernel panicked.
    #[error("the kernel panicked: {reason}{}; its last lines:\n{console}", hint(reason))]
    Panic {
        /// The kernel's panic message.
        reason: String,
        /// The last console lines.
        console: String,
    },
    /// The guest ended before its final frame.
    #[error("the guest ended early; the last lines of its console:\n{console}")]
    Ended {
        /// The last console lines.
        console: String,
    },
    /// The guest took too long.
    #[error("the guest did not finish within {} s: increase --timeout; the last lines of its console:\n{console}", after.as_secs())]
    Timeout {
        /// The timeout.
        after: Duration,
        /// The last console lines.
        console: String,
    },
    /// A signal that this process counts ([`sys::signal::count_termination`]) asked it to end.
    #[error("interrupted while the guest ran")]
    Interrupted,
    /// Data on the console was damaged or lost.
    #[error("data was lost on the serial console ({source}): run it again; the last lines:\n{console}")]
    Transport {
        /// The damaged or missing frame.
        source: FrameError,
        /// The last console lines.
        console: String,
    },
    /// The returned files are incomplete.
    #[error("the files of the guest are incomplete ({0}): run it again")]
    Files(String),
    /// The guest could not run its job.
    #[error("inside the guest: {0}")]
    Guest(String),
    /// A required program is missing.
    #[error("{program} is not installed: sudo apt-get install -y --no-install-recommends {package}")]
    Missing {
        /// The program.
        program: String,
        /// The Debian package that contains it.
        package: String,
    },
    /// A program failed.
    #[error("`{command}` failed: {said}")]
    Command {
        /// The command line.
        command: String,
        /// Its error message, one line.
        said: String,
    },
    /// apt does not know the package.
    #[error("apt does not know the package {package}: use Debian 12 with security updates")]
    NoPackage {
        /// The package.
        package: String,
    },
    /// The package lists could not be downloaded, so the package may exist.
    #[error("cannot download {package} ({said}): check the network connection")]
    NoLists {
        /// The package.
        package: String,
        /// The error message of apt.
        said: String,
    },
    /// The kernel must be given by the user.
    #[error("this kernel cannot be downloaded: give one, e.g. {variable}=arch/x86/boot/bzImage")]
    NotGiven {
        /// The environment variable for its path.
        variable: &'static str,
    },
    /// The program must be given by the user.
    #[error("{program} cannot be downloaded: give a static build, e.g. {variable}=build/{program}")]
    ProgramNotGiven {
        /// The program.
        program: &'static str,
        /// The environment variable for its path.
        variable: &'static str,
    },
    /// The kernel has no such module.
    #[error("kernel {release} has no module {module}: choose another kernel")]
    NoModule {
        /// The kernel's release.
        release: String,
        /// The module.
        module: String,
    },
}

impl GuestError {
    /// True if something external is missing: QEMU, another program, a package or the network.
    #[must_use]
    pub fn is_missing_prerequisite(&self) -> bool {
        matches!(
            self,
            Self::NoQemu { .. }
                | Self::Missing { .. }
                | Self::NoPackage { .. }
                | Self::NoLists { .. }
                | Self::NotGiven { .. }
                | Self::ProgramNotGiven { .. }
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

/// Adds the path to an I/O error.
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
