//! Selects frames and assigns them to streams.

use std::{fmt, net::SocketAddr};

use frames::{
    Content, Datagram, Head, Link, Mac, Protocol, Way,
    protocol::{IPV4, IPV6},
};
use record::{CapturedKind, CapturedStream};

use crate::{Packet, streams::Known, tags::Flow};

/// Selects frames; all given conditions must hold. Without any, all frames are selected.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    /// Index of the capture interface, from 0.
    pub interface: Option<u32>,
    /// AVTP stream id.
    pub stream: Option<u64>,
    /// VLAN id, 0 to 4095; of several tags, the innermost or the outermost.
    pub vlan: Option<u16>,
    /// Source address.
    pub source: Option<Mac>,
    /// Destination address.
    pub destination: Option<Mac>,
    /// EtherType. Selects all frames of this type.
    pub ethertype: Option<u16>,
    /// Destination port of UDP.
    pub udp: Option<u16>,
}

/// Identifies a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) kind: Kind,
    pub(crate) source: Mac,
    pub(crate) destination: Mac,
    pub(crate) way: Option<Way>,
    pub(crate) outer_vlan: Option<u16>,
    pub(crate) vlan: Option<u16>,
    pub(crate) interface: u32,
}

/// The part of the key that depends on the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Avtp { stream_id: u64, subtype: u8 },
    Ethertype { ethertype: u16, protocol: Protocol },
    Udp { datagram: Datagram, protocol: Protocol },
}

/// A selected frame.
pub(crate) struct Classified {
    pub(crate) key: Key,
    /// True if the sources of RTP in its datagrams are streams of their own.
    pub(crate) by_source: bool,
    pub(crate) head: Head,
    pub(crate) content: Content,
}

/// Why a frame belongs to no stream.
pub(crate) enum Unmatched {
    /// The frame belongs to no selected stream. It can have a number that the frames of selected ones have, too.
    Other(Other, Option<(Flow, u16)>),
    /// The frame is too short for its header.
    Short,
    /// The frame has another link type.
    Foreign,
}

/// The words for a frame of no selected stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Other {
    /// Its EtherType.
    Ethertype(u16),
    /// Its id, if another AVTP stream is selected.
    Stream(u64),
}

impl fmt::Display for Other {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Ethertype(ethertype) => write!(f, "EtherType {ethertype:#06x}"),
            Self::Stream(stream_id) => write!(f, "stream {}", format_id(stream_id)),
        }
    }
}

/// True if the capture contains the whole frame.
#[inline]
pub(crate) fn is_whole(packet: &Packet) -> bool {
    packet.data.len() >= packet.length as usize
}

/// The protocol that separates streams. Other payloads can look like RTP, so it does not, unless several sources of RTP were
/// found (`by_source`).
#[inline]
pub(crate) fn stream_protocol(content: &Content, by_source: bool) -> Protocol {
    match content.protocol {
        Protocol::Rtp { .. } if !by_source => Protocol::Unknown,
        protocol => protocol,
    }
}

impl Filter {
    /// Matches a frame and determines its stream.
    pub(crate) fn classify(&self, packet: &Packet, known: &Known) -> Result<Classified, Unmatched> {
        let link = Link::of(packet.link_type).ok_or(Unmatched::Foreign)?;
        let head = Head::read(link, packet.data).ok_or(Unmatched::Short)?;
        let mut content = Content::read(&head, packet.data, is_whole(packet));
        if let Protocol::EtherCat { is_processed } = &mut content.protocol {
            *is_processed |= known.slaves.contains(&head.source);
        }
        let [vlan, outer_vlan] = [head.vlan, head.outer].map(|tci| tci.map(|tci| tci.vid));
        let fits = self.interface.is_none_or(|wanted| wanted == packet.interface)
            && self.vlan.is_none_or(|wanted| [vlan, outer_vlan].contains(&Some(wanted)))
            && self.source.is_none_or(|wanted| wanted == head.source)
            && self.destination.is_none_or(|wanted| wanted == head.destination);
        let by_source = head.datagram.is_some_and(|datagram| known.by_source.contains(&datagram));
        let kind = self.kind(&head, &content, by_source).filter(|_| fits);
        let Head { source, destination, way, .. } = head;
        let flow = Flow { source, destination, vlan, interface: packet.interface };
        let kind = kind.ok_or_else(|| {
            Unmatched::Other(self.other(&head, &content), content.redundant.map(|number| (flow, number)))
        })?;
        let key = Key { kind, source, destination, way, outer_vlan, vlan, interface: packet.interface };
        Ok(Classified { key, by_source, head, content })
    }

    fn other(&self, head: &Head, content: &Content) -> Other {
        let stream = content.avtp.filter(|_| self.stream.is_some()).map(|avtp| Other::Stream(avtp.stream_id));
        stream.unwrap_or(Other::Ethertype(head.ethertype))
    }

