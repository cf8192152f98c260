//! Decodes frames.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::{
    Avtp, Format, Mac, Payload, Tci, bytes,
    ethernet::{AVTP, HEADER, VLAN},
    protocol::{Count, IPV4, IPV6, Protocol, of_datagram, of_ethertype},
};

/// EtherTypes of the outer tag of two: that of IEEE Std 802.1ad, and one from before.
const OUTER_TAGS: [u16; 2] = [0x88a8, 0x9100];
/// The most VLAN tags that are skipped.
const TAGS_MAX: usize = 3;
/// EtherType of a redundancy tag, IEEE Std 802.1CB, 7.8.
const R_TAG: u16 = 0xf1c1;
/// The protocol number of UDP.
const UDP: u8 = 17;
/// IPv6 extension headers that are skipped: hop-by-hop options, routing, destination options; and the fragment header.
const EXTENSIONS: [u8; 3] = [0, 43, 60];
const FRAGMENT: u8 = 44;
/// The most extension headers that are skipped.
const EXTENSIONS_MAX: usize = 8;

/// The header in front of the EtherType.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Link {
    /// Ethernet.
    Ethernet,
    /// Linux cooked capture, version 1: what `tcpdump -i any` wrote before version 2.
    Cooked,
    /// Linux cooked capture, version 2.
    Cooked2,
}

/// The way of a frame in a Linux cooked capture, which has no destination address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Way {
    /// Index of the network interface; 0 in version 1, which does not contain it.
    pub interface: u32,
    /// Who the frame was for: 0 this host, 1 all, 2 a group, 3 another host, 4 sent by this host.
    pub to: u8,
}

/// The addresses of a UDP datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Datagram {
    /// Source address.
    pub source: IpAddr,
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub port: u16,
}

/// The decoded frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Parsed {
    /// The destination address; 0 in a cooked capture.
    pub destination: Mac,
    /// The source address; 0 if it has not 6 bytes.
    pub source: Mac,
    /// The way of the frame in a cooked capture.
    pub way: Option<Way>,
    /// The innermost VLAN tag; `None` if there is none, e.g. because a switch removed it.
    pub vlan: Option<Tci>,
    /// The outermost VLAN tag of several.
    pub outer: Option<Tci>,
    /// The sequence number of the redundancy tag. Copies of a frame have the same.
    pub redundant: Option<u16>,
    /// The EtherType after any tags.
    pub ethertype: u16,
    /// The AVTP header, if this is an AVTP stream packet.
    pub avtp: Option<Avtp>,
    /// The probe's payload, if our talker sent the frame.
    pub probe: Option<Payload>,
    /// The addresses, if this is a UDP datagram or the first fragment of one.
    pub datagram: Option<Datagram>,
    /// The protocol, except for AVTP.
    pub protocol: Protocol,
    /// A candidate for the number of the frame, except for AVTP.
    pub count: Option<Count>,
}

impl Link {
    /// The header with this link type of a capture file.
    #[must_use]
    pub fn of(link_type: u32) -> Option<Self> {
        match link_type {
            1 => Some(Self::Ethernet),
            113 => Some(Self::Cooked),
            276 => Some(Self::Cooked2),
            _ => None,
        }
    }

    /// Destination, source, way, EtherType and the offset of the packet.
    fn read(self, from: &[u8]) -> Option<(Mac, Mac, Option<Way>, u16, usize)> {
        let number = |at| bytes(from, at).map(u16::from_be_bytes);
        let source = |length: u16, at| if length == 6 { bytes(from, at) } else { Some([0; 6]) };
        Some(match self {
            Self::Ethernet => (bytes(from, 0)?, bytes(from, 6)?, None, number(12)?, HEADER),
            Self::Cooked => {
                let [_, to] = bytes(from, 0)?;
                ([0; 6], source(number(4)?, 6)?, Some(Way { interface: 0, to }), number(14)?, 16)
            }
            Self::Cooked2 => {
                let [to, length] = bytes(from, 10)?;
                let interface = u32::from_be_bytes(bytes(from, 4)?);
                ([0; 6], source(length.into(), 12)?, Some(Way { interface, to }), number(0)?, 20)
            }
        })
    }
}

/// Decodes an Ethernet frame without preamble. A truncated frame has `None` for missing parts. Returns `None` if the
/// Ethernet header is incomplete.
#[must_use]
pub fn parse(frame: &[u8]) -> Option<Parsed> {
    parse_captured(Link::Ethernet, frame, true)
}

