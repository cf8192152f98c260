//! Raw Ethernet frames: packet sockets bound to one interface.
//!
//! [`FrameSender`] puts headers in front of payloads, [`RawSender`] sends whole frames as they are, [`RingSender`] does so
//! from shared memory, and [`TimedSender`] with the moment at which each is to leave; [`FrameReceiver`] receives those of
//! one EtherType.

mod raw;
mod receive;
mod ring;
mod timed;

use std::{
    io,
    os::fd::{AsFd, AsRawFd, OwnedFd},
};

use rustix::net::{AddressFamily, SocketFlags, SocketType, netdevice::name_to_index, socket_with};

pub use raw::RawSender;
pub use receive::{FrameDrops, FrameReceiver, Poll, Received};
pub(crate) use receive::{WAIT, take_all_in};
pub use ring::RingSender;
pub use timed::{Dropped, TimedSender};

/// Smallest payload of an Ethernet frame, bytes; the kernel does not pad.
pub const MIN_PAYLOAD: usize = 46;

const ARPHRD_ETHER: u16 = 1;

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

const ADDRESS_LENGTH: libc::socklen_t = size_of::<libc::sockaddr_ll>() as libc::socklen_t;

/// A packet socket that receives nothing yet.
fn packet_socket(kind: SocketType) -> io::Result<OwnedFd> {
    Ok(socket_with(AddressFamily::PACKET, kind, SocketFlags::CLOEXEC, None)?)
}

/// Binds the socket to `interface`, for frames of `protocol`; ENODEV when there is none such, `InvalidInput` when it is
/// not Ethernet.
fn bind_to(socket: &OwnedFd, interface: &str, protocol: u16) -> io::Result<libc::sockaddr_ll> {
    let index = name_to_index(socket.as_fd(), interface)?;
    // SAFETY: sockaddr_ll is plain old data, for which all zeroes is a valid value.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_ifindex = index.cast_signed();
    address.sll_protocol = protocol.to_be();
    bind(socket, &address)?;
    if bound(socket)?.sll_hatype != ARPHRD_ETHER {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    Ok(address)
}

/// The index of the Ethernet interface called `interface`.
///
/// # Errors
/// EPERM without CAP_NET_RAW, ENODEV when there is none such, `InvalidInput` when it is not Ethernet.
pub(crate) fn ethernet_index(interface: &str) -> io::Result<u32> {
    let bound = bind_to(&packet_socket(SocketType::RAW)?, interface, 0)?;
    Ok(bound.sll_ifindex.cast_unsigned())
}

/// Sets an option of the socket to a plain value of the kernel's type for it.
fn set_option<T: Copy>(socket: &OwnedFd, level: i32, option: i32, value: T) -> io::Result<()> {
    let (value, length) = (std::ptr::from_ref(&value).cast(), size_of::<T>() as libc::socklen_t);
    // SAFETY: the value is live and of the length given; the kernel only reads it, and checks the length.
    let answer = unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, value, length) };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn bind(socket: &OwnedFd, address: &libc::sockaddr_ll) -> io::Result<()> {
    // SAFETY: the address is live, initialised and of the length given; the kernel only reads it.
    let answer = unsafe { libc::bind(socket.as_raw_fd(), std::ptr::from_ref(address).cast(), ADDRESS_LENGTH) };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The address that the socket is bound to, which tells the kind of hardware.
fn bound(socket: &OwnedFd) -> io::Result<libc::sockaddr_ll> {
    // SAFETY: sockaddr_ll is plain old data, for which all zeroes is a valid value.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    let mut length = ADDRESS_LENGTH;
    // SAFETY: the kernel writes at most `length` bytes into a live sockaddr_ll.
    let answer = unsafe { libc::getsockname(socket.as_raw_fd(), (&raw mut address).cast(), &raw mut length) };
    if answer == 0 { Ok(address) } else { Err(io::Error::last_os_error()) }
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
