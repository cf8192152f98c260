//! The protocols that carry the packets of the probe.

use std::{
    fmt,
    net::{IpAddr, SocketAddr},
};

use sys::udp::{ECHO_REPLY, ECHO_REPLY_V6, ECHO_REQUEST, ECHO_REQUEST_V6, PingLayout};

use super::packet::{GREETING, Packet};

/// Length of the header of an ICMP echo message: type, code, checksum, identifier, sequence number.
const ICMP_HEADER: usize = 8;
/// Longest header of an IPv4 packet.
const IP_HEADER_MAX: usize = 60;

/// The peer, and the protocol that carries packets to it and back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carrier {
    /// UDP datagrams to a program that answers them as [`Echo`](super::Echo) does.
    Udp(SocketAddr),
    /// ICMP echo requests, which the network stack of almost every device answers with the same contents.
    Icmp {
        /// The address of the device.
        peer: IpAddr,
        /// The layout of the messages.
        layout: PingLayout,
    },
}

impl Carrier {
    /// The IP address of the peer.
    #[must_use]
    pub fn ip(&self) -> IpAddr {
        match self {
            Self::Udp(peer) => peer.ip(),
            Self::Icmp { peer, .. } => *peer,
        }
    }

    /// True if the peer is a program of ours, which reports its times.
    #[must_use]
    pub fn has_our_peer(&self) -> bool {
        matches!(self, Self::Udp(_))
    }

    /// Bytes before the packet in a sent message.
    pub(super) fn headroom(&self) -> usize {
        match self {
            Self::Udp(_) => 0,
            Self::Icmp { .. } => ICMP_HEADER,
        }
    }

    /// Most bytes before the packet in a received message.
    pub(super) fn received_headroom(&self) -> usize {
        match self {
            Self::Udp(_) => 0,
            Self::Icmp { layout, .. } => ICMP_HEADER + if layout.has_ip_header { IP_HEADER_MAX } else { 0 },
        }
    }

    /// Writes the bytes before the packet, which must be complete.
    #[inline]
    pub(super) fn finish(&self, message: &mut [u8], sequence: u64) {
        match self {
            Self::Udp(_) => {}
            Self::Icmp { layout, .. } => write_request(*layout, message, sequence),
        }
    }

    /// The answer in a received message and its length; `None` if it is no answer.
    #[inline]
    pub(super) fn answer(&self, message: &[u8]) -> Option<(Packet, usize)> {
        match self {
            Self::Udp(_) => Packet::read(message).filter(|packet| packet.is_answer).map(|packet| (packet, message.len())),
            Self::Icmp { layout, .. } => read_reply(*layout, message),
        }
    }
}

/// Writes the header of an echo request. The kernel computes the checksum of ICMPv6.
#[inline]
fn write_request(layout: PingLayout, message: &mut [u8], sequence: u64) {
    let kind = if layout.v6 { ECHO_REQUEST_V6 } else { ECHO_REQUEST };
    let Some(header) = message.first_chunk_mut::<ICMP_HEADER>() else { return };
    header[..4].copy_from_slice(&[kind, 0, 0, 0]);
    header[4..6].copy_from_slice(&layout.identifier.to_be_bytes());
    header[6..].copy_from_slice(&low_bits(sequence).to_be_bytes());
    if !layout.v6 {
        let checksum = checksum(message);
        message[2..4].copy_from_slice(&checksum.to_be_bytes());
    }
}

/// The answer in an echo reply: a request that the device returned unchanged. The sequence number of ICMP has 16 bits and
/// repeats after 65 536 requests, so the packet's number counts, and both must agree.
#[inline]
fn read_reply(layout: PingLayout, message: &[u8]) -> Option<(Packet, usize)> {
    // The low half of the first byte is the length of the IPv4 header in units of 4 bytes.
    let ip_header = if layout.has_ip_header { usize::from(message.first()? & 15) * 4 } else { 0 };
    let message = message.get(ip_header..)?;
    let (header, contents) = message.split_first_chunk::<ICMP_HEADER>()?;
    let kind = if layout.v6 { ECHO_REPLY_V6 } else { ECHO_REPLY };
    let is_ours = header[..2] == [kind, 0] && header[4..6] == layout.identifier.to_be_bytes();
    let packet = Packet::read(contents).filter(|packet| is_ours && !packet.is_answer)?;
    (header[6..] == low_bits(packet.sequence).to_be_bytes()).then_some((packet, contents.len()))
}

