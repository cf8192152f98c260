//! Selects frames and assigns them to streams.

use std::fmt;

use frames::{Mac, Parsed};
use record::{CapturedKind, CapturedStream};

use crate::{Packet, source::ETHERNET};

/// The EtherType of IPv4.
const IPV4: u16 = 0x0800;
/// The IP protocol number of UDP.
const UDP: u8 = 17;

/// Selects frames; all given conditions must hold. Without an EtherType or a UDP port, only AVTP streams are selected.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    /// Index of the capture interface, from 0.
    pub interface: Option<u32>,
    /// AVTP stream id.
    pub stream: Option<u64>,
    /// VLAN id, 0 to 4095.
    pub vlan: Option<u16>,
    /// Source address.
    pub source: Option<Mac>,
    /// Destination address.
    pub destination: Option<Mac>,
    /// EtherType. Selects all frames of this type.
    pub ethertype: Option<u16>,
    /// Destination port of UDP over IPv4.
    pub udp: Option<u16>,
}

/// Identifies a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) kind: Kind,
    pub(crate) source: Mac,
    pub(crate) destination: Mac,
    pub(crate) vlan: Option<u16>,
    pub(crate) interface: u32,
}

/// The part of the key that depends on the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Avtp { stream_id: u64 },
    Ethertype { ethertype: u16 },
    Udp { port: u16, source: [u8; 4], source_port: u16 },
}

/// The result of matching a frame.
pub(crate) enum FrameMatch {
    /// The frame belongs to this stream.
    Stream(Key, Parsed),
    /// The frame belongs to no selected stream; its EtherType.
    Other(u16),
    /// The frame is too short for an Ethernet header.
    Short,
    /// The frame is not Ethernet.
    Foreign,
}

impl Filter {
    /// Matches a frame and determines its stream.
    #[inline]
    pub(crate) fn classify(&self, packet: &Packet) -> FrameMatch {
        if packet.link_type != ETHERNET {
            return FrameMatch::Foreign;
        }
        let Some(parsed) = frames::parse(packet.data) else { return FrameMatch::Short };
        let vlan = parsed.vlan.map(|tci| tci.vid);
        let fits = self.interface.is_none_or(|wanted| wanted == packet.interface)
            && self.vlan.is_none_or(|wanted| vlan == Some(wanted))
            && self.source.is_none_or(|wanted| wanted == parsed.source)
            && self.destination.is_none_or(|wanted| wanted == parsed.destination);
        match self.kind(packet.data, &parsed).filter(|_| fits) {
            Some(kind) => {
                let Parsed { source, destination, .. } = parsed;
                FrameMatch::Stream(Key { kind, source, destination, vlan, interface: packet.interface }, parsed)
            }
            None => FrameMatch::Other(parsed.ethertype),
        }
    }

    fn kind(&self, data: &[u8], parsed: &Parsed) -> Option<Kind> {
        if let Some(port) = self.udp {
            return udp_to(port, data, parsed);
        }
        if let Some(ethertype) = self.ethertype {
            return (parsed.ethertype == ethertype).then_some(Kind::Ethertype { ethertype });
        }
        let stream_id = parsed.avtp?.stream_id;
        self.stream.is_none_or(|wanted| wanted == stream_id).then_some(Kind::Avtp { stream_id })
    }
}

/// Matches UDP over IPv4 to `port`. Of a fragmented datagram only the first fragment matches.
fn udp_to(port: u16, data: &[u8], parsed: &Parsed) -> Option<Kind> {
    if parsed.ethertype != IPV4 {
        return None;
    }
    let packet = data.get(if parsed.vlan.is_some() { 18 } else { 14 }..)?;
    let fragment = u16::from_be_bytes(packet.get(6..)?.first_chunk().copied()?) & 0x1fff;
    if packet[0] >> 4 != 4 || *packet.get(9)? != UDP || fragment != 0 {
        return None;
    }
    let source = packet.get(12..)?.first_chunk().copied()?;
    let datagram = packet.get(usize::from(packet[0] & 15) * 4..)?;
    let [a, b, c, d] = *datagram.first_chunk()?;
    let (source_port, to) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
    (to == port).then_some(Kind::Udp { port, source, source_port })
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.udp, self.ethertype, self.stream) {
            (Some(port), ..) => write!(f, "UDP port {port}")?,
            (_, Some(ethertype), _) => write!(f, "EtherType {ethertype:#06x}")?,
            (.., Some(stream_id)) => write!(f, "stream {}", format_id(stream_id))?,
            _ => write!(f, "AVTP (EtherType 0x22f0)")?,
        }
        let mac = |f: &mut fmt::Formatter, name, mac: Option<Mac>| {
            mac.map_or(Ok(()), |mac| write!(f, " {name} {}", format_mac(mac)))
        };
        mac(f, "from", self.source)?;
        mac(f, "to", self.destination)?;
        self.vlan.map_or(Ok(()), |vlan| write!(f, " on VLAN {vlan}"))?;
        self.interface.map_or(Ok(()), |interface| write!(f, " on interface {interface}"))
    }
}

impl Key {
    /// The stream for the record, without its figures.
    pub(crate) fn to_record(self) -> CapturedStream {
        let (kind, name) = match self.kind {
            Kind::Avtp { stream_id } => (CapturedKind::Avtp, format_id(stream_id)),
            Kind::Ethertype { ethertype } => {
                (CapturedKind::Ethertype, format!("{ethertype:#06x} from {}", format_mac(self.source)))
            }
            Kind::Udp { port, source: [a, b, c, d], source_port } => {
                (CapturedKind::Udp, format!("port {port} from {a}.{b}.{c}.{d}:{source_port}"))
            }
        };
        CapturedStream {
            kind,
            name,
            source: format_mac(self.source),
            destination: format_mac(self.destination),
            vlan: self.vlan,
            interface: self.interface,
            ..CapturedStream::default()
        }
    }
}

/// A stream id in the usual notation: the talker's address and a number.
fn format_id(stream_id: u64) -> String {
    let [a, b, c, d, e, f, high, low] = stream_id.to_be_bytes();
    format!("{}:{:04x}", format_mac([a, b, c, d, e, f]), u16::from_be_bytes([high, low]))
}

/// The address in the form `91:e0:f0:00:fe:01`.
fn format_mac(mac: Mac) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}
