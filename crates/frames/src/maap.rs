//! MAAP, the protocol that claims multicast addresses for streams (IEEE Std 1722-2016, annex B).
//!
//! | byte | field |
//! |---|---|
//! | 0 | subtype: 0xFE |
//! | 1 | version of AVTP (bits 6-4): 0; message type (3-0): 1 PROBE, 2 DEFEND, 3 ANNOUNCE |
//! | 2-3 | version of MAAP (5 bits): 1; length of the data after byte 11 (11 bits): 16 |
//! | 4-11 | stream id, not used: 0 |
//! | 12-17 | requested start address |
//! | 18-19 | requested count |
//! | 20-25 | conflict start address, only in DEFEND |
//! | 26-27 | conflict count, only in DEFEND |
//!
//! The messages have no VLAN tag. PROBE and ANNOUNCE go to [`DESTINATION`]; DEFEND goes to the sender of the PROBE.

mod claim;

use crate::{
    Mac, bytes,
    ethernet::{AVTP, HEADER, multicast_of},
};

pub use claim::{Claim, Conflict, Resolution};

/// Destination address of PROBE and ANNOUNCE (table B.10).
pub const DESTINATION: Mac = [0x91, 0xe0, 0xf0, 0x00, 0xff, 0x00];
/// AVTP subtype of MAAP.
pub const SUBTYPE: u8 = 0xfe;
/// The addresses that MAAP allocates: 91:E0:F0:00:00:00 to 91:E0:F0:00:FD:FF (table B.9).
pub const POOL: Addresses = Addresses { first: 0x91e0_f000_0000, count: 0xfe00 };

/// Length of a message, bytes.
const LENGTH: usize = 28;
/// Length of the data after the stream id, bytes.
const DATA_LENGTH: u16 = 16;
/// Version of MAAP.
const VERSION: u16 = 1;
/// Length of the shortest frame without FCS, bytes.
const FRAME_MIN: usize = 60;

/// A range of consecutive addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Addresses {
    /// The first address as a number of 48 bits.
    pub first: u64,
    /// Number of addresses.
    pub count: u16,
}

impl Addresses {
    /// The `count` addresses from `first` on.
    #[must_use]
    pub fn of(first: Mac, count: u16) -> Self {
        let [a, b, c, d, e, f] = first;
        Self { first: u64::from_be_bytes([0, 0, a, b, c, d, e, f]), count }
    }

    /// The addresses that `count` streams of the talker `source` claim first: those that the streams from number `unique`
    /// on have without MAAP, or the last ones of [`POOL`] if these exceed it.
    #[must_use]
    pub fn preferred(source: Mac, unique: u16, count: u16) -> Self {
        let wanted = Self::of(multicast_of(source, unique), count);
        Self { first: wanted.first.min(POOL.end().saturating_sub(u64::from(count))), count }
    }

    /// The address `index` places after the first one. It can be outside of the range.
    #[must_use]
    pub fn at(self, index: u16) -> Mac {
        let [_, _, address @ ..] = self.first.wrapping_add(u64::from(index)).to_be_bytes();
        address
    }

    /// The last address; the first one for an empty range.
    #[must_use]
    pub fn last(self) -> Mac {
        self.at(self.count.saturating_sub(1))
    }

    /// The address after the last one, as a number.
    fn end(self) -> u64 {
        self.first.saturating_add(u64::from(self.count))
    }

    /// The addresses of both ranges; `None` if they have none in common.
    #[must_use]
    pub fn common(self, other: Self) -> Option<Self> {
        let first = self.first.max(other.first);
        let count = self.end().min(other.end()).checked_sub(first)?;
        let count = u16::try_from(count).ok().filter(|&count| count > 0)?;
        Some(Self { first, count })
    }

    /// True if each address of the range is in [`POOL`].
    #[must_use]
    pub fn are_dynamic(self) -> bool {
        self.common(POOL) == Some(self)
    }
}

/// The type of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Asks if somebody uses the requested addresses.
    Probe,
    /// Answers a PROBE: the sender uses the conflict addresses.
    Defend,
    /// The sender uses the requested addresses.
    Announce,
}

