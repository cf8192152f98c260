//! Reads the kernel's trace and decodes it to [`Event`](crate::Event)s.
//!
//! | module | contents |
//! |---|---|
//! | [`tracefs`] | finds or mounts tracefs |
//! | [`instance`] | a private trace instance: its settings, events and rings |
//! | `namespaces` | checks that the ids and times of the trace are those of this process |
//! | [`ring`] | reads the pages of one CPU in order, with the gaps between them |
//! | [`selectors`] | the events to trace |
//! | [`format`](mod@format) | the kernel's descriptions of its records |
//! | [`page`] | one page of a ring: records and their times |
//! | [`decode`] | decodes a record to an event |
//! | [`symbols`] | names of kernel functions and strings |
//! | `uprobes` | probes of the kernel in programs |
//! | [`dat`] | trace files of trace-cmd and KernelShark |

pub mod dat;
pub mod decode;
pub mod error;
mod export;
mod folder;
pub mod format;
pub mod instance;
mod namespaces;
pub mod page;
pub mod ring;
pub mod selectors;
mod states;
pub mod symbols;
pub mod tracefs;
mod uprobes;

pub use dat::{Dat, DatError, Snapshot};
pub use decode::Decoder;
pub use error::TraceError;
pub use folder::remove_leftovers;
pub(crate) use instance::ring_kib;
pub use instance::{Instance, Settings};
pub use ring::{Drained, Gap};
pub(crate) use selectors::THREAD_EVENTS;
pub use symbols::Symbols;
pub use tracefs::Tracefs;
