//! Loads that run during a measurement. Each load records proof that it ran.
//!
//! Every load runs in its own child process, so that its page-table changes, its memory and its crashes do not affect
//! the measuring process. [`Running`] is the parent's side: it starts the workers and collects the proof. [`worker()`]
//! is the child's side, behind the hidden command `punctual __load SPEC --cpus LIST`.
//!
//! | module | contents |
//! |---|---|
//! | [`spec`] | a load as the user writes it: `switch:10us@0-1` |
//! | `options` | the text after the colon |
//! | [`kinds`] | the loads, one file each, and their list |
//! | `protocol` | the lines that a worker writes |
//! | `worker` | the child: threads that are pinned and counted, until its standard input closes |
//! | `meter` | stops a thread of the child, and counts its operations |
//! | `running` | the parent: start, stop, proof |
//! | `child` | one worker process, from the parent's side |
//! | `units` | `10us`, `64M` |

mod child;
mod error;
pub mod kinds;
mod meter;
mod options;
mod protocol;
mod running;
pub mod spec;
mod units;
mod worker;

pub use error::LoadError;
pub use kinds::{KINDS, Kind, Load};
pub use running::Running;
pub use spec::{LoadSpec, SpecError};
pub use worker::worker;

/// The hidden subcommand, which must pass its arguments to [`worker()`].
pub const WORKER_COMMAND: &str = "__load";
