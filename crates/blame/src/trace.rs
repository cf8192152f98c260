//! From the kernel's trace to [`Event`](crate::Event)s.
//!
//! | module | holds |
//! |---|---|
//! | [`tracefs`] | where the kernel's trace is |
//! | [`instance`] | a private instance of it: what is traced, drained ring by ring |
//! | [`ring`] | the pages of one CPU, and where events are missing |
//! | [`wanted`] | which events are traced |
//! | [`format`](mod@format) | the kernel's own description of its records |
//! | [`page`] | a page of a ring: records and their times |
//! | [`decode`] | a record as an event |
//! | [`symbols`] | names of the kernel's functions and strings |
//! | [`dat`] | trace files of trace-cmd and KernelShark |

pub mod dat;
pub mod decode;
pub mod error;
mod export;
mod folder;
pub mod format;
pub mod instance;
pub mod page;
pub mod ring;
mod states;
pub mod symbols;
pub mod tracefs;
pub mod wanted;

pub use dat::{Dat, DatError};
pub use decode::Decoder;
pub use error::TraceError;
pub use folder::remove_leftovers;
pub use instance::{Instance, Settings};
pub use ring::{Drained, Gap};
pub use symbols::Symbols;
pub use tracefs::Tracefs;
