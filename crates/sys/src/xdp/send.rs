//! Sends frames.

use std::io;

use rustix::io::Errno;

use super::{
    Copying, Step, XdpError,
    socket::{self, CHUNK, QueueBinding, SendHalf},
};
use crate::convert;
use crate::packet;

/// Sends complete frames from one queue of an interface, bypassing the queueing disciplines. Needs no XDP program.
#[derive(Debug)]
pub struct XdpSender {
    socket: SendHalf,
    is_zero_copy: bool,
}

impl XdpSender {
    /// Opens a socket on the queue `queue` of `interface`.
    ///
    /// # Errors
    /// [`XdpError`] with the [`Step`] that failed.
    pub fn open(interface: &str, queue: u32, copying: Copying) -> Result<Self, XdpError> {
        let index = packet::ethernet_index(interface).map_err(|error| Step::Interface.failed(error))?;
        Self::of(socket::sending(QueueBinding { interface: index, queue, copying })?)
    }

    pub(super) fn of(socket: SendHalf) -> Result<Self, XdpError> {
        let is_zero_copy = socket.is_zero_copy()?;
        Ok(Self { socket, is_zero_copy })
    }

    /// True if the driver is in zero-copy mode.
    #[must_use]
    pub fn is_zero_copy(&self) -> bool {
        self.is_zero_copy
    }

    /// Sends one frame of at most 2048 bytes, from the destination address on, without blocking. In zero-copy mode the
    /// driver sends it as soon as it reads the ring.
    ///
    /// # Errors
    /// ENOBUFS if all chunks are in use, EBUSY if the driver dropped the frame, EAGAIN if its queue is full, ENETDOWN
    /// if the interface is down, EMSGSIZE for a longer frame; otherwise the kernel's error. On error, the frame was not
    /// sent.
    #[inline]
    pub fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        if frame.len() > CHUNK {
            return Err(Errno::MSGSIZE.into());
        }
        let Self { socket, is_zero_copy } = self;
        let chunk = socket.take_chunk().ok_or(Errno::NOBUFS)?;
        let descriptor = libc::xdp_desc { addr: socket.address(chunk), len: convert::length(frame.len()), options: 0 };
        if !socket.write(chunk, frame) || !socket.frames.put(descriptor) {
            socket.give_back(chunk);
            // After dropped frames, the kernel updates its counter only during the next wake-up call.
            let _ = socket.wake_to_send();
            return Err(Errno::NOBUFS.into());
        }
        if !socket.frames.needs_wakeup() {
            return Ok(());
        }
        let Err(error) = socket.wake_to_send() else { return Ok(()) };
        if *is_zero_copy {
            // The driver reads the ring on its own and may already be sending the frame.
            let is_busy = matches!(Errno::from_io_error(&error), Some(Errno::AGAIN | Errno::BUSY | Errno::NOBUFS));
            return if is_busy { Ok(()) } else { Err(error) };
        }
        // In copy mode the kernel consumes frames only in that call. It has consumed a dropped frame, but not a refused
        // one, which would otherwise be sent with the next frame.
        if Errno::from_io_error(&error) != Some(Errno::BUSY) && socket.frames.retract() {
            socket.give_back(chunk);
        }
        Err(error)
    }
}
