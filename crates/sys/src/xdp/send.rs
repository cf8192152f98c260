//! Sending.

use std::io;

use rustix::io::Errno;

use super::{
    Copying, Step, XdpError,
    ring::Inlet,
    socket::{CHUNK, Place, Socket},
};
use crate::packet;

/// Sends whole frames from one queue of an interface, past the queueing disciplines. It needs no program.
#[derive(Debug)]
pub struct XdpSender {
    socket: Socket<Inlet<libc::xdp_desc>>,
    /// Chunks that are not on their way.
    free: Vec<u64>,
    is_zero_copy: bool,
}

impl XdpSender {
    /// Opens a socket on the queue `queue` of the interface called `interface`.
    ///
    /// # Errors
    /// [`XdpError`] with the [`Step`] that failed.
    pub fn open(interface: &str, queue: u32, copying: Copying) -> Result<Self, XdpError> {
        let index = packet::ethernet_index(interface).map_err(|error| Step::Interface.failed(error))?;
        let socket = Socket::sending(Place { interface: index, queue, copying })?;
        let is_zero_copy = socket.is_zero_copy().map_err(|error| Step::Bind.failed(error))?;
        Ok(Self { free: socket.chunks().collect(), socket, is_zero_copy })
    }

    /// Whether the driver takes frames without a copy.
    #[must_use]
    pub fn is_zero_copy(&self) -> bool {
        self.is_zero_copy
    }

    /// Sends one frame of at most 2048 bytes, from the destination address on; never waits. Where frames are not copied, the
    /// driver sends it as soon as it comes to it.
    ///
    /// # Errors
    /// ENOBUFS when all of the memory is on its way, EBUSY when the driver dropped it, EAGAIN when its queue is full,
    /// ENETDOWN while the interface is down, EMSGSIZE for a longer frame, and what else the kernel answered. The frame was
    /// not sent then.
    #[inline]
    pub fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        if frame.len() > CHUNK {
            return Err(Errno::MSGSIZE.into());
        }
        let Self { socket, free, is_zero_copy } = self;
        while let Some(chunk) = socket.done.take() {
            free.push(chunk);
        }
        let chunk = free.pop().ok_or(Errno::NOBUFS)?;
        let descriptor = libc::xdp_desc { addr: chunk, len: frame.len() as u32, options: 0 };
        if !socket.memory.write(chunk as usize, frame) || !socket.frames.put(descriptor) {
            free.push(chunk);
            // After frames that were dropped, the kernel tells only now that it has taken them out.
            let _ = socket.wake_to_send();
            return Err(Errno::NOBUFS.into());
        }
        if !socket.frames.wants_waking() {
            return Ok(());
        }
        let Err(error) = socket.wake_to_send() else { return Ok(()) };
        if *is_zero_copy {
            // The driver has the ring before its eyes, and may be taking the frame out by now.
            let is_busy = matches!(Errno::from_io_error(&error), Some(Errno::AGAIN | Errno::BUSY | Errno::NOBUFS));
            return if is_busy { Ok(()) } else { Err(error) };
        }
        // Here the kernel takes frames out in that call alone: one that was dropped, and no other that it refused. That would
        // go out with the next.
        if Errno::from_io_error(&error) != Some(Errno::BUSY) && socket.frames.take_back() {
            free.push(chunk);
        }
        Err(error)
    }
}
