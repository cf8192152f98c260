//! The pcapng format: blocks with their length at both ends. IETF draft-ietf-opsawg-pcapng.

use std::{collections::HashSet, io::Read};

use crate::{
    CaptureError,
    clock::Clock,
    source::{ByteOrder, Interface, RECORD_MAX, Source, Span},
};

/// The block type of a section header; the same in both byte orders.
pub(crate) const SECTION: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];

const INTERFACE_BLOCK: u32 = 1;
const OLD_PACKET_BLOCK: u32 = 2;
const SIMPLE_PACKET_BLOCK: u32 = 3;
const STATISTICS_BLOCK: u32 = 5;
const ENHANCED_PACKET_BLOCK: u32 = 6;

const BYTE_ORDER: u32 = 0x1a2b_3c4d;
/// Block type and length at the start, and length at the end, bytes.
const FRAMING: usize = 12;
/// Offset of the frame in an enhanced packet block, bytes.
const FRAME_AT: usize = 28;

const IF_NAME: u16 = 2;
const IF_TSRESOL: u16 = 9;
const IF_FCSLEN: u16 = 13;
const IF_TSOFFSET: u16 = 14;
/// Option of a packet: frames dropped between it and the one before; and "unknown" in the field of an old packet.
const EPB_DROPCOUNT: u16 = 4;
const UNKNOWN_DROPS: u16 = u16::MAX;
const ISB_IFDROP: u16 = 5;
const ISB_OSDROP: u16 = 7;

/// The section being read.
#[derive(Debug, Default)]
pub(crate) struct Section {
    order: ByteOrder,
    /// Indexes of its interfaces among those of all sections, and the same without an order.
    interfaces: Vec<usize>,
    own: HashSet<usize>,
    /// Snapshot length of its first interface, bytes; 0 if unlimited.
    snap: usize,
}

impl Section {
    #[inline(always)]
    pub(crate) fn next<R: Read>(&mut self, source: &mut Source<R>) -> Result<Option<Span>, CaptureError> {
        match self.usual(source) {
            Some(span) => Ok(Some(span)),
            None => self.next_of_any(source),
        }
    }

    /// The next frame, if the window contains its whole block and the block has no options: the usual case. `None` for other
    /// blocks, without a change.
    #[inline(always)]
    fn usual<R: Read>(&self, source: &mut Source<R>) -> Option<Span> {
        let block = source.window.bytes();
        let head = block.first_chunk::<FRAME_AT>()?;
        let [kind, length, id, high, low, kept, on_wire] = [0, 4, 8, 12, 16, 20, 24].map(|at| self.order.u32(head, at));
        let (length, kept) = (length as usize, kept as usize);
        let is_usual = kind == ENHANCED_PACKET_BLOCK
            && length <= block.len().min(RECORD_MAX)
            && kept <= length
            && length == FRAME_AT + kept.next_multiple_of(4) + 4
            && self.order.u32(block, length - 4) as usize == length;
        if !is_usual {
            return None;
        }
        let span = self.span(source, length, id, Some((high, low)), (20, kept, on_wire)).ok()?;
        let at = source.window.pass(length);
        Some(Span { at: at + span.at, ..span })
    }

    #[inline(never)]
    fn next_of_any<R: Read>(&mut self, source: &mut Source<R>) -> Result<Option<Span>, CaptureError> {
        loop {
            if !source.has(FRAMING)? {
                return source.ended();
            }
            let head = source.window.bytes();
            if head.starts_with(&SECTION) {
                self.begin(source)?;
            }
            let head = source.window.bytes();
            let (kind, length) = (self.order.u32(head, 0), self.order.u32(head, 4) as usize);
            if !(FRAMING..=RECORD_MAX).contains(&length) || !length.is_multiple_of(4) {
                return Err(source.damaged(format!("a block length of {length} bytes")));
            }
            if !source.has(length)? {
                return source.ended();
            }
            let behind = self.order.u32(source.window.bytes(), length - 4) as usize;
            if behind != length {
                return Err(
                    source.damaged(format!("block lengths of {length} bytes at the start and {behind} at the end"))
                );
            }
            let found = match kind {
                ENHANCED_PACKET_BLOCK => Some(self.enhanced(source, length)?),
                SIMPLE_PACKET_BLOCK => Some(self.simple(source, length)?),
                OLD_PACKET_BLOCK => Some(self.old(source, length)?),
                INTERFACE_BLOCK => {
                    self.interface(source, length)?;
                    None
                }
                STATISTICS_BLOCK => {
                    self.statistics(source, length);
                    None
                }
                _ => None,
            };
            let at = source.window.pass(length);
            if let Some(span) = found {
                return Ok(Some(Span { at: at + span.at, ..span }));
            }
        }
    }

    /// Starts a section, which has its own byte order and interfaces.
    fn begin<R: Read>(&mut self, source: &mut Source<R>) -> Result<(), CaptureError> {
        let orders = [ByteOrder { big: false }, ByteOrder { big: true }];
        let head = source.window.bytes();
        let order = orders.into_iter().find(|order| order.u32(head, 8) == BYTE_ORDER);
        let order = order.ok_or_else(|| source.damaged("a section of unknown byte order"))?;
        *self = Self { order, ..Self::default() };
        Ok(())
    }

