//! Sends complete frames through memory shared with the kernel: `PACKET_TX_RING` with `TPACKET_V2`.

use std::{
    io, ptr,
    sync::atomic::{AtomicU32, Ordering},
};

use rustix::{
    fd::{AsRawFd, OwnedFd},
    mm::{MapFlags, ProtFlags, mmap, munmap},
    net::SocketType,
};

use super::socket::{bind_to, packet_socket, set_option};
use crate::convert;

/// Slots of the ring: 32 ms at 8000 frames/s.
const SLOTS: usize = 256;
/// Size of a slot, bytes: the header and the longest Ethernet frame with a VLAN tag.
const SLOT_BYTES: usize = 2048;
/// Size of the blocks in which the kernel allocates the ring. They must be whole pages, which have up to 64 KiB on
/// aarch64.
const BLOCK_BYTES: usize = 64 << 10;
const RING_BYTES: usize = SLOTS * SLOT_BYTES;

/// Offset of the frame in its slot: after the header, whose length is a multiple of TPACKET_ALIGNMENT.
const FRAME_AT: usize = size_of::<libc::tpacket2_hdr>();
/// Longest frame, bytes.
const MAX_FRAME_BYTES: usize = SLOT_BYTES - FRAME_AT;

/// Status bits of a slot that the kernel owns.
const KERNEL_OWNED: u32 = libc::TP_STATUS_SEND_REQUEST | libc::TP_STATUS_SENDING | libc::TP_STATUS_WRONG_FORMAT;
/// Status bits of a slot whose frame the kernel did not take.
const NOT_SENT: u32 = libc::TP_STATUS_SEND_REQUEST | libc::TP_STATUS_WRONG_FORMAT;

/// Sends complete frames on one interface from a ring of slots that the kernel reads.
#[derive(Debug)]
pub struct RingSender {
    socket: OwnedFd,
    slots: *mut u8,
    /// The slot for the next frame, in the order that the kernel expects.
    next: usize,
}

// SAFETY: the ring belongs to this value alone on whichever thread owns it; the kernel's status words are accessed
// atomically.
unsafe impl Send for RingSender {}

impl RingSender {
    /// Opens a socket on `interface`. `priority` (0 to 6) is the socket priority that selects the queue.
    ///
    /// # Errors
    /// EPERM without CAP_NET_RAW, ENODEV if there is no such interface, `InvalidInput` if it is not Ethernet, ENOMEM
    /// without 512 KiB for the ring; otherwise the kernel's error.
    pub fn open(interface: &str, priority: u8) -> io::Result<Self> {
        let socket = packet_socket(SocketType::RAW)?;
        set_option(&socket, libc::SOL_SOCKET, libc::SO_PRIORITY, i32::from(priority))?;
        set_option(&socket, libc::SOL_PACKET, libc::PACKET_VERSION, libc::tpacket_versions::TPACKET_V2 as i32)?;
        let ring = libc::tpacket_req {
            tp_block_size: convert::length(BLOCK_BYTES),
            tp_block_nr: convert::length(RING_BYTES / BLOCK_BYTES),
            tp_frame_size: convert::length(SLOT_BYTES),
            tp_frame_nr: convert::length(SLOTS),
        };
        set_option(&socket, libc::SOL_PACKET, libc::PACKET_TX_RING, ring)?;
        // With protocol 0 the socket receives nothing.
        bind_to(&socket, interface, 0)?;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: with a null address and without MAP_FIXED, the kernel picks a range that nothing else uses.
        let slots = unsafe { mmap(ptr::null_mut(), RING_BYTES, access, MapFlags::SHARED, &socket, 0) }?;
        Ok(Self { socket, slots: slots.cast(), next: 0 })
    }

