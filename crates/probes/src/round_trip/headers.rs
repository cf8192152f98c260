//! The headers of UDP datagrams in Ethernet frames that bypass the network stack: IPv4 (RFC 791) or IPv6 (RFC 8200), and
//! UDP (RFC 768).

use std::net::{IpAddr, SocketAddr};

use sys::xdp::XdpFilter;

use super::carrier::{ETHERNET_HEADER, TAG, TAG_TYPE};

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const IPV4_HEADER: usize = 20;
const IPV6_HEADER: usize = 40;
const UDP_HEADER: usize = 8;
/// Number of UDP among the protocols of IP.
const UDP: u8 = 17;
/// The usual number of hops that a packet can take (RFC 1700).
const HOPS: u8 = 64;
/// Version 4, and a header of five units of 4 bytes: no options.
const VERSION_4: u8 = 0x45;
/// The flag that forbids fragments, in the upper byte of its field.
const DO_NOT_FRAGMENT: u8 = 0x40;

/// The addresses of datagrams between this machine and a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UdpPath {
    /// Ethernet address of the interface that sends.
    pub own_mac: [u8; 6],
    /// Ethernet address of the next hop: of the peer, or of a router.
    pub next_hop_mac: [u8; 6],
    /// Address and port of this machine.
    pub own: SocketAddr,
    /// Address and port of the peer, of the same version of IP.
    pub peer: SocketAddr,
}

impl UdpPath {
    /// Length of all headers, bytes.
    #[must_use]
    pub fn headroom(&self) -> usize {
        ETHERNET_HEADER + if self.peer.is_ipv4() { IPV4_HEADER } else { IPV6_HEADER } + UDP_HEADER
    }

    /// The frames that the peer sends back.
    #[must_use]
    pub fn filter(&self) -> XdpFilter {
        let ports = [self.peer.port().to_be_bytes(), self.own.port().to_be_bytes()].concat();
        let common = |filter: XdpFilter| filter.with(0, &self.own_mac);
        match (self.peer.ip(), self.own.ip()) {
            (IpAddr::V4(peer), IpAddr::V4(own)) => {
                common(ipv4_filter()).with(26, &[peer.octets(), own.octets()].concat()).with(34, &ports)
            }
            (IpAddr::V6(peer), IpAddr::V6(own)) => {
                common(ipv6_filter()).with(22, &[peer.octets(), own.octets()].concat()).with(54, &ports)
            }
            // Selects nothing.
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => XdpFilter::of(&[]),
        }
    }

    /// Writes the headers of a frame whose payload is complete.
    #[inline]
    pub(super) fn write(&self, frame: &mut [u8]) {
        let Some((ethernet, packet)) = frame.split_first_chunk_mut::<ETHERNET_HEADER>() else { return };
        ethernet[..6].copy_from_slice(&self.next_hop_mac);
        ethernet[6..12].copy_from_slice(&self.own_mac);
        let ethertype = if self.peer.is_ipv4() { IPV4 } else { IPV6 };
        ethernet[12..].copy_from_slice(&ethertype.to_be_bytes());
        let udp_at = self.headroom() - ETHERNET_HEADER - UDP_HEADER;
        let (Some(length), Some(udp_length)) = (low(packet.len()), low(packet.len().saturating_sub(udp_at))) else {
            return;
        };
        match (self.own.ip(), self.peer.ip()) {
            (IpAddr::V4(own), IpAddr::V4(peer)) => {
                let Some(header) = packet.first_chunk_mut::<IPV4_HEADER>() else { return };
                let [high, low] = length.to_be_bytes();
                header[..12].copy_from_slice(&[VERSION_4, 0, high, low, 0, 0, DO_NOT_FRAGMENT, 0, HOPS, UDP, 0, 0]);
                header[12..16].copy_from_slice(&own.octets());
                header[16..].copy_from_slice(&peer.octets());
            }
            (IpAddr::V6(own), IpAddr::V6(peer)) => {
                let Some(header) = packet.first_chunk_mut::<IPV6_HEADER>() else { return };
                let [high, low] = udp_length.to_be_bytes();
                header[..8].copy_from_slice(&[0x60, 0, 0, 0, high, low, UDP, HOPS]);
                header[8..24].copy_from_slice(&own.octets());
                header[24..].copy_from_slice(&peer.octets());
            }
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => return,
        }
        let Some(udp) = packet.get_mut(udp_at..).and_then(<[u8]>::first_chunk_mut::<UDP_HEADER>) else { return };
        udp[..2].copy_from_slice(&self.own.port().to_be_bytes());
        udp[2..4].copy_from_slice(&self.peer.port().to_be_bytes());
        udp[4..6].copy_from_slice(&udp_length.to_be_bytes());
        write_checksums(packet);
    }

