//! Raw Ethernet frames: packet sockets bound to one interface.
//!
//! [`FrameSender`] puts headers in front of payloads, [`RawSender`] sends whole frames as they are, [`RingSender`] does so
//! from shared memory, and [`TimedSender`] with the moment at which each is to leave; [`FrameReceiver`] receives those of
//! one EtherType.

mod raw;
mod receive;
mod ring;
mod socket;
mod timed;

use std::{
    io,
    os::fd::{AsRawFd, OwnedFd},
};

use rustix::net::SocketType;

use socket::{ADDRESS_LENGTH, bind_to, packet_socket};

pub use raw::RawSender;
pub use receive::{FrameDrops, FrameReceiver, Poll, Received};
pub(crate) use receive::{WAIT, take_all_in};
pub use ring::RingSender;
pub(crate) use socket::ethernet_index;
pub use timed::{Dropped, TimedSender};

/// Smallest payload of an Ethernet frame, bytes; the kernel does not pad.
pub const MIN_PAYLOAD: usize = 46;

/// Sends frames on one interface. The kernel puts the interface's own address in front as the source.
#[derive(Debug)]
pub struct FrameSender {
    socket: OwnedFd,
    to: libc::sockaddr_ll,
}

impl FrameSender {
    /// Opens a socket for frames of `ethertype` to the address `destination` on the interface called `interface`.
    ///
    /// # Errors
    /// EPERM without CAP_NET_RAW, ENODEV when there is no such interface, `InvalidInput` when it is not Ethernet,
    /// and what else the kernel answered.
    pub fn open(interface: &str, ethertype: u16, destination: [u8; 6]) -> io::Result<Self> {
        let socket = packet_socket(SocketType::DGRAM)?;
        // Protocol 0: nothing is received.
        let mut to = bind_to(&socket, interface, 0)?;
        to.sll_protocol = ethertype.to_be();
        to.sll_halen = 6;
        to.sll_addr[..6].copy_from_slice(&destination);
        Ok(Self { socket, to })
    }

    /// Sends one frame around `payload`, at least [`MIN_PAYLOAD`] bytes and at most the interface's MTU.
    ///
    /// # Errors
    /// ENETDOWN while the interface is down, ENOBUFS when its queue is full, EMSGSIZE beyond the MTU, and what else
    /// the kernel answered.
    pub fn send(&self, payload: &[u8]) -> io::Result<()> {
        // SAFETY: the payload and the address are live and of the lengths given; the kernel only reads them.
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

    /// Needs CAP_NET_RAW, as every packet socket; without it the kernel's refusal is what must be seen.
    #[test]
    fn wrong_interfaces_are_refused() {
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
