//! A frame read.

use crate::{
    Avtp, Format, Mac, Payload, Tci, bytes,
    ethernet::{AVTP, HEADER, TAG, VLAN},
};

/// What a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Parsed {
    /// To whom.
    pub destination: Mac,
    /// From whom.
    pub source: Mac,
    /// What its VLAN tag says; `None` where it has none, as one whose tag was taken off on the way.
    pub vlan: Option<Tci>,
    /// What it carries, behind the tag.
    pub ethertype: u16,
    /// The header of a stream's packet, where it carries one.
    pub avtp: Option<Avtp>,
    /// What our talker tells, where it is one of ours.
    pub probe: Option<Payload>,
}

/// Reads a frame, without preamble. It may be cut off: what is no longer there is `None`. `None` where not even the
/// header is whole.
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
        fn any_bytes_are_read_or_refused(frame in prop::collection::vec(any::<u8>(), 0..200)) {
            let parsed = parse(&frame);
            prop_assert_eq!(parsed.is_none(), frame.len() < 14 || (frame[12..14] == [0x81, 0] && frame.len() < 18));
        }

        #[test]
        fn any_packet_of_avtp_is_read_or_refused(packet in prop::collection::vec(any::<u8>(), 0..100), subtype in 0..8u8) {
            let mut frame = [[0; 12].as_slice(), &[0x22, 0xf0], &packet].concat();
            if let Some(first) = frame.get_mut(14) {
                *first = subtype;
            }
            let avtp = parse(&frame).expect("a whole header").avtp;
            prop_assert_eq!(avtp.is_some(), subtype <= 5 && packet.len() >= 22);
        }
    }
}
