//! What can go wrong between two machines, each with its remedy.

use std::{io, path::PathBuf};

/// Why two machines cannot measure together.
#[derive(Debug, thiserror::Error)]
pub enum PairError {
    /// The program that is to reach the other machine is not there.
    #[error("`{ssh}` is not there: install it (`sudo apt-get install openssh-client`), or name another with --ssh")]
    NoSsh {
        /// What was to be started.
        ssh: String,
    },
    /// The other machine was not reached.
    #[error("{host} was not reached (`{ssh}` ended with {status}): its own words stand above; try `{ssh} {host} true`")]
    NotReached {
        /// The other machine.
        host: String,
        /// What was to reach it.
        ssh: String,
        /// How that ended.
        status: String,
    },
    /// The other machine was reached, and the program does not run there.
    #[error(
        "punctual did not start on {host} ({status}): a copy for its architecture runs with `--far-binary FILE`, an \
         installed one with `--far-command punctual`; where /tmp is noexec, set TMPDIR there"
    )]
    NotStarted {
        /// The other machine.
        host: String,
        /// How it ended instead.
        status: String,
    },
    /// There is no program for the other machine.
    #[error(
        "no static punctual for {arch}, which {host} is: name one with --far-binary dist/punctual-{arch} (`make dist` builds \
         it), or install punctual {} on {host}",
        env!("CARGO_PKG_VERSION")
    )]
    NoBinary {
        /// The other machine.
        host: String,
        /// Its architecture, as `uname -m`.
        arch: String,
    },
    /// The program named is for other machines.
    #[error("{} does not run on {host}, which is {arch}: name dist/punctual-{arch} with --far-binary", path.display())]
    WrongBinary {
        /// The other machine.
        host: String,
        /// Its architecture, as `uname -m`.
        arch: String,
        /// The file named.
        path: PathBuf,
    },
    /// The program cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The other end is another version.
    #[error(
        "punctual on {host} is {theirs}, and here it is {}: install the same on both, or leave out --far-command, so that \
         this one is copied",
        env!("CARGO_PKG_VERSION")
    )]
    Version {
        /// The other machine.
        host: String,
        /// Its version.
        theirs: String,
    },
    /// The other end cannot do its part.
    #[error("{host}: {error}")]
    Far {
        /// The other machine.
        host: String,
        /// What it said.
        error: String,
    },
    /// The other end is gone.
    #[error("{host} was lost ({why}): see `ssh {host} dmesg | tail`, and run again")]
    Lost {
        /// The other machine.
        host: String,
        /// How that showed.
        why: String,
    },
    /// The system has no room for a process or a thread.
    #[error("cannot start a process: {0}; close other programs")]
    Spawn(io::Error),
}
