//! Opens the socket of a listener.

use std::time::Duration;

use frames::ethernet;
use probes::{ReceiveWait, stream::receive::Receive};
use sys::{packet::FrameReceiver, xdp::XdpReceiver};

use super::error::{StreamError, socket};
use crate::probe::xdp::{XdpMode, granted, queue_note, refusal};

/// The socket of a listener.
pub struct Opened {
    pub receiver: Box<dyn Receive>,
    /// Its kind, for the record.
    pub from: String,
    /// Notes for the record.
    pub notes: Vec<String>,
}

/// Opens a socket on an interface in the network namespace of this thread. AF_XDP uses the queue `queue`.
pub fn open(wait: ReceiveWait, xdp: Option<XdpMode>, queue: u32, interface: &str) -> Result<Opened, StreamError> {
    if let Some(how) = xdp {
        return open_xdp(how, queue, interface);
    }
    let busy_poll = match wait {
        ReceiveWait::BusyPoll(ns) => Some(Duration::from_nanos(ns)),
        ReceiveWait::Block | ReceiveWait::Spin => None,
    };
    let receiver =
        FrameReceiver::open(interface, ethernet::AVTP, busy_poll).map_err(|error| socket(interface, error))?;
    Ok(Opened { receiver: Box::new(receiver), from: "socket".to_owned(), notes: Vec::new() })
}

fn open_xdp(mode: XdpMode, queue: u32, interface: &str) -> Result<Opened, StreamError> {
    let (hook, copying) = mode.hook();
    let opened = XdpReceiver::open(interface, ethernet::AVTP, queue, hook, copying);
    let receiver = opened.map_err(|error| refusal(interface, queue, error))?;
    let from = granted(&receiver);
    let notes = queue_note(interface, queue).into_iter().collect();
    Ok(Opened { receiver: Box::new(receiver), from, notes })
}
