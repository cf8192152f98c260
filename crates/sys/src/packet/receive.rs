//! Receiving frames of one EtherType, each with its VLAN tag and the kernel's stamp.

use std::{
    io, mem,
    os::fd::{AsRawFd, OwnedFd},
    time::Duration,
};

use rustix::{
    io::Errno,
    net::{SocketType, netdevice::name_to_index, sockopt},
};

use super::socket::{bind_to, packet_socket, set_option};

/// Longest wait of one call, so that its thread can look whether to end.
pub(crate) const WAIT: Duration = Duration::from_millis(50);
/// Room for frames that wait, bytes: one second at 8000 frames a second and 1 KiB each.
const BUFFER_BYTES: i32 = 8 << 20;

/// How to wait for a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Poll {
    /// Sleep until it comes, at most 50 ms.
    Sleep,
    /// Look, and come back at once.
    Look,
}

/// Receives frames of one EtherType on one interface. Frames that this machine sends are not among them. The interface
/// takes every address in meanwhile (promiscuous), because it would drop streams that nobody subscribed to.
#[derive(Debug)]
pub struct FrameReceiver(OwnedFd);

/// A frame that came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received {
    /// Its length without VLAN tag and check sequence, bytes; more than the buffer holds where it was cut off.
    pub length: usize,
    /// The 16 bits of the VLAN tag, which the kernel takes out of the frame; `None` for none.
    pub tci: Option<u16>,
    /// When the kernel saw it, ns on CLOCK_REALTIME.
    pub stamp_ns: Option<i64>,
}

impl FrameReceiver {
    /// Opens a socket for frames of `ethertype`, behind a VLAN tag or without, on the interface called `interface`; with
    /// `busy_poll` a sleeping call first asks the driver for so long, where the driver can be asked.
    ///
    /// # Errors
    /// EPERM without CAP_NET_RAW, ENODEV when there is no such interface, `InvalidInput` when it is not Ethernet,
    /// and what else the kernel answered.
    pub fn open(interface: &str, ethertype: u16, busy_poll: Option<Duration>) -> io::Result<Self> {
        let socket = packet_socket(SocketType::RAW)?;
        accept_only(&socket, &incoming(ethertype))?;
        set_option(&socket, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, 1_i32)?;
        if let Some(busy_poll) = busy_poll {
            let us = i32::try_from(busy_poll.as_micros()).unwrap_or(i32::MAX);
            set_option(&socket, libc::SOL_SOCKET, libc::SO_BUSY_POLL, us)?;
        }
        join_all(&socket, name_to_index(&socket, interface)?.cast_signed())?;
        Self::begin(socket, interface)
    }

    /// Opens a socket for the frames of `ethertype` that this machine sends on the interface called `interface`, as they are
    /// handed to the driver. Frames that pass by the queueing discipline pass by here, too. Nothing is changed about the
    /// interface.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_outgoing(interface: &str, ethertype: u16) -> io::Result<Self> {
        let socket = packet_socket(SocketType::RAW)?;
        accept_only(&socket, &outgoing(ethertype))?;
        Self::begin(socket, interface)
    }

    /// Has the socket receive.
    fn begin(socket: OwnedFd, interface: &str) -> io::Result<Self> {
        set_option(&socket, libc::SOL_PACKET, libc::PACKET_AUXDATA, 1_i32)?;
        set_option(&socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1_i32)?;
        // Beyond the system's limit with CAP_NET_ADMIN, up to it without.
        set_option(&socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, BUFFER_BYTES)
            .or_else(|_| set_option(&socket, libc::SOL_SOCKET, libc::SO_RCVBUF, BUFFER_BYTES))?;
        sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, Some(WAIT))?;
        // A socket bound to the EtherType itself would not be told the VLAN tag.
        bind_to(&socket, interface, libc::ETH_P_ALL as u16)?;
        Ok(Self(socket))
    }

    /// Takes the next frame; `None` where none came in time.
    ///
    /// # Errors
    /// ENETDOWN once when the interface goes down, and what else the kernel answered.
    #[inline]
    pub fn receive(&self, frame: &mut [u8], poll: Poll) -> io::Result<Option<Received>> {
        let mut control = [0_u64; 16];
        let mut data = libc::iovec { iov_base: frame.as_mut_ptr().cast(), iov_len: frame.len() };
        // SAFETY: msghdr is plain old data, for which all zeroes is a valid value.
        let mut message: libc::msghdr = unsafe { mem::zeroed() };
        message.msg_iov = &raw mut data;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size_of_val(&control) as _;
        // Of a frame that was cut off, tell the whole length.
        let flags = libc::MSG_TRUNC | if poll == Poll::Look { libc::MSG_DONTWAIT } else { 0 };
        // SAFETY: frame and control buffer are live, writable and of the lengths given in the message.
        let length = unsafe { libc::recvmsg(self.0.as_raw_fd(), &raw mut message, flags) };
        if length < 0 {
            let error = io::Error::last_os_error();
            return match Errno::from_io_error(&error) {
                Some(Errno::AGAIN | Errno::INTR) => Ok(None),
                _ => Err(error),
            };
        }
        let mut received = Received { length: length as usize, tci: None, stamp_ns: None };
        // SAFETY: the kernel has filled in the message; its control buffer lives until the end of this function.
        unsafe { read_control(&message, &mut received) };
        Ok(Some(received))
    }

    /// What tells how many frames were dropped, while the receiver is elsewhere. One at a time, since the kernel tells each
    /// but once.
    ///
    /// # Errors
    /// What the kernel answered.
    pub fn drops(&self) -> io::Result<FrameDrops> {
        Ok(FrameDrops { socket: self.0.try_clone()?, so_far: 0 })
    }
}