    fn interface<R: Read>(&mut self, source: &mut Source<R>, length: usize) -> Result<(), CaptureError> {
        let body = body(source, length);
        if body.len() < 8 {
            return Err(source.damaged("an interface without a link type"));
        }
        let link_type = u32::from(self.order.u16(body, 0));
        let (mut name, mut tsresol, mut offset_s, mut fcs_bytes) = (None, 6, 0, 0);
        for (code, value) in self.options(&body[8..]) {
            match (code, value) {
                (IF_NAME, name_bytes) => name = Some(String::from_utf8_lossy(name_bytes).into_owned()),
                (IF_TSRESOL, [resolution, ..]) => tsresol = *resolution,
                // Some tools write 4 for bytes, although the specification requires bits.
                (IF_FCSLEN, [4 | 32, ..]) => fcs_bytes = 4,
                (IF_TSOFFSET, seconds) if seconds.len() >= 8 => offset_s = self.order.u64(seconds, 0).cast_signed(),
                _ => {}
            }
        }
        if self.interfaces.is_empty() {
            self.snap = self.order.u32(body, 4) as usize;
        }
        let interface = Interface::new(link_type, Clock::new(tsresol, offset_s));
        let index = source.add(Interface { name, fcs_bytes, ..interface }, &self.own)?;
        self.interfaces.push(index);
        self.own.insert(index);
        Ok(())
    }

    /// Stores the drop counts of an interface's statistics, which count from the start of the capture. Later statistics may
    /// lack them.
    fn statistics<R: Read>(&self, source: &mut Source<R>, length: usize) {
        let body = body(source, length);
        let id = self.order.u32(body, 0) as usize;
        let counts = self.options(body.get(12..).unwrap_or_default());
        let drops = counts.filter(|(code, value)| [ISB_IFDROP, ISB_OSDROP].contains(code) && value.len() >= 8);
        let dropped = drops.map(|(_, value)| self.order.u64(value, 0)).reduce(u64::saturating_add);
        let interface = self.interfaces.get(id).and_then(|&index| source.interfaces.get_mut(index));
        if let Some((interface, dropped)) = interface.zip(dropped) {
            interface.dropped_in_section(dropped);
        }
    }

    #[inline]
    fn enhanced<R: Read>(&self, source: &mut Source<R>, length: usize) -> Result<Span, CaptureError> {
        let body = body(source, length);
        let [id, high, low, kept, on_wire] = [0, 4, 8, 12, 16].map(|at| self.order.u32(body, at));
        let options = body.get(20 + (kept as usize).next_multiple_of(4)..).unwrap_or_default();
        if !options.is_empty() {
            let counts = self.options(options).filter(|(code, value)| *code == EPB_DROPCOUNT && value.len() >= 8);
            let dropped = counts.map(|(_, value)| self.order.u64(value, 0)).reduce(u64::saturating_add);
            dropped.into_iter().for_each(|dropped| self.add_dropped(source, id, dropped));
        }
        self.span(source, length, id, Some((high, low)), (20, kept as usize, on_wire))
    }

    fn old<R: Read>(&self, source: &mut Source<R>, length: usize) -> Result<Span, CaptureError> {
        let body = body(source, length);
        let [id, drops] = [0, 2].map(|at| self.order.u16(body, at));
        let [high, low, kept, on_wire] = [4, 8, 12, 16].map(|at| self.order.u32(body, at));
        if drops != UNKNOWN_DROPS {
            self.add_dropped(source, id.into(), drops.into());
        }
        self.span(source, length, id.into(), Some((high, low)), (20, kept as usize, on_wire))
    }

    /// Adds frames that were dropped between two packets of an interface.
    fn add_dropped<R: Read>(&self, source: &mut Source<R>, id: u32, dropped: u64) {
        let index = self.interfaces.get(id as usize).copied();
        if let Some(interface) = index.and_then(|index| source.interfaces.get_mut(index)) {
            interface.dropped_between = interface.dropped_between.saturating_add(dropped);
            interface.dropped_in_section(interface.dropped_between);
        }
    }

    fn simple<R: Read>(&self, source: &Source<R>, length: usize) -> Result<Span, CaptureError> {
        let on_wire = self.order.u32(body(source, length), 0);
        let space = (length - FRAMING).saturating_sub(4);
        let snapped = if self.snap == 0 { on_wire as usize } else { self.snap.min(on_wire as usize) };
        self.span(source, length, 0, None, (4, snapped.min(space), on_wire))
    }

    #[inline(always)]
    fn span<R: Read>(
        &self,
        source: &Source<R>,
        length: usize,
        id: u32,
        ticks: Option<(u32, u32)>,
        (at, kept, on_wire): (usize, usize, u32),
    ) -> Result<Span, CaptureError> {
        if at + kept > length - FRAMING {
            return Err(source.damaged(format!("a frame length of {kept} bytes in a block of {length}")));
        }
        let index = self.interfaces.get(id as usize).copied();
        let Some((index, interface)) = index.and_then(|index| Some((index, source.interfaces.get(index)?))) else {
            return Err(source.damaged(format!("a frame of undefined interface {id}")));
        };
        let at_ns = ticks.and_then(|(high, low)| interface.clock.ns(u64::from(high) << 32 | u64::from(low)));
        let length = on_wire.saturating_sub(interface.fcs_bytes);
        let number = u32::try_from(index).unwrap_or(u32::MAX);
        Ok(Span { interface: number, link_type: interface.link_type, at_ns, at: 8 + at, kept, length })
    }

    /// Iterates over code and value of the options.
    fn options<'a>(&self, mut from: &'a [u8]) -> impl Iterator<Item = (u16, &'a [u8])> {
        let order = self.order;
        std::iter::from_fn(move || {
            let (code, length) = (order.u16(from, 0), usize::from(order.u16(from, 2)));
            let value = from.get(4..4 + length)?;
            from = from.get(4 + length.next_multiple_of(4)..).unwrap_or_default();
            (code != 0).then_some((code, value))
        })
    }
}

/// The content of a block of `length` bytes.
#[inline]
fn body<R: Read>(source: &Source<R>, length: usize) -> &[u8] {
    &source.window.bytes()[8..length - 4]
}
