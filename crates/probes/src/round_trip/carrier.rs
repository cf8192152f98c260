//! The protocols that carry the packets of the probe.

use std::{
    fmt,
    net::{IpAddr, SocketAddr},
};

use record::Framing;

use sys::{
    udp::{ECHO_REPLY, ECHO_REPLY_V6, ECHO_REQUEST, ECHO_REQUEST_V6, PingLayout},
    xdp::XdpFilter,
};

use super::{
    headers::{UdpPath, folded, sum},
    packet::{CLASS_AT, GREETING, Packet},
};

/// Length of the header of an ICMP echo message: type, code, checksum, identifier, sequence number.
const ICMP_HEADER: usize = 8;
/// Longest header of an IPv4 packet.
const IP_HEADER_MAX: usize = 60;

/// Length of the header of an Ethernet frame without a VLAN tag.
pub(super) const ETHERNET_HEADER: usize = 14;
/// Length of a VLAN tag.
pub(super) const TAG: usize = 4;
/// EtherType of a VLAN tag (802.1Q).
pub(super) const TAG_TYPE: u16 = 0x8100;

/// The peer, and the protocol that carries packets to it and back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carrier {
    /// UDP datagrams to a program that answers them as [`Echo`](super::Echo) does.
    Udp(SocketAddr),
    /// The same, in frames with all headers, which bypass the network stack.
    UdpFrames(UdpPath),
    /// ICMP echo requests, which the network stack of almost every device answers with the same contents.
    Icmp {
        /// The address of the device.
        peer: IpAddr,
        /// The layout of the messages.
        layout: PingLayout,
    },
    /// Ethernet frames to a mirror, which sends them back.
    Ethernet {
        /// The address of the mirror.
        peer: [u8; 6],
        /// The address of the interface that sends.
        own: [u8; 6],
        /// EtherType and VLAN tag of the frames.
        frames: Frames,
    },
}

/// EtherType and VLAN tag of frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frames {
    /// EtherType of the payload.
    pub ethertype: u16,
    /// VLAN ID of the tag, 0 to 4094; `None` for no tag, unless there is a priority.
    pub vlan_id: Option<u16>,
    /// Priority (PCP) of the tag, 0 to 7; it also selects the traffic class of this machine.
    pub priority: u8,
}

impl Frames {
    /// The TCI of the VLAN tag; `None` without a tag.
    #[must_use]
    pub fn tci(self) -> Option<u16> {
        let is_tagged = self.vlan_id.is_some() || self.priority > 0;
        is_tagged.then(|| u16::from(self.priority) << 13 | self.vlan_id.unwrap_or(0))
    }

    /// The same for a record.
    pub(super) fn to_record(self) -> Framing {
        let Self { ethertype, vlan_id, priority } = self;
        Framing { ethertype, vlan_id, priority }
    }
}

impl Carrier {
    /// The EtherType of Ethernet frames; `None` for other protocols.
    pub(super) fn ethertype(&self) -> Option<u16> {
        match self {
            Self::Udp(_) | Self::UdpFrames(_) | Self::Icmp { .. } => None,
            Self::Ethernet { frames, .. } => Some(frames.ethertype),
        }
    }

    /// The command that shows why nothing reaches the peer.
    #[must_use]
    pub fn remedy(&self) -> String {
        match self {
            Self::Udp(peer) | Self::UdpFrames(UdpPath { peer, .. }) => format!("ip route get {}", peer.ip()),
            Self::Icmp { peer, .. } => format!("ip route get {peer}"),
            Self::Ethernet { .. } => "ip -s link".to_owned(),
        }
    }

    /// True if the kernel can fragment a packet.
    pub(super) fn may_fragment(&self) -> bool {
        match self {
            Self::Udp(_) | Self::Icmp { .. } => true,
            Self::UdpFrames(_) | Self::Ethernet { .. } => false,
        }
    }

    /// True if ICMP errors are counted.
    #[must_use]
    pub fn is_icmp(&self) -> bool {
        matches!(self, Self::Icmp { .. })
    }

    /// Bytes before the packet in a sent message.
    pub(super) fn headroom(&self) -> usize {
        match self {
            Self::Udp(_) => 0,
            Self::UdpFrames(path) => path.headroom(),
            Self::Icmp { .. } => ICMP_HEADER,
            Self::Ethernet { frames, .. } => ETHERNET_HEADER + frames.tci().map_or(0, |_| TAG),
        }
    }

    /// Most bytes before the packet in a received message.
    pub(super) fn received_headroom(&self) -> usize {
        match self {
            Self::Udp(_) => 0,
            Self::Icmp { layout, .. } => ICMP_HEADER + if layout.has_ip_header { IP_HEADER_MAX } else { 0 },
            Self::UdpFrames(path) => path.headroom() + TAG,
            // A socket removes the VLAN tag, AF_XDP does not.
            Self::Ethernet { .. } => ETHERNET_HEADER + TAG,
        }
    }

    /// Writes the bytes before the packet, which must be complete.
    #[inline]
    pub(super) fn finish(&self, message: &mut [u8], sequence: u64) {
        match self {
            Self::Udp(_) => {}
            Self::UdpFrames(path) => path.write(message),
            Self::Icmp { layout, .. } => write_request(*layout, message, sequence),
            Self::Ethernet { peer, own, frames } => write_header(message, *peer, *own, frames.ethertype, frames.tci()),
        }
    }

