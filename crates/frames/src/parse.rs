//! Decodes frames.

use crate::{
    Avtp, Format, Mac, Payload, Tci, bytes,
    ethernet::{AVTP, HEADER, TAG, VLAN},
};

/// The decoded frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Parsed {
    /// The destination address.
    pub destination: Mac,
    /// The source address.
    pub source: Mac,
    /// The VLAN tag; `None` if there is none, e.g. because a switch removed it.
    pub vlan: Option<Tci>,
    /// The EtherType after any VLAN tag.
    pub ethertype: u16,
    /// The AVTP header, if this is an AVTP stream packet.
    pub avtp: Option<Avtp>,
    /// The probe's payload, if our talker sent the frame.
    pub probe: Option<Payload>,
}

/// Decodes a frame without preamble. A truncated frame has `None` for missing parts. Returns `None` if the Ethernet
/// header is incomplete.
#[must_use]
pub fn parse(frame: &[u8]) -> Option<Parsed> {
    let (destination, source): (Mac, Mac) = (bytes(frame, 0)?, bytes(frame, 6)?);
    let outer = u16::from_be_bytes(bytes(frame, 12)?);
    let (vlan, ethertype, packet_at) = if outer == VLAN {
        let tci = Tci::from_bits(u16::from_be_bytes(bytes(frame, HEADER)?));
        (Some(tci), u16::from_be_bytes(bytes(frame, HEADER + 2)?), HEADER + TAG)
    } else {
        (None, outer, HEADER)
    };
    let packet = frame.get(packet_at..)?;
    let avtp = if ethertype == AVTP { Avtp::read(packet) } else { None };
    let probe = avtp.and_then(|avtp| Payload::read(packet.get(Format::of(avtp.subtype)?.samples_at()..)?));
    Some(Parsed { destination, source, vlan, ethertype, avtp, probe })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn arbitrary_bytes_do_not_panic(frame in prop::collection::vec(any::<u8>(), 0..200)) {
            let parsed = parse(&frame);
            prop_assert_eq!(parsed.is_none(), frame.len() < 14 || (frame[12..14] == [0x81, 0] && frame.len() < 18));
        }

        #[test]
        fn arbitrary_avtp_packets_do_not_panic(packet in prop::collection::vec(any::<u8>(), 0..100), subtype in 0..8u8) {
            let mut frame = [[0; 12].as_slice(), &[0x22, 0xf0], &packet].concat();
            if let Some(first) = frame.get_mut(14) {
                *first = subtype;
            }
            let avtp = parse(&frame).expect("a whole header").avtp;
            prop_assert_eq!(avtp.is_some(), subtype <= 5 && packet.len() >= 22);
        }
    }
}
