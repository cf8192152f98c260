//! Captures of the wire: pcap and pcapng in; the spacing, lateness and loss of a stream out. One buffer, two passes.
//!
//! | module | holds |
//! |---|---|
//! | [`reader`] | frames of a file, one by one; `window`, `pcap`, `pcapng` and `clock` beneath it |
//! | [`filter`] | which frames are of which stream |
//! | `streams`, `track` | the first pass: all streams, the period and phase of each |
//! | `fit` | the grid that a stream kept, by the capture's clock |
//! | `measure` | the second pass: `spacing`, `sequence`, `lateness` and `shaper` of one stream |
//! | [`analyse`](mod@analyse) | both passes |
//! | `caveats` | what the figures cannot tell |
//! | [`to_record`](mod@to_record) | the run record |
//! | [`mod@write`] | a capture of our own |

#![forbid(unsafe_code)]

pub mod analyse;
mod caveats;
mod clock;
mod error;
pub mod filter;
mod fit;
mod lateness;
mod measure;
mod pcap;
mod pcapng;
pub mod reader;
mod sequence;
mod shaper;
mod source;
mod spacing;
mod streams;
mod tally;
pub mod to_record;
mod track;
mod window;
pub mod write;

pub use analyse::{Analysis, Options, analyse};
pub use error::CaptureError;
pub use filter::Filter;
pub use reader::{Packet, Reader};
pub use source::Interface;
pub use to_record::to_record;
pub use write::Writer;
