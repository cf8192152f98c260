//! The endpoints of a stream on this machine: an interface, or both ends of a veth pair.

use frames::{Mac, ethernet, maap};
use machine::{
    Root,
    veth::{VethEnd, VethPair},
};
use probes::{
    ReceiveWait,
    stream::{maap::LinkWatch, transmit::TransmitMode},
};
use record::ObservedAt;
use sys::{
    packet::{FrameReceiver, RawSender},
    qdisc,
};

use super::{
    StreamProbe,
    error::{StreamError, socket},
    interface::Interface,
    receiver::{self, Opened},
    sender::{self, Sender},
};
use crate::probe::xdp::XdpMode;

/// The ETF queueing discipline of the veth pair sends a frame this long before its slot, ns.
pub(super) const ETF_DELTA_NS: u32 = 50_000;

/// The endpoints of a stream on this machine.
pub enum Endpoints {
    Interface(Interface),
    VethPair(Box<VethPair>),
}

impl Endpoints {
    pub fn of(interface: Option<&str>, root: &Root) -> Result<Self, StreamError> {
        Ok(match interface {
            Some(interface) => Self::Interface(Interface::read(root, interface)?),
            None => Self::VethPair(Box::new(VethPair::create()?)),
        })
    }

    pub fn near_interface(&self) -> &str {
        match self {
            Self::Interface(interface) => &interface.name,
            Self::VethPair(pair) => &pair.near.interface,
        }
    }

    pub fn far_interface(&self) -> &str {
        match self {
            Self::Interface(interface) => &interface.name,
            Self::VethPair(pair) => &pair.far.interface,
        }
    }

    pub fn mac(&self) -> Mac {
        match self {
            Self::Interface(interface) => interface.mac,
            Self::VethPair(pair) => pair.near.mac,
        }
    }

    /// Prepares the interface for the transmission mode, before the first sender.
    pub fn prepare(&self, mode: TransmitMode) -> Result<(), StreamError> {
        match self {
            Self::VethPair(pair) if mode == TransmitMode::Txtime => {
                inside(&pair.near, |_| qdisc::install_etf(pair.near.index, ETF_DELTA_NS).map_err(StreamError::NoEtf))
            }
            Self::VethPair(_) | Self::Interface(_) => Ok(()),
        }
    }

    /// Opens the socket of a talker.
    pub fn sender(&self, probe: &StreamProbe, root: &Root, priority: u8) -> Result<Sender, StreamError> {
        match self {
            Self::Interface(interface) => sender::open(probe, root, &interface.name, priority),
            Self::VethPair(pair) => inside(&pair.near, |interface| sender::open(probe, root, interface, priority)),
        }
    }

    pub fn receiver(&self, wait: ReceiveWait, xdp: Option<XdpMode>, queue: u32) -> Result<Opened, StreamError> {
        let open = |interface: &str| receiver::open(wait, xdp, queue, interface);
        match self {
            Self::Interface(interface) => open(&interface.name),
            Self::VethPair(pair) => inside(&pair.far, open),
        }
    }

    /// Opens the sockets that speak MAAP for the talker, and the watch of its link.
    pub fn maap(&self) -> Result<(FrameReceiver, RawSender, LinkWatch), StreamError> {
        let open = |interface: &str| {
            let receiver = FrameReceiver::open_subtype(interface, ethernet::AVTP, maap::SUBTYPE, maap::DESTINATION);
            let sender = RawSender::open(interface, 0, false);
            receiver
                .and_then(|receiver| Ok((receiver, sender?, LinkWatch::open(interface)?)))
                .map_err(|error| socket(interface, error))
        };
        match self {
            Self::Interface(interface) => open(&interface.name),
            Self::VethPair(pair) => inside(&pair.near, open),
        }
    }

    /// Opens the socket that an observer captures with.
    pub fn observed(&self, at: ObservedAt) -> Result<FrameReceiver, StreamError> {
        let open = |interface: &str| {
            let opened = match at {
                ObservedAt::Receiving => FrameReceiver::open(interface, ethernet::AVTP, None),
                ObservedAt::Sending => FrameReceiver::open_outgoing(interface, ethernet::AVTP),
            };
            opened.map_err(|error| socket(interface, error))
        };
        match (self, at) {
            (Self::Interface(interface), _) => open(&interface.name),
            (Self::VethPair(pair), ObservedAt::Receiving) => inside(&pair.far, open),
            (Self::VethPair(pair), ObservedAt::Sending) => inside(&pair.near, open),
        }
    }
}

/// Opens a socket inside a namespace, where it remains.
fn inside<S: Send>(end: &VethEnd, open: impl FnOnce(&str) -> Result<S, StreamError> + Send) -> Result<S, StreamError> {
    end.namespace.run(|| open(&end.interface)).map_err(|error| socket(&end.interface, error))?
}
