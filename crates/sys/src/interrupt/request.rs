//! ioctl requests whose argument is an integer, or a structure that the kernel reads and writes.

use std::{
    io,
    os::fd::{AsFd, AsRawFd},
};

/// A structure of the kernel's interface, with the number of the request that takes it.
///
/// # Safety
/// The request `CODE` must take a pointer to a structure of this layout, and all bytes that the kernel writes to it must
/// be valid.
pub(super) unsafe trait Request {
    /// The number of the request, with direction and size.
    const CODE: u32;
}

/// Sends a request, and stores the answer in its argument.
#[inline]
pub(super) fn exchange<T: Request>(device: impl AsFd, argument: &mut T) -> io::Result<()> {
    // SAFETY: the argument is live and has the layout of this request; the type of the number depends on the C library.
    let answer = unsafe { libc::ioctl(device.as_fd().as_raw_fd(), T::CODE as _, std::ptr::from_mut(argument)) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Sends a request that takes an integer or nothing, not a pointer.
///
/// # Safety
/// The request must take no pointer.
pub(super) unsafe fn command(device: impl AsFd, code: u32, argument: libc::c_ulong) -> io::Result<()> {
    // SAFETY: the caller guarantees that the kernel does not use the argument as an address.
    let answer = unsafe { libc::ioctl(device.as_fd().as_raw_fd(), code as _, argument) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
