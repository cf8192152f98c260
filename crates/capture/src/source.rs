//! The bytes of a capture file and the elements common to both formats: byte order, interfaces and frames.

use std::{
    collections::HashSet,
    io::{self, Read},
};

use crate::{CaptureError, clock::Clock, window::Window};

/// Maximum length of a record. Real captures have no longer ones; the limit bounds memory use for malicious files.
pub(crate) const RECORD_MAX: usize = 16 << 20;
/// Maximum number of interfaces in a file.
const INTERFACES_MAX: usize = 1 << 16;

/// A capture interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// Its name, if the file has one.
    pub name: Option<String>,
    /// The link type: 1 is Ethernet, 113 and 276 are Linux cooked captures.
    pub link_type: u32,
    /// The timestamp resolution, rounded up, ns.
    pub resolution_ns: u64,
    /// Frames dropped by the interface or the system, from its statistics or its packets; `None` if the file has neither.
    pub dropped: Option<u64>,
    /// The sum of the drop counts of its packets in the section.
    pub(crate) dropped_between: u64,
    /// Frames dropped in earlier sections.
    pub(crate) dropped_before: u64,
    /// Length of the FCS at the end of captured frames, bytes.
    pub(crate) fcs_bytes: u32,
    pub(crate) clock: Clock,
}

impl Interface {
    /// True if an interface of another section is the same one.
    fn is_same(&self, other: &Self) -> bool {
        let identity = |one: &Self| (one.link_type, one.fcs_bytes, one.clock);
        identity(self) == identity(other) && self.name == other.name
    }

    /// Stores that this many frames were dropped since the start of the section.
    pub(crate) fn dropped_in_section(&mut self, dropped: u64) {
        self.dropped = self.dropped.max(Some(self.dropped_before.saturating_add(dropped)));
    }

    pub(crate) fn new(link_type: u32, clock: Clock) -> Self {
        Self {
            name: None,
            link_type,
            resolution_ns: clock.resolution_ns,
            dropped: None,
            dropped_between: 0,
            dropped_before: 0,
            fcs_bytes: 0,
            clock,
        }
    }
}

/// A frame of the file; its bytes are a span of the window.
pub(crate) struct Span {
    pub(crate) interface: u32,
    pub(crate) link_type: u32,
    pub(crate) at_ns: Option<i64>,
    pub(crate) at: usize,
    pub(crate) kept: usize,
    pub(crate) length: u32,
}

/// A capture file that is being read, independent of its format.
pub(crate) struct Source<R> {
    pub(crate) window: Window<R>,
    pub(crate) interfaces: Vec<Interface>,
    pub(crate) cut_at: Option<u64>,
}

impl<R: Read> Source<R> {
    pub(crate) fn new(from: R) -> Self {
        Self { window: Window::new(from), interfaces: Vec::new(), cut_at: None }
    }

    #[inline]
    pub(crate) fn has(&mut self, need: usize) -> Result<bool, CaptureError> {
        let offset = self.window.offset();
        self.window.has(need).map_err(|reason: io::Error| CaptureError::Read { offset, reason })
    }

    /// Called at the end of the data. Remaining bytes mean that the file is truncated.
    pub(crate) fn ended<T>(&mut self) -> Result<Option<T>, CaptureError> {
        if !self.window.bytes().is_empty() {
            self.cut_at = Some(self.window.offset());
        }
        Ok(None)
    }

    pub(crate) fn damaged(&self, what: impl Into<String>) -> CaptureError {
        CaptureError::Damaged { offset: self.window.offset(), what: what.into() }
    }

    /// Adds an interface of a section that has those with the indexes `own`. Returns its index: that of an earlier section's
    /// interface if it is the same.
    pub(crate) fn add(&mut self, interface: Interface, own: &HashSet<usize>) -> Result<usize, CaptureError> {
        // In the first section there are no others to compare.
        let others = if own.len() == self.interfaces.len() { 0..0 } else { 0..self.interfaces.len() };
        let known = others.into_iter().find(|index| {
            !own.contains(index) && self.interfaces.get(*index).is_some_and(|known| known.is_same(&interface))
        });
        if let Some((index, known)) = known.and_then(|index| Some((index, self.interfaces.get_mut(index)?))) {
            (known.dropped_before, known.dropped_between) = (known.dropped.unwrap_or(0), 0);
            return Ok(index);
        }
        if self.interfaces.len() >= INTERFACES_MAX {
            return Err(self.damaged(format!("more than {INTERFACES_MAX} interfaces")));
        }
        self.interfaces.push(interface);
        Ok(self.interfaces.len() - 1)
    }
}

/// Decodes numbers in the byte order of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ByteOrder {
    pub(crate) big: bool,
}

impl ByteOrder {
    /// The 16-bit number at `at`; 0 past the end.
    #[inline]
    pub(crate) fn u16(self, from: &[u8], at: usize) -> u16 {
        let bytes = from.get(at..).and_then(<[u8]>::first_chunk).copied().unwrap_or_default();
        if self.big { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) }
    }

    /// The 32-bit number at `at`; 0 past the end.
    #[inline(always)]
    pub(crate) fn u32(self, from: &[u8], at: usize) -> u32 {
        let bytes = from.get(at..).and_then(<[u8]>::first_chunk).copied().unwrap_or_default();
        if self.big { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
    }

    /// The 64-bit number at `at`; 0 past the end.
    pub(crate) fn u64(self, from: &[u8], at: usize) -> u64 {
        let bytes = from.get(at..).and_then(<[u8]>::first_chunk).copied().unwrap_or_default();
        if self.big { u64::from_be_bytes(bytes) } else { u64::from_le_bytes(bytes) }
    }
}
