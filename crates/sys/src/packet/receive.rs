//! Receives frames of one EtherType, each with its VLAN tag and the kernel's timestamp.

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
use crate::convert;

/// Longest wait of one call. Between calls the thread checks whether to stop.
pub(crate) const WAIT: Duration = Duration::from_millis(50);
/// Size of the receive buffer, bytes: one second at 8000 frames/s of 1 KiB each.
const BUFFER_BYTES: i32 = 8 << 20;

/// The method of waiting for a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Poll {
    /// Sleep until a frame arrives, at most 50 ms.
    Sleep,
    /// Check and return at once.
    Spin,
}

/// Receives frames of one EtherType on one interface, except those that this machine sends. Puts the interface into
/// promiscuous mode, because it would otherwise drop streams without a subscriber.
#[derive(Debug)]
pub struct FrameReceiver(OwnedFd);

/// A received frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received {
    /// The length without VLAN tag and FCS, bytes. It exceeds the buffer if the frame was truncated.
    pub length: usize,
    /// The TCI of the VLAN tag, which the kernel removes from the frame; `None` without a tag.
    pub tci: Option<u16>,
    /// When the kernel received the frame, ns on CLOCK_REALTIME.
    pub stamp_ns: Option<i64>,
}

impl FrameReceiver {
    /// Opens a socket for frames of `ethertype`, with or without a VLAN tag, on `interface`. With `busy_poll`, a
    /// blocking call first polls the driver for that long, if the driver supports it.
    ///
    /// # Errors
    /// EPERM without CAP_NET_RAW, ENODEV if there is no such interface, `InvalidInput` if it is not Ethernet; otherwise
    /// the kernel's error.
    pub fn open(interface: &str, ethertype: u16, busy_poll: Option<Duration>) -> io::Result<Self> {
        let socket = packet_socket(SocketType::RAW)?;
        accept_only(&socket, &incoming(&[ethertype])?)?;
        set_option(&socket, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, 1_i32)?;
        if let Some(busy_poll) = busy_poll {
            let us = i32::try_from(busy_poll.as_micros()).unwrap_or(i32::MAX);
            set_option(&socket, libc::SOL_SOCKET, libc::SO_BUSY_POLL, us)?;
        }
        join_promiscuous(&socket, name_to_index(&socket, interface)?.cast_signed())?;
        Self::begin(socket, interface)
    }

    /// Opens a socket for the frames of `ethertype` that this machine sends on `interface`, as they reach the driver.
    /// Frames that bypass the queueing discipline are not seen. Does not change the interface.
    ///
    /// # Errors
    /// The errors of [`open`](Self::open).
    pub fn open_outgoing(interface: &str, ethertype: u16) -> io::Result<Self> {
        let socket = packet_socket(SocketType::RAW)?;
        accept_only(&socket, &outgoing(ethertype))?;
        Self::begin(socket, interface)
    }

