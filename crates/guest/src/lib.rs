//! Boots kernels in small QEMU guests: builds an initramfs, runs a command inside, and returns files and exit status.
//!
//! | module | contents |
//! |---|---|
//! | [`image`] | kernel images: identified by their magic, unpacked if that speeds up booting |
//! | [`initramfs`] | the guest's first file system: programs, modules, job |
//! | [`cpio`] | the archive format of initramfs and returned files |
//! | [`init`] | the first process inside |
//! | [`frame`] | the protocol on the serial console |
//! | [`network`] | network cards and the links between them |
//! | [`qemu`] | the QEMU command line |
//! | [`run`](mod@run) | boots a guest and collects its results |
//! | [`debian`] | downloads and caches Debian's kernels |
//! | [`error`] | errors |

mod arch;
pub mod cpio;
pub mod debian;
pub mod error;
pub mod frame;
pub mod image;
pub mod init;
pub mod initramfs;
mod memfile;
pub mod network;
pub mod qemu;
pub mod run;

pub use arch::Arch;
pub use cpio::Tree;
pub use error::GuestError;
pub use image::Image;
pub use initramfs::Initramfs;
pub use network::{Card, Link, Model};
pub use qemu::{Guest, Time};
pub use run::{Event, Outcome, run};
