//! Reads numbers and strings from a trace file.

use std::io::{BufRead, Read, Seek, SeekFrom};

/// A file and its length, which limits the size of one read. All functions return `None` if the file is damaged.
#[derive(Debug)]
pub(super) struct Input<R> {
    reader: R,
    length: u64,
}

/// Upper bound for the length of a string; real ones are short.
const MAX_STRING: u64 = 1 << 16;

impl<R: BufRead + Seek> Input<R> {
    pub(super) fn new(mut reader: R) -> Option<Self> {
        let length = reader.seek(SeekFrom::End(0)).ok()?;
        reader.seek(SeekFrom::Start(0)).ok()?;
        Some(Self { reader, length })
    }

    /// Sets the read position.
    pub(super) fn seek_to(&mut self, offset: u64) -> Option<()> {
        self.reader.seek(SeekFrom::Start(offset)).ok().map(drop)
    }

    /// Returns the read position.
    pub(super) fn position(&mut self) -> Option<u64> {
        self.reader.stream_position().ok()
    }

    /// Fills `bytes`.
    pub(super) fn fill(&mut self, bytes: &mut [u8]) -> Option<()> {
        self.reader.read_exact(bytes).ok()
    }

    /// Reads `length` bytes.
    pub(super) fn take(&mut self, length: u64) -> Option<Vec<u8>> {
        let mut bytes = vec![0; usize::try_from(length).ok().filter(|_| length <= self.length)?];
        self.fill(&mut bytes)?;
        Some(bytes)
    }

    /// Reads bytes that must be equal to the expected ones.
    pub(super) fn expect(&mut self, expected: &[u8]) -> Option<()> {
        (self.take(expected.len() as u64)? == expected).then_some(())
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Some(bytes)
    }

    pub(super) fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// Reads a NUL-terminated string.
    pub(super) fn string(&mut self) -> Option<String> {
        let mut bytes = Vec::new();
        self.reader.by_ref().take(MAX_STRING).read_until(0, &mut bytes).ok()?;
        (bytes.pop()? == 0).then(|| text(bytes))
    }

    /// Reads a text preceded by its length in 8 bytes.
    pub(super) fn long_text(&mut self) -> Option<String> {
        let length = self.u64()?;
        self.take(length).map(text)
    }

    /// Reads a text preceded by its length in 4 bytes.
    pub(super) fn short_text(&mut self) -> Option<String> {
        let length = self.u32()?;
        self.take(length.into()).map(text)
    }
}

/// Converts to a string and removes NULs at the end.
pub(super) fn text(bytes: Vec<u8>) -> String {
    let mut text =
        String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
    text.truncate(text.trim_end_matches('\0').len());
    text
}
