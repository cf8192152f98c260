//! Opening, binding and options of packet sockets.

use std::{
    io,
    os::fd::{AsFd, AsRawFd, OwnedFd},
};

use rustix::net::{AddressFamily, SocketFlags, SocketType, netdevice::name_to_index, socket_with};

use crate::convert;

const ARPHRD_ETHER: u16 = 1;

pub(super) const ADDRESS_LENGTH: libc::socklen_t = convert::size::<libc::sockaddr_ll>();

/// Opens a packet socket that does not receive yet.
pub(super) fn packet_socket(kind: SocketType) -> io::Result<OwnedFd> {
    Ok(socket_with(AddressFamily::PACKET, kind, SocketFlags::CLOEXEC, None)?)
}

/// Binds the socket to `interface` for frames of `protocol`. ENODEV if there is no such interface, `InvalidInput` if it
/// is not Ethernet.
pub(super) fn bind_to(socket: &OwnedFd, interface: &str, protocol: u16) -> io::Result<libc::sockaddr_ll> {
    let index = name_to_index(socket.as_fd(), interface)?;
    // SAFETY: sockaddr_ll is plain old data, so all zeroes is a valid value.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = convert::constant(libc::AF_PACKET);
    address.sll_ifindex = index.cast_signed();
    address.sll_protocol = protocol.to_be();
    bind(socket, &address)?;
    if bound(socket)?.sll_hatype != ARPHRD_ETHER {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    Ok(address)
}

/// The index of an Ethernet interface.
///
/// # Errors
/// EPERM without CAP_NET_RAW, ENODEV if there is no such interface, `InvalidInput` if it is not Ethernet.
pub(crate) fn ethernet_index(interface: &str) -> io::Result<u32> {
    let bound = bind_to(&packet_socket(SocketType::RAW)?, interface, 0)?;
    Ok(bound.sll_ifindex.cast_unsigned())
}

/// Sets a socket option. `T` must be the kernel's type for it.
pub(super) fn set_option<T: Copy>(socket: &OwnedFd, level: i32, option: i32, value: T) -> io::Result<()> {
    let (value, length) = (std::ptr::from_ref(&value).cast(), convert::size::<T>());
    // SAFETY: the value is live and of the given length; the kernel only reads it, and checks the length.
    let answer = unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, value, length) };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn bind(socket: &OwnedFd, address: &libc::sockaddr_ll) -> io::Result<()> {
    // SAFETY: the address is live, initialised and of the given length; the kernel only reads it.
    let answer = unsafe { libc::bind(socket.as_raw_fd(), std::ptr::from_ref(address).cast(), ADDRESS_LENGTH) };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The address that the socket is bound to, including the hardware type.
fn bound(socket: &OwnedFd) -> io::Result<libc::sockaddr_ll> {
    // SAFETY: sockaddr_ll is plain old data, so all zeroes is a valid value.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    let mut length = ADDRESS_LENGTH;
    // SAFETY: the kernel writes at most `length` bytes into a live sockaddr_ll.
    let answer = unsafe { libc::getsockname(socket.as_raw_fd(), (&raw mut address).cast(), &raw mut length) };
    if answer == 0 { Ok(address) } else { Err(io::Error::last_os_error()) }
}
