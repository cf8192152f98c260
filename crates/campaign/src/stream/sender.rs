//! Opens what a talker hands its frames to.

use std::io;

use probes::stream::transmit::{Transmit, TransmitMode};
use sys::packet::RawSender;

/// Opens it on the interface called `interface` of the namespace that this thread is in. Frames have the kernel's
/// `priority` 0 to 6, by which queues are chosen.
///
/// # Errors
/// EPERM without CAP_NET_RAW, ENODEV when there is no such interface, `InvalidInput` when it is not Ethernet, and what
/// else the kernel answered.
pub fn open(mode: TransmitMode, interface: &str, priority: u8) -> io::Result<Box<dyn Transmit>> {
    Ok(match mode {
        TransmitMode::Send => Box::new(RawSender::open(interface, priority, false)?),
        TransmitMode::Bypass => Box::new(RawSender::open(interface, priority, true)?),
    })
}
