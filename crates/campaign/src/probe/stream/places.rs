//! Where frames go out and come in: an interface, or both ends of a virtual cable.

use frames::{Mac, ethernet};
use machine::{
    Root,
    veth::{VethEnd, VethPair},
};
use probes::{ReceiveWait, stream::transmit::TransmitMode};
use record::ObservedAt;
use sys::{packet::FrameReceiver, qdisc};

use super::{
    error::{StreamError, socket},
    interface::Interface,
    receiver::{self, Opened},
    sender::{self, Sender},
    xdp::ListenXdp,
};

/// How long before its slot the discipline of an own cable lets a frame go, ns.
const OWN_DELTA_NS: u32 = 50_000;

/// Where frames go out and come in.
pub enum Places {
    Interface(Interface),
    Ends(Box<VethPair>),
}

impl Places {
    pub fn of(interface: Option<&str>, root: &Root) -> Result<Self, StreamError> {
        Ok(match interface {
            Some(interface) => Self::Interface(Interface::read(root, interface)?),
            None => Self::Ends(Box::new(VethPair::create()?)),
        })
    }

    pub fn near_interface(&self) -> &str {
        match self {
            Self::Interface(interface) => &interface.name,
            Self::Ends(ends) => &ends.near.interface,
        }
    }

    pub fn far_interface(&self) -> &str {
        match self {
            Self::Interface(interface) => &interface.name,
            Self::Ends(ends) => &ends.far.interface,
        }
    }

    pub fn mac(&self) -> Mac {
        match self {
            Self::Interface(interface) => interface.mac,
            Self::Ends(ends) => ends.near.mac,
        }
    }

    pub fn sender(&self, mode: TransmitMode, root: &Root, priority: u8, queue: u32) -> Result<Sender, StreamError> {
        match self {
            Self::Interface(interface) => sender::open(mode, root, &interface.name, priority, queue),
            Self::Ends(ends) => inside(&ends.near, |interface| {
                if mode == TransmitMode::Txtime {
                    qdisc::install_etf(ends.near.index, OWN_DELTA_NS).map_err(StreamError::NoEtf)?;
                }
                sender::open(mode, root, interface, priority, queue)
            }),
        }
    }

    pub fn receiver(&self, wait: ReceiveWait, xdp: Option<ListenXdp>, queue: u32) -> Result<Opened, StreamError> {
        let open = |interface: &str| receiver::open(wait, xdp, queue, interface);
        match self {
            Self::Interface(interface) => open(&interface.name),
            Self::Ends(ends) => inside(&ends.far, open),
        }
    }

    /// What an observer at this end gets the frames of the stream from.
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
            (Self::Ends(ends), ObservedAt::Receiving) => inside(&ends.far, open),
            (Self::Ends(ends), ObservedAt::Sending) => inside(&ends.near, open),
        }
    }
}

/// Opens a socket inside a namespace; it stays there.
fn inside<S: Send>(end: &VethEnd, open: impl FnOnce(&str) -> Result<S, StreamError> + Send) -> Result<S, StreamError> {
    end.namespace.run(|| open(&end.interface)).map_err(|error| socket(&end.interface, error))?
}