    /// Opens a socket for untagged frames of `ethertype` whose first byte after the EtherType is `subtype`, and makes the
    /// interface receive the multicast address `group`. Neither other frames of the EtherType nor sent frames reach it.
    ///
    /// # Errors
    /// The errors of [`open`](Self::open).
    pub fn open_subtype(interface: &str, ethertype: u16, subtype: u8, group: [u8; 6]) -> io::Result<Self> {
        let socket = packet_socket(SocketType::RAW)?;
        accept_only(&socket, &of_subtype(ethertype, subtype))?;
        set_option(&socket, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, 1_i32)?;
        sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, Some(WAIT))?;
        let index = name_to_index(&socket, interface)?.cast_signed();
        join(&socket, index, libc::PACKET_MR_MULTICAST, Some(group))?;
        // Bound to the EtherType, it costs nothing when a frame is sent.
        bind_to(&socket, interface, ethertype)?;
        Ok(Self(socket))
    }

    /// Enables reception.
    fn begin(socket: OwnedFd, interface: &str) -> io::Result<Self> {
        set_option(&socket, libc::SOL_PACKET, libc::PACKET_AUXDATA, 1_i32)?;
        set_option(&socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1_i32)?;
        // SO_RCVBUFFORCE exceeds the system limit but needs CAP_NET_ADMIN; SO_RCVBUF respects the limit.
        set_option(&socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, BUFFER_BYTES)
            .or_else(|_| set_option(&socket, libc::SOL_SOCKET, libc::SO_RCVBUF, BUFFER_BYTES))?;
        sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, Some(WAIT))?;
        // The kernel does not report the VLAN tag to sockets that are bound to the EtherType itself.
        bind_to(&socket, interface, convert::constant(libc::ETH_P_ALL))?;
        Ok(Self(socket))
    }

    /// Receives the next frame; `None` if none arrived in time.
    ///
    /// # Errors
    /// ENETDOWN once when the interface goes down; otherwise the kernel's error.
    #[inline]
    pub fn receive(&self, frame: &mut [u8], poll: Poll) -> io::Result<Option<Received>> {
        let mut control = [0_u64; 16];
        let mut data = libc::iovec { iov_base: frame.as_mut_ptr().cast(), iov_len: frame.len() };
        // SAFETY: msghdr is plain old data, so all zeroes is a valid value.
        let mut message: libc::msghdr = unsafe { mem::zeroed() };
        message.msg_iov = &raw mut data;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size_of_val(&control) as _;
        // MSG_TRUNC makes the kernel return the full length of truncated frames.
        let flags = libc::MSG_TRUNC | if poll == Poll::Spin { libc::MSG_DONTWAIT } else { 0 };
        // SAFETY: the frame and the control buffer are live, writable and of the lengths given in the message.
        let length = unsafe { libc::recvmsg(self.0.as_raw_fd(), &raw mut message, flags) };
        if length < 0 {
            let error = io::Error::last_os_error();
            return match Errno::from_io_error(&error) {
                Some(Errno::AGAIN | Errno::INTR) => Ok(None),
                _ => Err(error),
            };
        }
        let mut received = Received { length: length.cast_unsigned(), tci: None, stamp_ns: None };
        // SAFETY: the kernel has filled in the message, and its control buffer is live until the end of this function.
        unsafe { read_control(&message, &mut received) };
        Ok(Some(received))
    }

    /// A counter of dropped frames, for use on another thread. Create only one, because the kernel resets its counter
    /// on each reading.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn drops(&self) -> io::Result<FrameDrops> {
        Ok(FrameDrops { socket: self.0.try_clone()?, so_far: 0 })
    }
}

/// Counts the frames for which a receiver's buffer had no space.
#[derive(Debug)]
pub struct FrameDrops {
    socket: OwnedFd,
    so_far: u64,
}

impl FrameDrops {
    /// The frames that passed the filter and were dropped so far.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn dropped(&mut self) -> io::Result<u64> {
        let mut statistics = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
        let mut length = convert::length(size_of_val(&statistics));
        let (socket, into) = (self.socket.as_raw_fd(), (&raw mut statistics).cast());
        // SAFETY: the kernel writes at most `length` bytes into a live tpacket_stats.
        let answer =
            unsafe { libc::getsockopt(socket, libc::SOL_PACKET, libc::PACKET_STATISTICS, into, &raw mut length) };
        if answer != 0 {
            return Err(io::Error::last_os_error());
        }
        self.so_far += u64::from(statistics.tp_drops);
        Ok(self.so_far)
    }
}

