//! Opens the socket of a listener.

use std::time::Duration;

use frames::ethernet;
use machine::{Root, nic::receive_queues};
use probes::{ReceiveWait, stream::receive::Receive};
use sys::{
    packet::FrameReceiver,
    xdp::{Copying, Hook, XdpReceiver},
};

use super::{
    error::{StreamError, socket},
    xdp::{ListenXdp, refusal},
};

/// The socket of a listener.
pub struct Opened {
    pub receiver: Box<dyn Receive>,
    /// Its kind, for the record.
    pub from: String,
    /// Notes for the record.
    pub notes: Vec<String>,
}

/// Opens a socket on an interface in the network namespace of this thread. AF_XDP uses the queue `queue`.
pub fn open(wait: ReceiveWait, xdp: Option<ListenXdp>, queue: u32, interface: &str) -> Result<Opened, StreamError> {
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

fn open_xdp(how: ListenXdp, queue: u32, interface: &str) -> Result<Opened, StreamError> {
    let (hook, copying) = match how {
        ListenXdp::AsOffered => (None, Copying::AsOffered),
        ListenXdp::ZeroCopy => (Some(Hook::Native), Copying::Never),
        ListenXdp::Generic => (Some(Hook::Generic), Copying::Always),
    };
    let opened = XdpReceiver::open(interface, ethernet::AVTP, queue, hook, copying);
    let receiver = opened.map_err(|error| refusal(interface, queue, error))?;
    let copying = if receiver.is_zero_copy() { "zero-copy" } else { "copy" };
    let hook = match receiver.hook() {
        Hook::Native => "native",
        Hook::Generic => "generic",
    };
    Ok(Opened {
        receiver: Box::new(receiver),
        from: format!("xdp {copying} {hook}"),
        notes: queue_note(interface, queue).into_iter().collect(),
    })
}

/// A note that the device distributes frames among several queues; `None` if it has one queue.
fn queue_note(interface: &str, queue: u32) -> Option<String> {
    let queues = receive_queues(&Root::system(), interface).filter(|&queues| queues > 1)?;
    Some(format!(
        "{interface} receives on {queues} queues, and only frames of queue {queue} are measured: to get all on one \
         queue, sudo ethtool -L {interface} combined 1"
    ))
}
