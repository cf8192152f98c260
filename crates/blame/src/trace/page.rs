//! A page of the trace ring: its records and their times.
//!
//! Sources: include/linux/ring_buffer.h and kernel/trace/ring_buffer.c of Linux, little-endian. A record begins with a
//! type (5 bits) and the time since the previous record (27 bits). Types 1 to 28 are the length of the data in 32-bit
//! words.

use super::format::PageLayout;

/// A page with a valid header.
#[derive(Debug, Clone, Copy)]
pub struct Page<'a> {
    start_ns: u64,
    data: &'a [u8],
    lost: Lost,
}

/// Events lost before a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lost {
    /// None.
    Nothing,
    /// An unknown number.
    Some,
    /// This number.
    Count(u64),
}

/// One record of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// Time of the record, ns on the trace's clock.
    pub at_ns: u64,
    /// Data of the record, starting with the event id (2 bytes).
    pub data: &'a [u8],
}

const HEADER: usize = 4;
const WORD: usize = 4;

const DATA_LONG: u32 = 0;
const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;

/// An absolute timestamp has 59 bits; the upper 5 bits are those of the previous time.
const STAMP_BITS: u32 = 59;

/// Flags for lost events, in the upper bits of the 32-bit commit field.
const COMMIT: u64 = (1 << 27) - 1;
const MISSED: u64 = 1 << 31;
const MISSED_COUNTED: u64 = 1 << 30;

impl<'a> Page<'a> {
    /// Parses a page; `None` if its header is invalid.
    #[must_use]
    pub fn parse(bytes: &'a [u8], layout: &PageLayout) -> Option<Self> {
        let start_ns = layout.time.number(bytes)?.cast_unsigned();
        let commit = layout.commit.number(bytes)?.cast_unsigned();
        let body = bytes.get(layout.data..)?;
        let used = usize::try_from(commit & COMMIT).ok()?;
        let data = body.get(..used)?;
        // The number of lost events follows the records if the page has enough free space.
        let counted = body[used..].first_chunk().filter(|_| commit & MISSED_COUNTED != 0);
        let lost = match (commit & (MISSED | MISSED_COUNTED), counted) {
            (0, _) => Lost::Nothing,
            (_, None) => Lost::Some,
            (_, Some(&count)) => Lost::Count(u64::from_le_bytes(count)),
        };
        Some(Self { start_ns, data, lost })
    }

    /// Events lost before the page.
    #[must_use]
    pub fn lost(&self) -> Lost {
        self.lost
    }

    /// Time of the page, ns: at or shortly before its first record.
    #[must_use]
    pub fn start_ns(&self) -> u64 {
        self.start_ns
    }

    /// The records, oldest first.
    #[must_use]
    pub fn records(&self) -> Records<'a> {
        Records { rest: self.data, at_ns: self.start_ns, broken: false }
    }
}

/// The records of a page, oldest first. Ends at the first invalid record.
#[derive(Debug, Clone)]
pub struct Records<'a> {
    rest: &'a [u8],
    at_ns: u64,
    broken: bool,
}

impl<'a> Records<'a> {
    /// True if an invalid record was found.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        self.broken
    }

    /// Time of the last record, ns.
    #[must_use]
    pub fn at_ns(&self) -> u64 {
        self.at_ns
    }

    /// Reads the next record or timestamp; `None` if it is invalid.
    fn step(&mut self) -> Option<Step<'a>> {
        let header = word(self.rest, 0)?;
        let (kind, delta) = (header & 31, u64::from(header >> 5));
        let (step, length) = match kind {
            PADDING if delta == 0 => (Step::Skip, self.rest.len()),
            PADDING => {
                self.at_ns = self.at_ns.saturating_add(delta);
                (Step::Skip, (word(self.rest, WORD)? as usize).checked_add(HEADER)?)
            }
            TIME_EXTEND => {
                self.at_ns = self.at_ns.saturating_add(wide(word(self.rest, WORD)?, delta));
                (Step::Skip, HEADER + WORD)
            }
            TIME_STAMP => {
                self.at_ns = absolute(wide(word(self.rest, WORD)?, delta), self.at_ns);
                (Step::Skip, HEADER + WORD)
            }
            DATA_LONG => {
                self.at_ns = self.at_ns.saturating_add(delta);
                // The length includes its own 4 bytes.
                let length = (word(self.rest, WORD)? as usize).checked_add(HEADER)?;
                (Step::Data(self.rest.get(HEADER + WORD..length)?), length)
            }
            words => {
                self.at_ns = self.at_ns.saturating_add(delta);
                let length = HEADER + words as usize * WORD;
                (Step::Data(self.rest.get(HEADER..length)?), length)
            }
        };
        self.rest = self.rest.get(length.next_multiple_of(WORD)..)?;
        Some(step)
    }
}

enum Step<'a> {
    Data(&'a [u8]),
    Skip,
}

impl<'a> Iterator for Records<'a> {
    type Item = Record<'a>;

    fn next(&mut self) -> Option<Record<'a>> {
        while !self.rest.is_empty() {
            match self.step() {
                Some(Step::Data(data)) => return Some(Record { at_ns: self.at_ns, data }),
                Some(Step::Skip) => {}
                None => {
                    self.broken = true;
                    self.rest = &[];
                }
            }
        }
        None
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|&word| u32::from_le_bytes(word))
}

/// A 59-bit time: the upper bits are in the word after the header.
fn wide(upper: u32, lower: u64) -> u64 {
    (u64::from(upper) << 27) + lower
}

fn absolute(stamp: u64, before: u64) -> u64 {
    const LOWER: u64 = (1 << STAMP_BITS) - 1;
    let whole = (stamp & LOWER) | (before & !LOWER);
    // The 59 bits have overflowed since the previous time.
    if whole < before && before - whole > LOWER / 2 { whole.saturating_add(1 << STAMP_BITS) } else { whole }
}

#[cfg(test)]
pub(crate) mod builder;
#[cfg(test)]
mod tests;
