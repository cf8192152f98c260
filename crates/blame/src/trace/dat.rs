//! Trace files of trace-cmd and KernelShark: read, version 6 and 7, and written, version 6.
//!
//! Facts: trace-cmd.dat.v6(5), trace-cmd.dat.v7(5). What the first leaves out was looked up in files that trace-cmd
//! wrote: in version 6, the option for the clock is followed by its name behind the table of CPUs.

mod input;
mod read;
mod sections;
mod v6;
mod v7;
mod write;

use std::{io, path::PathBuf};

pub use read::Dat;
use thiserror::Error;
pub(crate) use write::Contents;

use super::error::TraceError;

/// What every file begins with.
const MAGIC: &[u8] = b"\x17\x08\x44tracing";

/// Options, by their number.
mod option {
    pub(super) const BUFFER: u16 = 3;
    pub(super) const TRACE_CLOCK: u16 = 4;
    pub(super) const UNAME: u16 = 5;
    pub(super) const CPU_COUNT: u16 = 8;
    pub(super) const HEADER_INFO: u16 = 16;
    pub(super) const FTRACE_EVENTS: u16 = 17;
    pub(super) const EVENT_FORMATS: u16 = 18;
    pub(super) const KALLSYMS: u16 = 19;
    pub(super) const PRINTK: u16 = 20;
}

/// The pages of one CPU in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CpuData {
    cpu: u32,
    offset: u64,
    size: u64,
}

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
    #[error("the trace {path} is {what}: convert it with `trace-cmd convert --file-version 6 -i {path} -o plain.dat`")]
    Unknown {
        /// The file.
        path: PathBuf,
        /// What it is.
        what: String,
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

#[cfg(test)]
mod tests;
