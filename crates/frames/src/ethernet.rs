//! Ethernet addresses, the VLAN tag and the length on the wire.

use crate::maap::POOL;

/// A MAC address.
pub type Mac = [u8; 6];

/// EtherType of a VLAN tag.
pub const VLAN: u16 = 0x8100;
/// EtherType of AVTP.
pub const AVTP: u16 = 0x22f0;
/// Length of both addresses and the EtherType, bytes.
pub const HEADER: usize = 14;
/// Length of a VLAN tag, bytes.
pub const TAG: usize = 4;

/// The tag control information of a VLAN tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tci {
    /// Priority code point, 0 to 7.
    pub pcp: u8,
    /// Drop eligible indicator.
    pub dei: bool,
    /// VLAN id, 0 to 4095.
    pub vid: u16,
}

impl Tci {
    /// Decodes the 16 bits of a tag.
    #[must_use]
    pub fn from_bits(bits: u16) -> Self {
        Self { pcp: (bits >> 13) as u8, dei: bits & 0x1000 != 0, vid: bits & 0xfff }
    }

    /// Encodes the 16 bits of a tag. Values that are too large are masked.
    #[must_use]
    pub fn to_bits(self) -> u16 {
        u16::from(self.pcp & 7) << 13 | u16::from(self.dei) << 12 | self.vid & 0xfff
    }
}

/// The bytes that a frame of `length` bytes (without FCS) occupies on the wire: at least 60, plus FCS (4), preamble (8)
/// and inter-frame gap (12).
#[must_use]
#[inline]
pub fn wire_bytes(length: usize) -> usize {
    length.max(60) + 4 + 8 + 12
}

/// A multicast address from the dynamic MAAP pool for a stream of `source`. It is deterministic and rarely collides
/// with that of another talker.
#[must_use]
pub fn multicast_of(source: Mac, unique: u16) -> Mac {
    let [.., e, f] = source;
    let offset = (u32::from(u16::from_be_bytes([e, f])) + u32::from(unique)) % u32::from(POOL.count);
    POOL.at(u16::try_from(offset).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn encodes_the_tags_of_both_classes() {
        assert_eq!(Tci { pcp: 3, dei: false, vid: 2 }.to_bits(), 0x6002);
        assert_eq!(Tci { pcp: 2, dei: false, vid: 2 }.to_bits(), 0x4002);
        assert_eq!(Tci::from_bits(0x7fff), Tci { pcp: 3, dei: true, vid: 4095 });
    }

    #[test]
    fn adds_overhead_and_padding() {
        assert_eq!(wire_bytes(90), 114, "stereo at 48 kHz, class A");
        assert_eq!(wire_bytes(234), 258, "8 channels");
        assert_eq!(wire_bytes(42), 84, "the shortest frame");
        assert_eq!(wire_bytes(1518), 1542, "the longest frame");
    }

    proptest! {
        #[test]
        fn tags_round_trip(bits in any::<u16>()) {
            prop_assert_eq!(Tci::from_bits(bits).to_bits(), bits);
        }

        #[test]
        fn destinations_are_in_the_maap_pool(source in any::<Mac>(), unique in any::<u16>()) {
            let [a, b, c, d, high, _] = multicast_of(source, unique);
            prop_assert_eq!([a, b, c, d], [0x91, 0xe0, 0xf0, 0x00]);
            prop_assert!(high <= 0xfd);
        }
    }
}
