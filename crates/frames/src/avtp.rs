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
//!
//! Control messages without a presentation time (NTSCF, clause 9.2) have the length of the data in the low bits of byte 1 and in
//! byte 2, and the sequence number in byte 3.
//!
//! The clock reference format (CRF, clause 10) differs from byte 1 on:
//!
//! | byte | field |
//! |---|---|
//! | 1 | as above, but bit 1 is frame sync and bit 0 timestamp uncertain |
//! | 3 | type: 0 user, 1 audio samples, 2 video frames, 3 video lines, 4 machine cycles |
//! | 12-15 | pull (3 bits) and base frequency, Hz (29 bits) |
//! | 16-17 | length of the timestamps, bytes |
//! | 18-19 | events from one timestamp to the next |
//! | 20- | timestamps, 64 bits each, ns of gPTP |

use crate::{Mac, bytes};

/// Length of the AVTP header, bytes.
pub const HEADER: usize = 24;
/// Length from the start to the end of the stream id. Subtype and stream id identify a stream, bytes.
pub(crate) const IDENTITY: usize = 12;
/// Length of the shortest stream packet: to the end of the data length, bytes.
pub(crate) const SHORTEST: usize = HEADER - 2;
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
/// Subtype of control messages without a presentation time, such as those of CAN buses.
pub const NTSCF: u8 = 0x82;
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
    /// True if the talker's clock was not synchronised; in CRF, bit 0 of byte 1.
    pub timestamp_uncertain: bool,
    /// Length of the data after the header, bytes; 0 if this subtype has no such field.
    pub data_length: u16,
}

impl Avtp {
    /// Decodes the data after AVTP's EtherType. `None` if it is too short or a control packet.
    #[must_use]
    #[inline(always)]
    pub fn read(from: &[u8]) -> Option<Self> {
        let from: &[u8; SHORTEST] = from.first_chunk()?;
        let [subtype, flags, sequence, more]: [u8; 4] = bytes(from, 0)?;
        let stream_id = u64::from_be_bytes(bytes(from, 4)?);
        if subtype > RVF && subtype != VENDOR {
            return (subtype == NTSCF).then(|| Self {
                subtype,
                version: flags >> 4 & 7,
                stream_valid: flags & 0x80 != 0,
                stream_id,
                sequence: more,
                timestamp: None,
                media_restart: false,
                timestamp_uncertain: false,
                data_length: u16::from_be_bytes([flags & 7, sequence]),
            });
        }
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
            timestamp_uncertain: if usual { more & 1 != 0 } else { flags & 1 != 0 },
            data_length: if usual { data_length } else { 0 },
        })
    }
}

impl Avtp {
    /// Time left at `at_ns` until the presentation time, ns; negative if it has passed. `None` if the packet has none or its
    /// time is uncertain: the timestamps of a talker that is not synchronised have no relation to another clock.
    #[must_use]
    #[inline]
    pub fn margin_ns(&self, at_ns: i64) -> Option<i64> {
        let timestamp = self.timestamp.filter(|_| !self.timestamp_uncertain)?;
        Some(nearest_ns(timestamp, at_ns).saturating_sub(at_ns))
    }
}

/// The header of the clock reference format, after the fields that all formats have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Crf {
    /// Frame sync: the first timestamp is that of the start of a frame.
    pub frame_sync: bool,
    /// The type of the events.
    pub kind: u8,
    /// The multiplier of the base frequency, see [`Crf::frequency_hz`].
    pub pull: u8,
    /// The base frequency, Hz.
    pub base_hz: u32,
    /// Events from one timestamp to the next.
    pub interval: u16,
    /// The number of timestamps, not limited to those that the capture contains.
    pub timestamps: u16,
    /// The first timestamp, ns of gPTP; `None` if there is none.
    pub first_ns: Option<u64>,
    /// The last timestamp, ns of gPTP; `None` if there is none, or if the capture does not contain it.
    captured_last_ns: Option<u64>,
}

impl Crf {
    /// Decodes the data after AVTP's EtherType. `None` if it is too short or of another format.
    #[must_use]
    pub fn read(from: &[u8]) -> Option<Self> {
        let [subtype, flags, _, kind] = bytes(from, 0)?;
        let frequency = u32::from_be_bytes(bytes(from, 12)?);
        let [length, interval] = [16, 18].map(|at| bytes(from, at).map(u16::from_be_bytes));
        let timestamps = length? / 8;
        let timestamp = |number: u16| bytes(from, 20 + 8 * usize::from(number)).map(u64::from_be_bytes);
        (subtype == CRF).then_some(Self {
            frame_sync: flags & 2 != 0,
            kind,
            pull: (frequency >> 29) as u8,
            base_hz: frequency & 0x1fff_ffff,
            interval: interval?,
            timestamps,
            first_ns: timestamp(0).filter(|_| timestamps > 0),
            captured_last_ns: timestamps.checked_sub(1).and_then(timestamp),
        })
    }

