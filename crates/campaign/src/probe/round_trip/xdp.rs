//! Opens the sockets of round trips by AF_XDP.

use std::net::SocketAddr;

use frames::Mac;
use machine::{Root, nic::next_hop};
use probes::round_trip::{Carrier, Frames, Port, UdpPath, XdpPort, carrier::returned_filter, headers::requests_filter};
use sys::{
    link::{Link, Links},
    udp::DatagramSocket,
    xdp::{Step, XdpError, XdpFilter, XdpReceiver, XdpSender, exchange},
};

use super::{super::definition::PrepareError, OpenSocket};
use crate::probe::xdp::{XdpMode, XdpRefusal, granted, queue_note, refusal, shared_ring_note};

/// AF_XDP instead of sockets: its mode, and the queue of the interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Xdp {
    /// Hook and copy mode.
    pub mode: XdpMode,
    /// Number of the queue, from 0.
    pub queue: u32,
}

impl Xdp {
    /// Opens both directions for datagrams between `own` and `peer`. `reserved` is the socket that has the port of `own`.
    pub(super) fn connect(
        self,
        own: SocketAddr,
        peer: SocketAddr,
        payload_bytes: usize,
        reserved: DatagramSocket,
    ) -> Result<OpenSocket, PrepareError> {
        let hop = next_hop(peer.ip())?;
        let own_mac = hop.link.mac.ok_or_else(|| XdpRefusal::NotEthernet(hop.link.name.clone()))?;
        // Without the scope of an IPv6 address, which is not in the packet.
        let [own, peer] = [own, peer].map(|address| SocketAddr::new(address.ip(), address.port()));
        let path = UdpPath { own_mac, next_hop_mac: hop.mac, own, peer };
        check_mtu(&hop.link, payload_bytes, path.headroom() - ETHERNET_HEADER)?;
        let port = self.port(&hop.link.name, &path.filter(), Some(reserved))?;
        Ok((port, Carrier::UdpFrames(path)))
    }

    /// Opens both directions for the frames of each traffic class to a mirror.
    pub(super) fn open(
        self,
        interface: &str,
        peer: Mac,
        all: &[Frames],
        payloads: &[usize],
    ) -> Result<Vec<OpenSocket>, PrepareError> {
        let (link, own) = ethernet(interface, self.queue)?;
        check_mtu(&link, payloads.iter().copied().max().unwrap_or(0), 0)?;
        let filter = returned_filter(own, peer, all);
        let (ports, carriers) = (self.ports(interface, &filter, all.len())?, all.iter());
        let carrier = |&frames| Carrier::Ethernet { peer, own, frames };
        Ok(ports.into_iter().zip(carriers.map(carrier)).collect())
    }

    /// Opens both directions for the datagrams that arrive on an interface for `own`. `reserved` is the socket that has its
    /// port.
    pub(crate) fn open_echo(
        self,
        interface: &str,
        own: SocketAddr,
        reserved: DatagramSocket,
    ) -> Result<Port, XdpRefusal> {
        let (_, mac) = ethernet(interface, self.queue)?;
        self.port(interface, &requests_filter(own, mac), Some(reserved))
    }

    /// Opens both directions for the frames of these EtherTypes to an interface. Returns also its address.
    pub(super) fn open_mirror(self, interface: &str, ethertypes: &[u16]) -> Result<(Port, Mac), XdpRefusal> {
        let (_, own) = ethernet(interface, self.queue)?;
        let filter = XdpFilter::of(ethertypes).with(0, &own);
        Ok((self.port(interface, &filter, None)?, own))
    }

    fn port(self, interface: &str, filter: &XdpFilter, reserved: Option<DatagramSocket>) -> Result<Port, XdpRefusal> {
        let (sender, receiver) = self.exchange(interface, filter, 1)?.remove(0);
        Ok(Port::Xdp(Box::new(self.port_of(interface, sender, receiver, reserved))))
    }

    /// One port for each number that the filter selects.
    fn ports(self, interface: &str, filter: &XdpFilter, number: usize) -> Result<Vec<Port>, XdpRefusal> {
        let pairs = self.exchange(interface, filter, number)?;
        let hook = pairs.first().map(|(_, receiver)| receiver.hook());
        let note = hook.and_then(|hook| shared_ring_note(&Root::system(), interface, self.queue, hook, number));
        let mut ports: Vec<_> =
            pairs.into_iter().map(|(send, receive)| self.port_of(interface, send, receive, None)).collect();
        if let Some(first) = ports.first_mut() {
            first.notes.extend(note);
        }
        Ok(ports.into_iter().map(|port| Port::Xdp(Box::new(port))).collect())
    }

    fn port_of(
        self,
        interface: &str,
        sender: XdpSender,
        receiver: XdpReceiver,
        reserved: Option<DatagramSocket>,
    ) -> XdpPort {
        let (mode, notes) = (granted(&receiver), queue_note(interface, self.queue).into_iter().collect());
        XdpPort { sender, receiver, mode, notes, reserved }
    }

    fn exchange(
        self,
        interface: &str,
        filter: &XdpFilter,
        sockets: usize,
    ) -> Result<Vec<(XdpSender, XdpReceiver)>, XdpRefusal> {
        let (hook, copying) = self.mode.hook();
        exchange(interface, filter, self.queue, hook, copying, sockets)
            .map_err(|error| refusal(interface, self.queue, error))
    }
}

/// Length of an Ethernet header, bytes.
const ETHERNET_HEADER: usize = 14;

/// An Ethernet interface of the present namespace, and its address.
fn ethernet(interface: &str, queue: u32) -> Result<(Link, Mac), XdpRefusal> {
    let link = Links::open().and_then(|mut links| links.find(interface));
    let link = link.map_err(|source| refusal(interface, queue, XdpError { step: Step::Interface, source }))?;
    match link.mac {
        // The loopback interface has an address of zeroes.
        Some(mac) if mac != [0; 6] => Ok((link, mac)),
        _ => Err(XdpRefusal::NotEthernet(interface.to_owned())),
    }
}

/// Refuses frames that are too long for an interface; `headers` are those after the Ethernet header, bytes.
fn check_mtu(link: &Link, payload_bytes: usize, headers: usize) -> Result<(), XdpRefusal> {
    let needed = payload_bytes + headers;
    match link.mtu.and_then(|mtu| usize::try_from(mtu).ok()) {
        Some(mtu) if needed > mtu => Err(XdpRefusal::Mtu { interface: link.name.clone(), mtu, needed, headers }),
        _ => Ok(()),
    }
}
