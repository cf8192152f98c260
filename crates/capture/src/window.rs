//! A sliding window over a file: one reused buffer in which records are decoded.

use std::io::{self, Read};

/// Buffer size: large enough for few system calls, small enough for the L2 cache. The kernel copies into a larger one more
/// slowly.
const SIZE: usize = 64 << 10;

/// A window over the data of `R`.
pub(crate) struct Window<R> {
    from: R,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// The file offset of the buffer, bytes.
    offset: u64,
}

impl<R: Read> Window<R> {
    pub(crate) fn new(from: R) -> Self {
        Self { from, buffer: vec![0; SIZE], start: 0, end: 0, offset: 0 }
    }

    /// True if `need` bytes are in the window, after reading more if necessary. False only at the end of the file.
    #[inline]
    pub(crate) fn has(&mut self, need: usize) -> io::Result<bool> {
        if self.end - self.start >= need { Ok(true) } else { self.read_on(need) }
    }

    #[cold]
    fn read_on(&mut self, need: usize) -> io::Result<bool> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.offset += self.start as u64;
        self.end -= self.start;
        self.start = 0;
        while self.end < need {
            // Grows with the data that arrives, not with the length that the file claims.
            if self.end == self.buffer.len() {
                self.buffer.resize(need.min(2 * self.end), 0);
            }
            match self.from.read(&mut self.buffer[self.end..]) {
                Ok(0) => return Ok(false),
                Ok(more) => self.end += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// The bytes in the window.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Advances by `length` bytes. The returned position is valid for [`Self::passed`] until the next [`Self::has`].
    #[inline]
    pub(crate) fn pass(&mut self, length: usize) -> usize {
        let at = self.start;
        self.start += length;
        at
    }

    /// The `length` bytes at a position that [`Self::pass`] returned.
    #[inline]
    pub(crate) fn passed(&self, at: usize, length: usize) -> &[u8] {
        &self.buffer[at..at + length]
    }

    /// The file offset of the window, bytes.
    pub(crate) fn offset(&self) -> u64 {
        self.offset + self.start as u64
    }
}
