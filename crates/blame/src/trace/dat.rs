//! Trace files of trace-cmd and KernelShark: reads versions 6 and 7, writes version 6.
//!
//! Sources: trace-cmd.dat.v6(5) and trace-cmd.dat.v7(5). One detail is missing there and was found in files written by
//! trace-cmd: in version 6, if the options contain the clock, the clock's name follows the CPU table.

mod error;
mod input;
mod read;
mod sections;
mod v6;
mod v7;
mod write;

pub use error::DatError;
pub use read::Dat;
pub use write::Snapshot;

#[cfg(test)]
mod tests;
