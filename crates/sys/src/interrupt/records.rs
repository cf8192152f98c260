//! Records of one length that a device returns, buffered by the reader.

use std::{
    fs::File,
    io::{self, Read},
};

/// A buffer of `KEPT` records of `SIZE` bytes.
#[derive(Debug)]
pub(super) struct Records<const SIZE: usize, const KEPT: usize> {
    bytes: [[u8; SIZE]; KEPT],
    /// The records from `next` to `filled` are still to be taken.
    next: usize,
    filled: usize,
    /// Records that were read since the device had no more of them.
    backlog: usize,
}

impl<const SIZE: usize, const KEPT: usize> Records<SIZE, KEPT> {
    pub(super) fn new() -> Self {
        Self { bytes: [[0; SIZE]; KEPT], next: 0, filled: 0, backlog: 0 }
    }

    /// True if all records were taken.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.next == self.filled
    }

    /// Takes the oldest record.
    #[inline]
    pub(super) fn take(&mut self) -> Option<&[u8; SIZE]> {
        let record = self.bytes[..self.filled].get(self.next)?;
        self.next += 1;
        Some(record)
    }

    /// True if the last call filled the buffer, so that only the device knows if it has more records.
    #[inline]
    pub(super) fn may_continue(&self) -> bool {
        self.filled == KEPT
    }

    /// Notes that the device had no more records.
    #[inline]
    pub(super) fn set_drained(&mut self) {
        self.backlog = 0;
    }

    /// Replaces all records by those of the device; waits for one if there is none. Returns true if `capacity` or more
    /// have come since the device had no more of them: its queue of this length was then full.
    #[inline]
    pub(super) fn fill(&mut self, mut device: &File, capacity: usize) -> io::Result<bool> {
        (self.next, self.filled) = (0, 0);
        self.filled = device.read(self.bytes.as_flattened_mut())? / SIZE;
        let before = self.backlog;
        self.backlog += self.filled;
        let is_full = before < capacity && self.backlog >= capacity;
        if self.filled < KEPT {
            self.backlog = 0;
        }
        Ok(is_full)
    }
}

/// The bytes of a record from `at`.
#[inline]
pub(super) fn bytes<const LENGTH: usize>(record: &[u8], at: usize) -> [u8; LENGTH] {
    record.get(at..at + LENGTH).and_then(|bytes| bytes.try_into().ok()).unwrap_or([0; LENGTH])
}

#[cfg(test)]
mod tests {
    use std::io::{Seek, Write};

    use super::*;

    #[test]
    fn records_are_taken_in_order_and_a_backlog_is_noticed() {
        let mut file = tempfile();
        file.write_all(&[1, 1, 2, 2, 3, 3, 4, 4, 5]).unwrap();
        file.rewind().unwrap();
        let mut records = Records::<2, 3>::new();
        assert!(records.is_empty() && records.take().is_none());
        assert!(!records.fill(&file, 4).unwrap());
        assert_eq!((records.take().copied(), records.take().copied()), (Some([1, 1]), Some([2, 2])));
        assert!(!records.is_empty());
        assert!(records.fill(&file, 4).unwrap(), "4 without an empty queue");
        assert_eq!((records.take().copied(), records.take().copied()), (Some([4, 4]), None));
        assert!(!records.fill(&file, 4).unwrap() && records.is_empty());

        file.rewind().unwrap();
        assert!(!records.fill(&file, 4).unwrap() && records.may_continue());
        records.set_drained();
        assert!(!records.fill(&file, 4).unwrap(), "the queue was empty in between");
        assert_eq!(bytes::<2>(&[1, 2, 3], 1), [2, 3]);
    }

    /// A file without a name.
    fn tempfile() -> File {
        rustix::fs::memfd_create("records", rustix::fs::MemfdFlags::CLOEXEC).unwrap().into()
    }
}
