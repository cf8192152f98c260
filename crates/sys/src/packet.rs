//! Raw Ethernet frames through packet sockets bound to one interface.
//!
//! [`FrameSender`] adds the Ethernet header to payloads. [`RawSender`] sends complete frames, [`RingSender`] sends them
//! from shared memory, and [`TimedSender`] sends them with launch times. [`FrameReceiver`] receives frames of one
//! EtherType.

mod batch;
mod raw;
mod receive;
mod reports;
mod ring;
mod socket;
mod timed;

use std::{
    io,
    os::fd::{AsRawFd, OwnedFd},
};

use rustix::net::SocketType;

use socket::{ADDRESS_LENGTH, bind_to, packet_socket};

pub use batch::BATCH;
pub use raw::RawSender;
pub use receive::{ETHERTYPES_MAX, FrameDrops, FrameReceiver, Member, Poll, Received};
pub(crate) use receive::{WAIT, accept_member, enable_promiscuous, exchange_socket};
pub use reports::{Dropped, SentReport, SentReports, SentStamps};
pub use ring::RingSender;
pub(crate) use socket::ethernet_index;
pub use timed::TimedSender;

/// Smallest payload of an Ethernet frame, bytes. The kernel does not pad shorter ones.
pub const MIN_PAYLOAD: usize = 46;

/// Sends frames on one interface. The kernel adds the header with the interface's address as source.
#[derive(Debug)]
pub struct FrameSender {
    socket: OwnedFd,
    to: libc::sockaddr_ll,
}

impl FrameSender {
    /// Opens a socket that sends frames of `ethertype` to the address `destination` on `interface`.
    ///
    /// # Errors
    /// EPERM without CAP_NET_RAW, ENODEV if there is no such interface, `InvalidInput` if it is not Ethernet; otherwise
    /// the kernel's error.
    pub fn open(interface: &str, ethertype: u16, destination: [u8; 6]) -> io::Result<Self> {
        let socket = packet_socket(SocketType::DGRAM)?;
        // With protocol 0 the socket receives nothing.
        let mut to = bind_to(&socket, interface, 0)?;
        to.sll_protocol = ethertype.to_be();
        to.sll_halen = 6;
        to.sll_addr[..6].copy_from_slice(&destination);
        Ok(Self { socket, to })
    }

    /// Sends one frame with `payload`, which must have [`MIN_PAYLOAD`] bytes to the interface's MTU.
    ///
    /// # Errors
    /// ENETDOWN if the interface is down, ENOBUFS if its queue is full, EMSGSIZE beyond the MTU; otherwise the kernel's
    /// error.
    pub fn send(&self, payload: &[u8]) -> io::Result<()> {
        // SAFETY: the payload and the address are live and of the given lengths; the kernel only reads them.
        let sent = unsafe {
            libc::sendto(
                self.socket.as_raw_fd(),
                payload.as_ptr().cast(),
                payload.len(),
                0,
                (&raw const self.to).cast(),
                ADDRESS_LENGTH,
            )
        };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packet sockets need CAP_NET_RAW. Without it, the test only checks for EPERM.
    #[test]
    fn rejects_unsuitable_interfaces() {
        let open = |interface| FrameSender::open(interface, 0x88b5, [2, 0, 0, 0, 0, 1]).unwrap_err();
        let missing = open("no-such-if0");
        if missing.kind() == io::ErrorKind::PermissionDenied {
            return;
        }
        assert_eq!(missing.raw_os_error(), Some(libc::ENODEV));
        assert_eq!(open("lo").kind(), io::ErrorKind::InvalidInput);
        assert!(open("a-name-far-too-long-for-an-interface").raw_os_error().is_some());
    }
}
