//! A window that moves over a file: one buffer, used again and again, that records are looked at in.

use std::io::{self, Read};

/// Large enough for few system calls, small enough for a CPU's second cache.
const SIZE: usize = 256 << 10;

/// A window over what `R` gives.
pub(crate) struct Window<R> {
    from: R,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Where `start` lies in the file.
    offset: u64,
}

impl<R: Read> Window<R> {
    pub(crate) fn new(from: R) -> Self {
        Self { from, buffer: vec![0; SIZE], start: 0, end: 0, offset: 0 }
    }

    /// Whether `need` bytes are in the window; reads on where they are not. They are only missing at the file's end.
    #[inline]
    pub(crate) fn has(&mut self, need: usize) -> io::Result<bool> {
        if self.end - self.start >= need { Ok(true) } else { self.read_on(need) }
    }

    #[cold]
    fn read_on(&mut self, need: usize) -> io::Result<bool> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        while self.end < need {
            // By what is there, not by what a file says.
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

    /// What is in the window.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Moves on by `length` bytes of those in the window; they can be seen until the next [`Self::has`], at the answer.
    #[inline]
    pub(crate) fn pass(&mut self, length: usize) -> usize {
        let at = self.start;
        self.start += length;
        self.offset += length as u64;
        at
    }

    /// What [`Self::pass`] went over: `length` bytes, `from` bytes behind its answer `at`.
    #[inline]
    pub(crate) fn passed(&self, at: usize, length: usize) -> &[u8] {
        &self.buffer[at..at + length]
    }

    /// Where the window begins, bytes from the file's begin.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }
}