/// Opens a socket that receives the frames of these EtherTypes with their VLAN tags, and sends frames with `priority`.
///
/// # Errors
/// The errors of [`FrameReceiver::open`], `InvalidInput` for more than [`ETHERTYPES_MAX`] EtherTypes, and EPERM for a
/// priority above 6 without CAP_NET_ADMIN.
pub(crate) fn exchange_socket(interface: &str, ethertypes: &[u16], priority: u8) -> io::Result<OwnedFd> {
    let socket = packet_socket(SocketType::RAW)?;
    accept_only(&socket, &incoming(ethertypes)?)?;
    set_option(&socket, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, 1_i32)?;
    set_option(&socket, libc::SOL_PACKET, libc::PACKET_AUXDATA, 1_i32)?;
    set_option(&socket, libc::SOL_SOCKET, libc::SO_PRIORITY, i32::from(priority))?;
    // The kernel does not report the VLAN tag to sockets that are bound to the EtherType itself.
    bind_to(&socket, interface, convert::constant(libc::ETH_P_ALL))?;
    Ok(socket)
}

/// Keeps the interface in promiscuous mode while the returned descriptor is open.
///
/// # Errors
/// The errors of [`ethernet_index`](super::ethernet_index).
pub(crate) fn enable_promiscuous(interface: &str) -> io::Result<(OwnedFd, u32)> {
    let socket = packet_socket(SocketType::RAW)?;
    let bound = bind_to(&socket, interface, 0)?;
    join_promiscuous(&socket, bound.sll_ifindex)?;
    Ok((socket, bound.sll_ifindex.cast_unsigned()))
}

fn join_promiscuous(socket: &OwnedFd, interface: i32) -> io::Result<()> {
    join(socket, interface, libc::PACKET_MR_PROMISC, None)
}

/// Makes the interface receive all frames, or those to `address`, while the socket is open.
fn join(socket: &OwnedFd, interface: i32, kind: i32, address: Option<[u8; 6]>) -> io::Result<()> {
    let mut membership = libc::packet_mreq {
        mr_ifindex: interface,
        mr_type: convert::constant(kind),
        mr_alen: if address.is_some() { 6 } else { 0 },
        mr_address: [0; 8],
    };
    membership.mr_address[..6].copy_from_slice(&address.unwrap_or_default());
    set_option(socket, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, membership)
}

