//! Sockets of Ethernet frames.

use std::{io, net::UdpSocket};

use super::DatagramSocket;
use crate::packet::{self, Member};

impl DatagramSocket {
    /// Opens a socket for the frames of these EtherTypes on `interface`, with or without a VLAN tag. Frames are sent with
    /// `priority` (SO_PRIORITY), which queueing disciplines map to traffic classes.
    ///
    /// Whole frames are sent and received. The kernel removes the VLAN tag of received frames: see
    /// [`Received::tci`](super::Received::tci). The interface does not enter promiscuous mode.
    ///
    /// # Errors
    /// EPERM without CAP_NET_RAW, or for a priority above 6 without CAP_NET_ADMIN, ENODEV if there is no such interface,
    /// `InvalidInput` if it is not Ethernet, or for more EtherTypes than [`ETHERTYPES_MAX`](packet::ETHERTYPES_MAX);
    /// otherwise the kernel's error.
    pub fn ethernet(interface: &str, ethertypes: &[u16], priority: u8) -> io::Result<Self> {
        packet::exchange_socket(interface, ethertypes, priority).map(|socket| Self(UdpSocket::from(socket)))
    }

    /// Receives from now on the frames of `ethertype`, except those of other members of a group. Only for Ethernet sockets.
    ///
    /// # Errors
    /// The kernel's error; none is expected.
    pub fn receive_member(&self, ethertype: u16, member: Member) -> io::Result<()> {
        packet::accept_member(&self.0, ethertype, member)
    }

    /// Sends from now on with this priority (SO_PRIORITY).
    ///
    /// # Errors
    /// EPERM for a priority above 6 without CAP_NET_ADMIN.
    pub fn set_priority(&self, priority: u8) -> io::Result<()> {
        self.set(libc::SOL_SOCKET, libc::SO_PRIORITY, i32::from(priority))
    }
}