    fn kind(&self, head: &Head, content: &Content, by_source: bool) -> Option<Kind> {
        let protocol = stream_protocol(content, by_source);
        let ethertype = head.ethertype;
        let kind = match (content.avtp, head.datagram) {
            (Some(avtp), _) => Kind::Avtp { stream_id: avtp.stream_id, subtype: avtp.subtype },
            (None, Some(datagram)) => Kind::Udp { datagram, protocol },
            (None, None) => Kind::Ethertype { ethertype, protocol },
        };
        if let Some(port) = self.udp {
            return matches!(kind, Kind::Udp { datagram, .. } if datagram.port == port).then_some(kind);
        }
        if let Some(wanted) = self.ethertype {
            let protocol = if head.datagram.is_some() { Protocol::Unknown } else { protocol };
            return (ethertype == wanted).then_some(Kind::Ethertype { ethertype, protocol });
        }
        let is_stream = |wanted| matches!(kind, Kind::Avtp { stream_id, .. } if stream_id == wanted);
        self.stream.is_none_or(is_stream).then_some(kind)
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.udp, self.ethertype, self.stream) {
            (Some(port), ..) => write!(f, "UDP port {port}")?,
            (_, Some(ethertype), _) => write!(f, "EtherType {ethertype:#06x}")?,
            (.., Some(stream_id)) => write!(f, "stream {}", format_id(stream_id))?,
            _ => write!(f, "frames")?,
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
    /// The addresses of the frames that a talker can number together.
    pub(crate) fn flow(&self) -> Flow {
        let &Self { source, destination, vlan, interface, .. } = self;
        Flow { source, destination, vlan, interface }
    }

    /// The stream for the record, without its figures.
    pub(crate) fn to_record(self) -> CapturedStream {
        let (kind, name) = match self.kind {
            Kind::Avtp { stream_id, .. } => (CapturedKind::Avtp, format_id(stream_id)),
            Kind::Ethertype { ethertype, .. } => {
                (CapturedKind::Ethertype, format!("{ethertype:#06x} from {}", format_mac(self.source)))
            }
            Kind::Udp { datagram: Datagram { source, source_port, destination, port }, .. } => {
                let (from, to) = (SocketAddr::new(source, source_port), SocketAddr::new(destination, port));
                (CapturedKind::Udp, format!("{to} from {from}"))
            }
        };
        CapturedStream {
            kind,
            name,
            protocol: self.kind.protocol(),
            source: format_mac(self.source),
            // A cooked capture has no destination.
            destination: if self.way.is_some() { String::new() } else { format_mac(self.destination) },
            vlan: self.vlan,
            outer_vlan: self.outer_vlan,
            interface: self.interface,
            kernel_interface: self.way.map(|way| way.interface).filter(|&index| index > 0),
            ..CapturedStream::default()
        }
    }
}

impl Kind {
    /// True for packets of IP without ports of UDP: later fragments, TCP, ICMP.
    pub(crate) fn is_other_ip(self) -> bool {
        matches!(self, Self::Ethertype { ethertype: IPV4 | IPV6, .. })
    }

    /// The protocol in words; empty if unknown.
    fn protocol(self) -> String {
        let protocol = match self {
            Self::Avtp { subtype, .. } => return avtp(subtype).to_owned(),
            Self::Ethertype { protocol, .. } | Self::Udp { protocol, .. } => protocol,
        };
        match protocol {
            Protocol::Unknown if self.is_other_ip() => "IP without ports (fragments, or not UDP)".to_owned(),
            Protocol::Unknown => String::new(),
            Protocol::AvtpControl { name } => format!("AVTP {name}"),
            Protocol::Ptp { message, domain, .. } => {
                format!("PTP {}, domain {domain}", Protocol::ptp_message(message).unwrap_or("message"))
            }
            Protocol::Profinet { frame_id } => format!("PROFINET {frame_id:#06x}"),
            Protocol::EtherCat { .. } => "EtherCAT".to_owned(),
            Protocol::SampledValues { appid, .. } => format!("sampled values {appid:#06x}"),
            Protocol::Goose { appid, .. } => format!("GOOSE {appid:#06x}"),
            Protocol::Uadp { .. } => "OPC UA PubSub".to_owned(),
            Protocol::Rtp { source } => format!("RTP {source:#010x}"),
        }
    }
}

/// The stream formats of IEEE Std 1722, table 6.
fn avtp(subtype: u8) -> &'static str {
    match subtype {
        0x00 => "AVTP IEC 61883",
        0x01 => "AVTP MMA",
        0x02 => "AVTP AAF",
        0x03 => "AVTP CVF",
        0x04 => "AVTP CRF",
        0x05 => "AVTP TSCF",
        0x06 => "AVTP SVF",
        0x07 => "AVTP RVF",
        0x82 => "AVTP NTSCF",
        _ => "AVTP",
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
