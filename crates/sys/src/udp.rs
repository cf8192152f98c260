//! Datagrams: a UDP socket for threads that neither allocate nor wait for longer than they were told to, and the kernel's
//! own stamps of when a datagram came in and went out.
//!
//! The stamps are of CLOCK_REALTIME, made in software: of a datagram that came in, when the driver handed it to the
//! network stack; of one that went out, when the driver took it. Those that a network card makes are of the card's own clock.

mod control;

use std::{
    fmt, io,
    net::{SocketAddr, UdpSocket},
    os::fd::AsRawFd,
    time::Duration,
};

use control::{Control, Told};

/// Largest payload of a datagram that fits into one Ethernet frame of the usual size over IPv4, bytes.
pub const ONE_FRAME: usize = 1472;
/// Largest payload of a datagram over IPv4, bytes; more than one frame's is cut into fragments.
pub const MAX_PAYLOAD: usize = 65_507;

/// Which stamps to ask the kernel for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stamps {
    /// None.
    None,
    /// Of what comes in; they come with it and cost little.
    #[default]
    Receive,
    /// Of what goes out as well; each wakes the thread that waits on the socket once more.
    All,
    /// All, and those of the network card beside them, where that was set to make any.
    Card,
}

impl Stamps {
    /// Whether what goes out is stamped.
    #[must_use]
    pub fn of_sent(self) -> bool {
        matches!(self, Self::All | Self::Card)
    }
}

/// A UDP socket.
#[derive(Debug)]
pub struct DatagramSocket(UdpSocket);

/// A datagram that came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received {
    /// Its length, bytes; of one longer than the buffer that of the whole.
    pub len: usize,
    /// When the kernel had it, ns on CLOCK_REALTIME.
    pub stamp_ns: Option<i64>,
    /// When the network card had it, ns on the card's clock.
    pub card_ns: Option<i64>,
}

/// A stamp of a datagram that went out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sent {
    /// Which datagram since stamps were asked for: 0 is the first.
    pub number: u32,
    /// When it left.
    pub stamp: Stamp,
}

/// When a datagram left, ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stamp {
    /// The driver took it, on CLOCK_REALTIME.
    Driver(i64),
    /// The network card put it on the wire, on the card's clock.
    Card(i64),
}

/// Where a datagram came from, as the kernel writes it.
#[derive(Clone, Copy)]
pub struct Sender {
    address: libc::sockaddr_storage,
    length: libc::socklen_t,
}

