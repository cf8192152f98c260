//! Reads a capture frame by frame, in bounded memory.

use std::io::Read;

use crate::{
    CaptureError, pcap, pcapng,
    source::{ETHERNET, Interface, Source, Span},
};

/// One frame of a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet<'a> {
    /// Its number, from 1 over the whole file, as Wireshark counts.
    pub number: u64,
    /// The interface that it was seen on: an index into [`Reader::interfaces`].
    pub interface: u32,
    /// What kind of link that is; 1 is Ethernet.
    pub link_type: u32,
    /// When it was seen, ns since 1970 on the capture's clock; `None` where that is not told.
    pub at_ns: Option<i64>,
    /// Its bytes, as many as were kept.
    pub data: &'a [u8],
    /// How many it had on the wire, its check sequence left out where the file says that it was counted.
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
    /// Begins to read.
    ///
    /// # Errors
    /// When it is no capture, or one of another link type than Ethernet.
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
        if interface.link_type != ETHERNET {
            return Err(CaptureError::LinkType { found: interface.link_type });
        }
        reader.source.add(interface)?;
        reader.format = Format::Pcap(header);
        Ok(reader)
    }

    /// The next frame; `None` at the end.
    ///
    /// # Errors
    /// When the file cannot be read on, or contradicts itself.
    #[inline]
    #[allow(clippy::should_implement_trait, reason = "the frame lies in the reader, which an Iterator cannot say")]
    pub fn next(&mut self) -> Result<Option<Packet<'_>>, CaptureError> {
        let span = match self.format {
            Format::Pcap(header) => header.next(&mut self.source)?,
            Format::Pcapng(ref mut section) => {
                let mut section = std::mem::take(section);
                let span = section.next(&mut self.source);
                self.format = Format::Pcapng(section);
                span?
            }
        };
        let Some(span) = span else { return Ok(None) };
        self.frames += 1;
        let data = self.source.window.passed(span.at, span.kept);
        let Span { interface, link_type, at_ns, length, .. } = span;
        Ok(Some(Packet { number: self.frames, interface, link_type, at_ns, data, length }))
    }

    /// The interfaces that were named so far.
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

    /// Frames so far.
    #[must_use]
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// Where the last record begins that is not whole, bytes from the file's begin: the file was cut off there.
    #[must_use]
    pub fn cut_at(&self) -> Option<u64> {
        self.source.cut_at
    }

    /// How far it has read, bytes.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.source.window.offset()
    }
}
