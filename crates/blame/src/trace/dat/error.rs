//! Errors of reading and writing trace files.

use std::{io, path::PathBuf};

use thiserror::Error;

use crate::trace::error::TraceError;

/// Reason why a trace file cannot be read or written.
#[derive(Debug, Error)]
pub enum DatError {
    /// The file cannot be opened or read.
    #[error("cannot read the trace {path} ({source}): give a file written by `trace-cmd record -o`")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// The file is not a trace.
    #[error("{path} is not a trace of trace-cmd: give a file written by `trace-cmd record -o`")]
    Other {
        /// The file.
        path: PathBuf,
    },
    /// The file is compressed.
    #[error(
        "the trace {path} is compressed: unpack it with `trace-cmd convert --compression none -i {path} -o plain.dat`"
    )]
    Compressed {
        /// The file.
        path: PathBuf,
    },
    /// The file has an unknown version, or is from a big-endian machine.
    #[error("the trace {path} is {kind}: convert it with `trace-cmd convert --file-version 6 -i {path} -o plain.dat`")]
    Unknown {
        /// The file.
        path: PathBuf,
        /// Version or byte order of the file.
        kind: String,
    },
    /// The file is truncated or inconsistent.
    #[error("the trace {path} is damaged in its {part}: record it again")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The damaged part.
        part: &'static str,
    },
    /// The file cannot be written.
    #[error("cannot write the trace {path} ({source}): choose a writable path with enough free space")]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// The kernel's trace cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
}
