//! The head of a frame: addresses, VLAN tags and, of a UDP datagram, its addresses. Frames of one stream have the same,
//! so a [`Pattern`] recognises it without decoding it again. The pattern of an AVTP frame includes its stream.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::{
    Mac, Tci, avtp, bytes,
    ethernet::{AVTP, HEADER, VLAN},
    protocol::{IPV4, IPV6},
};

/// EtherTypes of the outer tag of two: that of IEEE Std 802.1ad, and one from before.
const OUTER_TAGS: [u16; 2] = [0x88a8, 0x9100];
/// The most VLAN tags that are skipped.
const TAGS_MAX: usize = 3;
/// EtherTypes of the tags before that of the protocol: the redundancy tag of IEEE Std 802.1CB, 7.8, and the tag of HSR
/// (IEC 62439-3, 5.7).
const R_TAG: u16 = 0xf1c1;
const HSR: u16 = 0x892f;
/// Length of both tags after their EtherType, bytes: 2 that are reserved or, of HSR, the path (4 bits) and the size (12 bits);
/// the sequence number; and the next EtherType.
const TAG_BYTES: usize = 6;
/// The protocol number of UDP.
const UDP: u8 = 17;
/// Length of a UDP header, bytes.
const UDP_BYTES: usize = 8;
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
    /// Destination address.
    pub destination: IpAddr,
    /// Destination port.
    pub port: u16,
}

/// A tag that copies of a frame have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tag {
    /// The redundancy tag of IEEE Std 802.1CB, which counts the frames of a stream.
    Redundancy,
    /// The tag of HSR, which counts all frames of a node.
    Hsr,
}

/// The decoded head of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Head {
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
    /// The EtherType after any tags.
    pub ethertype: u16,
    /// The addresses, if this is a UDP datagram or the first fragment of one.
    pub datagram: Option<Datagram>,
    /// The tag before the EtherType that copies of a frame have in common.
    pub tag: Option<Tag>,
    /// Offset of the first byte after the EtherType.
    pub(crate) packet_at: usize,
    /// Offset of the content: the payload of a UDP datagram, or else the first byte after the EtherType.
    pub(crate) content_at: usize,
}

/// The bytes that determine a head and, of an AVTP frame, its subtype and stream id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pattern {
    words: usize,
    /// The shortest frame that can match, bytes.
    shortest: usize,
    /// For each word of the frame, the bits that must be equal, and their values.
    bits: [(u64, u64); Self::WORDS],
}

impl Link {
    /// The header with this link type of a capture file.
    #[must_use]
    #[inline]
    pub fn of(link_type: u32) -> Option<Self> {
        match link_type {
            1 => Some(Self::Ethernet),
            113 => Some(Self::Cooked),
            276 => Some(Self::Cooked2),
            _ => None,
        }
    }

    /// Destination, source, way, EtherType and the offset of the packet.
    #[inline]
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

impl Head {
    /// Decodes the head of a frame without preamble. A truncated frame has `None` for missing parts. Returns `None` if
    /// the header or a tag is incomplete.
    #[must_use]
    #[inline]
    pub fn read(link: Link, frame: &[u8]) -> Option<Self> {
        let (destination, source, way, mut ethertype, mut at) = link.read(frame)?;
        let (mut vlan, mut outer) = (None, None);
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
        let tag = match ethertype {
            R_TAG => Some(Tag::Redundancy),
            HSR => Some(Tag::Hsr),
            _ => None,
        };
        if tag.is_some() {
            ethertype = u16::from_be_bytes(bytes(frame, at + TAG_BYTES - 2)?);
            at += TAG_BYTES;
        }
        let udp = if [IPV4, IPV6].contains(&ethertype) { udp(ethertype, frame.get(at..)?) } else { None };
        let (datagram, length) = udp.map_or((None, 0), |(datagram, length)| (Some(datagram), length));
        let content_at = at + length;
        Some(Self { destination, source, way, vlan, outer, ethertype, datagram, tag, packet_at: at, content_at })
    }

