//! The socket: memory for frames in chunks of equal length, and the rings that chunks travel on.
//!
//! A chunk belongs to the program or to the kernel. To send, it goes through the ring of frames to send, and comes back
//! through the ring of those done with. To receive, it goes through the fill ring, and comes back with a frame.

use std::{
    io, mem,
    os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
    ptr, thread,
    time::{Duration, Instant},
};

use rustix::io::Errno;

use super::{
    Copying, Step, XdpError,
    ring::{Inlet, Outlet},
};
use crate::region::{Plain, Region};

/// Bytes of a chunk: the shortest that the kernel takes, and enough for a frame of an MTU of 1500.
pub const CHUNK: usize = 2048;
/// Chunks to receive into: one second at 8000 frames a second. One that only sends has them, too, because a driver that does
/// not copy has nothing else to receive into on that queue.
const TO_RECEIVE: u32 = 8192;
/// Room in the fill ring. The kernel tells of a frame before it tells that it has taken the frame's chunk out of that ring, so
/// that a chunk can come back while its old entry still seems to be there.
const TO_FILL: u32 = 2 * TO_RECEIVE;
/// Chunks to send from.
const TO_SEND: u32 = 64;

/// The kernel lets go of a queue a little after the socket on it was closed.
const PATIENCE: Duration = Duration::from_millis(200);

/// A socket bound to a queue; `R` is its ring of frames.
#[derive(Debug)]
pub struct Socket<R> {
    fd: OwnedFd,
    /// Where frames are.
    pub memory: Region,
    /// Chunks for the kernel to receive into.
    pub fill: Inlet<u64>,
    /// Chunks that were sent.
    pub done: Outlet<u64>,
    /// Frames received, or to send.
    pub frames: R,
}

/// A queue of an interface, and how it is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    pub interface: u32,
    pub queue: u32,
    pub copying: Copying,
}

impl Socket<Outlet<libc::xdp_desc>> {
    /// One that receives.
    pub fn receiving(place: Place) -> Result<Self, XdpError> {
        Self::open(place, libc::XDP_RX_RING, TO_RECEIVE, |fd, offsets| {
            Outlet::map(fd, libc::XDP_PGOFF_RX_RING as u64, offsets.rx, TO_RECEIVE)
        })
    }
}

impl Socket<Inlet<libc::xdp_desc>> {
    /// One that sends.
    pub fn sending(place: Place) -> Result<Self, XdpError> {
        Self::open(place, libc::XDP_TX_RING, TO_SEND, |fd, offsets| {
            Inlet::map(fd, libc::XDP_PGOFF_TX_RING as u64, offsets.tx, TO_SEND)
        })
    }

    /// The chunks to send from.
    pub fn chunks(&self) -> impl Iterator<Item = u64> + use<> {
        (TO_RECEIVE..TO_RECEIVE + TO_SEND).map(address)
    }
}

impl<R> Socket<R> {
    fn open(
        place: Place,
        ring: i32,
        size: u32,
        map: impl FnOnce(BorrowedFd, &libc::xdp_mmap_offsets) -> io::Result<R>,
    ) -> Result<Self, XdpError> {
        let fd = socket().map_err(|error| Step::Socket.failed(error))?;
        let laid_out = Self::lay_out(fd, ring, size, map).map_err(|error| Step::Memory.failed(error))?;
        laid_out.bind(place).map_err(|error| Step::Bind.failed(error))?;
        Ok(laid_out)
    }

    fn lay_out(
        fd: OwnedFd,
        ring: i32,
        size: u32,
        map: impl FnOnce(BorrowedFd, &libc::xdp_mmap_offsets) -> io::Result<R>,
    ) -> io::Result<Self> {
        let memory = Region::new((TO_RECEIVE + TO_SEND) as usize * CHUNK)?;
        let told = libc::xdp_umem_reg {
            addr: memory.address(),
            len: memory.len() as u64,
            chunk_size: CHUNK as u32,
            headroom: 0,
            flags: 0,
            tx_metadata_len: 0,
        };
        set_option(&fd, libc::XDP_UMEM_REG, told)?;
        set_option(&fd, libc::XDP_UMEM_FILL_RING, TO_FILL)?;
        set_option(&fd, libc::XDP_UMEM_COMPLETION_RING, TO_SEND)?;
        set_option(&fd, ring, size)?;
        let offsets: libc::xdp_mmap_offsets = option(&fd, libc::XDP_MMAP_OFFSETS)?;
        let mut fill = Inlet::map(&fd, libc::XDP_UMEM_PGOFF_FILL_RING, offsets.fr, TO_FILL)?;
        let done = Outlet::map(&fd, libc::XDP_UMEM_PGOFF_COMPLETION_RING, offsets.cr, TO_SEND)?;
        let frames = map(fd.as_fd(), &offsets)?;
        let is_full = (0..TO_RECEIVE).all(|chunk| fill.put(address(chunk)));
        debug_assert!(is_full, "the ring has room for all of them");
        Ok(Self { fd, memory, fill, done, frames })
    }

