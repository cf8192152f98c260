//! Opens the socket of a talker.

use std::io;

use machine::{Root, nic::Launching};
use probes::stream::transmit::{Transmit, TransmitMode};
use record::Launch;
use rustix::io::Errno;
use sys::{
    packet::{RawSender, RingSender, SentReports, TimedSender},
    xdp::{Copying, XdpSender},
};

use super::{
    StreamProbe,
    error::{StreamError, socket},
};
use crate::probe::xdp::refusal;

/// The socket of a talker.
pub struct Sender {
    /// Sends its frames.
    pub transmit: Box<dyn Transmit>,
    /// Reports about sent frames; `None` if there are none.
    pub reports: Option<SentReports>,
    /// The handling of launch times; `None` without launch times.
    pub launch: Option<Launch>,
}

/// Opens a socket on an interface in the network namespace of this thread. The kernel chooses the queue by the
/// `priority` of the frames, 0 to 6.
pub fn open(probe: &StreamProbe, root: &Root, interface: &str, priority: u8) -> Result<Sender, StreamError> {
    let StreamProbe { mode, stamps, queue, .. } = *probe;
    let refused = |error| socket(interface, error);
    let raw = |bypass| {
        let raw = RawSender::open(interface, priority, bypass).map_err(refused)?;
        let reports = stamps.map(|stamps| raw.reports(stamps)).transpose().map_err(refused)?;
        Ok(Sender { transmit: Box::new(raw), reports, launch: None })
    };
    let xdp = |copying| {
        let xdp = XdpSender::open(interface, queue, copying).map_err(|error| refusal(interface, queue, error))?;
        Ok(Sender { transmit: Box::new(xdp), reports: None, launch: None })
    };
    match mode {
        TransmitMode::Send => raw(false),
        TransmitMode::Bypass => raw(true),
        TransmitMode::TxRing => {
            let ring = RingSender::open(interface, priority).map_err(refused)?;
            Ok(Sender { transmit: Box::new(ring), reports: None, launch: None })
        }
        TransmitMode::Txtime => {
            let Launching { delta_ns, is_offloaded } = Launching::of(root, interface, priority)?;
            let timed = TimedSender::open(interface, priority).map_err(|error| launch_error(interface, error))?;
            let reports = Some(timed.reports(stamps).map_err(refused)?);
            let launch = Some(Launch { delta_ns, offloaded: is_offloaded, ..Launch::default() });
            Ok(Sender { transmit: Box::new(timed), reports, launch })
        }
        TransmitMode::Xdp => xdp(Copying::AsOffered),
        TransmitMode::XdpZerocopy => xdp(Copying::Never),
    }
}

fn launch_error(interface: &str, error: io::Error) -> StreamError {
    match Errno::from_io_error(&error) {
        Some(Errno::PERM | Errno::ACCESS) => StreamError::NoRightToTimes,
        _ => socket(interface, error),
    }
}
