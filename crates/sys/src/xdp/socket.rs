//! The AF_XDP socket: frame memory in chunks of equal length, and the rings that pass chunks between program and
//! kernel.
//!
//! Each chunk belongs to the program or to the kernel. For sending it goes to the kernel through the transmit ring and
//! returns through the completion ring. For receiving it goes to the kernel through the fill ring and returns with a
//! frame through the receive ring.

use std::{
    io, mem,
    os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
    ptr, thread,
    time::{Duration, Instant},
};

use rustix::io::Errno;

use super::{
    Copying, Step, XdpError,
    ring::{Consumer, Producer},
};
use crate::convert;
use crate::region::{Plain, Region};

/// Length of a chunk, bytes: the minimum of the kernel, and enough for a frame with an MTU of 1500.
pub const CHUNK: usize = 2048;
/// Chunks for receiving: one second at 8000 frames/s. A socket that only sends also has them, because a zero-copy
/// driver has no other memory for frames received on that queue.
const TO_RECEIVE: u32 = 8192;
/// Size of the fill ring. The kernel publishes a frame before it publishes that its chunk was taken from the fill ring,
/// so a chunk can be returned while its old entry still seems to be there.
const TO_FILL: u32 = 2 * TO_RECEIVE;
/// Chunks for sending.
const TO_SEND: u32 = 64;

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
    pub memory: Region,
    /// The fill ring: chunks for the kernel to receive into.
    pub fill: Producer<u64>,
    /// The receive ring.
    pub frames: Consumer<libc::xdp_desc>,
}

/// The sending half of a socket.
#[derive(Debug)]
pub struct SendHalf {
    fd: OwnedFd,
    /// The chunks for sending.
    memory: Region,
    /// The completion ring: chunks that were sent.
    pub done: Consumer<u64>,
    /// The transmit ring.
    pub frames: Producer<libc::xdp_desc>,
}

/// Opens a receiving socket.
pub fn receiving(binding: QueueBinding) -> Result<ReceiveHalf, XdpError> {
    let Unbound { fd, to_receive: memory, fill, .. } = Unbound::open()?;
    let frames = receive_ring(&fd)?;
    bind(&fd, binding, None)?;
    Ok(ReceiveHalf { fd, memory, fill, frames })
}

/// Opens a sending socket.
pub fn sending(binding: QueueBinding) -> Result<SendHalf, XdpError> {
    let Unbound { fd, to_send: memory, done, .. } = Unbound::open()?;
    let frames = send_ring(&fd)?;
    bind(&fd, binding, None)?;
    Ok(SendHalf { fd, memory, done, frames })
}

/// Opens a socket for both directions, whose halves two threads can use at the same time.
///
/// These are two sockets that share the memory and the queue: `poll` on a socket with a transmit ring would also send,
/// so a receiving thread would interfere with the sending one. The sending socket is bound first, because kernels before
/// 6.0 do not allocate what sending needs for a second one.
pub fn both(binding: QueueBinding) -> Result<(SendHalf, ReceiveHalf), XdpError> {
    let Unbound { fd, to_receive, to_send, fill, done } = Unbound::open()?;
    let to_be_sent = send_ring(&fd)?;
    bind(&fd, binding, None)?;
    let second = socket().map_err(|error| Step::Socket.failed(error))?;
    let received = receive_ring(&second)?;
    bind(&second, binding, Some(fd.as_fd()))?;
    let send = SendHalf { fd, memory: to_send, done, frames: to_be_sent };
    Ok((send, ReceiveHalf { fd: second, memory: to_receive, fill, frames: received }))
}

/// A socket with its memory, not bound yet.
struct Unbound {
    fd: OwnedFd,
    to_receive: Region,
    to_send: Region,
    fill: Producer<u64>,
    done: Consumer<u64>,
}

impl Unbound {
    fn open() -> Result<Self, XdpError> {
        let fd = socket().map_err(|error| Step::Socket.failed(error))?;
        Self::map_memory(fd).map_err(|error| Step::Memory.failed(error))
    }

    fn map_memory(fd: OwnedFd) -> io::Result<Self> {
        let memory = Region::new((TO_RECEIVE + TO_SEND) as usize * CHUNK)?;
        let umem = libc::xdp_umem_reg {
            addr: memory.address(),
            len: memory.len() as u64,
            chunk_size: convert::length(CHUNK),
            headroom: 0,
            flags: 0,
            tx_metadata_len: 0,
        };
        set_option(&fd, libc::XDP_UMEM_REG, umem)?;
        set_option(&fd, libc::XDP_UMEM_FILL_RING, TO_FILL)?;
        set_option(&fd, libc::XDP_UMEM_COMPLETION_RING, TO_SEND)?;
        let offsets: libc::xdp_mmap_offsets = option(&fd, libc::XDP_MMAP_OFFSETS)?;
        let mut fill = Producer::map(&fd, libc::XDP_UMEM_PGOFF_FILL_RING, offsets.fr, TO_FILL)?;
        let done = Consumer::map(&fd, libc::XDP_UMEM_PGOFF_COMPLETION_RING, offsets.cr, TO_SEND)?;
        let is_full = (0..TO_RECEIVE).all(|chunk| fill.put(address(chunk)));
        debug_assert!(is_full, "the fill ring has space for all chunks");
        let (to_receive, to_send) = memory.split_at(TO_RECEIVE as usize * CHUNK).ok_or(io::ErrorKind::InvalidInput)?;
        Ok(Self { fd, to_receive, to_send, fill, done })
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

    /// The addresses of the chunks for sending.
    pub fn chunks(&self) -> impl Iterator<Item = u64> + use<> {
        (TO_RECEIVE..TO_RECEIVE + TO_SEND).map(address)
    }

    /// Copies a frame to a chunk; returns false if it does not fit.
    #[inline]
    #[must_use]
    pub fn write(&mut self, chunk: u64, frame: &[u8]) -> bool {
        self.memory.write(convert::offset(chunk - address(TO_RECEIVE)), frame)
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

fn socket() -> io::Result<OwnedFd> {
    // SAFETY: the call passes no memory.
    let fd = unsafe { libc::socket(libc::AF_XDP, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
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
