//! Sends complete frames.

use std::{
    io,
    os::fd::{AsRawFd, OwnedFd},
};

use rustix::net::SocketType;

use super::{
    batch::Batch,
    reports::{SentReports, SentStamps},
    socket::{bind_to, packet_socket, set_option},
};

/// Sends complete frames on one interface, from the destination address on, including any VLAN tag.
#[derive(Debug)]
pub struct RawSender(OwnedFd);

impl RawSender {
    /// Opens a socket on `interface`. `priority` (0 to 6) is the socket priority that selects the queue. With `bypass`,
    /// frames skip all queueing disciplines and go directly to the driver.
    ///
    /// # Errors
    /// EPERM without CAP_NET_RAW, ENODEV if there is no such interface, `InvalidInput` if it is not Ethernet; otherwise
    /// the kernel's error.
    pub fn open(interface: &str, priority: u8, bypass: bool) -> io::Result<Self> {
        let socket = packet_socket(SocketType::RAW)?;
        set_option(&socket, libc::SOL_SOCKET, libc::SO_PRIORITY, i32::from(priority))?;
        if bypass {
            set_option(&socket, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, 1_i32)?;
        }
        // With protocol 0 the socket receives nothing.
        bind_to(&socket, interface, 0)?;
        Ok(Self(socket))
    }

    /// The timestamps of the frames that are sent from now on.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn reports(&self, stamps: SentStamps) -> io::Result<SentReports> {
        SentReports::of(&self.0, Some(stamps))
    }

    /// Sends one frame without blocking.
    ///
    /// # Errors
    /// ENOBUFS if a queue is full, EAGAIN if the socket buffer is full, ENETDOWN if the interface is down, EMSGSIZE
    /// beyond the MTU; otherwise the kernel's error. On error, the frame was not sent.
    #[inline]
    pub fn send(&self, frame: &[u8]) -> io::Result<()> {
        // SAFETY: the frame is live and of the given length; the kernel only reads it.
        let sent = unsafe { libc::send(self.0.as_raw_fd(), frame.as_ptr().cast(), frame.len(), libc::MSG_DONTWAIT) };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Sends up to [`BATCH`](super::BATCH) frames in their order with one system call, without blocking. Returns the number of frames
    /// that were sent, at least 1; the frame after them, if there is one, was refused or not tried.
    ///
    /// # Errors
    /// As [`RawSender::send`], for the first frame; then none was sent.
    #[inline]
    pub fn send_all(&self, frames: &[&[u8]]) -> io::Result<usize> {
        let mut batch = Batch::of(frames);
        batch.send(&self.0)
    }
}
