//! Sends complete frames, each with a launch time.

use std::{
    io, mem,
    os::fd::{AsRawFd, OwnedFd},
};

use rustix::net::SocketType;

use super::{
    batch::{BATCH, Batch},
    reports::{SentReports, SentStamps},
    socket::{bind_to, packet_socket, set_option},
};

/// Sends complete frames on one interface, each with its launch time on CLOCK_TAI. The ETF queueing discipline holds a
/// frame until then; other disciplines ignore the time.
#[derive(Debug)]
pub struct TimedSender(OwnedFd);

impl TimedSender {
    /// Opens a socket on `interface`. `priority` (0 to 6) is the socket priority that selects the queue.
    ///
    /// # Errors
    /// EPERM without CAP_NET_RAW and CAP_NET_ADMIN, ENODEV if there is no such interface, `InvalidInput` if it is not
    /// Ethernet; otherwise the kernel's error.
    pub fn open(interface: &str, priority: u8) -> io::Result<Self> {
        let socket = packet_socket(SocketType::RAW)?;
        set_option(&socket, libc::SOL_SOCKET, libc::SO_PRIORITY, i32::from(priority))?;
        let times = libc::sock_txtime { clockid: libc::CLOCK_TAI, flags: libc::SOF_TXTIME_REPORT_ERRORS };
        set_option(&socket, libc::SOL_SOCKET, libc::SO_TXTIME, times)?;
        // With protocol 0 the socket receives nothing.
        bind_to(&socket, interface, 0)?;
        Ok(Self(socket))
    }

    /// The reports about frames that are dropped from now on, and the timestamps of those that are sent; `None` for reports
    /// only.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn reports(&self, stamps: Option<SentStamps>) -> io::Result<SentReports> {
        SentReports::of(&self.0, stamps)
    }

    /// Queues one frame with its launch time, ns on CLOCK_TAI, without blocking.
    ///
    /// # Errors
    /// ENOBUFS if the launch time has passed or a queue is full, EAGAIN if the socket buffer is full, ENETDOWN if the
    /// interface is down, EMSGSIZE beyond the MTU; otherwise the kernel's error.
    #[inline]
    pub fn send(&self, frame: &[u8], launch_ns: i64) -> io::Result<()> {
        let mut control = Control::with_launch(launch_ns);
        let mut data = libc::iovec { iov_base: frame.as_ptr().cast_mut().cast(), iov_len: frame.len() };
        let mut message = message(&raw mut data, &mut control);
        message.msg_controllen = WITH_TIME as _;
        // SAFETY: the frame and the control buffer are live and of the lengths given; the kernel only reads them.
        let sent = unsafe { libc::sendmsg(self.0.as_raw_fd(), &raw const message, libc::MSG_DONTWAIT) };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Queues up to [`BATCH`] frames in their order with one system call, each with its launch time in `launches_ns`,
    /// without blocking. Returns the number of frames that were queued, at least 1.
    ///
    /// # Errors
    /// As [`TimedSender::send`], for the first frame; then none was queued.
    #[inline]
    pub fn send_all(&self, frames: &[&[u8]], launches_ns: &[i64]) -> io::Result<usize> {
        let mut controls = [const { Control { bytes: [0; 64] } }; BATCH];
        for (control, &launch_ns) in controls.iter_mut().zip(launches_ns) {
            *control = Control::with_launch(launch_ns);
        }
        let timed = frames.len().min(launches_ns.len());
        let mut batch = Batch::of(&frames[..timed]);
        batch.with_control(controls.iter_mut().map(|control| control.bytes.as_mut_ptr().cast()).take(timed), WITH_TIME);
        batch.send(&self.0)
    }
}

/// A buffer for one control message: its header (length, level, type) and data.
#[repr(C, align(8))]
struct Control {
    bytes: [u8; 64],
}

impl Default for Control {
    fn default() -> Self {
        Self { bytes: [0; 64] }
    }
}

/// Length of a control message header, and of a message with a time, bytes.
const HEADER: usize = 16;
const WITH_TIME: usize = HEADER + size_of::<u64>();

impl Control {
    #[inline]
    fn with_launch(launch_ns: i64) -> Self {
        let mut control = Self::default();
        control.bytes[..8].copy_from_slice(&WITH_TIME.to_ne_bytes());
        control.bytes[8..12].copy_from_slice(&libc::SOL_SOCKET.to_ne_bytes());
        control.bytes[12..HEADER].copy_from_slice(&libc::SCM_TXTIME.to_ne_bytes());
        control.bytes[HEADER..WITH_TIME].copy_from_slice(&launch_ns.to_ne_bytes());
        control
    }
}

/// A message header with one data buffer and this control buffer.
#[inline]
fn message(data: *mut libc::iovec, control: &mut Control) -> libc::msghdr {
    // SAFETY: msghdr is plain old data, so all zeroes is a valid value.
    let mut message: libc::msghdr = unsafe { mem::zeroed() };
    message.msg_iov = data;
    message.msg_iovlen = 1;
    message.msg_control = control.bytes.as_mut_ptr().cast();
    message.msg_controllen = control.bytes.len() as _;
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_message_matches_the_kernel_layout() {
        let mut control = Control::with_launch(0x0123_4567_89ab_cdef);
        let mut message = message(std::ptr::null_mut(), &mut control);
        message.msg_controllen = WITH_TIME as _;
        // SAFETY: the macros only compute addresses; the header and its eight bytes of data are in the live control
        // buffer.
        unsafe {
            assert_eq!(libc::CMSG_SPACE(crate::convert::size::<u64>()) as usize, WITH_TIME);
            let header = libc::CMSG_FIRSTHDR(&raw const message);
            assert_eq!(((*header).cmsg_level, (*header).cmsg_type), (libc::SOL_SOCKET, 61));
            assert_eq!(libc::CMSG_DATA(header).cast::<i64>().read_unaligned(), 0x0123_4567_89ab_cdef);
            assert!(libc::CMSG_NXTHDR(&raw const message, header).is_null());
        }
    }
}
