//! The header of a stream's packets, IEEE Std 1722.
//!
//! | byte | field |
//! |---|---|
//! | 0 | subtype |
//! | 1 | stream id valid (bit 7), version (6-4), media clock restart (3), timestamp valid (0) |
//! | 2 | sequence number |
//! | 3 | timestamp uncertain (bit 0) |
//! | 4-11 | stream id |
//! | 12-15 | presentation time, ns mod 2^32 |
//! | 16-19 | of the format |
//! | 20-21 | length of what follows byte 23 |
//! | 22-23 | of the format |

use crate::{Mac, bytes};

/// Length of the header, bytes.
pub const HEADER: usize = 24;
/// Length of the header that IEC 61883 puts in front of its samples, bytes.
pub const CIP: usize = 8;

/// Subtype of IEC 61883.
pub const IEC_61883: u8 = 0x00;
/// Subtype of AAF, the AVTP audio format.
pub const AAF: u8 = 0x02;
/// Subtype of the clock reference format, which has neither presentation time nor length in the usual place.
pub const CRF: u8 = 0x04;
/// Subtype of vendors' own streams.
const VENDOR: u8 = 0x6f;

/// How samples are packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum Format {
    /// AAF, the AVTP audio format, in PCM: integers of 32 bits.
    #[default]
    Aaf,
    /// IEC 61883-6, as FireWire had it.
    Iec61883,
}

impl Format {
    /// Its subtype.
    #[must_use]
    pub fn subtype(self) -> u8 {
        match self {
            Self::Aaf => AAF,
            Self::Iec61883 => IEC_61883,
        }
    }

    /// Where the samples begin after the header's first byte.
    #[must_use]
    pub fn samples_at(self) -> usize {
        match self {
            Self::Aaf => HEADER,
            Self::Iec61883 => HEADER + CIP,
        }
    }

    /// The format of this subtype, where it is one of ours.
    #[must_use]
    pub fn of(subtype: u8) -> Option<Self> {
        [Self::Aaf, Self::Iec61883].into_iter().find(|format| format.subtype() == subtype)
    }
}

/// What the header of a stream's packet says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Avtp {
    /// What the packet carries: [`AAF`], [`IEC_61883`], ...
    pub subtype: u8,
    /// Version, 0 to 7; 0 is the only one.
    pub version: u8,
    /// Whether the stream id counts.
    pub stream_valid: bool,
    /// Which stream: the talker's address and a number of its own.
    pub stream_id: u64,
    /// Counts packets, modulo 256.
    pub sequence: u8,
    /// When the samples are to be presented, ns modulo 2^32; `None` where the packet says nothing about it.
    pub timestamp: Option<u32>,
    /// The talker's media clock began anew: a change of this bit says it.
    pub media_restart: bool,
    /// The talker's clock was not in step with the others'.
    pub timestamp_uncertain: bool,
    /// Length of what follows the header, bytes; 0 where this kind of packet has it elsewhere.
    pub data_length: u16,
}

impl Avtp {
    /// Reads the header of a stream's packet, which AVTP's EtherType comes before; `None` where it is none: too short, or
    /// a packet of control.
    #[must_use]
    pub fn read(from: &[u8]) -> Option<Self> {
        let [subtype, flags, sequence, more]: [u8; 4] = bytes(from, 0)?;
        if subtype > 0x05 && subtype != VENDOR {
            return None;
        }
        let stream_id = u64::from_be_bytes(bytes(from, 4)?);
        let timestamp = u32::from_be_bytes(bytes(from, 12)?);
        let data_length = u16::from_be_bytes(bytes(from, 20)?);
        let usual = subtype != CRF;
        Some(Self {
            subtype,
            version: flags >> 4 & 7,
            stream_valid: flags & 0x80 != 0,
            stream_id,
            sequence,
            timestamp: (usual && flags & 1 != 0).then_some(timestamp),
            media_restart: flags & 8 != 0,
            timestamp_uncertain: usual && more & 1 != 0,
            data_length: if usual { data_length } else { 0 },
        })
    }
}

/// The id of a talker's stream.
#[must_use]
pub fn stream_id(source: Mac, unique: u16) -> u64 {
    let [a, b, c, d, e, f] = source;
    let [high, low] = unique.to_be_bytes();
    u64::from_be_bytes([a, b, c, d, e, f, high, low])
}

/// The presentation time of samples that are due at `due_ns`: its low 32 bits.
#[must_use]
pub fn presentation(due_ns: i64) -> u32 {
    due_ns as u32
}

/// The time nearest to `near_ns` whose low 32 bits these are, ns: a presentation time up to 2.1 s ago or ahead.
#[must_use]
pub fn nearest_ns(timestamp: u32, near_ns: i64) -> i64 {
    let ahead = timestamp.wrapping_sub(near_ns as u32).cast_signed();
    near_ns.saturating_add(i64::from(ahead))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ids_are_address_and_number() {
        assert_eq!(stream_id([0x30, 0x64, 0x3e, 0x54, 0xee, 0x01], 0x0203), 0x3064_3e54_ee01_0203);
    }

    #[test]
    fn packets_of_control_are_no_stream() {
        for subtype in [0x7f, 0x82, 0xfa, 0xfb, 0xfc, 0xfe] {
            let mut packet = [0; 64];
            packet[0] = subtype;
            assert_eq!(Avtp::read(&packet), None, "{subtype:#x}");
        }
    }

    #[test]
    fn a_clock_reference_has_no_presentation_time() {
        let mut packet = [0xff; 64];
        packet[0] = CRF;
        let read = Avtp::read(&packet).unwrap();
        assert_eq!((read.timestamp, read.data_length, read.timestamp_uncertain), (None, 0, false));
    }

    proptest! {
        #[test]
        fn presentation_times_come_back_whole(near_ns in 0..i64::MAX / 2, ahead_ns in -2_147_483_648..2_147_483_648i64) {
            prop_assert_eq!(nearest_ns(presentation(near_ns + ahead_ns), near_ns), near_ns + ahead_ns);
        }
    }
}
