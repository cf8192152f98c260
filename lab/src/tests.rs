//! The tests, one module per subject. They run as root inside a guest, in a directory that is returned to the host.
//! Only `command` runs on the host and boots guests itself.

pub mod agreement;
pub mod amp;
pub mod audio;
mod blocker;
pub mod bound;
pub mod campaign;
pub mod cards;
pub mod command;
pub mod culprits;
pub mod evl;
pub mod exact;
pub mod guests;
pub mod interrupt;
pub mod isolation;
pub mod kernel;
pub mod launch;
pub mod nics;
pub mod noise;
pub mod package;
pub mod peers;
pub mod process;
pub mod reboot;
pub mod shield;
pub mod threads;
pub mod timer;
pub mod timerlat;
pub mod tune;