/// A message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Message {
    /// The type.
    pub kind: Kind,
    /// The requested addresses.
    pub requested: Addresses,
    /// The requested addresses that the sender of a DEFEND uses; `None` if the fields are 0.
    pub conflict: Option<Addresses>,
}

impl Message {
    /// Decodes the data after AVTP's EtherType. `None` if it is not a complete message of a known type.
    #[must_use]
    pub fn read(from: &[u8]) -> Option<Self> {
        let from: &[u8; LENGTH] = from.first_chunk()?;
        let [subtype, types, ..] = *from;
        let avtp_version = types >> 4 & 7;
        let length = u16::from_be_bytes(bytes(from, 2)?) & 0x7ff;
        if subtype != SUBTYPE || avtp_version != 0 || length < DATA_LENGTH {
            return None;
        }
        let kind = match types & 0xf {
            1 => Kind::Probe,
            2 => Kind::Defend,
            3 => Kind::Announce,
            _ => return None,
        };
        let addresses = |at: usize| Some(Addresses::of(bytes(from, at)?, u16::from_be_bytes(bytes(from, at + 6)?)));
        let conflict = addresses(20).filter(|conflict| conflict.count > 0);
        Some(Self { kind, requested: addresses(12)?, conflict })
    }

    /// The data after AVTP's EtherType.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; LENGTH] {
        let mut bytes = [0; LENGTH];
        let kind = match self.kind {
            Kind::Probe => 1,
            Kind::Defend => 2,
            Kind::Announce => 3,
        };
        bytes[..2].copy_from_slice(&[SUBTYPE, kind]);
        bytes[2..4].copy_from_slice(&(VERSION << 11 | DATA_LENGTH).to_be_bytes());
        for (at, addresses) in [(12, Some(self.requested)), (20, self.conflict)] {
            let Some(addresses) = addresses else { continue };
            bytes[at..at + 6].copy_from_slice(&addresses.at(0));
            bytes[at + 6..at + 8].copy_from_slice(&addresses.count.to_be_bytes());
        }
        bytes
    }

    /// The Ethernet frame of the message, without FCS, padded to the shortest length.
    #[must_use]
    pub fn frame(&self, destination: Mac, source: Mac) -> [u8; FRAME_MIN] {
        let mut frame = [0; FRAME_MIN];
        frame[..6].copy_from_slice(&destination);
        frame[6..12].copy_from_slice(&source);
        frame[12..HEADER].copy_from_slice(&AVTP.to_be_bytes());
        frame[HEADER..HEADER + LENGTH].copy_from_slice(&self.to_bytes());
        frame
    }

    /// Decodes an Ethernet frame without a VLAN tag: the source address and the message. `None` for other frames.
    #[must_use]
    pub fn of_frame(frame: &[u8]) -> Option<(Mac, Self)> {
        let ethertype = u16::from_be_bytes(bytes(frame, 12)?);
        let message = Self::read(frame.get(HEADER..)?).filter(|_| ethertype == AVTP)?;
        Some((bytes(frame, 6)?, message))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn encodes_the_documented_layout() {
        let requested = Addresses::of([0x91, 0xe0, 0xf0, 0, 0x12, 0x34], 8);
        let conflict = Some(Addresses::of([0x91, 0xe0, 0xf0, 0, 0x12, 0x3a], 2));
        let defend = Message { kind: Kind::Defend, requested, conflict };
        let frame = defend.frame([2, 0, 0, 0, 0, 9], [2, 0, 0, 0, 0, 1]);
        let mut expected = [
            // Addresses and EtherType.
            vec![2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 1, 0x22, 0xf0],
            // Subtype, message type, version 1 and 16 bytes of data, stream id.
            vec![0xfe, 2, 0x08, 0x10, 0, 0, 0, 0, 0, 0, 0, 0],
            vec![0x91, 0xe0, 0xf0, 0, 0x12, 0x34, 0, 8],
            vec![0x91, 0xe0, 0xf0, 0, 0x12, 0x3a, 0, 2],
        ]
        .concat();
        expected.resize(60, 0);
        assert_eq!(frame.as_slice(), expected);
        assert_eq!(Message::of_frame(&frame), Some(([2, 0, 0, 0, 0, 1], defend)));
        let probe = Message { kind: Kind::Probe, conflict: None, ..defend }.to_bytes();
        assert_eq!((probe[1], &probe[20..]), (1, [0; 8].as_slice()));
        assert_eq!(Message { kind: Kind::Announce, ..defend }.to_bytes()[1], 3);
    }

    #[test]
    fn rejects_what_is_not_a_message() {
        let of = |at: usize, byte: u8| {
            let probe = Message { kind: Kind::Probe, requested: Addresses::of([1; 6], 1), conflict: None };
            let mut bytes = probe.to_bytes();
            bytes[at] = byte;
            Message::read(&bytes)
        };
        assert!(of(0, 0xfe).is_some());
        for (at, byte, why) in [
            (0, 0xfa, "subtype ADP"),
            (1, 0, "reserved type 0"),
            (1, 4, "reserved type 4"),
            (1, 0x11, "AVTP version 1"),
            (3, 15, "too little data"),
        ] {
            assert_eq!(of(at, byte), None, "{why}");
        }
        assert!(of(2, 2 << 3).is_some(), "a later version of MAAP can add fields, but does not move these");
        assert_eq!(Message::read(&[0xfe; 27]), None, "truncated");
    }

    #[test]
    fn common_addresses_are_those_of_both_ranges() {
        let of = |first: u8, count: u16| Addresses::of([0x91, 0xe0, 0xf0, 0, 0, first], count);
        assert_eq!(of(10, 4).common(of(13, 9)), Some(of(13, 1)));
        assert_eq!(of(13, 9).common(of(10, 4)), Some(of(13, 1)));
        assert_eq!((of(10, 4).common(of(14, 1)), of(10, 4).common(of(11, 0))), (None, None));
        let all = Addresses { first: 0x91e0_f000_0000, count: u16::MAX };
        assert_eq!(all.common(of(7, 2)), Some(of(7, 2)));
        assert_eq!(of(7, 2).last(), [0x91, 0xe0, 0xf0, 0, 0, 8]);
    }

    #[test]
    fn the_dynamic_pool_has_its_documented_ends() {
        assert!(Addresses::of([0x91, 0xe0, 0xf0, 0, 0, 0], 0xfe00).are_dynamic());
        assert!(Addresses::of([0x91, 0xe0, 0xf0, 0, 0xfd, 0xff], 1).are_dynamic());
        assert!(!Addresses::of([0x91, 0xe0, 0xf0, 0, 0xfd, 0xff], 2).are_dynamic());
        assert!(!Addresses::of([0x91, 0xe0, 0xef, 0xff, 0xff, 0xff], 2).are_dynamic());
        assert!(!Addresses::of(DESTINATION, 1).are_dynamic());
    }

    #[test]
    fn the_first_choice_is_the_computed_range_within_the_pool() {
        let source = [2, 0, 0, 0, 0x12, 0x34];
        assert_eq!(Addresses::preferred(source, 7, 8).at(0), multicast_of(source, 7));
        let at_the_end = Addresses::preferred([2, 0, 0, 0, 0xfd, 0xfe], 0, 8);
        assert_eq!((at_the_end.last(), at_the_end.count), ([0x91, 0xe0, 0xf0, 0, 0xfd, 0xff], 8));
    }

    proptest! {
        #[test]
        fn messages_round_trip(
            kind in prop_oneof![Just(Kind::Probe), Just(Kind::Defend), Just(Kind::Announce)],
            first in any::<Mac>(),
            count in any::<u16>(),
            conflict in any::<Mac>(),
            conflicts in any::<u16>(),
        ) {
            let conflict = Some(Addresses::of(conflict, conflicts)).filter(|_| conflicts > 0);
            let message = Message { kind, requested: Addresses::of(first, count), conflict };
            prop_assert_eq!(Message::read(&message.to_bytes()), Some(message));
        }

        #[test]
        fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = (Message::read(&bytes), Message::of_frame(&bytes));
        }
    }
}
