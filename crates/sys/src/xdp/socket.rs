//! The AF_XDP sockets of a queue: frame memory in chunks of equal length, and the rings that pass chunks between program and
//! kernel.
//!
//! Each chunk belongs to the program or to the kernel. For sending it goes to the kernel through the transmit ring and
//! returns through the completion ring. For receiving it goes to the kernel through the fill ring and returns with a
//! frame through the receive ring.

use std::{
    io, mem,
    os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
    ptr,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use rustix::io::Errno;

use super::{
    Copying, Step, XdpError,
    ring::{Consumer, Producer},
    shared::{FillRing, SendChunks, TO_SEND},
};
use crate::convert;
use crate::region::{Plain, ReadRegion, Region};

/// Length of a chunk, bytes: the minimum of the kernel, and enough for a frame with an MTU of 1500.
pub const CHUNK: usize = 2048;
/// Chunks for receiving: one second at 8000 frames/s. A socket that only sends also has them, because a zero-copy
/// driver has no other memory for frames received on that queue.
const TO_RECEIVE: u32 = 8192;
/// Size of the fill ring. The kernel publishes a frame before it publishes that its chunk was taken from the fill ring,
/// so a chunk can be returned while its old entry still seems to be there.
const TO_FILL: u32 = 2 * TO_RECEIVE;
/// Maximum time to retry binding. The kernel releases a queue some time after its previous socket was closed.
const BIND_TIMEOUT: Duration = Duration::from_millis(200);

/// A queue of an interface and the requested copy mode.
#[derive(Debug, Clone, Copy)]
pub struct QueueBinding {
    pub interface: u32,
    pub queue: u32,
    pub copying: Copying,
}

/// The receiving half of a socket.
#[derive(Debug)]
pub struct ReceiveHalf {
    fd: OwnedFd,
    /// The chunks for receiving.
    pub memory: Arc<ReadRegion>,
    /// The fill ring of the queue.
    pub fill: Arc<FillRing>,
    /// Chunks whose frames were copied out, and which the kernel does not have yet.
    pub read: Vec<u64>,
    /// The receive ring.
    pub frames: Consumer<libc::xdp_desc>,
}

/// The sending half of a socket.
#[derive(Debug)]
pub struct SendHalf {
    fd: OwnedFd,
    /// Number of the socket on the queue.
    number: usize,
    /// The chunks of this socket.
    memory: Region,
    chunks: Arc<SendChunks>,
    /// The transmit ring.
    pub frames: Producer<libc::xdp_desc>,
}

/// Opens a receiving socket.
pub fn receiving(binding: QueueBinding) -> Result<ReceiveHalf, XdpError> {
    let (fd, memory) = open(1)?;
    let half = memory.receive_half(fd)?;
    bind(&half.fd, binding, None)?;
    Ok(half)
}

/// Opens a sending socket.
pub fn sending(binding: QueueBinding) -> Result<SendHalf, XdpError> {
    let (fd, mut memory) = open(1)?;
    let half = memory.send_half(fd)?;
    bind(&half.fd, binding, None)?;
    Ok(half)
}

/// Opens this number of sockets for both directions, at least one. A thread can use each half at the same time as others
/// use theirs.
///
/// A pair of halves is two sockets, because `poll` on a socket with a transmit ring would also send, so a receiving thread
/// would interfere with the sending one. All share the memory and the queue. A sending socket is bound first, because
/// kernels before 6.0 do not allocate what sending needs for a second one.
pub fn both(binding: QueueBinding, sockets: usize) -> Result<Vec<(SendHalf, ReceiveHalf)>, XdpError> {
    let (first, mut memory) = open(sockets)?;
    let owner = first.try_clone().map_err(|error| Step::Socket.failed(error))?;
    let mut unused = Some(first);
    let mut pairs = Vec::with_capacity(sockets);
    for _ in 0..sockets {
        let shared = unused.is_none().then(|| owner.as_fd());
        let send = memory.send_half(unused.take().map_or_else(socket, Ok)?)?;
        bind(&send.fd, binding, shared)?;
        let receive = memory.receive_half(socket()?)?;
        bind(&receive.fd, binding, Some(owner.as_fd()))?;
        pairs.push((send, receive));
    }
    Ok(pairs)
}

/// Opens a socket and registers memory for this number of sockets. The socket is not bound yet.
fn open(sockets: usize) -> Result<(OwnedFd, Memory), XdpError> {
    let fd = socket()?;
    let memory = Memory::register(&fd, sockets).map_err(|error| Step::Memory.failed(error))?;
    Ok((fd, memory))
}

/// The memory and the rings that the sockets of a queue share.
struct Memory {
    to_receive: Arc<ReadRegion>,
    fill: Arc<FillRing>,
    /// The chunks for sending of each socket that has no sending half yet; the last socket first.
    to_send: Vec<Region>,
    chunks: Arc<SendChunks>,
}

impl Memory {
    fn register(fd: &OwnedFd, sockets: usize) -> io::Result<Self> {
        let to_send = u32::try_from(sockets).ok().and_then(|sockets| sockets.checked_mul(TO_SEND));
        let to_send = to_send.ok_or(io::ErrorKind::InvalidInput)?;
        let memory = Region::new((TO_RECEIVE + to_send) as usize * CHUNK)?;
        let umem = libc::xdp_umem_reg {
            addr: memory.address(),
            len: memory.len() as u64,
            chunk_size: convert::length(CHUNK),
            headroom: 0,
            flags: 0,
            tx_metadata_len: 0,
        };
        set_option(fd, libc::XDP_UMEM_REG, umem)?;
        let done_size = to_send.next_power_of_two();
        set_option(fd, libc::XDP_UMEM_FILL_RING, TO_FILL)?;
        set_option(fd, libc::XDP_UMEM_COMPLETION_RING, done_size)?;
        let offsets: libc::xdp_mmap_offsets = option(fd, libc::XDP_MMAP_OFFSETS)?;
        let mut fill = Producer::map(fd, libc::XDP_UMEM_PGOFF_FILL_RING, offsets.fr, TO_FILL)?;
        let done = Consumer::map(fd, libc::XDP_UMEM_PGOFF_COMPLETION_RING, offsets.cr, done_size)?;
        let is_full = (0..TO_RECEIVE).all(|chunk| fill.put(address(chunk)));
        debug_assert!(is_full, "the fill ring has space for all chunks");
        let (to_receive, mut rest) = memory.split_at(TO_RECEIVE as usize * CHUNK).ok_or(io::ErrorKind::InvalidInput)?;
        let mut to_send = Vec::with_capacity(sockets);
        for _ in 1..sockets {
            let (part, others) = rest.split_at(TO_SEND as usize * CHUNK).ok_or(io::ErrorKind::InvalidInput)?;
            to_send.push(part);
            rest = others;
        }
        to_send.push(rest);
        to_send.reverse();
        let chunks = SendChunks::new(done, sockets, address(TO_RECEIVE), CHUNK as u64);
        Ok(Self {
            to_receive: Arc::new(ReadRegion::new(to_receive)),
            fill: Arc::new(FillRing::new(fill)),
            to_send,
            chunks: Arc::new(chunks),
        })
    }

    fn receive_half(&self, fd: OwnedFd) -> Result<ReceiveHalf, XdpError> {
        let frames = receive_ring(&fd)?;
        let (memory, fill) = (self.to_receive.clone(), self.fill.clone());
        Ok(ReceiveHalf { fd, memory, fill, read: Vec::with_capacity(TO_RECEIVE as usize), frames })
    }

    /// The sending half of the next socket.
    fn send_half(&mut self, fd: OwnedFd) -> Result<SendHalf, XdpError> {
        let frames = send_ring(&fd)?;
        let left = self.to_send.len();
        let memory = self.to_send.pop().ok_or_else(|| Step::Memory.failed(io::ErrorKind::InvalidInput))?;
        let number = self.chunks.sockets() - left;
        Ok(SendHalf { fd, number, memory, chunks: self.chunks.clone(), frames })
    }
}

fn receive_ring(fd: &OwnedFd) -> Result<Consumer<libc::xdp_desc>, XdpError> {
    let map = || {
        set_option(fd, libc::XDP_RX_RING, TO_RECEIVE)?;
        let offsets: libc::xdp_mmap_offsets = option(fd, libc::XDP_MMAP_OFFSETS)?;
        Consumer::map(fd, libc::XDP_PGOFF_RX_RING as u64, offsets.rx, TO_RECEIVE)
    };
    map().map_err(|error: io::Error| Step::Memory.failed(error))
}

fn send_ring(fd: &OwnedFd) -> Result<Producer<libc::xdp_desc>, XdpError> {
    let map = || {
        set_option(fd, libc::XDP_TX_RING, TO_SEND)?;
        let offsets: libc::xdp_mmap_offsets = option(fd, libc::XDP_MMAP_OFFSETS)?;
        Producer::map(fd, libc::XDP_PGOFF_TX_RING as u64, offsets.tx, TO_SEND)
    };
    map().map_err(|error: io::Error| Step::Memory.failed(error))
}

/// Binds a socket to a queue. With `shared`, it uses the memory, the fill ring, the completion ring and the mode of that
/// socket, which must be bound to the same queue.
fn bind(fd: &OwnedFd, binding: QueueBinding, shared: Option<BorrowedFd>) -> Result<(), XdpError> {
    let copying = match binding.copying {
        Copying::AsOffered => 0,
        Copying::Always => libc::XDP_COPY,
        Copying::Never => libc::XDP_ZEROCOPY,
    };
    let address = libc::sockaddr_xdp {
        sxdp_family: convert::constant(libc::AF_XDP),
        sxdp_flags: if shared.is_some() { libc::XDP_SHARED_UMEM } else { libc::XDP_USE_NEED_WAKEUP | copying },
        sxdp_ifindex: binding.interface,
        sxdp_queue_id: binding.queue,
        sxdp_shared_umem_fd: shared.map_or(0, |shared| shared.as_raw_fd().cast_unsigned()),
    };
    let began = Instant::now();
    loop {
        let (at, length) = ((&raw const address).cast(), convert::length(size_of_val(&address)));
        // SAFETY: the address is live and of the length given; the kernel only reads it.
        if unsafe { libc::bind(fd.as_raw_fd(), at, length) } == 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        if Errno::from_io_error(&error) != Some(Errno::BUSY) || began.elapsed() > BIND_TIMEOUT {
            return Err(Step::Bind.failed(error));
        }
        thread::sleep(BIND_TIMEOUT / 20);
    }
}

/// True if the driver is in zero-copy mode.
fn is_zero_copy(fd: &OwnedFd) -> Result<bool, XdpError> {
    let options: libc::xdp_options = option(fd, libc::XDP_OPTIONS).map_err(|error| Step::Bind.failed(error))?;
    Ok(options.flags & libc::XDP_OPTIONS_ZEROCOPY != 0)
}

impl ReceiveHalf {
    /// True if the driver is in zero-copy mode.
    pub fn is_zero_copy(&self) -> Result<bool, XdpError> {
        is_zero_copy(&self.fd)
    }

    /// Returns the chunk at this address of its memory to the kernel.
    #[inline]
    pub fn give_back(&mut self, address: u64) {
        debug_assert!(self.read.len() < self.read.capacity(), "space for all chunks");
        self.read.push(address / CHUNK as u64 * CHUNK as u64);
        self.fill.put(&mut self.read);
    }

    /// Asks the kernel to process the fill ring, without blocking.
    #[inline]
    pub fn wake_to_receive(&self) -> io::Result<()> {
        let (no_data, no_address) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: the call passes no memory.
        let answer =
            unsafe { libc::recvfrom(self.fd.as_raw_fd(), no_data, 0, libc::MSG_DONTWAIT, no_address, ptr::null_mut()) };
        if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

impl AsFd for ReceiveHalf {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl SendHalf {
    /// True if the driver is in zero-copy mode.
    pub fn is_zero_copy(&self) -> Result<bool, XdpError> {
        is_zero_copy(&self.fd)
    }

    /// Takes a free chunk; `None` if the kernel has all of them.
    #[inline]
    pub fn take_chunk(&self) -> Option<u32> {
        self.chunks.take(self.number)
    }

    /// Returns a chunk that the kernel does not have.
    #[inline]
    pub fn give_back(&self, chunk: u32) {
        self.chunks.give_back(self.number, chunk);
    }

    /// The address of a chunk, for the transmit ring.
    #[inline]
    pub fn address(&self, chunk: u32) -> u64 {
        self.chunks.address(self.number, chunk)
    }

    /// Copies a frame to a chunk; returns false if it does not fit.
    #[inline]
    #[must_use]
    pub fn write(&mut self, chunk: u32, frame: &[u8]) -> bool {
        self.memory.write(chunk as usize * CHUNK, frame)
    }

    /// Asks the kernel to process the transmit ring, without blocking.
    #[inline]
    pub fn wake_to_send(&self) -> io::Result<()> {
        // SAFETY: the call passes no memory.
        let answer = unsafe { libc::sendto(self.fd.as_raw_fd(), ptr::null(), 0, libc::MSG_DONTWAIT, ptr::null(), 0) };
        if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

/// The address of a chunk in the frame memory.
fn address(chunk: u32) -> u64 {
    u64::from(chunk) * CHUNK as u64
}

fn socket() -> Result<OwnedFd, XdpError> {
    // SAFETY: the call passes no memory.
    let fd = unsafe { libc::socket(libc::AF_XDP, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
    if fd < 0 {
        return Err(Step::Socket.failed(io::Error::last_os_error()));
    }
    // SAFETY: the kernel has just opened this descriptor for us, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn set_option<T: Copy>(fd: &OwnedFd, option: i32, value: T) -> io::Result<()> {
    let (value, length) = ((&raw const value).cast(), convert::size::<T>());
    // SAFETY: the value is live and of the given length; the kernel only reads it, and checks the length.
    let answer = unsafe { libc::setsockopt(fd.as_raw_fd(), libc::SOL_XDP, option, value, length) };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Reads a socket option. Fields that the kernel does not know are 0.
pub fn option<T: Plain>(fd: impl AsFd, option: i32) -> io::Result<T> {
    // SAFETY: every bit pattern of a plain value is valid, including zeroes.
    let mut value: T = unsafe { mem::zeroed() };
    let mut length = convert::size::<T>();
    let fd = fd.as_fd().as_raw_fd();
    // SAFETY: the kernel writes at most `length` bytes into a live value of that length.
    let answer = unsafe { libc::getsockopt(fd, libc::SOL_XDP, option, (&raw mut value).cast(), &raw mut length) };
    if answer == 0 { Ok(value) } else { Err(io::Error::last_os_error()) }
}
