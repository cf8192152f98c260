//! Opens a device and queries what it supports.

use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags, open};

use super::{Node, PcmError, params::Offer};

/// Opens a device without waiting for whoever holds it.
pub(super) fn open_device(node: Node) -> Result<OwnedFd, PcmError> {
    open(node.path(), OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())
        .map_err(|error| PcmError::opening(node, error.into()))
}

/// What a device can do.
///
/// # Errors
/// [`PcmError`]; [`PcmError::Busy`] while a program plays on it.
pub fn offer(node: Node) -> Result<Offer, PcmError> {
    let file = open_device(node)?;
    Offer::of(&file, None).map_err(|source| PcmError::Failed { node, step: "does not say what it can", source })
}
