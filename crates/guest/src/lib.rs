//! Kernels in small guests: build an initramfs, boot it, bring files and the exit status back.
//!
//! | module | holds |
//! |---|---|
//! | [`image`] | kernel images: told by their magic, unpacked where that boots faster |
//! | [`initramfs`] | what a guest finds when it wakes: programs, modules, its job |
//! | [`cpio`] | the archive that the kernel unpacks; files come back in one, too |
//! | [`guest`] | the first process inside |
//! | [`frame`] | what goes over the serial console |
//! | [`network`] | network cards, and the cables between them |
//! | [`qemu`] | the machine, and the command line that makes it |
//! | [`run`](mod@run) | boots it, listens, ends it |
//! | [`debian`] | Debian's kernels, fetched and kept |
//! | [`error`] | what can go wrong, with the remedy |

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
