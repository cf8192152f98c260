//! Decodes frames.

use crate::{
    Avtp, Count, Crf, Format, Head, Link, Mac, Payload, Protocol, Tag, Tci,
    avtp::CRF,
    ethernet::AVTP,
    protocol::{avtp_control, of_datagram, of_ethertype, publisher},
};

/// A decoded Ethernet frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Parsed {
    /// The destination address.
    pub destination: Mac,
    /// The source address.
    pub source: Mac,
    /// The innermost VLAN tag; `None` if there is none, e.g. because a switch removed it.
    pub vlan: Option<Tci>,
    /// The EtherType after any tags.
    pub ethertype: u16,
    /// The AVTP header, if this is an AVTP stream packet.
    pub avtp: Option<Avtp>,
    /// The probe's payload, if our talker sent the frame.
    pub probe: Option<Payload>,
}

/// The decoded content of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Content {
    /// The sequence number of the redundancy tag. Copies of a frame have the same.
    pub redundant: Option<u16>,
    /// The number in the trailer of PRP or in the tag of HSR, which counts all frames of a node. Copies of a frame have the
    /// same.
    pub of_node: Option<u16>,
    /// The AVTP header, if this is an AVTP stream packet.
    pub avtp: Option<Avtp>,
    /// The rest of its header, if it is a clock reference.
    pub crf: Option<Crf>,
    /// The probe's payload, if our talker sent the frame.
    pub probe: Option<Payload>,
    /// The protocol, except for streams of AVTP.
    pub protocol: Protocol,
    /// A candidate for the number of the frame, except for AVTP.
    pub count: Option<Count>,
}

/// Decodes an Ethernet frame without preamble. A truncated frame has `None` for missing parts. Returns `None` if the
/// Ethernet header is incomplete.
#[must_use]
pub fn parse(frame: &[u8]) -> Option<Parsed> {
    let head = Head::read(Link::Ethernet, frame)?;
    let Content { avtp, probe, .. } = Content::read(&head, frame, true);
    let Head { destination, source, vlan, ethertype, .. } = head;
    Some(Parsed { destination, source, vlan, ethertype, avtp, probe })
}

/// The trailer of PRP (redundancy control trailer, IEC 62439-3): the number, the LAN (10 or 11, 4 bits), the size of the
/// frame after the `EtherType` (12 bits), and the suffix.
const PRP_TRAILER: usize = 6;
const PRP_SUFFIX: [u8; 2] = [0x88, 0xfb];

/// The content of a frame without the trailer of PRP, and the number in it. So many bytes follow the `EtherType`.
#[inline(always)]
fn without_trailer(content: &[u8], size: usize, is_whole: bool) -> (&[u8], Option<u16>) {
    match content {
        [.., high, low] if [*high, *low] == PRP_SUFFIX && is_whole => with_prp_suffix(content, size),
        _ => (content, None),
    }
}

#[cold]
fn with_prp_suffix(content: &[u8], size: usize) -> (&[u8], Option<u16>) {
    let Some((rest, &[first, second, high, low, ..])) = content.split_last_chunk::<PRP_TRAILER>() else {
        return (content, None);
    };
    let lan_and_size = u16::from_be_bytes([high, low]);
    let is_trailer = matches!(lan_and_size >> 12, 0xa | 0xb) && usize::from(lan_and_size & 0xfff) == size;
    if is_trailer { (rest, Some(u16::from_be_bytes([first, second]))) } else { (content, None) }
}

impl Content {
    /// Decodes the content of a frame with this head. `is_whole` is false if the capture contains only its start.
    #[must_use]
    #[inline(always)]
    pub fn read(head: &Head, frame: &[u8], is_whole: bool) -> Self {
        let (content, trailer) =
            without_trailer(head.content(frame), frame.len().saturating_sub(head.packet_at), is_whole);
        let (redundant, of_node) = match head.tag_number(frame) {
            Some((Tag::Redundancy, number)) => (Some(number), trailer),
            Some((Tag::Hsr, number)) => (None, Some(number)),
            None => (None, trailer),
        };
        if head.ethertype == AVTP {
            let avtp = Avtp::read(content);
            let samples_at = avtp.and_then(|avtp| Format::of(avtp.subtype)).map(Format::samples_at);
            let probe = samples_at.and_then(|at| Payload::read(content.get(at..)?));
            let is_crf = avtp.is_some_and(|avtp| avtp.subtype == CRF);
            let crf = if is_crf { Crf::read(content) } else { None };
            let protocol = if avtp.is_none() { avtp_control(content) } else { Protocol::Unknown };
            return Self { redundant, of_node, avtp, crf, probe, protocol, count: None };
        }
        let (protocol, count) = match head.datagram {
            Some(datagram) => of_datagram(datagram.port, content),
            None => of_ethertype(head.ethertype, content, is_whole),
        };
        Self { redundant, of_node, avtp: None, crf: None, probe: None, protocol, count }
    }

    /// The publisher of this frame in words, if its protocol distinguishes several with the same addresses: svID of sampled
    /// values, gocbRef of GOOSE, publisher and group of UADP.
    #[must_use]
    pub fn publisher(&self, head: &Head, frame: &[u8]) -> Option<String> {
        publisher(self.protocol, head.content(frame))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn arbitrary_bytes_do_not_panic(frame in prop::collection::vec(any::<u8>(), 0..200)) {
            let parsed = parse(&frame);
            let tags = [[0x81, 0], [0x88, 0xa8], [0x91, 0], [0xf1, 0xc1], [0x89, 0x2f]];
            let is_tagged = frame.len() >= 14 && tags.iter().any(|tag| frame[12..14] == *tag);
            prop_assert!(is_tagged || parsed.is_none() == (frame.len() < 14));
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
