//! Builds pages for tests.

use super::*;
use crate::trace::format::{Field, Location};

/// Pages of 4 KiB of a 64-bit kernel.
pub(crate) const LAYOUT: PageLayout = PageLayout {
    time: Field { offset: 0, size: 8, signed: false, location: Location::Inline },
    commit: Field { offset: 8, size: 8, signed: true, location: Location::Inline },
    data: 16,
    size: 4096,
};

/// A page of at least 4 KiB with these records.
pub(crate) fn page(start_ns: u64, records: &[Vec<u8>]) -> Vec<u8> {
    let records = records.concat();
    let mut page = [&start_ns.to_le_bytes()[..], &(records.len() as u64).to_le_bytes(), &records].concat();
    page.resize(page.len().max(LAYOUT.size), 0);
    page
}

pub(crate) fn header(kind: u32, delta: u64) -> [u8; 4] {
    (kind | u32::try_from(delta).unwrap() << 5).to_le_bytes()
}

pub(crate) fn length_32(data: &[u8]) -> u32 {
    u32::try_from(data.len()).unwrap()
}

/// A record of at most 28 words.
pub(crate) fn short(delta: u64, data: &[u8]) -> Vec<u8> {
    [&header(length_32(data) / 4, delta), data].concat()
}

/// A record with an explicit length.
pub(crate) fn long(delta: u64, data: &[u8]) -> Vec<u8> {
    [&header(DATA_LONG, delta)[..], &(length_32(data) + 4).to_le_bytes(), data].concat()
}

/// A time extension.
pub(crate) fn extend(pause: u64) -> Vec<u8> {
    wide_record(TIME_EXTEND, pause)
}

/// An absolute timestamp.
pub(crate) fn stamp(at_ns: u64) -> Vec<u8> {
    wide_record(TIME_STAMP, at_ns)
}

fn wide_record(kind: u32, time: u64) -> Vec<u8> {
    [header(kind, time & ((1 << 27) - 1)), u32::try_from(time >> 27).unwrap().to_le_bytes()].concat()
}