/// Decodes a captured frame, as [`parse`]. `is_whole` is false if the capture contains only its start.
#[must_use]
#[inline]
pub fn parse_captured(link: Link, frame: &[u8], is_whole: bool) -> Option<Parsed> {
    let (destination, source, way, mut ethertype, mut at) = link.read(frame)?;
    let (mut vlan, mut outer, mut redundant) = (None, None, None);
    for _ in 0..TAGS_MAX {
        if ethertype != VLAN && !OUTER_TAGS.contains(&ethertype) {
            break;
        }
        let tci = Tci::from_bits(u16::from_be_bytes(bytes(frame, at)?));
        ethertype = u16::from_be_bytes(bytes(frame, at + 2)?);
        at += 4;
        outer = outer.or(vlan);
        vlan = Some(tci);
    }
    if ethertype == R_TAG {
        redundant = Some(u16::from_be_bytes(bytes(frame, at + 2)?));
        ethertype = u16::from_be_bytes(bytes(frame, at + 4)?);
        at += 6;
    }
    let packet = frame.get(at..)?;
    let (mut avtp, mut probe, mut datagram) = (None, None, None);
    let (mut protocol, mut count) = (Protocol::Unknown, None);
    match ethertype {
        AVTP => {
            avtp = Avtp::read(packet);
            probe = avtp.and_then(|avtp| Payload::read(packet.get(Format::of(avtp.subtype)?.samples_at()..)?));
        }
        IPV4 | IPV6 => {
            if let Some((found, payload)) = udp(ethertype, packet) {
                (protocol, count) = of_datagram(found.port, payload);
                datagram = Some(found);
            }
        }
        _ => (protocol, count) = of_ethertype(ethertype, packet, is_whole),
    }
    Some(Parsed { destination, source, way, vlan, outer, redundant, ethertype, avtp, probe, datagram, protocol, count })
}

/// The addresses and the payload of a UDP datagram. Of a fragmented one, only the first fragment has them.
fn udp(ethertype: u16, packet: &[u8]) -> Option<(Datagram, &[u8])> {
    let (source, datagram): (IpAddr, _) = if ethertype == IPV4 {
        let fragment = u16::from_be_bytes(bytes(packet, 6)?) & 0x1fff;
        if packet[0] >> 4 != 4 || *packet.get(9)? != UDP || fragment != 0 {
            return None;
        }
        let source: [u8; 4] = bytes(packet, 12)?;
        (Ipv4Addr::from(source).into(), packet.get(usize::from(packet[0] & 15) * 4..)?)
    } else {
        let source: [u8; 16] = bytes(packet, 8)?;
        (Ipv6Addr::from(source).into(), (packet[0] >> 4 == 6).then(|| udp_of_ipv6(packet))??)
    };
    let [a, b, c, d] = bytes(datagram, 0)?;
    let found = Datagram { source, source_port: u16::from_be_bytes([a, b]), port: u16::from_be_bytes([c, d]) };
    Some((found, datagram.get(8..)?))
}

