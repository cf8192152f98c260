//! Opens what a listener takes its frames from.

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

/// What a listener takes its frames from.
pub struct Opened {
    pub receiver: Box<dyn Receive>,
    /// What it is, for the record.
    pub from: String,
    /// What there is to remark on it.
    pub notes: Vec<String>,
}

/// Opens it on the interface called `interface` of the namespace that this thread is in; of AF_XDP, on its queue `queue`.
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
        notes: remark(interface, queue).into_iter().collect(),
    })
}

/// A device shares frames out among its queues as it likes.
fn remark(interface: &str, queue: u32) -> Option<String> {
    let queues = receive_queues(&Root::system(), interface).filter(|&queues| queues > 1)?;
    Some(format!(
        "{interface} receives on {queues} queues, and frames of queue {queue} alone came here: to have all on one, sudo \
         ethtool -L {interface} combined 1"
    ))
}
