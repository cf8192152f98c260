//! Trace files of trace-cmd and KernelShark: reads versions 6 and 7, writes version 6.
//!
//! Sources: trace-cmd.dat.v6(5) and trace-cmd.dat.v7(5). The first one omits that in version 6, with the option for the
//! clock, the name of the clock follows the table of CPUs; this was found in files that trace-cmd wrote.

mod error;
mod input;
mod read;
mod sections;
mod v6;
mod v7;
mod write;

pub use error::DatError;
pub use read::Dat;
pub(crate) use write::Contents;

#[cfg(test)]
mod tests;
