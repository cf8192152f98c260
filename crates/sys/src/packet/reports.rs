//! Reports about sent frames from the error queue of a packet socket: timestamps, and frames that were dropped.

use std::{
    io, mem,
    os::fd::{AsRawFd, OwnedFd},
};

use super::socket::set_option;
use crate::{control::Control, udp::Stamp};

/// Size of the buffer for reports, bytes: enough for more than 5000 of them.
const REPORTS_BYTES: i32 = 8 << 20;
/// Longest part of a frame that a report returns, bytes: the whole frame for Ethernet with a VLAN tag.
const FRAME_BYTES: usize = 2048;

/// Why ETF dropped a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dropped {
    /// The launch time had passed when the frame was queued, or was before that of a frame already sent.
    Invalid,
    /// The launch time passed while the frame was queued.
    Missed,
}

/// The timestamps of sent frames to request from the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SentStamps {
    /// When the driver took the frame.
    Driver,
    /// In addition when the network card transmitted it, if its timestamping is enabled.
    Card,
}

/// A report about a sent frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SentReport<'a> {
    /// The frame was sent.
    Stamped(&'a [u8], Stamp),
    /// A frame was dropped.
    Dropped(Dropped),
}

/// Reads the reports of one socket. The frame of a timestamp is returned with it, so that no numbers need to be matched.
#[derive(Debug)]
pub struct SentReports {
    socket: OwnedFd,
    frame: Box<[u8; FRAME_BYTES]>,
}

impl SentReports {
    /// Enables timestamps, and shares the socket in order to read the reports.
    pub(super) fn of(socket: &OwnedFd, stamps: Option<SentStamps>) -> io::Result<Self> {
        // Reports use the receive buffer. Without CAP_NET_ADMIN, the limit of the system applies.
        set_option(socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, REPORTS_BYTES)
            .or_else(|_| set_option(socket, libc::SOL_SOCKET, libc::SO_RCVBUF, REPORTS_BYTES))?;
        let driver = libc::SOF_TIMESTAMPING_SOFTWARE | libc::SOF_TIMESTAMPING_TX_SOFTWARE;
        // Without OPT_TX_SWHW, a hardware timestamp would suppress the software one.
        let card = libc::SOF_TIMESTAMPING_RAW_HARDWARE
            | libc::SOF_TIMESTAMPING_TX_HARDWARE
            | libc::SOF_TIMESTAMPING_OPT_TX_SWHW;
        let flags = match stamps {
            None => 0,
            Some(SentStamps::Driver) => driver,
            Some(SentStamps::Card) => driver | card,
        };
        set_option(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, flags.cast_signed())?;
        Ok(Self { socket: socket.try_clone()?, frame: Box::new([0; FRAME_BYTES]) })
    }

    /// The next report; `None` if there is none yet.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn next_report(&mut self) -> io::Result<Option<SentReport<'_>>> {
        loop {
            let mut control = Control::default();
            let Some(length) = self.read(&mut control)? else { return Ok(None) };
            let data = control.decode();
            if let Some(dropped) = data.dropped {
                return Ok(Some(SentReport::Dropped(dropped)));
            }
            if let Some(stamp) = data.stamp() {
                return Ok(Some(SentReport::Stamped(&self.frame[..length], stamp)));
            }
        }
    }

    /// Reads one message. Returns the length of the frame.
    fn read(&mut self, control: &mut Control) -> io::Result<Option<usize>> {
        let mut part = libc::iovec { iov_base: self.frame.as_mut_ptr().cast(), iov_len: self.frame.len() };
        // SAFETY: msghdr is plain old data, so all zeroes is a valid value.
        let mut header: libc::msghdr = unsafe { mem::zeroed() };
        header.msg_iov = &raw mut part;
        header.msg_iovlen = 1;
        loop {
            control.attach_to(&mut header);
            let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
            // SAFETY: the header points to live, writable memory of the lengths given; the kernel writes at most that much.
            let received = unsafe { libc::recvmsg(self.socket.as_raw_fd(), &raw mut header, flags) };
            if received >= 0 {
                control.set_length(&header);
                return Ok(Some(received.unsigned_abs().min(FRAME_BYTES)));
            }
            let error = io::Error::last_os_error();
            match error.kind() {
                io::ErrorKind::WouldBlock => return Ok(None),
                io::ErrorKind::Interrupted => {}
                _ => return Err(error),
            }
        }
    }
}