impl DatagramSocket {
    /// Opens a socket that is bound to `address`.
    ///
    /// # Errors
    /// EADDRINUSE, EADDRNOTAVAIL, EACCES for a port below 1024, and what else the kernel answered.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        UdpSocket::bind(address).map(Self)
    }

    /// Opens a socket that talks to `peer` alone: the kernel drops what comes from elsewhere.
    ///
    /// # Errors
    /// ENETUNREACH where no route leads there, and what else the kernel answered.
    pub fn connect(peer: SocketAddr) -> io::Result<Self> {
        let any: SocketAddr = if peer.is_ipv4() { ([0, 0, 0, 0], 0).into() } else { ([0u16; 8], 0).into() };
        let socket = UdpSocket::bind(any)?;
        socket.connect(peer)?;
        Ok(Self(socket))
    }

    /// The address that it is bound to.
    ///
    /// # Errors
    /// What the kernel answered; it has no reason to refuse.
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }

    /// How long [`receive`](Self::receive) waits at most; longer than 0.
    ///
    /// # Errors
    /// What the kernel answered.
    pub fn set_patience(&self, patience: Duration) -> io::Result<()> {
        self.0.set_read_timeout(Some(patience))
    }

    /// Lets the kernel refuse datagrams that need more than one frame on their way, instead of cutting them.
    ///
    /// # Errors
    /// What the kernel answered.
    pub fn forbid_fragments(&self) -> io::Result<()> {
        match self.0.local_addr()? {
            SocketAddr::V4(_) => self.set(libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_DO),
            SocketAddr::V6(_) => self.set(libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_DO),
        }
    }

    /// The largest payload that fits into one frame on the way to the peer, as far as the kernel knows, bytes; of a socket
    /// that talks to one peer.
    ///
    /// # Errors
    /// What the kernel answered.
    pub fn one_frame(&self) -> io::Result<usize> {
        let (mtu, headers) = match self.0.local_addr()? {
            SocketAddr::V4(_) => (self.get(libc::IPPROTO_IP, libc::IP_MTU)?, 20 + 8),
            SocketAddr::V6(_) => (self.get(libc::IPPROTO_IPV6, libc::IPV6_MTU)?, 40 + 8),
        };
        Ok(usize::try_from(mtu).unwrap_or(0).saturating_sub(headers))
    }

    /// Lets a thread that receives look at the device's queue itself for so long before it sleeps, us.
    ///
    /// The kernel takes the wish whether the device can or not: see [`is_polled`](Self::is_polled).
    ///
    /// # Errors
    /// EPERM without CAP_NET_ADMIN, and what else the kernel answered.
    pub fn set_busy_poll(&self, us: u32) -> io::Result<()> {
        self.set(libc::SOL_SOCKET, libc::SO_BUSY_POLL, us.min(i32::MAX as u32) as i32)
    }

    /// Whether what came in last came by a queue that can be polled.
    #[must_use]
    pub fn is_polled(&self) -> bool {
        self.get(libc::SOL_SOCKET, libc::SO_INCOMING_NAPI_ID).is_ok_and(|id| id != 0)
    }

    /// Asks for stamps from now on. Datagrams that go out are numbered anew.
    ///
    /// # Errors
    /// What the kernel answered.
    pub fn set_stamps(&self, stamps: Stamps) -> io::Result<()> {
        let receive = libc::SOF_TIMESTAMPING_SOFTWARE | libc::SOF_TIMESTAMPING_RX_SOFTWARE;
        let send =
            libc::SOF_TIMESTAMPING_TX_SOFTWARE | libc::SOF_TIMESTAMPING_OPT_ID | libc::SOF_TIMESTAMPING_OPT_TSONLY;
        // Without the last, a card's stamp would keep the driver's from being told.
        let card = libc::SOF_TIMESTAMPING_RAW_HARDWARE
            | libc::SOF_TIMESTAMPING_RX_HARDWARE
            | libc::SOF_TIMESTAMPING_TX_HARDWARE
            | libc::SOF_TIMESTAMPING_OPT_TX_SWHW;
        let set = |flags: u32| self.set(libc::SOL_SOCKET, libc::SO_TIMESTAMPING, flags.cast_signed());
        match stamps {
            Stamps::None => set(0),
            Stamps::Receive => set(receive),
            // Numbers begin at 0 when they are switched on.
            Stamps::All => set(receive).and_then(|()| set(receive | send)),
            Stamps::Card => set(receive).and_then(|()| set(receive | send | card)),
        }
    }

    /// Sends to the peer.
    ///
    /// # Errors
    /// ECONNREFUSED where an earlier datagram found nobody there; this one was not sent then. EMSGSIZE, ENOBUFS,
    /// ENETUNREACH, and what else the kernel answered.
    #[inline]
    pub fn send(&self, payload: &[u8]) -> io::Result<()> {
        // SAFETY: the payload is live and of the length given; the kernel only reads it.
        let sent = unsafe { libc::send(self.0.as_raw_fd(), payload.as_ptr().cast(), payload.len(), 0) };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Sends to who sent something.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    #[inline]
    pub fn answer(&self, payload: &[u8], to: &Sender) -> io::Result<()> {
        // SAFETY: payload and address are live and of the lengths given; the kernel only reads them.
        let sent = unsafe {
            libc::sendto(
                self.0.as_raw_fd(),
                payload.as_ptr().cast(),
                payload.len(),
                0,
                (&raw const to.address).cast(),
                to.length,
            )
        };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Receives one datagram into `buffer`, and who sent it into `from`. `None` when none came within the patience, or a
    /// signal came in between; with `wait` false when none is there.
    ///
    /// # Errors
    /// ECONNREFUSED where the peer's machine said that nobody listens there, and what else the kernel answered.
    #[inline]
    pub fn receive(&self, buffer: &mut [u8], from: &mut Sender, wait: bool) -> io::Result<Option<Received>> {
        let flags = libc::MSG_TRUNC | if wait { 0 } else { libc::MSG_DONTWAIT };
        let mut control = Control::default();
        let Some((len, length)) = self.message(buffer, &mut from.address, &mut control, flags)? else {
            return Ok(None);
        };
        from.length = length;
        let Told { stamp_ns, card_ns, .. } = control.told();
        Ok(Some(Received { len, stamp_ns, card_ns }))
    }

    /// The next stamp of a datagram that went out; `None` when none is there.
    ///
    /// # Errors
    /// What the kernel answered.
    #[inline]
    pub fn sent(&self) -> io::Result<Option<Sent>> {
        let mut control = Control::default();
        let mut nobody = Sender::default();
        let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
        loop {
            if self.message(&mut [], &mut nobody.address, &mut control, flags)?.is_none() {
                return Ok(None);
            }
            let told = control.told();
            // Each comes by itself.
            let stamp = told.stamp_ns.map(Stamp::Driver).or(told.card_ns.map(Stamp::Card));
            if let (Some(stamp), Some(number)) = (stamp, told.sent_number) {
                return Ok(Some(Sent { number, stamp }));
            }
        }
    }

    /// One `recvmsg`: the length of the datagram and of the sender's address.
    #[inline]
    fn message(
        &self,
        buffer: &mut [u8],
        from: &mut libc::sockaddr_storage,
        control: &mut Control,
        flags: i32,
    ) -> io::Result<Option<(usize, libc::socklen_t)>> {
        let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
        // SAFETY: msghdr is plain old data, for which all zeroes is a valid value.
        let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
        header.msg_name = std::ptr::from_mut(from).cast();
        header.msg_namelen = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
        header.msg_iov = &raw mut part;
        header.msg_iovlen = 1;
        control.lend_to(&mut header);
        // SAFETY: the header points to live memory of ours, each part with its length; the kernel writes at most that.
        let received = unsafe { libc::recvmsg(self.0.as_raw_fd(), &raw mut header, flags) };
        if received < 0 {
            let error = io::Error::last_os_error();
            return match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(None),
                _ => Err(error),
            };
        }
        control.take_back(&header);
        Ok(Some((received.unsigned_abs(), header.msg_namelen)))
    }

    fn set(&self, level: i32, option: i32, value: i32) -> io::Result<()> {
        let length = size_of::<i32>() as libc::socklen_t;
        // SAFETY: the value is live and of the length given; the kernel only reads it.
        let answer = unsafe { libc::setsockopt(self.0.as_raw_fd(), level, option, (&raw const value).cast(), length) };
        if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    fn get(&self, level: i32, option: i32) -> io::Result<i32> {
        let mut value = 0i32;
        let mut length = size_of::<i32>() as libc::socklen_t;
        // SAFETY: value and length are live; the kernel writes at most `length` bytes.
        let answer =
            unsafe { libc::getsockopt(self.0.as_raw_fd(), level, option, (&raw mut value).cast(), &raw mut length) };
        if answer == 0 { Ok(value) } else { Err(io::Error::last_os_error()) }
    }
}

impl Default for Sender {
    /// Nobody.
    fn default() -> Self {
        // SAFETY: sockaddr_storage is plain old data, for which all zeroes is a valid value.
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
