//! Sockets of Ethernet frames.

use std::{io, net::UdpSocket};

use super::DatagramSocket;
use crate::packet;

impl DatagramSocket {
    /// Opens a socket for the frames of `ethertype` on `interface`, with or without a VLAN tag. Frames are sent with
    /// `priority` (SO_PRIORITY), which queueing disciplines map to traffic classes.
    ///
    /// Whole frames are sent and received. The kernel removes the VLAN tag of received frames: see
    /// [`Received::tci`](super::Received::tci). The interface does not enter promiscuous mode.
    ///
    /// # Errors
    /// EPERM without CAP_NET_RAW, or for a priority above 6 without CAP_NET_ADMIN, ENODEV if there is no such interface,
    /// `InvalidInput` if it is not Ethernet; otherwise the kernel's error.
    pub fn ethernet(interface: &str, ethertype: u16, priority: u8) -> io::Result<Self> {
        packet::exchange_socket(interface, ethertype, priority).map(|socket| Self(UdpSocket::from(socket)))
    }
}
