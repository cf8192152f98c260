//! Why the audio thread cannot be started.

use std::io;

use sys::jack::JackError;
use thiserror::Error;

/// Why the audio thread cannot be started.
#[derive(Debug, Error)]
pub enum EngineError {
    /// The system cannot create another thread.
    #[error("cannot start the audio thread: {0}; close other programs")]
    Spawn(#[source] io::Error),
    /// The thread cannot read its scheduling policy and affinity.
    #[error("cannot read back the policy and CPUs of the audio thread: {0}; check that /proc is mounted")]
    Grant(#[source] io::Error),
    /// The JACK server refused a request.
    #[error(transparent)]
    Jack(#[from] JackError),
    /// The JACK server accepted the client but runs no periods.
    #[error("the JACK server runs no periods: restart it")]
    Halted,
}
