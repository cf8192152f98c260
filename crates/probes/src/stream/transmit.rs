//! Transmission modes of a talker.

use std::{fmt, io};

use sys::{
    packet::{RawSender, RingSender, TimedSender},
    xdp::XdpSender,
};

/// The method of sending a talker's frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TransmitMode {
    /// A packet socket, through the queueing discipline of the interface.
    #[default]
    Send,
    /// A packet socket that bypasses the queueing discipline.
    Bypass,
    /// A ring of frames in memory shared with the kernel, through the queueing discipline.
    TxRing,
    /// A packet socket with the slot as launch time, until which the queueing discipline holds each frame.
    Txtime,
    /// AF_XDP, which bypasses the queueing discipline; frames are copied if the driver needs it.
    Xdp,
    /// AF_XDP without copies.
    XdpZerocopy,
}

impl fmt::Display for TransmitMode {
    /// Writes the name used in the record.
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
    /// True if frames wait for their slot in the kernel, so that the talker need not spin.
    #[must_use]
    pub fn keeps_slots(self) -> bool {
        self == Self::Txtime
    }

    /// True if packet sockets on the sending interface see the sent frames.
    #[must_use]
    pub fn is_seen(self) -> bool {
        self != Self::Bypass && !self.is_xdp()
    }

    /// True if frames are sent with AF_XDP.
    #[must_use]
    pub fn is_xdp(self) -> bool {
        matches!(self, Self::Xdp | Self::XdpZerocopy)
    }
}

/// A sender of frames.
pub trait Transmit: fmt::Debug + Send {
    /// Sends a frame whose slot starts at `slot_ns` on the talker's clock; never waits.
    ///
    /// # Errors
    /// The error of the kernel; the frame was not sent then.
    fn send(&mut self, frame: &[u8], slot_ns: i64) -> io::Result<()>;

    /// Sends the frames of one slot in their order; never waits. `launches_ns` are the times at which they should leave,
    /// on the talker's clock. Returns the number of frames that were sent, at least 1; the frame after them, if there is
    /// one, was refused or not tried.
    ///
    /// # Errors
    /// The error of the kernel for the first frame; none was sent then.
    fn send_all(&mut self, frames: &[&[u8]], launches_ns: &[i64]) -> io::Result<usize> {
        let (Some(frame), Some(&launch_ns)) = (frames.first(), launches_ns.first()) else { return Ok(0) };
        self.send(frame, launch_ns).map(|()| 1)
    }

    /// True if the driver sends frames without a copy; `None` if unknown.
    fn is_zero_copy(&self) -> Option<bool> {
        None
    }
}

impl<T: Transmit + ?Sized> Transmit for Box<T> {
    #[inline]
    fn send(&mut self, frame: &[u8], slot_ns: i64) -> io::Result<()> {
        (**self).send(frame, slot_ns)
    }

    #[inline]
    fn send_all(&mut self, frames: &[&[u8]], launches_ns: &[i64]) -> io::Result<usize> {
        (**self).send_all(frames, launches_ns)
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

    #[inline]
    fn send_all(&mut self, frames: &[&[u8]], _launches_ns: &[i64]) -> io::Result<usize> {
        Self::send_all(self, frames)
    }
}

/// The slots must be on CLOCK_TAI.
impl Transmit for TimedSender {
    #[inline]
    fn send(&mut self, frame: &[u8], slot_ns: i64) -> io::Result<()> {
        Self::send(self, frame, slot_ns)
    }

    #[inline]
    fn send_all(&mut self, frames: &[&[u8]], launches_ns: &[i64]) -> io::Result<usize> {
        Self::send_all(self, frames, launches_ns)
    }
}

impl Transmit for RingSender {
    #[inline]
    fn send(&mut self, frame: &[u8], _slot_ns: i64) -> io::Result<()> {
        Self::send(self, frame)
    }

    #[inline]
    fn send_all(&mut self, frames: &[&[u8]], _launches_ns: &[i64]) -> io::Result<usize> {
        Self::send_all(self, frames)
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
