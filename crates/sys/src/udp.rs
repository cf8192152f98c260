//! UDP sockets, sockets of ICMP echo requests and of Ethernet frames for real-time threads: no allocation, bounded waits, and the kernel's timestamps of received and sent
//! datagrams.
//!
//! Software timestamps are on CLOCK_REALTIME. A received datagram is stamped when the driver passes it to the network
//! stack, a sent one when the driver takes it. Timestamps of the network card are on the card's own clock.

mod ethernet;
mod ping;

use std::{
    fmt, io,
    net::{SocketAddr, UdpSocket},
    os::fd::AsRawFd,
    time::Duration,
};

pub use ping::{ECHO_REPLY, ECHO_REPLY_V6, ECHO_REQUEST, ECHO_REQUEST_V6, IcmpError, PingLayout};

use crate::{
    control::{Control, ControlData},
    convert,
};

/// Largest payload that fits into one standard Ethernet frame over IPv4, bytes.
pub const ONE_FRAME: usize = 1472;
/// Largest payload of a datagram over IPv4, bytes. It is fragmented if it exceeds one frame.
pub const MAX_PAYLOAD: usize = 65_507;

/// The timestamps to request from the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stamps {
    /// No timestamps.
    None,
    /// Received datagrams only. These timestamps arrive with the datagram and cost little.
    #[default]
    Receive,
    /// Sent datagrams as well. Each of their timestamps wakes the waiting thread once more.
    All,
    /// In addition those of the network card, if its timestamping is enabled.
    Card,
}

impl Stamps {
    /// True if sent datagrams get timestamps.
    #[must_use]
    pub fn of_sent(self) -> bool {
        matches!(self, Self::All | Self::Card)
    }
}

/// A UDP socket, or a socket of ICMP echo requests or Ethernet frames.
#[derive(Debug)]
pub struct DatagramSocket(UdpSocket);

/// A received datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received {
    /// The length, bytes. If the datagram exceeds the buffer, still the full length.
    pub len: usize,
    /// When the kernel received it, ns on CLOCK_REALTIME.
    pub stamp_ns: Option<i64>,
    /// When the network card received it, ns on the card's clock.
    pub card_ns: Option<i64>,
    /// The TCI of the VLAN tag, which the kernel removed from the frame; only of Ethernet sockets.
    pub tci: Option<u16>,
}

/// A message of the error queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Report {
    /// A timestamp of a sent datagram.
    Sent(Sent),
    /// An ICMP error that answered a datagram; only of sockets that request them.
    Icmp(IcmpError),
}

/// A timestamp of a sent datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sent {
    /// The number of the datagram, from 0 since timestamps were enabled.
    pub number: u32,
    /// When it was sent.
    pub stamp: Stamp,
}

/// When a datagram was sent, ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stamp {
    /// When the driver took it, on CLOCK_REALTIME.
    Driver(i64),
    /// When the network card transmitted it, on the card's clock.
    Card(i64),
}

/// The source address of a datagram, as stored by the kernel.
#[derive(Clone, Copy)]
pub struct Sender {
    address: libc::sockaddr_storage,
    length: libc::socklen_t,
}

