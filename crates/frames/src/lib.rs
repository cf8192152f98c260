//! Encodes and decodes frames of AVB streams: Ethernet with a VLAN tag, AVTP (IEEE 1722) with AAF or IEC 61883-6 audio,
//! and our probe's payload in place of the samples. Also recognises other protocols with cyclic frames. This crate does
//! no I/O.
//!
//! | module | contents |
//! |---|---|
//! | [`ethernet`] | addresses, VLAN tag, length on the wire |
//! | [`avtp`] | the AVTP stream header; presentation times |
//! | [`payload`] | the probe data that our talker sends in each frame |
//! | [`class`] | stream reservation classes A and B |
//! | [`template`] | a frame that is encoded once and then patched in place |
//! | [`protocol`] | other protocols, and the numbers of their frames |
//! | [`maap`] | the protocol that claims destination addresses |
//! | [`head`] | addresses, tags, and the bytes by which the frames of a stream are recognised |
//! | [`mod@parse`] | the decoder |
//!
//! Layouts follow IEEE Std 1722 as implemented in libavtp (Avnu). All numbers are big-endian.

pub mod avtp;
pub mod class;
pub mod ethernet;
pub mod head;
pub mod maap;
pub mod parse;
pub mod payload;
pub mod protocol;
pub mod template;

pub use avtp::{Avtp, CRF, Crf, Format, nearest_ns, stream_id};
pub use class::Class;
pub use ethernet::{Mac, Tci, wire_bytes};
pub use head::{Datagram, Head, Link, Pattern, Tag, Way};
pub use parse::{Content, Parsed, parse};
pub use payload::Payload;
pub use protocol::{Count, MediaTime, Protocol, Range, State};
pub use template::{Frame, Stream};

/// The `N` bytes at offset `at`; `None` if they are not all present.
#[inline(always)]
fn bytes<const N: usize>(from: &[u8], at: usize) -> Option<[u8; N]> {
    from.get(at..)?.first_chunk().copied()
}
