//! Receiving.

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    net::sockopt,
};

use super::{
    Copying, Step, XdpError,
    program::{Attached, Hook},
    ring::Outlet,
    socket::{CHUNK, Place, Socket, option},
};
use crate::packet::{self, Poll, Received, WAIT};

/// Receives frames of one EtherType from one queue of an interface, behind a VLAN tag or without; all other frames go where
/// they would have gone. The interface takes every address in meanwhile (promiscuous).
#[derive(Debug)]
pub struct XdpReceiver {
    /// First, so that no frame is sent on to a socket that is closed.
    program: Attached,
    socket: Socket<Outlet<libc::xdp_desc>>,
    is_zero_copy: bool,
    _takes_all_in: OwnedFd,
}

/// Tells what was dropped, while the receiver is elsewhere.
#[derive(Debug)]
pub struct XdpDrops(OwnedFd);

impl XdpReceiver {
    /// Attaches the program at `hook`, or else where the driver can have it, and opens a socket for frames of `ethertype` on
    /// the queue `queue` of the interface called `interface`.
    ///
    /// # Errors
    /// [`XdpError`] with the [`Step`] that failed.
    pub fn open(
        interface: &str,
        ethertype: u16,
        queue: u32,
        hook: Option<Hook>,
        copying: Copying,
    ) -> Result<Self, XdpError> {
        let (takes_all_in, index) = packet::take_all_in(interface).map_err(|error| Step::Interface.failed(error))?;
        let program = Attached::to(index, ethertype, queue, hook)?;
        // Where a frame has a buffer of the kernel already, it has to be copied out of it.
        let copying =
            if program.hook == Hook::Generic && copying == Copying::AsOffered { Copying::Always } else { copying };
        let socket = Socket::receiving(Place { interface: index, queue, copying })?;
        let is_zero_copy = socket.is_zero_copy().map_err(|error| Step::Bind.failed(error))?;
        program.give_to(socket.as_fd())?;
        Ok(Self { program, socket, is_zero_copy, _takes_all_in: takes_all_in })
    }

    /// Whether the driver gives frames without a copy.
    #[must_use]
    pub fn is_zero_copy(&self) -> bool {
        self.is_zero_copy
    }

    /// Where the program runs.
    #[must_use]
    pub fn hook(&self) -> Hook {
        self.program.hook
    }

    /// What tells what was dropped.
    ///
    /// # Errors
    /// What the kernel answered.
    pub fn drops(&self) -> io::Result<XdpDrops> {
        Ok(XdpDrops(self.socket.as_fd().try_clone_to_owned()?))
    }

    /// Takes the next frame with its VLAN tag, as much of it as `frame` has room for; `None` where none came in time.
    ///
    /// # Errors
    /// What the kernel answered.
    #[inline]
    pub fn receive(&mut self, frame: &mut [u8], poll: Poll) -> io::Result<Option<Received>> {
        if let Some(received) = self.take(frame) {
            return Ok(Some(received));
        }
        if poll == Poll::Sleep {
            self.wait()?;
        } else if self.socket.fill.wants_waking() {
            match self.socket.wake_to_receive() {
                Err(error) if !matches!(Errno::from_io_error(&error), Some(Errno::AGAIN | Errno::INTR)) => {
                    return Err(error);
                }
                _ => {}
            }
        }
        Ok(self.take(frame))
    }

    /// Takes a frame out and gives its chunk back.
    #[inline]
    fn take(&mut self, frame: &mut [u8]) -> Option<Received> {
        let socket = &mut self.socket;
        let descriptor = socket.frames.take()?;
        let length = descriptor.len as usize;
        let kept = length.min(frame.len());
        let is_whole = socket.memory.read(descriptor.addr as usize, &mut frame[..kept]);
        let has_room = socket.fill.put(descriptor.addr / CHUNK as u64 * CHUNK as u64);
        debug_assert!(is_whole && has_room, "the kernel gives chunks that it was given: {descriptor:?}");
        Some(Received { length, tci: None, stamp_ns: None })
    }

    /// Sleeps until a frame is there, at most 50 ms.
    fn wait(&self) -> io::Result<()> {
        let timeout = Timespec { tv_sec: 0, tv_nsec: WAIT.subsec_nanos().into() };
        let mut watched = [PollFd::new(&self.socket, PollFlags::IN)];
        match poll(&mut watched, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        if watched[0].revents().contains(PollFlags::ERR) {
            // Else a thread that sleeps here would sleep no more.
            sockopt::socket_error(&self.socket)??;
        }
        Ok(())
    }
}

impl XdpDrops {
    /// Frames so far that the program gave to the socket, and that found no memory or no room in its ring.
    ///
    /// # Errors
    /// What the kernel answered.
    pub fn dropped(&self) -> io::Result<u64> {
        let told: libc::xdp_statistics = option(&self.0, libc::XDP_STATISTICS)?;
        // Where frames are copied, those that found the fill ring empty are among the first.
        Ok(told.rx_dropped + told.rx_ring_full)
    }
}