/// Reads the VLAN tag and the timestamp.
///
/// # Safety
/// `message` must be as `recvmsg` left it, and its control buffer must be live.
#[inline]
unsafe fn read_control(message: &libc::msghdr, received: &mut Received) {
    // SAFETY: the macros stay within the length that the kernel stored; the buffer is live, as required of the caller.
    let mut header = unsafe { libc::CMSG_FIRSTHDR(message) };
    while !header.is_null() {
        // SAFETY: the header is within the buffer; its data has the type given by level and type, and is read
        // unaligned.
        unsafe {
            match ((*header).cmsg_level, (*header).cmsg_type) {
                (libc::SOL_PACKET, libc::PACKET_AUXDATA) => {
                    let auxdata: libc::tpacket_auxdata =
                        libc::CMSG_DATA(header).cast::<libc::tpacket_auxdata>().read_unaligned();
                    received.tci = (auxdata.tp_status & libc::TP_STATUS_VLAN_VALID != 0).then_some(auxdata.tp_vlan_tci);
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
/// Offset of the EtherType after a VLAN tag.
const TAGGED_AT: u32 = 16;
/// Pseudo offset of the packet direction in a filter: SKF_AD_OFF + SKF_AD_PKTTYPE.
const DIRECTION_AT: u32 = (libc::SKF_AD_OFF + libc::SKF_AD_PKTTYPE).cast_unsigned();
/// Packet type of frames that this machine sends.
const PACKET_OUTGOING: u32 = 4;

const LOAD_WORD: u16 = 0x20;
const LOAD_BYTE: u16 = 0x30;
const LOAD_LENGTH: u16 = 0x80;
const LOAD_HALF: u16 = 0x28;
const JUMP_IF_EQUAL: u16 = 0x15;
const JUMP_IF_AT_LEAST: u16 = 0x35;
const RETURN: u16 = 0x06;

fn step(code: u16, jt: u8, jf: u8, k: u32) -> libc::sock_filter {
    libc::sock_filter { code, jt, jf, k }
}

/// Most EtherTypes of one socket: a jump of the filter skips at most 255 steps.
pub const ETHERTYPES_MAX: usize = 255;

/// Accepts all frames of these EtherTypes. The kernel removes the VLAN tag of received frames before the filter runs.
fn incoming(ethertypes: &[u16]) -> io::Result<Vec<libc::sock_filter>> {
    let count = u8::try_from(ethertypes.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    // Each comparison but the last goes on to the next one; the last skips to the refusal.
    let compare = |(&ethertype, after): (&u16, u8)| step(JUMP_IF_EQUAL, after, u8::from(after == 0), ethertype.into());
    let comparisons = ethertypes.iter().zip((0..count).rev()).map(compare);
    let end = [step(RETURN, 0, 0, u32::MAX), step(RETURN, 0, 0, 0)];
    Ok([step(LOAD_HALF, 0, 0, ETHERTYPE_AT)].into_iter().chain(comparisons).chain(end).collect())
}

/// A frame's membership in a group, which decides whether a socket receives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member {
    /// Offset of the 32 bits that identify the group, bytes from the destination address, without a VLAN tag.
    pub group_at: u32,
    /// The value of these bits, big endian.
    pub group: u32,
    /// Offset of the byte that identifies the member.
    pub member_at: u32,
    /// The value of this byte.
    pub member: u8,
}

/// Lets a socket receive the frames of `ethertype`, except those of other members of the group.
///
/// # Errors
/// The kernel's error; none is expected.
pub(crate) fn accept_member(socket: &impl AsRawFd, ethertype: u16, member: Member) -> io::Result<()> {
    accept_only(socket, &of_member(ethertype, member))
}

fn of_member(ethertype: u16, of: Member) -> [libc::sock_filter; 10] {
    [
        step(LOAD_HALF, 0, 0, ETHERTYPE_AT),
        step(JUMP_IF_EQUAL, 0, 7, ethertype.into()),
        // A load beyond the end of a frame would refuse it.
        step(LOAD_LENGTH, 0, 0, 0),
        step(JUMP_IF_AT_LEAST, 0, 4, (of.group_at + 4).max(of.member_at + 1)),
        step(LOAD_WORD, 0, 0, of.group_at),
        step(JUMP_IF_EQUAL, 0, 2, of.group),
        step(LOAD_BYTE, 0, 0, of.member_at),
        step(JUMP_IF_EQUAL, 0, 1, of.member.into()),
        step(RETURN, 0, 0, u32::MAX),
        step(RETURN, 0, 0, 0),
    ]
}

/// Accepts frames of this EtherType whose first byte after it is `subtype`.
fn of_subtype(ethertype: u16, subtype: u8) -> [libc::sock_filter; 6] {
    [
        step(LOAD_HALF, 0, 0, ETHERTYPE_AT),
        step(JUMP_IF_EQUAL, 0, 3, ethertype.into()),
        step(LOAD_BYTE, 0, 0, ETHERTYPE_AT + 2),
        step(JUMP_IF_EQUAL, 0, 1, subtype.into()),
        step(RETURN, 0, 0, u32::MAX),
        step(RETURN, 0, 0, 0),
    ]
}

/// Accepts frames of this EtherType that this machine sends. Their VLAN tag can still be in the frame.
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

/// Attaches a filter; the kernel drops every frame for which it returns 0.
fn accept_only(socket: &impl AsRawFd, steps: &[libc::sock_filter]) -> io::Result<()> {
    let len = u16::try_from(steps.len()).map_err(io::Error::other)?;
    let program = libc::sock_fprog { len, filter: steps.as_ptr().cast_mut() };
    let (value, length) = ((&raw const program).cast(), convert::length(size_of_val(&program)));
    // SAFETY: the program and its steps are live; the kernel copies and checks them and writes to neither.
    let answer =
        unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, value, length) };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
