//! Receives frames.

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
    sync::Arc,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    net::sockopt,
};

use super::{
    Copying, Step, XdpError, XdpSender,
    filter::XdpFilter,
    program::{Attached, Hook},
    socket::{self, QueueBinding, ReceiveHalf, option},
};
use crate::convert;
use crate::packet::{self, Poll, Received, WAIT};

/// Receives the frames of a filter from one queue of an interface, with or without a VLAN tag. Other frames take their
/// normal path.
#[derive(Debug)]
pub struct XdpReceiver {
    /// Declared first, so that it is dropped before the socket and no frame is redirected to a closed socket.
    program: Arc<Attached>,
    socket: ReceiveHalf,
    is_zero_copy: bool,
    /// Keeps the interface in promiscuous mode.
    _promiscuous: Option<OwnedFd>,
}

/// Counts dropped frames, for use on another thread.
#[derive(Debug)]
pub struct XdpDrops(OwnedFd);

impl XdpReceiver {
    /// Attaches the program at `hook`, or at the best hook that the driver supports, and opens a socket for frames of
    /// `ethertype` to any address on the queue `queue` of `interface`. Keeps the interface in promiscuous mode.
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
        let (promiscuous, index) =
            packet::enable_promiscuous(interface).map_err(|error| Step::Interface.failed(error))?;
        let program = Arc::new(Attached::to(index, &XdpFilter::of(&[ethertype]), queue, hook, 1)?);
        let copying = copying_at(program.hook, copying);
        let socket = socket::receiving(QueueBinding { interface: index, queue, copying })?;
        Self::of(program, 0, socket, Some(promiscuous))
    }

    /// Receives the frames of the program's socket with this number.
    fn of(
        program: Arc<Attached>,
        number: u32,
        socket: ReceiveHalf,
        promiscuous: Option<OwnedFd>,
    ) -> Result<Self, XdpError> {
        let is_zero_copy = socket.is_zero_copy()?;
        program.redirect_to(number, socket.as_fd())?;
        Ok(Self { program, socket, is_zero_copy, _promiscuous: promiscuous })
    }

    /// True if the driver is in zero-copy mode.
    #[must_use]
    pub fn is_zero_copy(&self) -> bool {
        self.is_zero_copy
    }

    /// The hook at which the program runs.
    #[must_use]
    pub fn hook(&self) -> Hook {
        self.program.hook
    }

    /// A counter of dropped frames.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn drops(&self) -> io::Result<XdpDrops> {
        Ok(XdpDrops(self.socket.as_fd().try_clone_to_owned()?))
    }

    /// Receives the next frame with its VLAN tag, truncated to the length of `frame`; `None` if none arrived in time.
    ///
    /// # Errors
    /// The kernel's error.
    #[inline]
    pub fn receive(&mut self, frame: &mut [u8], poll: Poll) -> io::Result<Option<Received>> {
        if let Some(received) = self.take(frame) {
            return Ok(Some(received));
        }
        if poll == Poll::Sleep {
            self.wait()?;
        } else if self.socket.fill.needs_wakeup() {
            match self.socket.wake_to_receive() {
                Err(error) if !matches!(Errno::from_io_error(&error), Some(Errno::AGAIN | Errno::INTR)) => {
                    return Err(error);
                }
                _ => {}
            }
        }
        Ok(self.take(frame))
    }

    /// Copies a frame out and returns its chunk to the kernel.
    #[inline]
    fn take(&mut self, frame: &mut [u8]) -> Option<Received> {
        let socket = &mut self.socket;
        let descriptor = socket.frames.take()?;
        let length = descriptor.len as usize;
        let kept = length.min(frame.len());
        let is_in_range = socket.memory.read(convert::offset(descriptor.addr), &mut frame[..kept]);
        socket.give_back(descriptor.addr);
        debug_assert!(is_in_range, "the kernel returns only chunks of ours: {descriptor:?}");
        Some(Received { length, tci: None, stamp_ns: None })
    }

    /// Sleeps until a frame arrives, at most 50 ms.
    fn wait(&self) -> io::Result<()> {
        let timeout = Timespec { tv_sec: 0, tv_nsec: WAIT.subsec_nanos().into() };
        let mut watched = [PollFd::new(&self.socket, PollFlags::IN)];
        match poll(&mut watched, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        if watched[0].revents().contains(PollFlags::ERR) {
            // Reading the error clears it; otherwise poll would return at once from now on.
            sockopt::socket_error(&self.socket)??;
        }
        Ok(())
    }
}

/// The possible copy mode at a hook. With the generic hook the frame is already in a kernel buffer and must be copied out
/// of it.
fn copying_at(hook: Hook, copying: Copying) -> Copying {
    if hook == Hook::Generic && copying == Copying::AsOffered { Copying::Always } else { copying }
}

/// Opens this number of sockets for both directions of the queue `queue` of `interface`, at least one. Each direction of
/// each socket can have a thread. The frames of `filter` are received, if they are for the interface: it does not enter
/// promiscuous mode. With several sockets, the filter must [select one](XdpFilter::with_members) for each frame. The
/// program is attached at `hook`, or at the best hook that the driver supports.
///
/// With the generic hook, all frames of the queue must be received on one CPU if there are several sockets: kernels before
/// 6.15 do not protect the shared fill ring from two of them (kernel commit a1356ac7749c).
///
/// # Errors
/// [`XdpError`] with the [`Step`] that failed.
pub fn exchange(
    interface: &str,
    filter: &XdpFilter,
    queue: u32,
    hook: Option<Hook>,
    copying: Copying,
    sockets: usize,
) -> Result<Vec<(XdpSender, XdpReceiver)>, XdpError> {
    let index = packet::ethernet_index(interface).map_err(|error| Step::Interface.failed(error))?;
    let program = Arc::new(Attached::to(index, filter, queue, hook, convert::length(sockets))?);
    let copying = copying_at(program.hook, copying);
    let pairs = socket::both(QueueBinding { interface: index, queue, copying }, sockets)?;
    let open = |(number, (send, receive)): (u32, _)| {
        Ok((XdpSender::of(send)?, XdpReceiver::of(program.clone(), number, receive, None)?))
    };
    (0..).zip(pairs).map(open).collect()
}

impl XdpDrops {
    /// Frames so far that were redirected to the socket but dropped for lack of memory or ring space.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn dropped(&self) -> io::Result<u64> {
        let statistics: libc::xdp_statistics = option(&self.0, libc::XDP_STATISTICS)?;
        // In copy mode, frames that found the fill ring empty are included in rx_dropped.
        Ok(statistics.rx_dropped + statistics.rx_ring_full)
    }
}
