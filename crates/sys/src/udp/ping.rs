//! Sockets of ICMP echo requests (RFC 792, RFC 4443).

use std::{
    fmt, io,
    net::{SocketAddr, UdpSocket},
    os::fd::OwnedFd,
};

use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, ipproto, socket_with};

use super::DatagramSocket;

/// `type` of an ICMP echo request.
pub const ECHO_REQUEST: u8 = 8;
/// `type` of an ICMP echo reply.
pub const ECHO_REPLY: u8 = 0;
/// `type` of an ICMPv6 echo request.
pub const ECHO_REQUEST_V6: u8 = 128;
/// `type` of an ICMPv6 echo reply.
pub const ECHO_REPLY_V6: u8 = 129;

/// Option of raw sockets that blocks types of ICMP messages, and its level (linux/icmp.h).
const SOL_RAW: i32 = 255;
const ICMP_FILTER: i32 = 1;
/// The same for ICMPv6 (linux/icmpv6.h).
const ICMPV6_FILTER: i32 = 1;

/// The layout of the messages of a ping socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PingLayout {
    /// True for ICMPv6.
    pub v6: bool,
    /// True if a received message begins with the IPv4 header.
    pub has_ip_header: bool,
    /// The identifier of requests and replies.
    pub identifier: u16,
}

/// An ICMP error that answered a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IcmpError {
    /// True for ICMPv6.
    pub v6: bool,
    /// `type` of the ICMP message.
    pub kind: u8,
    /// `code` of the ICMP message.
    pub code: u8,
}

impl DatagramSocket {
    /// Opens a socket for echo requests to `peer`, whose port is ignored. `identifier` is used unless the kernel chooses
    /// one.
    ///
    /// An ordinary user may open the kernel's ping socket if `net.ipv4.ping_group_range` includes one of the user's
    /// groups; otherwise a raw socket is opened, which needs CAP_NET_RAW.
    ///
    /// # Errors
    /// EPERM or EACCES without these rights, ENETUNREACH if there is no route; otherwise the kernel's error.
    pub fn ping(peer: SocketAddr, identifier: u16) -> io::Result<(Self, PingLayout)> {
        let (family, protocol) = match peer {
            SocketAddr::V4(_) => (AddressFamily::INET, ipproto::ICMP),
            SocketAddr::V6(_) => (AddressFamily::INET6, ipproto::ICMPV6),
        };
        let open = |kind| socket_with(family, kind, SocketFlags::CLOEXEC, Some(protocol));
        let (socket, is_raw): (OwnedFd, bool) = match open(SocketType::DGRAM) {
            Ok(socket) => (socket, false),
            Err(_) => (open(SocketType::RAW)?, true),
        };
        let mut to = peer;
        to.set_port(0);
        connect(&socket, &to)?;
        let socket = Self(UdpSocket::from(socket));
        let v6 = peer.is_ipv6();
        if v6 {
            socket.set(libc::IPPROTO_IPV6, libc::IPV6_RECVERR, 1)?;
        } else {
            socket.set(libc::IPPROTO_IP, libc::IP_RECVERR, 1)?;
        }
        if is_raw {
            socket.receive_only_replies(v6)?;
        }
        // The kernel uses its port number as the identifier.
        let identifier = if is_raw { identifier } else { socket.local_address()?.port() };
        Ok((socket, PingLayout { v6, has_ip_header: is_raw && !v6, identifier }))
    }

    /// Blocks all messages of a raw socket except echo replies: a set bit blocks a type.
    fn receive_only_replies(&self, v6: bool) -> io::Result<()> {
        if v6 {
            let mut blocked = [u32::MAX; 8];
            blocked[usize::from(ECHO_REPLY_V6) / 32] &= !(1 << (ECHO_REPLY_V6 % 32));
            self.set(libc::IPPROTO_ICMPV6, ICMPV6_FILTER, blocked)
        } else {
            self.set(SOL_RAW, ICMP_FILTER, !(1u32 << ECHO_REPLY))
        }
    }
}

impl IcmpError {
    /// The number of this error, for [`from_number`](Self::from_number).
    #[must_use]
    pub fn number(self) -> i32 {
        i32::from_be_bytes([0, u8::from(self.v6), self.kind, self.code])
    }

    /// The error with this number.
    #[must_use]
    pub fn from_number(number: i32) -> Self {
        let [_, v6, kind, code] = number.to_be_bytes();
        Self { v6: v6 != 0, kind, code }
    }
}

impl fmt::Display for IcmpError {
    /// Writes the meaning by RFC 792, RFC 1812 and RFC 4443, otherwise the numbers.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { v6, kind, code } = *self;
        let text = match (v6, kind, code) {
            (false, 3, 0) | (true, 1, 0) => "network unreachable",
            (false, 3, 1) => "host unreachable",
            (true, 1, 3) => "address unreachable",
            (false, 3, 2) => "protocol unreachable",
            (false, 3, 4) | (true, 2, _) => "packet too big",
            (false, 3, 9 | 10 | 13) | (true, 1, 1) => "administratively prohibited",
            (false, 11, _) | (true, 3, _) => "time to live exceeded",
            _ => return write!(f, "ICMP{} type {kind} code {code}", if v6 { "v6" } else { "" }),
        };
        f.write_str(text)
    }
}