/// Tells how many frames found no room in a receiver's buffer.
#[derive(Debug)]
pub struct FrameDrops {
    socket: OwnedFd,
    so_far: u64,
}

impl FrameDrops {
    /// So many so far, of those that passed the receiver's filter.
    ///
    /// # Errors
    /// What the kernel answered.
    pub fn dropped(&mut self) -> io::Result<u64> {
        let mut told = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
        let mut length = size_of_val(&told) as libc::socklen_t;
        let (socket, into) = (self.socket.as_raw_fd(), (&raw mut told).cast());
        // SAFETY: the kernel writes at most `length` bytes into a live tpacket_stats.
        let answer =
            unsafe { libc::getsockopt(socket, libc::SOL_PACKET, libc::PACKET_STATISTICS, into, &raw mut length) };
        if answer != 0 {
            return Err(io::Error::last_os_error());
        }
        self.so_far += u64::from(told.tp_drops);
        Ok(self.so_far)
    }
}

/// Has the interface take in frames to every address (promiscuous) while what comes back is open.
///
/// # Errors
/// As [`ethernet_index`](super::ethernet_index).
pub(crate) fn take_all_in(interface: &str) -> io::Result<(OwnedFd, u32)> {
    let socket = packet_socket(SocketType::RAW)?;
    let bound = bind_to(&socket, interface, 0)?;
    join_all(&socket, bound.sll_ifindex)?;
    Ok((socket, bound.sll_ifindex.cast_unsigned()))
}

fn join_all(socket: &OwnedFd, interface: i32) -> io::Result<()> {
    let promiscuous = libc::packet_mreq {
        mr_ifindex: interface,
        mr_type: libc::PACKET_MR_PROMISC as u16,
        mr_alen: 0,
        mr_address: [0; 8],
    };
    set_option(socket, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, promiscuous)
}

/// Reads VLAN tag and stamp.
///
/// # Safety
/// `message` is as `recvmsg` left it, and its control buffer is live.
#[inline]
unsafe fn read_control(message: &libc::msghdr, received: &mut Received) {
    // SAFETY: the macros walk the control buffer within the length that the kernel left; by the caller it is live.
    let mut header = unsafe { libc::CMSG_FIRSTHDR(message) };
    while !header.is_null() {
        // SAFETY: the macro gave a header within the buffer; what follows it is of the type that level and type say, which
        // the kernel wrote, and is copied without regard to its alignment.
        unsafe {
            match ((*header).cmsg_level, (*header).cmsg_type) {
                (libc::SOL_PACKET, libc::PACKET_AUXDATA) => {
                    let told: libc::tpacket_auxdata =
                        libc::CMSG_DATA(header).cast::<libc::tpacket_auxdata>().read_unaligned();
                    received.tci = (told.tp_status & libc::TP_STATUS_VLAN_VALID != 0).then_some(told.tp_vlan_tci);
                }
                (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => {
                    let stamp: libc::timespec = libc::CMSG_DATA(header).cast::<libc::timespec>().read_unaligned();
                    received.stamp_ns = Some(stamp.tv_sec * 1_000_000_000 + stamp.tv_nsec);
                }
                _ => {}
            }
            header = libc::CMSG_NXTHDR(message, header);
        }
    }
}

const ETHERTYPE_AT: u32 = 12;
/// Where it stands behind a VLAN tag.
const TAGGED_AT: u32 = 16;
/// Where the kernel tells a filter which way a frame goes: SKF_AD_OFF and SKF_AD_PKTTYPE.
const DIRECTION_AT: u32 = (libc::SKF_AD_OFF + libc::SKF_AD_PKTTYPE) as u32;
/// A frame that this machine sends.
const PACKET_OUTGOING: u32 = 4;

const LOAD_BYTE: u16 = 0x30;
const LOAD_HALF: u16 = 0x28;
const JUMP_IF_EQUAL: u16 = 0x15;
const RETURN: u16 = 0x06;

fn step(code: u16, jt: u8, jf: u8, k: u32) -> libc::sock_filter {
    libc::sock_filter { code, jt, jf, k }
}

/// All frames of this EtherType. VLAN tags are out of a frame that comes in before the filter looks.
fn incoming(ethertype: u16) -> [libc::sock_filter; 4] {
    [
        step(LOAD_HALF, 0, 0, ETHERTYPE_AT),
        step(JUMP_IF_EQUAL, 0, 1, ethertype.into()),
        step(RETURN, 0, 0, u32::MAX),
        step(RETURN, 0, 0, 0),
    ]
}

/// Those of them that this machine sends, which may have their VLAN tag still within.
fn outgoing(ethertype: u16) -> [libc::sock_filter; 8] {
    [
        step(LOAD_BYTE, 0, 0, DIRECTION_AT),
        step(JUMP_IF_EQUAL, 0, 5, PACKET_OUTGOING),
        step(LOAD_HALF, 0, 0, ETHERTYPE_AT),
        step(JUMP_IF_EQUAL, 2, 0, ethertype.into()),
        step(LOAD_HALF, 0, 0, TAGGED_AT),
        step(JUMP_IF_EQUAL, 0, 1, ethertype.into()),
        step(RETURN, 0, 0, u32::MAX),
        step(RETURN, 0, 0, 0),
    ]
}

/// Has the kernel drop every frame for which the filter does not return a length.
fn accept_only(socket: &OwnedFd, steps: &[libc::sock_filter]) -> io::Result<()> {
    let program = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_ptr().cast_mut() };
    let (value, length) = ((&raw const program).cast(), size_of_val(&program) as libc::socklen_t);
    // SAFETY: the program and its steps are live; the kernel copies and checks them, and writes to neither.
    let answer =
        unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, value, length) };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
