//! Sending whole frames, each with the moment at which it is to leave.

use std::{
    io, mem,
    os::fd::{AsRawFd, OwnedFd},
    ptr,
};

use rustix::{io::Errno, net::SocketType};

use super::socket::{bind_to, packet_socket, set_option};
use crate::native::i32_at;

// Numbers of linux/errqueue.h.
const SO_EE_ORIGIN_TXTIME: u8 = 6;
const SO_EE_CODE_TXTIME_INVALID_PARAM: u8 = 1;
const SO_EE_CODE_TXTIME_MISSED: u8 = 2;

/// Room for what the kernel reports, bytes: of more than 5000 frames that were dropped.
const REPORTS_BYTES: i32 = 8 << 20;

/// Sends frames on one interface exactly as they are given, each with its launch time on CLOCK_TAI. The queueing discipline
/// ETF keeps a frame until then; any other takes no notice of the time.
#[derive(Debug)]
pub struct TimedSender(OwnedFd);

/// Why the discipline dropped a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dropped {
    /// Its time had passed when it was handed over, or lay before that of a frame that had left.
    Invalid,
    /// Its time passed while it waited.
    Missed,
}

impl TimedSender {
    /// Opens a socket on the interface called `interface`. Its frames have the kernel's `priority` 0 to 6, by which queues
    /// are chosen.
    ///
    /// # Errors
    /// EPERM without CAP_NET_RAW and CAP_NET_ADMIN, ENODEV when there is no such interface, `InvalidInput` when it is not
    /// Ethernet, and what else the kernel answered.
    pub fn open(interface: &str, priority: u8) -> io::Result<Self> {
        let socket = packet_socket(SocketType::RAW)?;
        set_option(&socket, libc::SOL_SOCKET, libc::SO_PRIORITY, i32::from(priority))?;
        let times = libc::sock_txtime { clockid: libc::CLOCK_TAI, flags: libc::SOF_TXTIME_REPORT_ERRORS };
        set_option(&socket, libc::SOL_SOCKET, libc::SO_TXTIME, times)?;
        // Reports wait where frames that come in would. Beyond the system's limit with CAP_NET_ADMIN, which is there.
        set_option(&socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, REPORTS_BYTES)?;
        // Protocol 0: nothing is received.
        bind_to(&socket, interface, 0)?;
        Ok(Self(socket))
    }

    /// Hands over one frame that is to leave at `launch_ns`, ns on CLOCK_TAI; never waits.
    ///
    /// # Errors
    /// ENOBUFS when the discipline took it not, because its time had passed, or a queue is full; EAGAIN when the socket's
    /// buffer is full, ENETDOWN while the interface is down, EMSGSIZE beyond the MTU, and what else the kernel answered.
    #[inline]
    pub fn send(&self, frame: &[u8], launch_ns: i64) -> io::Result<()> {
        let mut control = Control::with_launch(launch_ns);
        let mut data = libc::iovec { iov_base: frame.as_ptr().cast_mut().cast(), iov_len: frame.len() };
        let mut message = message(&raw mut data, &mut control);
        message.msg_controllen = WITH_TIME as _;
        // SAFETY: frame and control buffer are live and of the lengths given in the message; the kernel only reads them.
        let sent = unsafe { libc::sendmsg(self.0.as_raw_fd(), &raw const message, libc::MSG_DONTWAIT) };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// The next frame that was dropped, and has not been told yet; `None` when there is none.
    ///
    /// # Errors
    /// What the kernel answered.
    pub fn next_dropped(&self) -> io::Result<Option<Dropped>> {
        loop {
            // Where the frame itself would be, which is of no interest.
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

/// What goes beside a frame: one message, whose header is its length with this, level and type.
#[repr(C, align(8))]
struct Control {
    bytes: [u8; 64],
}

impl Default for Control {
    fn default() -> Self {
        Self { bytes: [0; 64] }
    }
}

/// Length of the header of a control message, and of one that carries a time, bytes.
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

    /// What a report of the kernel tells; `None` for one of another kind.
    fn dropped(&self) -> Option<Dropped> {
        if (i32_at(&self.bytes, 8)?, i32_at(&self.bytes, 12)?) != (libc::SOL_PACKET, libc::PACKET_TX_TIMESTAMP) {
            return None;
        }
        // struct sock_extended_err: errno u32, origin u8, type u8, code u8, …
        match (self.bytes[HEADER + 4], self.bytes[HEADER + 6]) {
            (SO_EE_ORIGIN_TXTIME, SO_EE_CODE_TXTIME_INVALID_PARAM) => Some(Dropped::Invalid),
            (SO_EE_ORIGIN_TXTIME, SO_EE_CODE_TXTIME_MISSED) => Some(Dropped::Missed),
            _ => None,
        }
    }
}

/// A message of one piece of data and this control buffer.
#[inline]
fn message(data: *mut libc::iovec, control: &mut Control) -> libc::msghdr {
    // SAFETY: msghdr is plain old data, for which all zeroes is a valid value.
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
    fn a_time_lies_where_the_kernel_looks_for_it() {
        let mut control = Control::with_launch(0x0123_4567_89ab_cdef);
        let mut message = message(ptr::null_mut(), &mut control);
        message.msg_controllen = WITH_TIME as _;
        // SAFETY: the macros compute only; the header lies in the live control buffer, and eight bytes of data behind it.
        unsafe {
            assert_eq!(libc::CMSG_SPACE(size_of::<u64>() as u32) as usize, WITH_TIME);
            let header = libc::CMSG_FIRSTHDR(&raw const message);
            assert_eq!(((*header).cmsg_level, (*header).cmsg_type), (libc::SOL_SOCKET, 61));
            assert_eq!(libc::CMSG_DATA(header).cast::<i64>().read_unaligned(), 0x0123_4567_89ab_cdef);
            assert!(libc::CMSG_NXTHDR(&raw const message, header).is_null());
        }
    }

    /// What the kernel would report.
    fn report(level: i32, origin: u8, code: u8) -> Option<Dropped> {
        let mut control = Control::default();
        let mut message = message(ptr::null_mut(), &mut control);
        let told = libc::sock_extended_err {
            ee_errno: 125,
            ee_origin: origin,
            ee_type: 0,
            ee_code: code,
            ee_pad: 0,
            ee_info: 1,
            ee_data: 2,
        };
        // SAFETY: the header lies in the live control buffer, which has room for it and for what is reported behind it.
        unsafe {
            let header = libc::CMSG_FIRSTHDR(&raw mut message);
            (*header).cmsg_len = libc::CMSG_LEN(size_of_val(&told) as u32) as _;
            (*header).cmsg_level = level;
            (*header).cmsg_type = libc::PACKET_TX_TIMESTAMP;
            libc::CMSG_DATA(header).cast::<libc::sock_extended_err>().write_unaligned(told);
        }
        control.dropped()
    }

    #[test]
    fn reports_tell_why_a_frame_was_dropped() {
        assert_eq!(report(libc::SOL_PACKET, 6, 1), Some(Dropped::Invalid));
        assert_eq!(report(libc::SOL_PACKET, 6, 2), Some(Dropped::Missed));
        assert_eq!(report(libc::SOL_PACKET, 6, 3), None);
        assert_eq!(report(libc::SOL_PACKET, libc::SO_EE_ORIGIN_TIMESTAMPING, 1), None);
        assert_eq!(report(libc::SOL_IP, 6, 1), None);
        assert_eq!(Control::default().dropped(), None);
    }
}
