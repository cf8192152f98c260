//! Opens a device and queries its capabilities.

use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags, open};

use super::{Node, PcmError, params::Offer};

/// Opens a device without waiting if another program uses it.
pub(super) fn open_device(node: Node) -> Result<OwnedFd, PcmError> {
    open(node.path(), OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())
        .map_err(|error| PcmError::opening(node, error.into()))
}

/// The configurations that a device supports.
///
/// # Errors
/// [`PcmError`]; [`PcmError::Busy`] while another program uses the device.
pub fn offer(node: Node) -> Result<Offer, PcmError> {
    let file = open_device(node)?;
    Offer::of(&file, None).map_err(|source| PcmError::Failed { node, step: "does not report its parameters", source })
}