    /// The payload of a frame from the peer; `None` for another frame.
    #[inline]
    pub(super) fn payload<'a>(&self, frame: &'a [u8]) -> Option<&'a [u8]> {
        let datagram = Datagram::read(frame)?;
        (datagram.from == self.peer && datagram.to == self.own).then_some(datagram.payload)
    }
}

/// The datagrams to an address and port of this machine; those to any of its addresses for the address 0.
#[must_use]
pub fn requests_filter(own: SocketAddr, own_mac: [u8; 6]) -> XdpFilter {
    let port = own.port().to_be_bytes();
    match own.ip() {
        IpAddr::V4(ip) => {
            let filter = ipv4_filter().with(0, &own_mac).with(36, &port);
            if ip.is_unspecified() { filter } else { filter.with(30, &ip.octets()) }
        }
        IpAddr::V6(ip) => {
            let filter = ipv6_filter().with(0, &own_mac).with(56, &port);
            if ip.is_unspecified() { filter } else { filter.with(38, &ip.octets()) }
        }
    }
}

/// UDP in IPv4 without options, and not in fragments.
fn ipv4_filter() -> XdpFilter {
    XdpFilter::of(&[IPV4]).with_bits(14, 0xff00, 0x4500).with_bits(20, 0x3fff, 0).with_bits(22, 0x00ff, u16::from(UDP))
}

/// UDP in IPv6 without extension headers.
fn ipv6_filter() -> XdpFilter {
    XdpFilter::of(&[IPV6]).with_bits(20, 0xff00, u16::from(UDP) << 8)
}

/// A received datagram.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Datagram<'a> {
    pub from: SocketAddr,
    pub to: SocketAddr,
    /// Offset of the payload in the frame.
    pub payload_at: usize,
    pub payload: &'a [u8],
}

impl<'a> Datagram<'a> {
    /// Reads a frame, with or without a VLAN tag. Its checksums are not verified: the kernel of a peer at the other end
    /// of a virtual link leaves them to the hardware, which there is none.
    #[inline]
    pub fn read(frame: &'a [u8]) -> Option<Self> {
        let packet_at = packet_at(frame);
        let ethertype = u16::from_be_bytes(*frame.get(packet_at - 2..)?.first_chunk()?);
        let packet = frame.get(packet_at..)?;
        let (from, to, udp): (IpAddr, IpAddr, &[u8]) = match ethertype {
            IPV4 => {
                let (header, udp) = packet.split_first_chunk::<IPV4_HEADER>()?;
                (header[0] == VERSION_4 && header[9] == UDP).then_some(())?;
                (part::<4>(header, 12).into(), part::<4>(header, 16).into(), udp)
            }
            IPV6 => {
                let (header, udp) = packet.split_first_chunk::<IPV6_HEADER>()?;
                (header[6] == UDP).then_some(())?;
                (part::<16>(header, 8).into(), part::<16>(header, 24).into(), udp)
            }
            _ => return None,
        };
        let header: &[u8; UDP_HEADER] = udp.first_chunk()?;
        let number = |at| u16::from_be_bytes(part::<2>(header, at));
        // A short frame is padded after the datagram.
        let payload = udp.get(UDP_HEADER..usize::from(number(4)))?;
        let payload_at = frame.len() - udp.len() + UDP_HEADER;
        Some(Self { from: (from, number(0)).into(), to: (to, number(2)).into(), payload_at, payload })
    }
}

