//! Reads a capture frame by frame, in bounded memory.

use std::io::{self, Read};

use crate::{CaptureError, clock::Clock, pcap, pcapng, window::Window};

/// No record may claim more bytes: captures have none, and hostile files get no memory.
pub const RECORD_MAX: usize = 16 << 20;
/// No file may name more interfaces.
const INTERFACES_MAX: usize = 1 << 16;

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

/// An interface of a capture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// Its name, where the file tells it.
    pub name: Option<String>,
    /// Its link type; 1 is Ethernet.
    pub link_type: u32,
    /// What one tick of its time stamps is, ns, rounded up.
    pub resolution_ns: u64,
    /// Frames that it or the system dropped, as the capture's last statistics say.
    pub dropped: u64,
    /// Bytes of the check sequence that frames carry at their end.
    pub(crate) fcs_bytes: u32,
    pub(crate) clock: Clock,
}

/// Link type of Ethernet.
pub(crate) const ETHERNET: u32 = 1;

impl Interface {
    pub(crate) fn new(link_type: u32, clock: Clock) -> Self {
        Self { name: None, link_type, resolution_ns: clock.resolution_ns, dropped: 0, fcs_bytes: 0, clock }
    }
}

/// Reads a capture.
pub struct Reader<R> {
    pub(crate) window: Window<R>,
    format: Format,
    pub(crate) interfaces: Vec<Interface>,
    frames: u64,
    cut_at: Option<u64>,
}

enum Format {
    Pcap(pcap::Header),
    Pcapng(pcapng::Section),
}

/// Where a frame lies in the window.
pub(crate) struct Place {
    pub(crate) interface: u32,
    pub(crate) link_type: u32,
    pub(crate) at_ns: Option<i64>,
    pub(crate) at: usize,
    pub(crate) kept: usize,
    pub(crate) length: u32,
}

impl<R: Read> Reader<R> {
    /// Begins to read.
    ///
    /// # Errors
    /// When it is no capture, or one of another link type than Ethernet.
    pub fn new(from: R) -> Result<Self, CaptureError> {
        let mut reader = Self {
            window: Window::new(from),
            format: Format::Pcapng(pcapng::Section::default()),
            interfaces: Vec::new(),
            frames: 0,
            cut_at: None,
        };
        if !reader.has(4)? {
            return Err(if reader.window.bytes().is_empty() { CaptureError::Empty } else { CaptureError::NotACapture });
        }
        let magic = reader.window.bytes().first_chunk().copied().unwrap_or_default();
        if magic == pcapng::SECTION {
            return Ok(reader);
        }
        match magic {
            [0x1f, 0x8b, ..] => return Err(CaptureError::Packed { tool: "gzip" }),
            [0x28, 0xb5, 0x2f, 0xfd] => return Err(CaptureError::Packed { tool: "zstd" }),
            [0xfd, b'7', b'z', b'X'] => return Err(CaptureError::Packed { tool: "xz" }),
            _ => {}
        }
        let whole = reader.has(pcap::HEADER)?;
        let header = pcap::Header::of(reader.window.bytes()).ok_or(CaptureError::NotACapture)?;
        if !whole {
            return Err(CaptureError::NotACapture);
        }
        reader.window.pass(pcap::HEADER);
        let interface = header.interface();
        if interface.link_type != ETHERNET {
            return Err(CaptureError::LinkType { found: interface.link_type });
        }
        reader.add(interface)?;
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
        let place = match self.format {
            Format::Pcap(header) => header.next(self)?,
            Format::Pcapng(ref mut section) => {
                let mut section = std::mem::take(section);
                let place = section.next(self);
                self.format = Format::Pcapng(section);
                place?
            }
        };
        let Some(place) = place else { return Ok(None) };
        self.frames += 1;
        let data = self.window.passed(place.at, place.kept);
        let Place { interface, link_type, at_ns, length, .. } = place;
        Ok(Some(Packet { number: self.frames, interface, link_type, at_ns, data, length }))
    }

    /// The interfaces that were named so far.
    #[must_use]
    pub fn interfaces(&self) -> &[Interface] {
        &self.interfaces
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
        self.cut_at
    }

    /// How far it has read, bytes.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.window.offset()
    }

    #[inline]
    pub(crate) fn has(&mut self, need: usize) -> Result<bool, CaptureError> {
        let offset = self.window.offset();
        self.window.has(need).map_err(|reason: io::Error| CaptureError::Read { offset, reason })
    }

    /// Nothing whole is left: the end, or what was cut off.
    pub(crate) fn ended<T>(&mut self) -> Result<Option<T>, CaptureError> {
        if !self.window.bytes().is_empty() {
            self.cut_at = Some(self.window.offset());
        }
        Ok(None)
    }

    pub(crate) fn damaged(&self, what: impl Into<String>) -> CaptureError {
        CaptureError::Damaged { offset: self.window.offset(), what: what.into() }
    }

    pub(crate) fn add(&mut self, interface: Interface) -> Result<(), CaptureError> {
        if self.interfaces.len() >= INTERFACES_MAX {
            return Err(self.damaged(format!("more than {INTERFACES_MAX} interfaces")));
        }
        self.interfaces.push(interface);
        Ok(())
    }
}

/// Reads numbers in the byte order of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Order {
    pub(crate) big: bool,
}

impl Order {
    /// The 16 bits at `at`; 0 where they are not there.
    #[inline]
    pub(crate) fn u16(self, from: &[u8], at: usize) -> u16 {
        let bytes = from.get(at..).and_then(<[u8]>::first_chunk).copied().unwrap_or_default();
        if self.big { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) }
    }

    /// The 32 bits at `at`; 0 where they are not there.
    #[inline]
    pub(crate) fn u32(self, from: &[u8], at: usize) -> u32 {
        let bytes = from.get(at..).and_then(<[u8]>::first_chunk).copied().unwrap_or_default();
        if self.big { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
    }

    /// The 64 bits at `at`; 0 where they are not there.
    pub(crate) fn u64(self, from: &[u8], at: usize) -> u64 {
        let bytes = from.get(at..).and_then(<[u8]>::first_chunk).copied().unwrap_or_default();
        if self.big { u64::from_be_bytes(bytes) } else { u64::from_le_bytes(bytes) }
    }
}