    /// Puts one frame into the ring and asks the kernel to send it, without blocking.
    ///
    /// # Errors
    /// ENOBUFS if the ring or a queue is full, EAGAIN if the socket buffer is full, ENETDOWN if the interface is down,
    /// EMSGSIZE if the frame exceeds the MTU or a slot; otherwise the kernel's error. On error, the frame was not sent
    /// and will not be sent later.
    #[inline]
    pub fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        self.send_all(&[frame]).map(|_| ())
    }

    /// Puts frames into the ring in their order, and asks the kernel once to send them, without blocking. Returns the
    /// number of frames that were sent, at least 1; the frame after them, if there is one, was refused or not tried, and
    /// will not be sent later.
    ///
    /// # Errors
    /// As [`RingSender::send`], for the first frame; then none was sent.
    #[inline]
    pub fn send_all(&mut self, frames: &[&[u8]]) -> io::Result<usize> {
        let mut put = 0;
        let mut refused = libc::ENOBUFS;
        for frame in frames.iter().take(SLOTS) {
            if frame.len() > MAX_FRAME_BYTES {
                refused = libc::EMSGSIZE;
                break;
            }
            let slot = (self.next + put) % SLOTS;
            if self.status(slot).load(Ordering::Acquire) & KERNEL_OWNED != 0 {
                break;
            }
            // SAFETY: `slot` is below SLOTS and the length was checked, so both are within the mapping; the kernel does
            // not use the slot.
            unsafe {
                let slot = self.slots.add(slot * SLOT_BYTES);
                (*slot.cast::<libc::tpacket2_hdr>()).tp_len = convert::length(frame.len());
                ptr::copy_nonoverlapping(frame.as_ptr(), slot.add(FRAME_AT), frame.len());
            }
            self.status(slot).store(libc::TP_STATUS_SEND_REQUEST, Ordering::Release);
            put += 1;
        }
        if put == 0 {
            return Err(io::Error::from_raw_os_error(refused));
        }
        // SAFETY: the length is 0, so nothing is read at the null address.
        let sent = unsafe { libc::send(self.socket.as_raw_fd(), ptr::null(), 0, libc::MSG_DONTWAIT) };
        let error = io::Error::last_os_error();
        let slots = (self.next..self.next + put).map(|slot| slot % SLOTS);
        let taken = slots.clone().take_while(|&slot| self.status(slot).load(Ordering::Acquire) & NOT_SENT == 0).count();
        // Otherwise the kernel would send these frames together with the next one.
        for slot in slots.skip(taken) {
            self.status(slot).store(libc::TP_STATUS_AVAILABLE, Ordering::Release);
        }
        self.next = (self.next + taken) % SLOTS;
        match taken {
            0 => Err(if sent < 0 { error } else { io::Error::from_raw_os_error(libc::EAGAIN) }),
            taken => Ok(taken),
        }
    }

    /// The status word of a slot, below [`SLOTS`].
    #[inline]
    fn status(&self, slot: usize) -> &AtomicU32 {
        let slot = slot % SLOTS;
        // SAFETY: `slot` is below SLOTS, so the word is within the mapping, aligned and initialised; both sides access
        // it atomically.
        unsafe { AtomicU32::from_ptr(self.slots.add(slot * SLOT_BYTES).cast()) }
    }
}

impl Drop for RingSender {
    fn drop(&mut self) {
        // SAFETY: the range was mapped by `open`, and no reference to it outlives `self`.
        let unmapped = unsafe { munmap(self.slots.cast(), RING_BYTES) };
        debug_assert!(unmapped.is_ok(), "munmap failed: {unmapped:?}");
    }
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::*;

    #[test]
    fn slot_layout_matches_the_kernel() {
        // The kernel reads the frame after the header, at TPACKET2_HDRLEN without the address.
        assert_eq!(FRAME_AT, libc::TPACKET2_HDRLEN - size_of::<libc::sockaddr_ll>());
        assert_eq!(offset_of!(libc::tpacket2_hdr, tp_status), 0);
        assert_eq!((SLOT_BYTES % libc::TPACKET_ALIGNMENT, BLOCK_BYTES % SLOT_BYTES), (0, 0));
        assert_eq!(RING_BYTES % BLOCK_BYTES, 0);
        const { assert!(MAX_FRAME_BYTES >= 1500 + 14 + 4) };
    }
}
