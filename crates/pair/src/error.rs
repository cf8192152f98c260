//! Errors of measurements between two machines.

use std::{io, path::PathBuf};

/// Why a measurement between two machines failed.
#[derive(Debug, thiserror::Error)]
pub enum PairError {
    /// The ssh program is missing.
    #[error("`{ssh}` is not installed: run `sudo apt-get install openssh-client`, or give another program with --ssh")]
    NoSsh {
        /// The command that was run.
        ssh: String,
    },
    /// ssh did not reach the other machine.
    #[error("cannot reach {host} (`{ssh}` ended with {status}): see its messages above and try `{ssh} {host} true`")]
    NotReached {
        /// The other machine.
        host: String,
        /// The ssh command.
        ssh: String,
        /// Its exit status.
        status: String,
    },
    /// The other machine was reached, but the program did not start.
    #[error(
        "punctual did not start on {host} ({status}): try a copy for its architecture with `--far-binary FILE`, or an \
        installed one with `--far-command punctual`; if /tmp is mounted noexec, set TMPDIR there"
    )]
    NotStarted {
        /// The other machine.
        host: String,
        /// The reason, with the exit status of ssh if it has ended.
        status: String,
    },
    /// The copied program needs shared libraries, and did not start on the other machine.
    #[error(
        "the copied punctual needs shared libraries, and did not start on {host} ({status}): build one that needs none \
         with `make dist`, and add --far-binary dist/punctual-{arch}; if /tmp is mounted noexec, set TMPDIR there"
    )]
    NeedsLibraries {
        /// The other machine.
        host: String,
        /// Its architecture as printed by `uname -m`.
        arch: String,
        /// The reason, with the exit status of ssh if it has ended.
        status: String,
    },
    /// There is no suitable program for the other machine.
    #[error(
        "no punctual for {arch}, which {host} is: {}install punctual {} on {host}", build(arch), env!("CARGO_PKG_VERSION")
    )]
    NoBinary {
        /// The other machine.
        host: String,
        /// Its architecture as printed by `uname -m`.
        arch: String,
    },
    /// The given program is for another architecture.
    #[error("{} does not run on {host}, which is {arch}: give dist/punctual-{arch} with --far-binary", path.display())]
    WrongBinary {
        /// The other machine.
        host: String,
        /// Its architecture as printed by `uname -m`.
        arch: String,
        /// The given file.
        path: PathBuf,
    },
    /// The program cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system error.
        source: io::Error,
    },
    /// The other end has another version.
    #[error(
        "punctual on {host} has version {theirs}, and here it has {}: install the same version on both, or omit \
         --far-command so that this one is copied",
        env!("CARGO_PKG_VERSION")
    )]
    Version {
        /// The other machine.
        host: String,
        /// Its version.
        theirs: String,
    },
    /// The other end cannot perform the measurement.
    #[error("{host}: {error}")]
    Far {
        /// The other machine.
        host: String,
        /// Its error message.
        error: String,
    },
    /// The connection to the other end was lost.
    #[error("{host} was lost ({why}): check `ssh {host} dmesg | tail` and run again")]
    Lost {
        /// The other machine.
        host: String,
        /// The reason.
        why: String,
    },
    /// A process or thread cannot be started.
    #[error("cannot start a process: {0}; close other programs")]
    Spawn(io::Error),
}

/// How to build a program for an architecture, if `make dist` can.
fn build(arch: &str) -> String {
    match arch {
        "x86_64" | "aarch64" => {
            format!("build it with `make dist`, and add --far-binary dist/punctual-{arch}; or ")
        }
        _ => String::new(),
    }
}