/// The UDP header behind the extension headers.
fn udp_of_ipv6(packet: &[u8]) -> Option<&[u8]> {
    let (mut next, mut at) = (*packet.get(6)?, 40);
    for _ in 0..EXTENSIONS_MAX {
        let [following, length] = bytes(packet, at).unwrap_or_default();
        if next == FRAGMENT {
            let [high, low] = bytes(packet, at + 2)?;
            if u16::from_be_bytes([high, low]) >> 3 != 0 {
                return None;
            }
            at += 8;
        } else if EXTENSIONS.contains(&next) {
            at += 8 * (usize::from(length) + 1);
        } else {
            break;
        }
        next = following;
    }
    packet.get(at..).filter(|_| next == UDP)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MAC: [u8; 12] = [1, 0, 0x5e, 0, 0, 1, 2, 0, 0, 0, 0, 9];

    /// UDP from port 1000 to port 5000 with `payload`.
    fn datagram(payload: &[u8]) -> Vec<u8> {
        [&[0x03, 0xe8, 0x13, 0x88, 0, 0, 0, 0], payload].concat()
    }

    fn ipv4(payload: &[u8]) -> Vec<u8> {
        let header = [0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, UDP, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        [&header[..], &datagram(payload)].concat()
    }

    fn vid(tci: Option<Tci>) -> Option<u16> {
        tci.map(|tci| tci.vid)
    }

    #[test]
    fn skips_two_tags_and_a_redundancy_tag() {
        for outer in [VLAN, 0x88a8, 0x9100] {
            let [high, low] = outer.to_be_bytes();
            let tags = [high, low, 0x60, 100, 0x81, 0, 0x40, 2, 0xf1, 0xc1, 0, 0, 0x12, 0x34, 8, 0];
            let parsed = parse(&[&MAC[..], &tags, &ipv4(b"x")].concat()).unwrap();
            assert_eq!((vid(parsed.outer), vid(parsed.vlan)), (Some(100), Some(2)), "{outer:#x}");
            assert_eq!((parsed.vlan.unwrap().pcp, parsed.redundant, parsed.ethertype), (2, Some(0x1234), IPV4));
            assert_eq!(parsed.datagram.map(|datagram| datagram.port), Some(5000));
        }
        let one = parse(&[&MAC[..], &[0x81, 0, 0, 7, 8, 0], &ipv4(b"")].concat()).unwrap();
        assert_eq!((vid(one.outer), vid(one.vlan), one.redundant), (None, Some(7), None));
    }

    #[test]
    fn finds_udp_behind_extension_headers_of_ipv6() {
        let packet = |next: u8, extensions: &[u8]| {
            let header = [&[0x60, 0, 0, 0, 0, 0, next, 64][..], &[0xfd; 16], &[0xff; 16]].concat();
            [&MAC[..], &[0x86, 0xdd], &header, extensions, &datagram(b"x")].concat()
        };
        let found = |next, extensions: &[u8]| parse(&packet(next, extensions)).unwrap().datagram;
        let expected = Datagram { source: [0xfd; 16].into(), source_port: 1000, port: 5000 };
        assert_eq!(found(UDP, &[]), Some(expected));
        assert_eq!(found(0, &[60, 0, 0, 0, 0, 0, 0, 0, UDP, 0, 0, 0, 0, 0, 0, 0]), Some(expected));
        assert_eq!(found(FRAGMENT, &[UDP, 0, 0, 1, 0, 0, 0, 9]), Some(expected), "first fragment");
        assert_eq!(found(FRAGMENT, &[UDP, 0, 0, 9, 0, 0, 0, 9]), None, "another fragment");
        assert_eq!(found(6, &[]), None, "TCP");
    }

    #[test]
    fn reads_cooked_captures() {
        let cooked = [&[0, 4, 0, 1, 0, 6, 2, 0, 0, 0, 0, 9, 0, 0, 8, 0][..], &ipv4(b"x")].concat();
        let cooked2 = [&[8, 0, 0, 0, 0, 0, 0, 3, 0, 1, 4, 6, 2, 0, 0, 0, 0, 9, 0, 0][..], &ipv4(b"x")].concat();
        for (link, frame, interface) in [(Link::Cooked, cooked, 0), (Link::Cooked2, cooked2, 3)] {
            let parsed = parse_captured(link, &frame, true).unwrap();
            assert_eq!((parsed.source, parsed.way), ([2, 0, 0, 0, 0, 9], Some(Way { interface, to: 4 })));
            assert_eq!(parsed.datagram.map(|datagram| datagram.source_port), Some(1000));
        }
        assert_eq!(
            [1, 113, 276, 105].map(Link::of),
            [Some(Link::Ethernet), Some(Link::Cooked), Some(Link::Cooked2), None]
        );
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_do_not_panic(frame in prop::collection::vec(any::<u8>(), 0..200)) {
            let parsed = parse(&frame);
            let is_tagged = frame.len() >= 14 && matches!(frame[12..14], [0x81, 0] | [0x88, 0xa8] | [0x91, 0] | [0xf1, 0xc1]);
            prop_assert!(is_tagged || parsed.is_none() == (frame.len() < 14));
        }

        #[test]
        fn arbitrary_headers_do_not_panic(
            link in prop::sample::select(vec![Link::Ethernet, Link::Cooked, Link::Cooked2]),
            types in prop::collection::vec(prop::sample::select(vec![VLAN, 0x88a8, R_TAG, IPV4, IPV6, AVTP, 0x88ba]), 1..5),
            packet in prop::collection::vec(any::<u8>(), 0..120),
            next in prop::sample::select(vec![0u8, 17, 43, 44, 60]),
        ) {
            let mut packet = packet;
            if let [version, .., _] = &mut packet[..] {
                *version = if types.last() == Some(&IPV6) { 0x60 } else { 0x45 };
            }
            [6, 9, 40].iter().for_each(|&at| if let Some(byte) = packet.get_mut(at) { *byte = next });
            let tags = types[1..].iter().flat_map(|ethertype| [&[0, 2][..], &ethertype.to_be_bytes()].concat());
            let frame: Vec<u8> = match link {
                Link::Ethernet => [&[0; 12][..], &types[0].to_be_bytes()].concat(),
                Link::Cooked => [&[0, 4, 0, 1, 0, 6][..], &[0; 8], &types[0].to_be_bytes()].concat(),
                Link::Cooked2 => [&types[0].to_be_bytes()[..], &[0; 18]].concat(),
            };
            let frame: Vec<u8> = frame.into_iter().chain(tags).chain(packet).collect();
            for length in [frame.len(), frame.len() / 2, 20] {
                let _ = parse_captured(link, &frame[..length.min(frame.len())], false);
            }
        }

        #[test]
        fn arbitrary_avtp_packets_do_not_panic(packet in prop::collection::vec(any::<u8>(), 0..100), subtype in 0..10u8) {
            let mut frame = [[0; 12].as_slice(), &[0x22, 0xf0], &packet].concat();
            if let Some(first) = frame.get_mut(14) {
                *first = subtype;
            }
            let avtp = parse(&frame).expect("a whole header").avtp;
            prop_assert_eq!(avtp.is_some(), subtype <= 7 && packet.len() >= 22);
        }
    }
}
