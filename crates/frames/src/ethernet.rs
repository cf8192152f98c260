//! Ethernet: addresses, the VLAN tag, the length on the wire.

/// A MAC address.
pub type Mac = [u8; 6];

/// EtherType of a VLAN tag.
pub const VLAN: u16 = 0x8100;
/// EtherType of AVTP.
pub const AVTP: u16 = 0x22f0;
/// Both addresses and the EtherType, bytes.
pub const HEADER: usize = 14;
/// A VLAN tag, bytes.
pub const TAG: usize = 4;

/// The first addresses that MAAP gives out for streams: 91:E0:F0:00:00:00 to 91:E0:F0:00:FD:FF are its dynamic pool.
const MAAP_POOL: [u8; 4] = [0x91, 0xe0, 0xf0, 0x00];
const MAAP_ADDRESSES: u32 = 0xfe00;

/// What a VLAN tag says besides that it is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tci {
    /// Priority code point, 0 to 7.
    pub pcp: u8,
    /// Drop eligible.
    pub dei: bool,
    /// VLAN, 0 to 4095.
    pub vid: u16,
}

impl Tci {
    /// Reads the 16 bits of a tag.
    #[must_use]
    pub fn from_bits(bits: u16) -> Self {
        Self { pcp: (bits >> 13) as u8, dei: bits & 0x1000 != 0, vid: bits & 0xfff }
    }

    /// The 16 bits of a tag; of larger numbers the low bits.
    #[must_use]
    pub fn to_bits(self) -> u16 {
        u16::from(self.pcp & 7) << 13 | u16::from(self.dei) << 12 | self.vid & 0xfff
    }
}

/// What a frame of `length` bytes, without its check sequence, takes on the wire: at least 60 bytes, check sequence (4),
/// preamble (8) and the gap to the next (12).
#[must_use]
pub fn wire_bytes(length: usize) -> usize {
    length.max(60) + 4 + 8 + 12
}

/// An address of MAAP's dynamic pool for a stream of `source`: always the same, and seldom that of another talker.
#[must_use]
pub fn multicast_of(source: Mac, unique: u16) -> Mac {
    let [.., e, f] = source;
    let offset = (u32::from(u16::from_be_bytes([e, f])) + u32::from(unique)) % MAAP_ADDRESSES;
    let [_, _, high, low] = offset.to_be_bytes();
    let [a, b, c, d] = MAAP_POOL;
    [a, b, c, d, high, low]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn tags_of_both_classes() {
        assert_eq!(Tci { pcp: 3, dei: false, vid: 2 }.to_bits(), 0x6002);
        assert_eq!(Tci { pcp: 2, dei: false, vid: 2 }.to_bits(), 0x4002);
        assert_eq!(Tci::from_bits(0x7fff), Tci { pcp: 3, dei: true, vid: 4095 });
    }

    #[test]
    fn lengths_on_the_wire() {
        assert_eq!(wire_bytes(90), 114, "stereo at 48 kHz, class A");
        assert_eq!(wire_bytes(234), 258, "8 channels");
        assert_eq!(wire_bytes(42), 84, "the shortest");
        assert_eq!(wire_bytes(1518), 1542, "the longest");
    }

    proptest! {
        #[test]
        fn any_tag_is_read_as_it_was_written(bits in any::<u16>()) {
            prop_assert_eq!(Tci::from_bits(bits).to_bits(), bits);
        }

        #[test]
        fn destinations_lie_in_the_pool(source in any::<Mac>(), unique in any::<u16>()) {
            let [a, b, c, d, high, _] = multicast_of(source, unique);
            prop_assert_eq!([a, b, c, d], MAAP_POOL);
            prop_assert!(high <= 0xfd);
        }
    }
}