    /// The content of a frame with this head: the payload of a UDP datagram, or else all after the EtherType.
    #[must_use]
    #[inline]
    pub fn content<'a>(&self, frame: &'a [u8]) -> &'a [u8] {
        frame.get(self.content_at..).unwrap_or_default()
    }

    /// The tag that copies of a frame have in common, and the sequence number in it.
    #[must_use]
    #[inline(always)]
    pub fn tag_number(&self, frame: &[u8]) -> Option<(Tag, u16)> {
        let tag = self.tag?;
        let at = self.packet_at.checked_sub(TAG_BYTES - 2)?;
        bytes(frame, at).map(|number| (tag, u16::from_be_bytes(number)))
    }

    /// The bytes of this frame that determine its head, and its stream if it is an AVTP frame. `None` if they are too many
    /// or incomplete, or if the frame is of another protocol over IP than UDP.
    #[must_use]
    pub fn pattern(&self, frame: &[u8]) -> Option<Pattern> {
        if self.datagram.is_none() && [IPV4, IPV6].contains(&self.ethertype) {
            return None;
        }
        let is_avtp = self.ethertype == AVTP;
        let length = self.content_at + if is_avtp { avtp::IDENTITY } else { 0 };
        let words = length.div_ceil(size_of::<u64>());
        // A shorter AVTP frame has no stream.
        let shortest = (words * size_of::<u64>()).max(self.content_at + if is_avtp { avtp::SHORTEST } else { 0 });
        let frame = frame.get(..shortest).filter(|_| words <= Pattern::WORDS)?;
        let mut mask = [0u8; Pattern::BYTES];
        mask[..length].fill(0xff);
        let mut varies = |at: usize, length: usize| mask[at..at + length].fill(0);
        if self.tag.is_some() {
            // The copies of a frame have different paths.
            varies(self.packet_at - TAG_BYTES, 4);
        }
        if is_avtp {
            // Flags and sequence number.
            varies(self.content_at + 1, 3);
        }
        if self.datagram.is_some() {
            // Length, identification and checksum of IPv4; length of IPv6; length and checksum of UDP.
            match self.ethertype {
                IPV4 => {
                    varies(self.packet_at + 2, 4);
                    varies(self.packet_at + 10, 2);
                }
                _ => varies(self.packet_at + 4, 2),
            }
            varies(self.content_at - 4, 4);
        }
        let mut pattern = Pattern { words, shortest, bits: [(0, 0); Pattern::WORDS] };
        for ((bits, mask), word) in pattern.bits.iter_mut().zip(words_of(&mask)).zip(words_of(frame)) {
            *bits = (mask, word & mask);
        }
        Some(pattern)
    }
}

impl Pattern {
    /// Number of words of 8 bytes: enough for UDP over IPv6 with two VLAN tags.
    const WORDS: usize = 10;
    const BYTES: usize = Self::WORDS * size_of::<u64>();

    /// True if a frame with the same kind of link has the same head, and stream if it is an AVTP frame. False if it is too
    /// short to compare.
    #[must_use]
    #[inline(always)]
    pub fn matches(&self, frame: &[u8]) -> bool {
        frame.len() >= self.shortest
            && match self.words {
                // AVTP, and UDP over IPv4: without a loop.
                4 => self.matches_words::<4>(frame),
                6 => self.matches_words::<6>(frame),
                words => self.bits.get(..words).is_some_and(|bits| equal(bits, words_of(frame))),
            }
    }

    #[inline(always)]
    fn matches_words<const WORDS: usize>(&self, frame: &[u8]) -> bool {
        let parts = self.bits.first_chunk::<WORDS>().zip(frame.as_chunks().0.first_chunk::<WORDS>());
        parts.is_some_and(|(bits, words)| equal(bits, words.iter().map(|word| u64::from_ne_bytes(*word))))
    }
}

/// True if the words have these bits. There is no branch for each word, because most frames match.
#[inline(always)]
fn equal(bits: &[(u64, u64)], words: impl Iterator<Item = u64>) -> bool {
    bits.iter().zip(words).fold(0, |different, ((mask, value), word)| different | (word & mask ^ value)) == 0
}

/// The whole words of 8 bytes.
#[inline(always)]
fn words_of(from: &[u8]) -> impl Iterator<Item = u64> {
    from.as_chunks().0.iter().map(|word| u64::from_ne_bytes(*word))
}