    fn bind(&self, place: Place) -> io::Result<()> {
        let copying = match place.copying {
            Copying::AsOffered => 0,
            Copying::Always => libc::XDP_COPY,
            Copying::Never => libc::XDP_ZEROCOPY,
        };
        let address = libc::sockaddr_xdp {
            sxdp_family: libc::AF_XDP as u16,
            sxdp_flags: libc::XDP_USE_NEED_WAKEUP | copying,
            sxdp_ifindex: place.interface,
            sxdp_queue_id: place.queue,
            sxdp_shared_umem_fd: 0,
        };
        let began = Instant::now();
        loop {
            let (at, length) = ((&raw const address).cast(), size_of_val(&address) as libc::socklen_t);
            // SAFETY: the address is live and of the length given; the kernel only reads it.
            if unsafe { libc::bind(self.fd.as_raw_fd(), at, length) } == 0 {
                return Ok(());
            }
            let error = io::Error::last_os_error();
            if Errno::from_io_error(&error) != Some(Errno::BUSY) || began.elapsed() > PATIENCE {
                return Err(error);
            }
            thread::sleep(PATIENCE / 20);
        }
    }

    /// Whether frames reach the driver without a copy.
    pub fn is_zero_copy(&self) -> io::Result<bool> {
        let told: libc::xdp_options = option(&self.fd, libc::XDP_OPTIONS)?;
        Ok(told.flags & libc::XDP_OPTIONS_ZEROCOPY != 0)
    }

    /// Has the kernel look at the ring of frames to send; never waits.
    #[inline]
    pub fn wake_to_send(&self) -> io::Result<()> {
        // SAFETY: nothing is handed over.
        let answer = unsafe { libc::sendto(self.fd.as_raw_fd(), ptr::null(), 0, libc::MSG_DONTWAIT, ptr::null(), 0) };
        if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Has the kernel look at the fill ring; never waits.
    #[inline]
    pub fn wake_to_receive(&self) -> io::Result<()> {
        let (nothing, nobody) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: no memory is handed over.
        let answer =
            unsafe { libc::recvfrom(self.fd.as_raw_fd(), nothing, 0, libc::MSG_DONTWAIT, nobody, ptr::null_mut()) };
        if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

impl<R> AsFd for Socket<R> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Where the chunk with this number begins.
fn address(chunk: u32) -> u64 {
    u64::from(chunk) * CHUNK as u64
}

fn socket() -> io::Result<OwnedFd> {
    // SAFETY: no memory is handed over.
    let fd = unsafe { libc::socket(libc::AF_XDP, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just opened it for us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn set_option<T: Copy>(fd: &OwnedFd, option: i32, value: T) -> io::Result<()> {
    let (value, length) = ((&raw const value).cast(), size_of::<T>() as libc::socklen_t);
    // SAFETY: the value is live and of the length given; the kernel only reads it, and checks the length.
    let answer = unsafe { libc::setsockopt(fd.as_raw_fd(), libc::SOL_XDP, option, value, length) };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// What the kernel tells; fields that it does not know are 0.
pub fn option<T: Plain>(fd: impl AsFd, option: i32) -> io::Result<T> {
    // SAFETY: of a plain value any bits are valid, zeroes as well.
    let mut told: T = unsafe { mem::zeroed() };
    let mut length = size_of::<T>() as libc::socklen_t;
    let fd = fd.as_fd().as_raw_fd();
    // SAFETY: the kernel writes at most `length` bytes into a live value of that length.
    let answer = unsafe { libc::getsockopt(fd, libc::SOL_XDP, option, (&raw mut told).cast(), &raw mut length) };
    if answer == 0 { Ok(told) } else { Err(io::Error::last_os_error()) }
}
