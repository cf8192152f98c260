//! The header of AVTP stream packets, IEEE Std 1722.
//!
//! | byte | field |
//! |---|---|
//! | 0 | subtype |
//! | 1 | stream id valid (bit 7), version (6-4), media clock restart (3), timestamp valid (0) |
//! | 2 | sequence number |
//! | 3 | timestamp uncertain (bit 0) |
//! | 4-11 | stream id |
//! | 12-15 | presentation time, ns mod 2^32 |
//! | 16-19 | depends on the format |
//! | 20-21 | length of the data after byte 23 |
//! | 22-23 | depends on the format |

use crate::{Mac, bytes};

/// Length of the AVTP header, bytes.
pub const HEADER: usize = 24;
/// Length of the CIP header, which precedes the samples in IEC 61883, bytes.
pub const CIP: usize = 8;

/// Subtype of IEC 61883.
pub const IEC_61883: u8 = 0x00;
/// Subtype of AAF, the AVTP audio format.
pub const AAF: u8 = 0x02;
/// Subtype of the clock reference format. It has no presentation time and no data length at the usual offsets.
pub const CRF: u8 = 0x04;
/// Subtype of the raw video format, the last of the stream formats: IEC 61883, MMA, AAF, CVF, CRF, TSCF, SVF, RVF.
const RVF: u8 = 0x07;
/// Subtype of vendor-specific streams.
const VENDOR: u8 = 0x6f;

/// An audio format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum Format {
    /// AAF, the AVTP audio format, with 32-bit integer PCM.
    #[default]
    Aaf,
    /// IEC 61883-6, the format of FireWire.
    Iec61883,
}

impl Format {
    /// The AVTP subtype of the format.
    #[must_use]
    pub fn subtype(self) -> u8 {
        match self {
            Self::Aaf => AAF,
            Self::Iec61883 => IEC_61883,
        }
    }

    /// Offset of the samples from the start of the AVTP header.
    #[must_use]
    #[inline]
    pub fn samples_at(self) -> usize {
        match self {
            Self::Aaf => HEADER,
            Self::Iec61883 => HEADER + CIP,
        }
    }

    /// The format with this subtype, if supported.
    #[must_use]
    #[inline]
    pub fn of(subtype: u8) -> Option<Self> {
        match subtype {
            AAF => Some(Self::Aaf),
            IEC_61883 => Some(Self::Iec61883),
            _ => None,
        }
    }
}

/// The decoded header of a stream packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Avtp {
    /// The subtype of the packet, e.g. [`AAF`] or [`IEC_61883`].
    pub subtype: u8,
    /// The version, 0 to 7. Only 0 is defined.
    pub version: u8,
    /// True if the stream id is valid.
    pub stream_valid: bool,
    /// The stream id: the talker's address and a number that it assigned.
    pub stream_id: u64,
    /// The sequence number, modulo 256.
    pub sequence: u8,
    /// The presentation time of the samples, ns modulo 2^32; `None` if the packet has none.
    pub timestamp: Option<u32>,
    /// The media clock restart bit. It toggles each time the talker's media clock restarts.
    pub media_restart: bool,
    /// True if the talker's clock was not synchronised.
    pub timestamp_uncertain: bool,
    /// Length of the data after the header, bytes; 0 if this subtype has no such field.
    pub data_length: u16,
}

impl Avtp {
    /// Decodes the data after AVTP's EtherType. `None` if it is too short or a control packet.
    #[must_use]
    #[inline(always)]
    pub fn read(from: &[u8]) -> Option<Self> {
        // To the end of the data length.
        let from: &[u8; HEADER - 2] = from.first_chunk()?;
        let [subtype, flags, sequence, more]: [u8; 4] = bytes(from, 0)?;
        if subtype > RVF && subtype != VENDOR {
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

/// The stream id made of a talker's address and a number.
#[must_use]
pub fn stream_id(source: Mac, unique: u16) -> u64 {
    let [a, b, c, d, e, f] = source;
    let [high, low] = unique.to_be_bytes();
    u64::from_be_bytes([a, b, c, d, e, f, high, low])
}

/// The presentation time of samples due at `due_ns`: its low 32 bits.
#[must_use]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the low bits are wanted")]
pub fn presentation(due_ns: i64) -> u32 {
    due_ns as u32
}

/// The time nearest to `near_ns` that has these low 32 bits, ns. Unique within 2.1 s before and after.
#[must_use]
pub fn nearest_ns(timestamp: u32, near_ns: i64) -> i64 {
    let ahead = timestamp.wrapping_sub(presentation(near_ns)).cast_signed();
    near_ns.saturating_add(i64::from(ahead))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn stream_id_combines_address_and_number() {
        assert_eq!(stream_id([0x30, 0x64, 0x3e, 0x54, 0xee, 0x01], 0x0203), 0x3064_3e54_ee01_0203);
    }

    #[test]
    fn rejects_control_packets() {
        for subtype in [0x7f, 0x82, 0xfa, 0xfb, 0xfc, 0xfe] {
            let mut packet = [0; 64];
            packet[0] = subtype;
            assert_eq!(Avtp::read(&packet), None, "{subtype:#x}");
        }
    }

    #[test]
    fn clock_reference_has_no_presentation_time() {
        let mut packet = [0xff; 64];
        packet[0] = CRF;
        let read = Avtp::read(&packet).unwrap();
        assert_eq!((read.timestamp, read.data_length, read.timestamp_uncertain), (None, 0, false));
    }

    proptest! {
        #[test]
        fn presentation_times_round_trip(near_ns in 0..i64::MAX / 2, ahead_ns in -2_147_483_648..2_147_483_648i64) {
            prop_assert_eq!(nearest_ns(presentation(near_ns + ahead_ns), near_ns), near_ns + ahead_ns);
        }
    }
}