    /// The answer in a received message and its length; `None` if it is no answer.
    #[inline]
    pub(super) fn answer(&self, message: &[u8]) -> Option<(Packet, usize)> {
        match self {
            Self::Udp(_) => read_answer(message),
            Self::UdpFrames(path) => path.payload(message).and_then(read_answer),
            Self::Icmp { layout, .. } => read_reply(*layout, message),
            // A mirror of another maker returns the request unchanged.
            Self::Ethernet { peer, own, frames } => {
                let (addresses, rest) = message.split_first_chunk::<12>()?;
                let rest = if rest.starts_with(&TAG_TYPE.to_be_bytes()) { rest.get(TAG..)? } else { rest };
                let (ethertype, contents) = rest.split_first_chunk::<2>()?;
                let is_ours = addresses[..6] == *own && addresses[6..] == *peer;
                let is_ours = is_ours && *ethertype == frames.ethertype.to_be_bytes();
                Packet::read(contents).filter(|_| is_ours).map(|packet| (packet, contents.len()))
            }
        }
    }
}

/// Selects the frames that a mirror returns, each for the socket with the number of its traffic class.
#[must_use]
pub fn returned_filter(own: [u8; 6], peer: [u8; 6], classes: &[Frames]) -> XdpFilter {
    #[expect(clippy::cast_possible_truncation, reason = "a header has 14 bytes")]
    const PACKET_AT: u16 = ETHERNET_HEADER as u16;
    let mut ethertypes: Vec<u16> = classes.iter().map(|frames| frames.ethertype).collect();
    ethertypes.sort_unstable();
    ethertypes.dedup();
    XdpFilter::of(&ethertypes).with(0, &own).with(6, &peer).with_members(PACKET_AT + CLASS_AT)
}

/// The answer in a datagram, and its length.
#[inline]
fn read_answer(datagram: &[u8]) -> Option<(Packet, usize)> {
    Packet::read(datagram).filter(|packet| packet.is_answer).map(|packet| (packet, datagram.len()))
}

/// Writes the header of an Ethernet frame, with a VLAN tag if there is a TCI.
#[inline]
pub(super) fn write_header(frame: &mut [u8], to: [u8; 6], from: [u8; 6], ethertype: u16, tci: Option<u16>) {
    let Some(header) = frame.first_chunk_mut::<ETHERNET_HEADER>() else { return };
    header[..6].copy_from_slice(&to);
    header[6..12].copy_from_slice(&from);
    header[12..].copy_from_slice(&ethertype.to_be_bytes());
    let Some((tci, header)) = tci.zip(frame.first_chunk_mut::<{ ETHERNET_HEADER + TAG }>()) else { return };
    header[12..14].copy_from_slice(&TAG_TYPE.to_be_bytes());
    header[14..16].copy_from_slice(&tci.to_be_bytes());
    header[16..].copy_from_slice(&ethertype.to_be_bytes());
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
    !folded(sum(message))
}

impl fmt::Display for Carrier {
    /// Writes the address of the peer.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Udp(peer) | Self::UdpFrames(UdpPath { peer, .. }) => write!(f, "{peer}"),
            Self::Icmp { peer, .. } => write!(f, "{peer}"),
            Self::Ethernet { peer: [a, b, c, d, e, g], .. } => {
                write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::round_trip::packet::HEADER;

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

    #[test]
    fn a_frame_that_comes_back_is_an_answer() {
        let (peer, own) = ([2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 1]);
        for (vlan_id, priority, tci) in [(None, 0, None), (Some(5), 3, Some(0x6005)), (None, 7, Some(0xe000))] {
            let frames = Frames { ethertype: 0x88b5, vlan_id, priority };
            assert_eq!(frames.tci(), tci);
            let carrier = Carrier::Ethernet { peer, own, frames };
            let mut frame = vec![0; carrier.headroom() + HEADER];
            let packet = Packet { run: 7, sequence: 9, ..Packet::default() };
            packet.write(&mut frame[carrier.headroom()..]);
            carrier.finish(&mut frame, 9);
            assert_eq!((&frame[..6], &frame[6..12]), (&peer[..], &own[..]));
            assert_eq!(frame[carrier.headroom() - 2..carrier.headroom()], [0x88, 0xb5]);
            assert_eq!(tci.map(u16::to_be_bytes), tci.map(|_| [frame[14], frame[15]]));
            // The kernel removes the tag, and the mirror exchanges the addresses.
            let mut answer = [&own[..], &peer, &[0x88, 0xb5], &frame[carrier.headroom()..]].concat();
            assert_eq!(carrier.answer(&answer), Some((packet, HEADER)));
            // AF_XDP leaves it.
            let tagged = [&answer[..12], &[0x81, 0, 0x60, 5], &answer[12..]].concat();
            assert_eq!(carrier.answer(&tagged), Some((packet, HEADER)));
            assert!(tagged.len() <= carrier.received_headroom() + HEADER);
            assert_eq!(carrier.answer(&tagged[..17]), None);
            assert_eq!(carrier.to_string(), "02:00:00:00:00:02");
            for at in [0, 6, 12, 13, 14] {
                answer[at] ^= 1;
                assert_eq!(carrier.answer(&answer), None, "{at}");
                answer[at] ^= 1;
            }
        }
    }

    /// The example of RFC 1071, section 3: 0001 f203 f4f5 f6f7 has the sum ddf2.
    #[test]
    fn the_checksum_is_that_of_the_standard() {
        assert_eq!(checksum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), !0xddf2);
    }
}