/// The addresses of a UDP datagram, and the length of the headers before its payload. Of a fragmented one, only the first
/// fragment has them.
fn udp(ethertype: u16, packet: &[u8]) -> Option<(Datagram, usize)> {
    let (source, destination, at): (IpAddr, IpAddr, _) = if ethertype == IPV4 {
        let fragment = u16::from_be_bytes(bytes(packet, 6)?) & 0x1fff;
        if packet[0] >> 4 != 4 || *packet.get(9)? != UDP || fragment != 0 {
            return None;
        }
        let [source, destination]: [[u8; 4]; 2] = [bytes(packet, 12)?, bytes(packet, 16)?];
        let words = usize::from(packet[0] & 15);
        (words >= 5).then_some((Ipv4Addr::from(source).into(), Ipv4Addr::from(destination).into(), words * 4))?
    } else {
        let [source, destination]: [[u8; 16]; 2] = [bytes(packet, 8)?, bytes(packet, 24)?];
        (
            Ipv6Addr::from(source).into(),
            Ipv6Addr::from(destination).into(),
            (packet[0] >> 4 == 6).then(|| udp_of_ipv6(packet))??,
        )
    };
    let [a, b, c, d] = bytes(packet, at)?;
    let (source_port, port) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
    let found = Datagram { source, source_port, destination, port };
    let length = at + UDP_BYTES;
    (packet.len() >= length).then_some((found, length))
}

