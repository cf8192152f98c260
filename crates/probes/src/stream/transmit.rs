//! Ways to hand a talker's frames to the network.

use std::{fmt, io};

use sys::{
    packet::{RawSender, RingSender},
    xdp::XdpSender,
};

/// How a talker's frames go out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TransmitMode {
    /// A packet socket, through the queueing discipline of the interface.
    #[default]
    Send,
    /// A packet socket, past the queueing discipline, straight to the driver.
    Bypass,
    /// A ring of frames that the kernel reads from memory shared with it, through the queueing discipline.
    TxRing,
    /// A packet socket, each frame with its slot as its launch time, until which the queueing discipline keeps it.
    Txtime,
    /// AF_XDP, past the queueing discipline; frames are copied where the driver cannot do without.
    Xdp,
    /// AF_XDP, and frames are never copied.
    XdpZerocopy,
}

impl fmt::Display for TransmitMode {
    /// As the record names it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Send => "send",
            Self::Bypass => "bypass",
            Self::TxRing => "tx-ring",
            Self::Txtime => "txtime",
            Self::Xdp => "xdp",
            Self::XdpZerocopy => "xdp-zerocopy",
        })
    }
}

impl TransmitMode {
    /// Whether frames wait for their slot in the kernel, so that their talker need not.
    #[must_use]
    pub fn keeps_slots(self) -> bool {
        self == Self::Txtime
    }

    /// Whether packet sockets on the sending interface see frames go out.
    #[must_use]
    pub fn is_seen(self) -> bool {
        self != Self::Bypass && !self.is_xdp()
    }

    /// Whether frames go out by AF_XDP.
    #[must_use]
    pub fn is_xdp(self) -> bool {
        matches!(self, Self::Xdp | Self::XdpZerocopy)
    }
}

/// What frames are handed to.
pub trait Transmit: fmt::Debug + Send {
    /// Hands over a frame, whose slot begins at `slot_ns` on the talker's clock; never waits.
    ///
    /// # Errors
    /// What the kernel answered; the frame was not sent then.
    fn send(&mut self, frame: &[u8], slot_ns: i64) -> io::Result<()>;

    /// Whether the driver has frames without a copy; `None` where nobody asked.
    fn is_zero_copy(&self) -> Option<bool> {
        None
    }
}

impl<T: Transmit + ?Sized> Transmit for Box<T> {
    #[inline]
    fn send(&mut self, frame: &[u8], slot_ns: i64) -> io::Result<()> {
        (**self).send(frame, slot_ns)
    }

    fn is_zero_copy(&self) -> Option<bool> {
        (**self).is_zero_copy()
    }
}

impl Transmit for RawSender {
    #[inline]
    fn send(&mut self, frame: &[u8], _slot_ns: i64) -> io::Result<()> {
        Self::send(self, frame)
    }
}

impl Transmit for RingSender {
    #[inline]
    fn send(&mut self, frame: &[u8], _slot_ns: i64) -> io::Result<()> {
        Self::send(self, frame)
    }
}

impl Transmit for XdpSender {
    #[inline]
    fn send(&mut self, frame: &[u8], _slot_ns: i64) -> io::Result<()> {
        Self::send(self, frame)
    }

    fn is_zero_copy(&self) -> Option<bool> {
        Some(Self::is_zero_copy(self))
    }
}

/// What becomes of frames that were handed over, as far as the kernel tells it afterwards.
pub trait Aftermath: fmt::Debug + Send {
    /// Takes in what it has told since. Called from an ordinary thread, some twenty times a second.
    fn collect(&mut self);

    /// Adds it to what the talker tells.
    fn tell(&self, talker: &mut record::Talker);
}
