//! Opens the socket of a talker.

use std::{io, sync::Arc};

use machine::{Root, nic::Launching};
use probes::stream::{
    launch::Launches,
    transmit::{Transmit, TransmitMode, TransmitReports},
};
use rustix::io::Errno;
use sys::{
    packet::{RawSender, RingSender, TimedSender},
    xdp::{Copying, XdpSender},
};

use super::error::{StreamError, socket};
use crate::probe::xdp::refusal;

/// The socket of a talker, and for launch times the reader of its error queue.
pub type Sender = (Box<dyn Transmit>, Option<Box<dyn TransmitReports>>);

/// Opens a socket on an interface in the network namespace of this thread. The kernel chooses the queue by the
/// `priority` of the frames, 0 to 6. AF_XDP uses the queue `queue`.
pub fn open(mode: TransmitMode, root: &Root, interface: &str, priority: u8, queue: u32) -> Result<Sender, StreamError> {
    let raw = |bypass| RawSender::open(interface, priority, bypass).map_err(|error| socket(interface, error));
    let xdp = |copying| {
        XdpSender::open(interface, queue, copying).map_err(|error| StreamError::from(refusal(interface, queue, error)))
    };
    Ok(match mode {
        TransmitMode::Send => (Box::new(raw(false)?), None),
        TransmitMode::Bypass => (Box::new(raw(true)?), None),
        TransmitMode::TxRing => {
            let ring = RingSender::open(interface, priority).map_err(|error| socket(interface, error))?;
            (Box::new(ring), None)
        }
        TransmitMode::Txtime => {
            let launching = Launching::of(root, interface, priority)?;
            let timed = TimedSender::open(interface, priority).map_err(|error| launch_error(interface, error))?;
            let timed = Arc::new(timed);
            let launches = Launches::new(timed.clone(), launching.delta_ns, launching.is_offloaded);
            (Box::new(timed), Some(Box::new(launches)))
        }
        TransmitMode::Xdp => (Box::new(xdp(Copying::AsOffered)?), None),
        TransmitMode::XdpZerocopy => (Box::new(xdp(Copying::Never)?), None),
    })
}

fn launch_error(interface: &str, error: io::Error) -> StreamError {
    match Errno::from_io_error(&error) {
        Some(Errno::PERM | Errno::ACCESS) => StreamError::NoRightToTimes,
        _ => socket(interface, error),
    }
}
