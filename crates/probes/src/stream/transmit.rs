//! Ways to hand a talker's frames to the network.

use std::{fmt, io};

use sys::packet::RawSender;

/// How a talker's frames go out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TransmitMode {
    /// A packet socket, through the queueing discipline of the interface.
    #[default]
    Send,
    /// A packet socket, past the queueing discipline, straight to the driver.
    Bypass,
}

impl fmt::Display for TransmitMode {
    /// As the record names it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Send => "send",
            Self::Bypass => "bypass",
        })
    }
}

/// What frames are handed to.
pub trait Transmit: fmt::Debug + Send {
    /// Hands over a frame, whose slot begins at `slot_ns` on the talker's clock; never waits.
    ///
    /// # Errors
    /// What the kernel answered; the frame was not sent then.
    fn send(&mut self, frame: &[u8], slot_ns: i64) -> io::Result<()>;
}

impl<T: Transmit + ?Sized> Transmit for Box<T> {
    #[inline]
    fn send(&mut self, frame: &[u8], slot_ns: i64) -> io::Result<()> {
        (**self).send(frame, slot_ns)
    }
}

impl Transmit for RawSender {
    #[inline]
    fn send(&mut self, frame: &[u8], _slot_ns: i64) -> io::Result<()> {
        Self::send(self, frame)
    }
}
