//! Sends several frames with one system call, `sendmmsg`.

use std::{
    io, mem,
    os::fd::{AsRawFd, OwnedFd},
    ptr,
};

use crate::convert;

/// Most frames that one system call sends.
pub const BATCH: usize = 64;

/// The message headers of a batch. They point to the frames and, with launch times, to the control buffers of the caller.
pub(super) struct Batch<'a> {
    vectors: [libc::iovec; BATCH],
    messages: [libc::mmsghdr; BATCH],
    frames: &'a [&'a [u8]],
}

impl<'a> Batch<'a> {
    /// A batch of at most [`BATCH`] frames; further ones are left out.
    #[inline]
    pub fn of(frames: &'a [&'a [u8]]) -> Self {
        let nothing = libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 };
        // SAFETY: mmsghdr is plain old data, so all zeroes is a valid value.
        let messages = unsafe { mem::zeroed() };
        Self { vectors: [nothing; BATCH], messages, frames: &frames[..frames.len().min(BATCH)] }
    }

    /// Gives each message a control buffer of `length` bytes.
    #[inline]
    pub fn with_control(&mut self, buffers: impl Iterator<Item = *mut libc::c_void>, length: usize) {
        for (message, buffer) in self.messages.iter_mut().zip(buffers) {
            message.msg_hdr.msg_control = buffer;
            message.msg_hdr.msg_controllen = length as _;
        }
    }

    /// Sends the frames. Returns the number that was sent, at least 1. The control buffers must still be live.
    #[inline]
    pub fn send(&mut self, socket: &OwnedFd) -> io::Result<usize> {
        for ((vector, message), frame) in self.vectors.iter_mut().zip(&mut self.messages).zip(self.frames) {
            *vector = libc::iovec { iov_base: frame.as_ptr().cast_mut().cast(), iov_len: frame.len() };
            message.msg_hdr.msg_iov = ptr::from_mut(vector);
            message.msg_hdr.msg_iovlen = 1;
        }
        let count = convert::length(self.frames.len());
        let messages = self.messages.as_mut_ptr();
        // SAFETY: the first `count` messages point to live frames of the given lengths, and to live control buffers or to
        // none; the kernel only reads them, and writes the lengths sent into the messages.
        let sent = unsafe { libc::sendmmsg(socket.as_raw_fd(), messages, count, libc::MSG_DONTWAIT as _) };
        match usize::try_from(sent) {
            Ok(0) => Err(io::Error::from_raw_os_error(libc::EAGAIN)),
            Ok(sent) => Ok(sent),
            Err(_) => Err(io::Error::last_os_error()),
        }
    }
}
