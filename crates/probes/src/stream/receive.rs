//! Where a listener's frames come from.

use std::{fmt::Debug, io};

use sys::{
    packet::{FrameDrops, FrameReceiver, Poll, Received},
    xdp::{XdpDrops, XdpReceiver},
};

/// What gives frames.
pub trait Receive: Send + 'static {
    /// Takes the next frame; `None` where none came in time.
    ///
    /// # Errors
    /// What the kernel answered.
    fn receive(&mut self, frame: &mut [u8], poll: Poll) -> io::Result<Option<Received>>;

    /// What tells the frames that this machine had and dropped, while the thread receives.
    ///
    /// # Errors
    /// What the kernel answered.
    fn drops(&self) -> io::Result<Box<dyn Drops>>;
}

/// Tells the frames that this machine had and dropped.
pub trait Drops: Debug {
    /// So far.
    ///
    /// # Errors
    /// What the kernel answered.
    fn dropped(&mut self) -> io::Result<Dropped>;
}

impl<R: Receive + ?Sized> Receive for Box<R> {
    #[inline]
    fn receive(&mut self, frame: &mut [u8], poll: Poll) -> io::Result<Option<Received>> {
        (**self).receive(frame, poll)
    }

    fn drops(&self) -> io::Result<Box<dyn Drops>> {
        (**self).drops()
    }
}

impl Receive for FrameReceiver {
    #[inline]
    fn receive(&mut self, frame: &mut [u8], poll: Poll) -> io::Result<Option<Received>> {
        Self::receive(self, frame, poll)
    }

    fn drops(&self) -> io::Result<Box<dyn Drops>> {
        Ok(Box::new(Self::drops(self)?))
    }
}

impl Drops for FrameDrops {
    fn dropped(&mut self) -> io::Result<Dropped> {
        Self::dropped(self).map(Dropped::InSocket)
    }
}

impl Receive for XdpReceiver {
    #[inline]
    fn receive(&mut self, frame: &mut [u8], poll: Poll) -> io::Result<Option<Received>> {
        Self::receive(self, frame, poll)
    }

    fn drops(&self) -> io::Result<Box<dyn Drops>> {
        Ok(Box::new(Self::drops(self)?))
    }
}

impl Drops for XdpDrops {
    fn dropped(&mut self) -> io::Result<Dropped> {
        Self::dropped(self).map(Dropped::InRing)
    }
}

/// Frames of this EtherType that this machine had, and dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dropped {
    /// As the socket's buffer had no room.
    InSocket(u64),
    /// As there was no memory for them, or no room in the ring of AF_XDP.
    InRing(u64),
}
