//! Frames of AVB streams, as bytes: Ethernet with its VLAN tag, AVTP (IEEE 1722) with AAF or IEC 61883-6 audio, and our
//! probe's payload where the samples would be. No operating system.
//!
//! | module | holds |
//! |---|---|
//! | [`ethernet`] | addresses, the VLAN tag, what a frame takes on the wire |
//! | [`avtp`] | the header of a stream's packets; presentation times |
//! | [`payload`] | what our talker tells our listener in each frame |
//! | [`class`] | stream reservation classes A and B |
//! | [`template`] | a frame laid out once, and patched in place |
//! | [`mod@parse`] | a frame read |
//!
//! Layouts follow IEEE Std 1722 as libavtp (Avnu) has it; all numbers are big endian.

pub mod avtp;
pub mod class;
pub mod ethernet;
pub mod parse;
pub mod payload;
pub mod template;

pub use avtp::{Avtp, Format, nearest_ns, stream_id};
pub use class::Class;
pub use ethernet::{Mac, Tci, wire_bytes};
pub use parse::{Parsed, parse};
pub use payload::Payload;
pub use template::{Frame, Stream};

/// The `N` bytes at `at`; `None` where they are not all there.
fn bytes<const N: usize>(from: &[u8], at: usize) -> Option<[u8; N]> {
    from.get(at..)?.first_chunk().copied()
}