    /// The last timestamp of the frame, ns of gPTP. If the capture does not contain it, it is computed from the first one and
    /// the nominal frequency; `None` if one of them is not known.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "not negative, and the cast saturates")]
    pub fn last_ns(self) -> Option<u64> {
        if let Some(last_ns) = self.captured_last_ns {
            return Some(last_ns);
        }
        let first_ns = self.first_ns?;
        let later = self.timestamps.saturating_sub(1);
        let later_ns = f64::from(later) * f64::from(self.interval) * 1e9 / self.frequency_hz()?;
        Some(first_ns.saturating_add(later_ns.round() as u64))
    }

    /// The nominal frequency of the events, Hz: the base frequency times 1, 1/1.001, 1.001, 24/25, 25/24 or 1/8 for pull
    /// 0 to 5 (IEEE Std 1722-2016, table 28). `None` if it is 0 or the pull is reserved.
    #[must_use]
    pub fn frequency_hz(self) -> Option<f64> {
        let factor = match self.pull {
            0 => 1.0,
            1 => 1.0 / 1.001,
            2 => 1.001,
            3 => 24.0 / 25.0,
            4 => 25.0 / 24.0,
            5 => 1.0 / 8.0,
            _ => return None,
        };
        Some(f64::from(self.base_hz) * factor).filter(|&hz| hz > 0.0)
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
        for subtype in [0x7f, 0x81, 0x83, 0xfa, 0xfb, 0xfc, 0xfe] {
            let mut packet = [0; 64];
            packet[0] = subtype;
            assert_eq!(Avtp::read(&packet), None, "{subtype:#x}");
        }
    }

    #[test]
    fn control_messages_without_a_time_have_their_number_in_another_byte() {
        let mut packet = [0; 64];
        packet[..12].copy_from_slice(&[NTSCF, 0x81, 4, 77, 2, 0, 0, 0, 0, 9, 0, 1]);
        let read = Avtp::read(&packet).unwrap();
        assert_eq!((read.sequence, read.data_length, read.timestamp), (77, 260, None));
        assert_eq!((read.stream_valid, read.stream_id), (true, 0x0200_0000_0009_0001));
    }

    #[test]
    fn clock_reference_has_no_presentation_time() {
        let mut packet = [0xff; 64];
        packet[0] = CRF;
        let read = Avtp::read(&packet).unwrap();
        assert_eq!((read.timestamp, read.data_length, read.timestamp_uncertain), (None, 0, true));
    }

    #[test]
    fn reads_the_clock_reference_of_milan() {
        // 48 kHz audio samples, a timestamp for each 96 of them, one in each packet.
        let mut packet = [0; 28];
        packet[..4].copy_from_slice(&[CRF, 0x80, 7, 1]);
        packet[12..20].copy_from_slice(&[0, 0, 0xbb, 0x80, 0, 8, 0, 96]);
        packet[20..].copy_from_slice(&1_790_000_000_123_456_789u64.to_be_bytes());
        let crf = Crf::read(&packet).unwrap();
        assert_eq!((crf.kind, crf.pull, crf.base_hz, crf.interval, crf.timestamps), (1, 0, 48_000, 96, 1));
        assert_eq!((crf.first_ns, crf.frequency_hz()), (Some(1_790_000_000_123_456_789), Some(48_000.0)));
        let mut long = [packet, [0; 28]].concat();
        let third_ns: u64 = 1_790_000_000_127_456_788;
        long[17] = 24;
        long[36..44].copy_from_slice(&third_ns.to_be_bytes());
        assert_eq!(Crf::read(&long).unwrap().last_ns(), Some(third_ns));
        let computed = Some(1_790_000_000_123_456_789 + 4_000_000);
        assert_eq!(Crf::read(&long[..40]).unwrap().last_ns(), computed, "truncated: two intervals of 2 ms");
        packet[12] = 1 << 5;
        let pulled = Crf::read(&packet).unwrap();
        assert_eq!((pulled.pull, pulled.frequency_hz()), (1, Some(48_000.0 / 1.001)));
        assert_eq!(Crf::read(&packet[..24]).unwrap().first_ns, None, "truncated");
        packet[12] = 7 << 5;
        assert_eq!(Crf::read(&packet).unwrap().frequency_hz(), None, "reserved");
    }

    proptest! {
        #[test]
        fn presentation_times_round_trip(near_ns in 0..i64::MAX / 2, ahead_ns in -2_147_483_648..2_147_483_648i64) {
            prop_assert_eq!(nearest_ns(presentation(near_ns + ahead_ns), near_ns), near_ns + ahead_ns);
        }
    }
}
