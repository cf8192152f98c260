//! Errors of starting and running a load.

use std::{io, path::PathBuf};

use machine::CpuList;

/// The reasons why a load cannot start or continue. Each message is one sentence with a remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The named CPUs cannot be used.
    #[error("load `{load}` cannot use its CPUs: {reason}")]
    Cpus {
        /// The load as written.
        load: String,
        /// The reason with its remedy.
        #[source]
        reason: machine::CpuError,
    },
    /// The kernel did not put a thread on its CPU.
    #[error("the kernel did not put a load on CPUs {wanted} ({reason}): name CPUs that `taskset -cp $$` shows")]
    Affinity {
        /// The requested CPUs.
        wanted: CpuList,
        /// The kernel's error, or the CPUs that it granted.
        reason: String,
    },
    /// `idle` was combined with another load.
    #[error("load `idle` cannot be combined with other loads: leave it out, or leave the others out")]
    IdleWithOthers,
    /// The child process could not be started.
    #[error("cannot start a worker for load `{load}` from {}: {reason}", exe.display())]
    Spawn {
        /// The load as written.
        load: String,
        /// The program.
        exe: PathBuf,
        /// The kernel's error.
        #[source]
        reason: io::Error,
    },
    /// The worker reported an error.
    #[error("{0}")]
    Worker(String),
    /// The worker was not ready in time.
    #[error("load `{load}` was not ready within {seconds} s: the machine may be overloaded, try fewer loads")]
    NotReady {
        /// The load as written.
        load: String,
        /// The time limit, s.
        seconds: u64,
    },
    /// A load cannot have what it needs: memory, a right, a folder, an interface, a program.
    #[error("load `{load}` {reason}")]
    Failed {
        /// Name of the load.
        load: &'static str,
        /// The rest of the sentence, with the remedy.
        reason: String,
    },
    /// The kernel refused something that it normally grants.
    #[error("load `{load}`: the kernel refused {what}: {reason}")]
    Kernel {
        /// Name of the load.
        load: &'static str,
        /// The refused request.
        what: &'static str,
        /// The kernel's error.
        #[source]
        reason: io::Error,
    },
}

impl LoadError {
    /// Returns a function for `map_err`: the kernel refused `what`.
    pub(crate) fn kernel<E: Into<io::Error>>(load: &'static str, what: &'static str) -> impl Fn(E) -> Self {
        move |reason| Self::Kernel { load, what, reason: reason.into() }
    }
}
