//! What runs beside a measurement, each load proving that it ran.
//!
//! Every load runs in a child process of its own, so that its page-table work, its memory and its crashes do not touch
//! the measuring process. [`Running`] is the measuring side: it starts the children and collects the proof. [`worker()`]
//! is the child's side, behind the hidden command `punctual __load SPEC --cpus LIST`.
//!
//! | module | holds |
//! |---|---|
//! | [`spec`] | a load as written: `switch:10us@0-1` |
//! | `options` | the part after the colon |
//! | [`kinds`] | the loads themselves, one file each, and the table that names them |
//! | `protocol` | the lines that a worker writes |
//! | `worker` | the child: threads, pinned and counted, until its standard input closes |
//! | `running` | the parent: start, stop, proof |
//! | `child` | one worker, seen from the parent |
//! | `units` | `10us`, `64M` |

mod child;
mod error;
pub mod kinds;
mod options;
mod protocol;
mod running;
pub mod spec;
mod units;
mod worker;

pub use error::LoadError;
pub use kinds::{KINDS, Kind};
pub use running::Running;
pub use spec::{Load, LoadSpec, SpecError};
pub use worker::worker;

/// The hidden subcommand that must hand its arguments to [`worker()`].
pub const WORKER_COMMAND: &str = "__load";
