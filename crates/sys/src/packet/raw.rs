//! Sending whole frames.

use std::{
    io,
    os::fd::{AsRawFd, OwnedFd},
};

use rustix::net::SocketType;

use super::socket::{bind_to, packet_socket, set_option};

/// Sends frames on one interface exactly as they are given, from the destination address on, with a VLAN tag where they
/// have one.
#[derive(Debug)]
pub struct RawSender(OwnedFd);

impl RawSender {
    /// Opens a socket on the interface called `interface`. Its frames have the kernel's `priority` 0 to 6, by which queues
    /// are chosen; with `bypass` they pass by all queueing disciplines, straight to the driver.
    ///
    /// # Errors
    /// EPERM without CAP_NET_RAW, ENODEV when there is no such interface, `InvalidInput` when it is not Ethernet,
    /// and what else the kernel answered.
    pub fn open(interface: &str, priority: u8, bypass: bool) -> io::Result<Self> {
        let socket = packet_socket(SocketType::RAW)?;
        set_option(&socket, libc::SOL_SOCKET, libc::SO_PRIORITY, i32::from(priority))?;
        if bypass {
            set_option(&socket, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, 1_i32)?;
        }
        // Protocol 0: nothing is received.
        bind_to(&socket, interface, 0)?;
        Ok(Self(socket))
    }

    /// Sends one frame; never waits.
    ///
    /// # Errors
    /// ENOBUFS when a queue is full and EAGAIN when the socket's buffer is, ENETDOWN while the interface is down,
    /// EMSGSIZE beyond the MTU, and what else the kernel answered. The frame was not sent then.
    #[inline]
    pub fn send(&self, frame: &[u8]) -> io::Result<()> {
        // SAFETY: the frame is live and of the length given; the kernel only reads it.
        let sent = unsafe { libc::send(self.0.as_raw_fd(), frame.as_ptr().cast(), frame.len(), libc::MSG_DONTWAIT) };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}
