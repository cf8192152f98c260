//! Errors of reading and writing trace files.

use std::{io, path::PathBuf};

use thiserror::Error;

use crate::trace::error::TraceError;

/// Why a trace file cannot be read or written.
#[derive(Debug, Error)]
pub enum DatError {
    /// It cannot be opened or read.
    #[error("cannot read the trace {path} ({source}): give a file that `trace-cmd record -o` wrote")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is something else.
    #[error("{path} is no trace of trace-cmd: give a file that `trace-cmd record -o` wrote")]
    Other {
        /// The file.
        path: PathBuf,
    },
    /// It is compressed.
    #[error(
        "the trace {path} is compressed: unpack it with `trace-cmd convert --compression none -i {path} -o plain.dat`"
    )]
    Compressed {
        /// The file.
        path: PathBuf,
    },
    /// It is of a version that is not known, or of a big-endian machine.
    #[error("the trace {path} is {kind}: convert it with `trace-cmd convert --file-version 6 -i {path} -o plain.dat`")]
    Unknown {
        /// The file.
        path: PathBuf,
        /// What it is.
        kind: String,
    },
    /// It ends too early, or contradicts itself.
    #[error("the trace {path} is damaged at its {part}: record it again")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where.
        part: &'static str,
    },
    /// It cannot be written.
    #[error("cannot write the trace {path} ({source}): choose a place with room that you may write to")]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The kernel's trace cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
}