#[expect(clippy::cast_possible_truncation, reason = "the sequence number of ICMP has 16 bits")]
fn low_bits(sequence: u64) -> u16 {
    const { assert!(GREETING as u16 == u16::MAX) };
    sequence as u16
}

/// The Internet checksum (RFC 1071) of a message whose checksum field is 0.
#[inline]
fn checksum(message: &[u8]) -> u16 {
    let (words, rest) = message.as_chunks::<2>();
    let sum: u32 = words.iter().map(|word| u32::from(u16::from_be_bytes(*word))).sum();
    let mut sum = sum + rest.first().map_or(0, |last| u32::from(*last) << 8);
    while sum > u32::from(u16::MAX) {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !u16::try_from(sum).unwrap_or(u16::MAX)
}

impl fmt::Display for Carrier {
    /// Writes the address of the peer.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Udp(peer) => write!(f, "{peer}"),
            Self::Icmp { peer, .. } => write!(f, "{peer}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::udp::packet::HEADER;

    fn icmp(v6: bool, has_ip_header: bool) -> Carrier {
        let peer = if v6 { IpAddr::from([0u16; 8]) } else { IpAddr::from([192, 0, 2, 2]) };
        Carrier::Icmp { peer, layout: PingLayout { v6, has_ip_header, identifier: 0x1234 } }
    }

    /// The reply of a device to a request.
    fn reply(carrier: &Carrier, sequence: u64, padding: usize) -> Vec<u8> {
        let mut message = vec![0xaa; carrier.headroom() + HEADER + padding];
        Packet { run: 7, sequence, intended_ns: 1, ..Packet::default() }.write(&mut message[carrier.headroom()..]);
        carrier.finish(&mut message, sequence);
        let Carrier::Icmp { layout, .. } = carrier else { return message };
        message[0] = if layout.v6 { ECHO_REPLY_V6 } else { ECHO_REPLY };
        // An IPv4 header with options: 6 units of 4 bytes.
        let header = if layout.has_ip_header { vec![0x46; 24] } else { Vec::new() };
        [header, message].concat()
    }

    proptest! {
        #[test]
        fn a_reply_with_its_request_is_an_answer(
            v6 in any::<bool>(), raw in any::<bool>(), sequence in any::<u64>(), padding in 0..9usize,
        ) {
            let carrier = icmp(v6, raw && !v6);
            let reply = reply(&carrier, sequence, padding);
            let expected = Packet { run: 7, sequence, intended_ns: 1, ..Packet::default() };
            prop_assert_eq!(carrier.answer(&reply), Some((expected, HEADER + padding)));
            prop_assert!(reply.len() <= carrier.received_headroom() + HEADER + padding);
        }

        #[test]
        fn a_changed_or_truncated_reply_is_no_answer(sequence in any::<u64>(), at in 0..14usize, by in 1..=255u8) {
            let carrier = icmp(false, false);
            let mut reply = reply(&carrier, sequence, 0);
            prop_assert_eq!(carrier.answer(&reply[..reply.len() - 1]), None);
            // All bytes of the header but the checksum, and magic, version and kind of the packet.
            prop_assume!(!(2..4).contains(&at));
            reply[at] = reply[at].wrapping_add(by);
            prop_assert_eq!(carrier.answer(&reply), None);
        }

        #[test]
        fn the_sum_with_the_checksum_is_all_ones(contents in prop::collection::vec(any::<u8>(), 56..99), sequence in any::<u64>()) {
            let mut message = [vec![0; ICMP_HEADER], contents].concat();
            icmp(false, false).finish(&mut message, sequence);
            prop_assert_eq!(checksum(&message), 0);
        }
    }

    /// The example of RFC 1071, section 3: 0001 f203 f4f5 f6f7 has the sum ddf2.
    #[test]
    fn the_checksum_is_that_of_the_standard() {
        assert_eq!(checksum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), !0xddf2);
    }
}
