//! Reads a capture frame by frame, with bounded memory.

use std::{collections::HashSet, io::Read};

use frames::Link;

use crate::{
    CaptureError, pcap, pcapng,
    source::{Interface, Source, Span},
};

/// One frame of a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet<'a> {
    /// Its number in the file, from 1 as in Wireshark.
    pub number: u64,
    /// The capture interface: an index into [`Reader::interfaces`].
    pub interface: u32,
    /// The link type of the interface: 1 is Ethernet, 113 and 276 are Linux cooked captures.
    pub link_type: u32,
    /// The timestamp, ns since 1970 on the capture's clock; `None` if there is none.
    pub at_ns: Option<i64>,
    /// The captured bytes, possibly truncated.
    pub data: &'a [u8],
    /// The length on the wire, without the FCS if the file declares its length.
    pub length: u32,
}

/// Reads a capture.
pub struct Reader<R> {
    source: Source<R>,
    format: Format,
    frames: u64,
}

enum Format {
    Pcap(pcap::Header),
    Pcapng(pcapng::Section),
}

impl<R: Read> Reader<R> {
    /// Reads the start of the file.
    ///
    /// # Errors
    /// If the file is not a capture, or its link type is not supported.
    pub fn new(from: R) -> Result<Self, CaptureError> {
        let mut reader =
            Self { source: Source::new(from), format: Format::Pcapng(pcapng::Section::default()), frames: 0 };
        if !reader.source.has(4)? {
            return Err(if reader.source.window.bytes().is_empty() {
                CaptureError::Empty
            } else {
                CaptureError::NotACapture
            });
        }
        let magic = reader.source.window.bytes().first_chunk().copied().unwrap_or_default();
        if magic == pcapng::SECTION {
            return Ok(reader);
        }
        match magic {
            [0x1f, 0x8b, ..] => return Err(CaptureError::Packed { tool: "gzip" }),
            [0x28, 0xb5, 0x2f, 0xfd] => return Err(CaptureError::Packed { tool: "zstd" }),
            [0xfd, b'7', b'z', b'X'] => return Err(CaptureError::Packed { tool: "xz" }),
            _ => {}
        }
        let whole = reader.source.has(pcap::HEADER)?;
        let header = pcap::Header::of(reader.source.window.bytes()).ok_or(CaptureError::NotACapture)?;
        if !whole {
            return Err(CaptureError::NotACapture);
        }
        reader.source.window.pass(pcap::HEADER);
        let interface = header.interface();
        if Link::of(interface.link_type).is_none() {
            return Err(CaptureError::LinkType { found: interface.link_type });
        }
        reader.source.add(interface, &HashSet::new())?;
        reader.format = Format::Pcap(header);
        Ok(reader)
    }

    /// The next frame; `None` at the end.
    ///
    /// # Errors
    /// If the file cannot be read or is inconsistent.
    #[inline(always)]
    #[allow(
        clippy::should_implement_trait,
        reason = "the frame borrows from the reader, which Iterator cannot express"
    )]
    pub fn next(&mut self) -> Result<Option<Packet<'_>>, CaptureError> {
        let span = match &mut self.format {
            Format::Pcap(header) => header.next(&mut self.source)?,
            Format::Pcapng(section) => section.next(&mut self.source)?,
        };
        let Some(span) = span else { return Ok(None) };
        self.frames += 1;
        let Span { at, kept, interface, link_type, at_ns, length } = span;
        // Without the FCS.
        let data = self.source.window.passed(at, kept.min(length as usize));
        Ok(Some(Packet { number: self.frames, interface, link_type, at_ns, data, length }))
    }

    /// The interfaces defined so far.
    #[must_use]
    pub fn interfaces(&self) -> &[Interface] {
        &self.source.interfaces
    }

    /// `pcap` or `pcapng`.
    #[must_use]
    pub fn format(&self) -> &'static str {
        match self.format {
            Format::Pcap(_) => "pcap",
            Format::Pcapng(_) => "pcapng",
        }
    }

    /// Frames read so far.
    #[must_use]
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// The offset of a truncated last record, bytes; `None` if the file is complete so far.
    #[must_use]
    pub fn cut_at(&self) -> Option<u64> {
        self.source.cut_at
    }

    /// The read position, bytes.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.source.window.offset()
    }
}