/// Offset of the packet in a frame with or without a VLAN tag.
#[inline]
fn packet_at(frame: &[u8]) -> usize {
    let is_tagged = frame.get(12..14) == Some(&TAG_TYPE.to_be_bytes());
    ETHERNET_HEADER + if is_tagged { TAG } else { 0 }
}

/// Exchanges the addresses and ports of a frame that [`Datagram::read`] accepted, and computes its checksums anew.
#[inline]
pub(super) fn answer_in_place(frame: &mut [u8]) {
    let Some((ethernet, packet)) = frame.split_at_mut_checked(packet_at(frame)) else { return };
    exchange(ethernet, 0, 6);
    let v6 = packet.first().is_some_and(|first| first >> 4 == 6);
    let udp_at = if v6 { IPV6_HEADER } else { IPV4_HEADER };
    let (source_at, bytes, hops_at) = if v6 { (8, 16, 7) } else { (12, 4, 8) };
    exchange(packet, source_at, bytes);
    exchange(packet, udp_at, 2);
    if let Some(hops) = packet.get_mut(hops_at) {
        *hops = HOPS;
    }
    write_checksums(packet);
}

/// Exchanges the `bytes` at offset `at` with as many after them.
#[inline]
pub(super) fn exchange(all: &mut [u8], at: usize, bytes: usize) {
    if let Some((first, second)) = all.get_mut(at..at + 2 * bytes).map(|both| both.split_at_mut(bytes)) {
        first.swap_with_slice(second);
    }
}

/// Writes the checksums of a packet whose other fields are complete: of the header (IPv4) and of the datagram.
#[inline]
fn write_checksums(packet: &mut [u8]) {
    let v6 = packet.first().is_some_and(|first| first >> 4 == 6);
    let (udp_at, addresses) = if v6 { (IPV6_HEADER, 8..40) } else { (IPV4_HEADER, 12..20) };
    if let (false, Some(header)) = (v6, packet.first_chunk_mut::<IPV4_HEADER>()) {
        header[10..12].copy_from_slice(&[0, 0]);
        let checksum = !folded(sum(header));
        header[10..12].copy_from_slice(&checksum.to_be_bytes());
    }
    let Some((header, udp)) = packet.split_at_mut_checked(udp_at) else { return };
    let (Some(addresses), Some(length)) = (header.get(addresses), udp.get(4..6).and_then(<[u8]>::first_chunk)) else {
        return;
    };
    let length = u16::from_be_bytes(*length);
    let pseudo_header = sum(addresses) + u32::from(UDP) + u32::from(length);
    let Some(datagram) = udp.get_mut(..usize::from(length)) else { return };
    let Some(field) = datagram.get_mut(6..8) else { return };
    field.copy_from_slice(&[0, 0]);
    // A checksum of 0 means that there is none, so 0 is sent as its other form.
    let checksum = match !folded(pseudo_header + sum(datagram)) {
        0 => u16::MAX,
        checksum => checksum,
    };
    if let Some(field) = datagram.get_mut(6..8) {
        field.copy_from_slice(&checksum.to_be_bytes());
    }
}

/// The sum of the 16-bit words of at most 65 535 bytes.
#[inline]
pub(super) fn sum(bytes: &[u8]) -> u32 {
    let (words, rest) = bytes.as_chunks::<2>();
    let sum: u32 = words.iter().map(|word| u32::from(u16::from_be_bytes(*word))).sum();
    sum + rest.first().map_or(0, |last| u32::from(*last) << 8)
}

