//! The pcap format: a file header of 24 bytes and a record header of 16 bytes before each frame. IETF
//! draft-ietf-opsawg-pcap.

use std::io::Read;

use crate::{
    CaptureError,
    clock::Clock,
    source::{ByteOrder, Interface, RECORD_MAX, Source, Span},
};

/// Length of the file header, bytes.
pub(crate) const HEADER: usize = 24;
/// Length of the record header, bytes.
const RECORD: usize = 16;

const MICROSECONDS: u32 = 0xa1b2_c3d4;
const NANOSECONDS: u32 = 0xa1b2_3c4d;

/// The decoded file header.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Header {
    order: ByteOrder,
    nanoseconds: bool,
    link_type: u32,
    fcs_bytes: u32,
}

impl Header {
    pub(crate) fn of(bytes: &[u8]) -> Option<Self> {
        let little = ByteOrder { big: false };
        let big = ByteOrder { big: true };
        let magics = |order: ByteOrder| (order.u32(bytes, 0), order);
        let (magic, order) =
            [magics(little), magics(big)].into_iter().find(|(magic, _)| [MICROSECONDS, NANOSECONDS].contains(magic))?;
        let link = order.u32(bytes, 20);
        // Bit 26: the upper four bits contain the FCS length in units of two bytes.
        let fcs_bytes = if link & 1 << 26 != 0 { (link >> 28) * 2 } else { 0 };
        Some(Self { order, nanoseconds: magic == NANOSECONDS, link_type: link & 0xffff, fcs_bytes })
    }

    pub(crate) fn interface(self) -> Interface {
        let clock = Clock::new(if self.nanoseconds { 9 } else { 6 }, 0);
        Interface { fcs_bytes: self.fcs_bytes, ..Interface::new(self.link_type, clock) }
    }

    #[inline(always)]
    pub(crate) fn next<R: Read>(self, source: &mut Source<R>) -> Result<Option<Span>, CaptureError> {
        match self.whole(source) {
            Some(span) => Ok(Some(span)),
            None => self.read_on(source),
        }
    }

    /// The next frame, if the window contains its whole record. `None` without a change otherwise.
    #[inline(always)]
    fn whole<R: Read>(self, source: &mut Source<R>) -> Option<Span> {
        let (head, rest) = source.window.bytes().split_first_chunk::<RECORD>()?;
        let [seconds, fraction, kept, length] = self.words(head);
        let kept = kept as usize;
        if kept > rest.len() || kept > RECORD_MAX {
            return None;
        }
        let fraction_ns = i64::from(fraction) * if self.nanoseconds { 1 } else { 1000 };
        let at = source.window.pass(RECORD + kept) + RECORD;
        Some(Span {
            interface: 0,
            link_type: self.link_type,
            at_ns: Some(i64::from(seconds) * 1_000_000_000 + fraction_ns),
            at,
            kept,
            length: length.saturating_sub(self.fcs_bytes),
        })
    }

    /// Reads on until the next record is in the window. `None` at the end of the file.
    #[cold]
    fn read_on<R: Read>(self, source: &mut Source<R>) -> Result<Option<Span>, CaptureError> {
        if !source.has(RECORD)? {
            return source.ended();
        }
        let Some(head) = source.window.bytes().first_chunk() else { return source.ended() };
        let [_, _, kept, _] = self.words(head);
        let kept = kept as usize;
        if kept > RECORD_MAX {
            return Err(source.damaged(format!("a frame length of {kept} bytes")));
        }
        if !source.has(RECORD + kept)? {
            return source.ended();
        }
        Ok(self.whole(source))
    }

    /// The four numbers of a record header.
    #[inline(always)]
    fn words(self, head: &[u8; RECORD]) -> [u32; 4] {
        [0, 4, 8, 12].map(|at| self.order.u32(head, at))
    }
}