/// Offset of the UDP header behind the extension headers.
fn udp_of_ipv6(packet: &[u8]) -> Option<usize> {
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
    (next == UDP).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Content, ethernet::AVTP};
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

    fn ethernet(frame: &[u8]) -> Head {
        Head::read(Link::Ethernet, frame).unwrap()
    }

    fn vid(tci: Option<Tci>) -> Option<u16> {
        tci.map(|tci| tci.vid)
    }

    #[test]
    fn skips_two_tags_and_a_redundancy_tag() {
        for outer in [VLAN, 0x88a8, 0x9100] {
            let [high, low] = outer.to_be_bytes();
            let tags = [high, low, 0x60, 100, 0x81, 0, 0x40, 2, 0xf1, 0xc1, 0, 0, 0x12, 0x34, 8, 0];
            let frame = [&MAC[..], &tags, &ipv4(b"x")].concat();
            let head = ethernet(&frame);
            assert_eq!((vid(head.outer), vid(head.vlan)), (Some(100), Some(2)), "{outer:#x}");
            assert_eq!(
                (head.vlan.unwrap().pcp, head.tag_number(&frame), head.ethertype),
                (2, Some((Tag::Redundancy, 0x1234)), IPV4)
            );
            assert_eq!(head.datagram.map(|datagram| datagram.port), Some(5000));
        }
        let frame = [&MAC[..], &[0x81, 0, 0, 7, 8, 0], &ipv4(b"")].concat();
        let one = ethernet(&frame);
        assert_eq!((vid(one.outer), vid(one.vlan), one.tag_number(&frame)), (None, Some(7), None));
    }

    #[test]
    fn finds_udp_behind_extension_headers_of_ipv6() {
        let packet = |next: u8, extensions: &[u8]| {
            let header = [&[0x60, 0, 0, 0, 0, 0, next, 64][..], &[0xfd; 16], &[0xff; 16]].concat();
            [&MAC[..], &[0x86, 0xdd], &header, extensions, &datagram(b"x")].concat()
        };
        let found = |next, extensions: &[u8]| ethernet(&packet(next, extensions)).datagram;
        let expected =
            Datagram { source: [0xfd; 16].into(), source_port: 1000, destination: [0xff; 16].into(), port: 5000 };
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
            let head = Head::read(link, &frame).unwrap();
            assert_eq!((head.source, head.way), ([2, 0, 0, 0, 0, 9], Some(Way { interface, to: 4 })));
            assert_eq!(head.datagram.map(|datagram| datagram.source_port), Some(1000));
        }
        assert_eq!(
            [1, 113, 276, 105].map(Link::of),
            [Some(Link::Ethernet), Some(Link::Cooked), Some(Link::Cooked2), None]
        );
    }

    #[test]
    fn a_header_of_ipv4_has_at_least_five_words() {
        let mut frame = [&MAC[..], &[8, 0], &ipv4(b"x")].concat();
        frame[14] = 0x44;
        assert_eq!(ethernet(&frame).datagram, None);
    }

    #[test]
    fn a_pattern_matches_the_next_frame_of_a_stream() {
        let frame =
            |payload: &[u8]| [&MAC[..], &[0x81, 0, 0, 7, 0xf1, 0xc1, 0, 0, 0, 1, 8, 0], &ipv4(payload)].concat();
        let first = frame(&[0; 20]);
        let pattern = ethernet(&first).pattern(&first).unwrap();
        let next = |at: usize, byte: u8| {
            let mut next = frame(&[9; 20]);
            next[at] = byte;
            pattern.matches(&next)
        };
        let ip = 24;
        // Numbers of the tag, of IPv4 and its checksum, the length and the checksum of UDP, and the payload.
        assert!([20, 21, ip + 4, ip + 11, ip + 25, ip + 27, ip + 28].iter().all(|&at| next(at, 3)));
        // Addresses, VLAN, protocol and ports.
        assert!([0, 11, 15, ip + 9, ip + 15, ip + 21, ip + 23].iter().all(|&at| !next(at, 3)));
        let short = frame(&[]);
        assert_eq!(ethernet(&short).pattern(&short), None, "its last word is incomplete");
        let tcp = [&MAC[..], &[8, 0], &[0x45; 60]].concat();
        assert_eq!(ethernet(&tcp).pattern(&tcp), None, "the EtherType does not say that it is no datagram");
    }

    /// Subtype and stream id, if this is an AVTP stream packet.
    fn stream_of(head: &Head, frame: &[u8]) -> Option<(u8, u64)> {
        Content::read(head, frame, true).avtp.map(|avtp| (avtp.subtype, avtp.stream_id))
    }

    #[test]
    fn the_pattern_of_an_avtp_frame_is_that_of_its_stream() {
        let frame = [&MAC[..], &AVTP.to_be_bytes(), &[0; 40]].concat();
        let pattern = ethernet(&frame).pattern(&frame).unwrap();
        let changed = |at: usize| {
            let mut other = frame.clone();
            other[at] = 2;
            pattern.matches(&other)
        };
        assert_eq!([14, 18, 25].map(changed), [false; 3], "subtype, stream id");
        assert_eq!([15, 16, 17, 26].map(changed), [true; 4], "flags, sequence number, presentation time");
        let matches = |length: usize| pattern.matches(&frame[..length]);
        assert_eq!([35, 36].map(matches), [false, true], "a shorter frame has no stream");
    }

    /// Frames of all kinds: EtherTypes, the bytes after them, the byte that IP has its next protocol in.
    fn frames() -> impl Strategy<Value = (Link, Vec<u8>)> {
        let link = prop::sample::select(vec![Link::Ethernet, Link::Cooked, Link::Cooked2]);
        let types = prop::sample::select(vec![VLAN, 0x88a8, R_TAG, HSR, IPV4, IPV4, IPV6, IPV6, AVTP, 0x88ba]);
        let next = prop::sample::select(vec![0u8, 17, 17, 43, 44, 60]);
        (link, prop::collection::vec(types, 1..5), prop::collection::vec(any::<u8>(), 0..120), next).prop_map(
            |(link, types, mut packet, next)| {
                if let [version, .., _] = &mut packet[..] {
                    *version = if types.last() == Some(&IPV6) { 0x60 } else { 0x45 };
                }
                for at in [6, 9, 40] {
                    packet.get_mut(at).into_iter().for_each(|byte| *byte = next);
                }
                let tags = types[1..].iter().flat_map(|ethertype| [&[0, 2][..], &ethertype.to_be_bytes()].concat());
                let frame: Vec<u8> = match link {
                    Link::Ethernet => [&[0; 12][..], &types[0].to_be_bytes()].concat(),
                    Link::Cooked => [&[0, 4, 0, 1, 0, 6][..], &[0; 8], &types[0].to_be_bytes()].concat(),
                    Link::Cooked2 => [&types[0].to_be_bytes()[..], &[0; 18]].concat(),
                };
                (link, frame.into_iter().chain(tags).chain(packet).collect())
            },
        )
    }

    proptest! {
        #[test]
        fn arbitrary_frames_do_not_panic((link, frame) in frames()) {
            for length in [frame.len(), frame.len() / 2, 20] {
                let frame = &frame[..length.min(frame.len())];
                if let Some(head) = Head::read(link, frame) {
                    let _ = Content::read(&head, frame, false);
                    if let Some(pattern) = head.pattern(frame) {
                        prop_assert!(pattern.matches(frame));
                    }
                }
            }
        }

        #[test]
        fn frames_that_match_a_pattern_have_its_head(
            (link, frame) in frames(),
            changes in prop::collection::vec((0..90usize, any::<u8>()), 1..4),
            length in 0..200usize,
        ) {
            let Some(head) = Head::read(link, &frame) else { return Ok(()) };
            let Some(pattern) = head.pattern(&frame) else { return Ok(()) };
            let stream = stream_of(&head, &frame);
            let mut other = frame;
            for (at, byte) in changes {
                other.get_mut(at).into_iter().for_each(|old| *old = byte);
            }
            other.truncate(length);
            if pattern.matches(&other) {
                prop_assert_eq!(Head::read(link, &other), Some(head));
                prop_assert_eq!(stream_of(&head, &other), stream);
            }
        }
    }
}