/// A sum in one's complement (RFC 1071).
#[inline]
pub(super) fn folded(mut sum: u32) -> u16 {
    while sum > u32::from(u16::MAX) {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    u16::try_from(sum).unwrap_or(u16::MAX)
}

fn low(bytes: usize) -> Option<u16> {
    u16::try_from(bytes).ok()
}

/// The `N` bytes at `at`, which must be within the header.
#[inline]
fn part<const N: usize>(header: &[u8], at: usize) -> [u8; N] {
    header.get(at..).and_then(<[u8]>::first_chunk).copied().unwrap_or([0; N])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn path(v6: bool) -> UdpPath {
        let (own, peer): (IpAddr, IpAddr) = if v6 {
            ([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1].into(), [0x2001, 0xdb8, 0, 0, 0, 0, 0, 2].into())
        } else {
            ([192, 0, 2, 1].into(), [192, 0, 2, 2].into())
        };
        UdpPath {
            own_mac: [2, 0, 0, 0, 0, 1],
            next_hop_mac: [2, 0, 0, 0, 0, 2],
            own: (own, 40_000).into(),
            peer: (peer, 7125).into(),
        }
    }

    /// The sum over a datagram and its pseudo header is all ones if the checksum is right.
    fn is_right(packet: &[u8], v6: bool) -> bool {
        let (udp_at, addresses) = if v6 { (40, 8..40) } else { (20, 12..20) };
        let length = u32::try_from(packet.len() - udp_at).unwrap();
        let header = v6 || folded(sum(&packet[..20])) == 0xffff;
        header && folded(sum(&packet[addresses]) + 17 + length + sum(&packet[udp_at..])) == 0xffff
    }

    proptest! {
        #[test]
        fn a_frame_comes_back_with_right_checksums(
            v6 in any::<bool>(), tagged in any::<bool>(), payload in prop::collection::vec(any::<u8>(), 0..99),
        ) {
            let path = path(v6);
            let mut frame = [vec![0; path.headroom()], payload.clone()].concat();
            path.write(&mut frame);
            prop_assert!(is_right(&frame[14..], v6));
            prop_assert_eq!(path.payload(&frame), None, "a request is no answer");
            if tagged {
                frame.splice(12..12, [0x81, 0, 0x60, 5]);
            }
            let read = Datagram::read(&frame).unwrap();
            prop_assert_eq!((read.from, read.to, read.payload), (path.own, path.peer, &payload[..]));
            let payload_at = read.payload_at;
            prop_assert_eq!(&frame[payload_at..], &payload[..]);
            answer_in_place(&mut frame);
            let tag = if tagged { 4 } else { 0 };
            prop_assert!(is_right(&frame[14 + tag..], v6));
            prop_assert_eq!((&frame[..6], &frame[6..12]), (&path.own_mac[..], &path.next_hop_mac[..]));
            prop_assert_eq!(path.payload(&frame), Some(&payload[..]));
            for length in 0..frame.len() {
                prop_assert_eq!(path.payload(&frame[..length]), None);
            }
            // Padding of the wire.
            frame.extend([9; 6]);
            prop_assert_eq!(path.payload(&frame), Some(&payload[..]));
        }
    }

    /// The checksums are added up by hand: 0x4934 and 0xa4a8 are their complements.
    #[test]
    fn headers_are_those_of_the_standards() {
        let path = path(false);
        let mut frame = [vec![0; path.headroom()], b"hi".to_vec()].concat();
        path.write(&mut frame);
        let expected = [
            2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0, 0, 30, 0, 0, 0x40, 0, 64, 17, 0xb6, 0xcb, 192, 0, 2, 1,
            192, 0, 2, 2, 0x9c, 0x40, 0x1b, 0xd5, 0, 10, 0x5b, 0x57, b'h', b'i',
        ];
        assert_eq!(frame, expected, "{frame:x?}");
    }
}
