//! Sends complete frames, each with a launch time.

use std::{
    io, mem,
    os::fd::{AsRawFd, OwnedFd},
    ptr,
};

use rustix::{io::Errno, net::SocketType};

use super::{
    batch::{BATCH, Batch},
    socket::{bind_to, packet_socket, set_option},
};
use crate::native::i32_at;

// Numbers from linux/errqueue.h.
const SO_EE_ORIGIN_TXTIME: u8 = 6;
const SO_EE_CODE_TXTIME_INVALID_PARAM: u8 = 1;
const SO_EE_CODE_TXTIME_MISSED: u8 = 2;

/// Size of the buffer for error reports, bytes: enough for more than 5000 dropped frames.
const REPORTS_BYTES: i32 = 8 << 20;

/// Sends complete frames on one interface, each with its launch time on CLOCK_TAI. The ETF queueing discipline holds a
/// frame until then; other disciplines ignore the time.
#[derive(Debug)]
pub struct TimedSender(OwnedFd);

/// Why ETF dropped a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dropped {
    /// The launch time had passed when the frame was queued, or was before that of a frame already sent.
    Invalid,
    /// The launch time passed while the frame was queued.
    Missed,
}

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
        // Error reports use the receive buffer. SO_RCVBUFFORCE needs CAP_NET_ADMIN, which SO_TXTIME requires anyway.
        set_option(&socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, REPORTS_BYTES)?;
        // With protocol 0 the socket receives nothing.
        bind_to(&socket, interface, 0)?;
        Ok(Self(socket))
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

    /// The next report of a dropped frame; `None` if there is none.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn next_dropped(&self) -> io::Result<Option<Dropped>> {
        loop {
            // The frame itself is not needed.
            let mut nothing = libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 };
            let mut control = Control::default();
            let mut message = message(&raw mut nothing, &mut control);
            let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
            // SAFETY: the control buffer is live, writable and of the length given in the message.
            let received = unsafe { libc::recvmsg(self.0.as_raw_fd(), &raw mut message, flags) };
            if received < 0 {
                let error = io::Error::last_os_error();
                return match Errno::from_io_error(&error) {
                    Some(Errno::AGAIN) => Ok(None),
                    Some(Errno::INTR) => continue,
                    _ => Err(error),
                };
            }
            if let Some(dropped) = control.dropped() {
                return Ok(Some(dropped));
            }
        }
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

    /// The reason in an error report; `None` for other messages.
    fn dropped(&self) -> Option<Dropped> {
        if (i32_at(&self.bytes, 8)?, i32_at(&self.bytes, 12)?) != (libc::SOL_PACKET, libc::PACKET_TX_TIMESTAMP) {
            return None;
        }
        // struct sock_extended_err: errno u32, origin u8, type u8, code u8, etc.
        match (self.bytes[HEADER + 4], self.bytes[HEADER + 6]) {
            (SO_EE_ORIGIN_TXTIME, SO_EE_CODE_TXTIME_INVALID_PARAM) => Some(Dropped::Invalid),
            (SO_EE_ORIGIN_TXTIME, SO_EE_CODE_TXTIME_MISSED) => Some(Dropped::Missed),
            _ => None,
        }
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
        let mut message = message(ptr::null_mut(), &mut control);
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

    /// Decodes an error report as the kernel would send it.
    fn report(level: i32, origin: u8, code: u8) -> Option<Dropped> {
        let mut control = Control::default();
        let mut message = message(ptr::null_mut(), &mut control);
        let error = libc::sock_extended_err {
            ee_errno: 125,
            ee_origin: origin,
            ee_type: 0,
            ee_code: code,
            ee_pad: 0,
            ee_info: 1,
            ee_data: 2,
        };
        // SAFETY: the header is in the live control buffer, which also has space for the report after it.
        unsafe {
            let header = libc::CMSG_FIRSTHDR(&raw mut message);
            (*header).cmsg_len = libc::CMSG_LEN(crate::convert::length(size_of_val(&error))) as _;
            (*header).cmsg_level = level;
            (*header).cmsg_type = libc::PACKET_TX_TIMESTAMP;
            libc::CMSG_DATA(header).cast::<libc::sock_extended_err>().write_unaligned(error);
        }
        control.dropped()
    }

    #[test]
    fn decodes_reports_of_dropped_frames() {
        assert_eq!(report(libc::SOL_PACKET, 6, 1), Some(Dropped::Invalid));
        assert_eq!(report(libc::SOL_PACKET, 6, 2), Some(Dropped::Missed));
        assert_eq!(report(libc::SOL_PACKET, 6, 3), None);
        assert_eq!(report(libc::SOL_PACKET, libc::SO_EE_ORIGIN_TIMESTAMPING, 1), None);
        assert_eq!(report(libc::SOL_IP, 6, 1), None);
        assert_eq!(Control::default().dropped(), None);
    }
}
