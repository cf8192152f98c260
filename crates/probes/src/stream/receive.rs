//! Sources of a listener's frames.

use std::{fmt::Debug, io};

use sys::{
    packet::{FrameDrops, FrameReceiver, Poll, Received},
    xdp::{XdpDrops, XdpReceiver},
};

/// A source of frames.
pub trait Receive: Send + 'static {
    /// Receives the next frame; `None` if none came in time.
    ///
    /// # Errors
    /// The error of the kernel.
    fn receive(&mut self, frame: &mut [u8], poll: Poll) -> io::Result<Option<Received>>;

    /// Returns a counter of the frames that this machine received and dropped, to be used while the thread receives.
    ///
    /// # Errors
    /// The error of the kernel.
    fn drops(&self) -> io::Result<Box<dyn DropCounter>>;
}

/// A counter of frames that this machine received and dropped.
pub trait DropCounter: Debug {
    /// The count so far.
    ///
    /// # Errors
    /// The error of the kernel.
    fn dropped(&mut self) -> io::Result<Dropped>;
}

impl<R: Receive + ?Sized> Receive for Box<R> {
    #[inline]
    fn receive(&mut self, frame: &mut [u8], poll: Poll) -> io::Result<Option<Received>> {
        (**self).receive(frame, poll)
    }

    fn drops(&self) -> io::Result<Box<dyn DropCounter>> {
        (**self).drops()
    }
}

impl Receive for FrameReceiver {
    #[inline]
    fn receive(&mut self, frame: &mut [u8], poll: Poll) -> io::Result<Option<Received>> {
        Self::receive(self, frame, poll)
    }

    fn drops(&self) -> io::Result<Box<dyn DropCounter>> {
        Ok(Box::new(Self::drops(self)?))
    }
}

impl DropCounter for FrameDrops {
    fn dropped(&mut self) -> io::Result<Dropped> {
        Self::dropped(self).map(Dropped::InSocket)
    }
}

impl Receive for XdpReceiver {
    #[inline]
    fn receive(&mut self, frame: &mut [u8], poll: Poll) -> io::Result<Option<Received>> {
        Self::receive(self, frame, poll)
    }

    fn drops(&self) -> io::Result<Box<dyn DropCounter>> {
        Ok(Box::new(Self::drops(self)?))
    }
}

impl DropCounter for XdpDrops {
    fn dropped(&mut self) -> io::Result<Dropped> {
        Self::dropped(self).map(Dropped::InRing)
    }
}

impl Dropped {
    /// Their number.
    #[must_use]
    pub fn frames(self) -> u64 {
        match self {
            Self::InSocket(frames) | Self::InRing(frames) => frames,
        }
    }
}

/// Frames of this EtherType that this machine received and dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dropped {
    /// Dropped because the socket's buffer was full.
    InSocket(u64),
    /// Dropped for lack of free receive buffers or of space in the ring of AF_XDP.
    InRing(u64),
}