impl DatagramSocket {
    /// Opens a socket bound to `address`.
    ///
    /// # Errors
    /// EADDRINUSE, EADDRNOTAVAIL, EACCES for a port below 1024; otherwise the kernel's error.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        UdpSocket::bind(address).map(Self)
    }

    /// Opens a socket connected to `peer`; the kernel drops datagrams from other addresses.
    ///
    /// # Errors
    /// ENETUNREACH if there is no route; otherwise the kernel's error.
    pub fn connect(peer: SocketAddr) -> io::Result<Self> {
        let any: SocketAddr = if peer.is_ipv4() { ([0, 0, 0, 0], 0).into() } else { ([0u16; 8], 0).into() };
        let socket = UdpSocket::bind(any)?;
        socket.connect(peer)?;
        Ok(Self(socket))
    }

    /// The bound address.
    ///
    /// # Errors
    /// The kernel's error; none is expected.
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }

    /// Sets how long [`receive`](Self::receive) waits at most; must not be 0.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn set_receive_timeout(&self, timeout: Duration) -> io::Result<()> {
        self.0.set_read_timeout(Some(timeout))
    }

    /// Lets the kernel refuse datagrams that exceed the path MTU instead of fragmenting them.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn forbid_fragments(&self) -> io::Result<()> {
        match self.0.local_addr()? {
            SocketAddr::V4(_) => self.set(libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_DO),
            SocketAddr::V6(_) => self.set(libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_DO),
        }
    }

    /// The largest payload that fits into one frame on the known path to the peer, bytes. Only for connected sockets.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn one_frame(&self) -> io::Result<usize> {
        let (mtu, headers) = match self.0.local_addr()? {
            SocketAddr::V4(_) => (self.get(libc::IPPROTO_IP, libc::IP_MTU)?, 20 + 8),
            SocketAddr::V6(_) => (self.get(libc::IPPROTO_IPV6, libc::IPV6_MTU)?, 40 + 8),
        };
        Ok(usize::try_from(mtu).unwrap_or(0).saturating_sub(headers))
    }

    /// Sets how long a receiving thread polls the device's queue before it sleeps, us.
    ///
    /// The kernel accepts this even if the device does not support it: see [`is_polled`](Self::is_polled).
    ///
    /// # Errors
    /// EPERM without CAP_NET_ADMIN; otherwise the kernel's error.
    pub fn set_busy_poll(&self, us: u32) -> io::Result<()> {
        self.set(libc::SOL_SOCKET, libc::SO_BUSY_POLL, i32::try_from(us).unwrap_or(i32::MAX))
    }

    /// True if the last datagram arrived on a queue that supports busy polling.
    #[must_use]
    pub fn is_polled(&self) -> bool {
        self.get(libc::SOL_SOCKET, libc::SO_INCOMING_NAPI_ID).is_ok_and(|id| id != 0)
    }

    /// Returns and clears the pending error, such as an ICMP error that a datagram caused.
    ///
    /// # Errors
    /// That error: ECONNREFUSED if nothing listens at the peer's port.
    pub fn error(&self) -> io::Result<()> {
        match self.get(libc::SOL_SOCKET, libc::SO_ERROR)? {
            0 => Ok(()),
            number => Err(io::Error::from_raw_os_error(number)),
        }
    }

    /// Requests timestamps from now on. Numbering of sent datagrams restarts at 0.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn set_stamps(&self, stamps: Stamps) -> io::Result<()> {
        let receive = libc::SOF_TIMESTAMPING_SOFTWARE | libc::SOF_TIMESTAMPING_RX_SOFTWARE;
        let send =
            libc::SOF_TIMESTAMPING_TX_SOFTWARE | libc::SOF_TIMESTAMPING_OPT_ID | libc::SOF_TIMESTAMPING_OPT_TSONLY;
        // Without OPT_TX_SWHW, a hardware timestamp would suppress the software one.
        let card = libc::SOF_TIMESTAMPING_RAW_HARDWARE
            | libc::SOF_TIMESTAMPING_RX_HARDWARE
            | libc::SOF_TIMESTAMPING_TX_HARDWARE
            | libc::SOF_TIMESTAMPING_OPT_TX_SWHW;
        let set = |flags: u32| self.set(libc::SOL_SOCKET, libc::SO_TIMESTAMPING, flags.cast_signed());
        match stamps {
            Stamps::None => set(0),
            Stamps::Receive => set(receive),
            // Switching OPT_ID on resets the numbers to 0.
            Stamps::All => set(receive).and_then(|()| set(receive | send)),
            Stamps::Card => set(receive).and_then(|()| set(receive | send | card)),
        }
    }

    /// Sends to the connected peer, without waiting.
    ///
    /// # Errors
    /// ECONNREFUSED if an earlier datagram was rejected (this one was then not sent), EMSGSIZE, ENOBUFS, ENETUNREACH; EAGAIN if
    /// the datagrams before it fill the socket's send buffer, because they wait for the interface or for the address of the
    /// peer; otherwise the kernel's error.
    #[inline]
    pub fn send(&self, payload: &[u8]) -> io::Result<()> {
        // SAFETY: the payload is live and of the given length; the kernel only reads it.
        let sent =
            unsafe { libc::send(self.0.as_raw_fd(), payload.as_ptr().cast(), payload.len(), libc::MSG_DONTWAIT) };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Sends to the source of a received datagram.
    ///
    /// # Errors
    /// The errors of [`send`](Self::send).
    #[inline]
    pub fn answer(&self, payload: &[u8], to: &Sender) -> io::Result<()> {
        // SAFETY: the payload and the address are live and of the given lengths; the kernel only reads them.
        let sent = unsafe {
            libc::sendto(
                self.0.as_raw_fd(),
                payload.as_ptr().cast(),
                payload.len(),
                libc::MSG_DONTWAIT,
                (&raw const to.address).cast(),
                to.length,
            )
        };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Receives one datagram into `buffer` and its source into `from`. Returns `None` on timeout or if interrupted by a
    /// signal. If `wait` is false, returns `None` at once if there is no datagram.
    ///
    /// # Errors
    /// ECONNREFUSED if the peer's machine reported that nothing listens there; otherwise the kernel's error.
    #[inline]
    pub fn receive(&self, buffer: &mut [u8], from: &mut Sender, wait: bool) -> io::Result<Option<Received>> {
        let flags = libc::MSG_TRUNC | if wait { 0 } else { libc::MSG_DONTWAIT };
        let mut control = Control::default();
        let Some((len, length)) = self.message(buffer, &mut from.address, &mut control, flags)? else {
            return Ok(None);
        };
        from.length = length;
        let ControlData { stamp_ns, card_ns, tci, .. } = control.decode();
        Ok(Some(Received { len, stamp_ns, card_ns, tci }))
    }

    /// The next message of the error queue; `None` if there is none.
    ///
    /// # Errors
    /// The kernel's error.
    #[inline]
    pub fn report(&self) -> io::Result<Option<Report>> {
        let mut control = Control::default();
        let mut unused = Sender::default();
        let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
        loop {
            if self.message(&mut [], &mut unused.address, &mut control, flags)?.is_none() {
                return Ok(None);
            }
            let data = control.decode();
            if let Some(error) = data.icmp {
                return Ok(Some(Report::Icmp(error)));
            }
            if let (Some(stamp), Some(number)) = (data.stamp(), data.sent_number) {
                return Ok(Some(Report::Sent(Sent { number, stamp })));
            }
        }
    }

    /// Calls `recvmsg`. Returns the lengths of the datagram and of the source address.
    #[inline]
    fn message(
        &self,
        buffer: &mut [u8],
        from: &mut libc::sockaddr_storage,
        control: &mut Control,
        flags: i32,
    ) -> io::Result<Option<(usize, libc::socklen_t)>> {
        let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
        // SAFETY: msghdr is plain old data, so all zeroes is a valid value.
        let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
        header.msg_name = std::ptr::from_mut(from).cast();
        header.msg_namelen = convert::size::<libc::sockaddr_storage>();
        header.msg_iov = &raw mut part;
        header.msg_iovlen = 1;
        control.attach_to(&mut header);
        // SAFETY: the header points to live memory with correct lengths; the kernel writes at most that much.
        let received = unsafe { libc::recvmsg(self.0.as_raw_fd(), &raw mut header, flags) };
        if received < 0 {
            let error = io::Error::last_os_error();
            return match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(None),
                _ => Err(error),
            };
        }
        control.set_length(&header);
        Ok(Some((received.unsigned_abs(), header.msg_namelen)))
    }

    /// Sets a socket option. `T` must be the kernel's type for it.
    fn set<T: Copy>(&self, level: i32, option: i32, value: T) -> io::Result<()> {
        let length = convert::size::<T>();
        // SAFETY: the value is live and of the given length; the kernel only reads it.
        let answer = unsafe { libc::setsockopt(self.0.as_raw_fd(), level, option, (&raw const value).cast(), length) };
        if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    fn get(&self, level: i32, option: i32) -> io::Result<i32> {
        let mut value = 0i32;
        let mut length = convert::size::<i32>();
        // SAFETY: the value and its length are live; the kernel writes at most `length` bytes.
        let answer =
            unsafe { libc::getsockopt(self.0.as_raw_fd(), level, option, (&raw mut value).cast(), &raw mut length) };
        if answer == 0 { Ok(value) } else { Err(io::Error::last_os_error()) }
    }
}

impl Default for Sender {
    /// An empty address.
    fn default() -> Self {
        // SAFETY: sockaddr_storage is plain old data, so all zeroes is a valid value.
        Self { address: unsafe { std::mem::zeroed() }, length: 0 }
    }
}

impl fmt::Debug for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").field("family", &self.address.ss_family).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
