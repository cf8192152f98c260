//! Sending whole frames through memory that the kernel shares: `PACKET_TX_RING`, version 2 (`TPACKET_V2`).

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

/// Frames that the ring has room for: 32 ms at 8000 a second.
const SLOTS: usize = 256;
/// Bytes of a slot: its header and the longest Ethernet frame with a VLAN tag.
const SLOT_BYTES: usize = 2048;
/// The kernel allocates the ring in such pieces, which must be whole pages; those of aarch64 have up to 64 KiB.
const BLOCK_BYTES: usize = 64 << 10;
const RING_BYTES: usize = SLOTS * SLOT_BYTES;

/// Where the frame begins in its slot: behind the header, which is a multiple of TPACKET_ALIGNMENT long.
const FRAME_AT: usize = size_of::<libc::tpacket2_hdr>();
/// Longest frame, bytes.
const FRAME_MOST: usize = SLOT_BYTES - FRAME_AT;

/// What of a slot's status tells whose it is; none of it while it is ours.
const THEIRS: u32 = libc::TP_STATUS_SEND_REQUEST | libc::TP_STATUS_SENDING | libc::TP_STATUS_WRONG_FORMAT;
/// The status of a slot whose frame the kernel did not take.
const LEFT: u32 = libc::TP_STATUS_SEND_REQUEST | libc::TP_STATUS_WRONG_FORMAT;

/// Sends frames on one interface exactly as they are given, from a ring of slots that the kernel reads them from.
#[derive(Debug)]
pub struct RingSender {
    socket: OwnedFd,
    slots: *mut u8,
    /// The slot that the next frame goes into, as the kernel expects it.
    next: usize,
}

// SAFETY: the ring belongs to this value alone, whichever thread has it; what the kernel writes there, the status of a slot,
// is read and written atomically.
unsafe impl Send for RingSender {}

impl RingSender {
    /// Opens a socket on the interface called `interface`. Its frames have the kernel's `priority` 0 to 6, by which queues
    /// are chosen.
    ///
    /// # Errors
    /// EPERM without CAP_NET_RAW, ENODEV when there is no such interface, `InvalidInput` when it is not Ethernet, ENOMEM
    /// without 512 KiB for the ring, and what else the kernel answered.
    pub fn open(interface: &str, priority: u8) -> io::Result<Self> {
        let socket = packet_socket(SocketType::RAW)?;
        set_option(&socket, libc::SOL_SOCKET, libc::SO_PRIORITY, i32::from(priority))?;
        set_option(&socket, libc::SOL_PACKET, libc::PACKET_VERSION, libc::tpacket_versions::TPACKET_V2 as i32)?;
        let ring = libc::tpacket_req {
            tp_block_size: BLOCK_BYTES as u32,
            tp_block_nr: (RING_BYTES / BLOCK_BYTES) as u32,
            tp_frame_size: SLOT_BYTES as u32,
            tp_frame_nr: SLOTS as u32,
        };
        set_option(&socket, libc::SOL_PACKET, libc::PACKET_TX_RING, ring)?;
        // Protocol 0: nothing is received.
        bind_to(&socket, interface, 0)?;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: with a null address and without MAP_FIXED the kernel picks a range that nothing else uses.
        let slots = unsafe { mmap(ptr::null_mut(), RING_BYTES, access, MapFlags::SHARED, &socket, 0) }?;
        Ok(Self { socket, slots: slots.cast(), next: 0 })
    }

    /// Puts one frame into the ring and has the kernel send it; never waits.
    ///
    /// # Errors
    /// ENOBUFS when the ring or a queue is full, EAGAIN when the socket's buffer is, ENETDOWN while the interface is down,
    /// EMSGSIZE when the frame is longer than the MTU or a slot, and what else the kernel answered. The frame was not sent
    /// then, and will not be.
    #[inline]
    pub fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        if frame.len() > FRAME_MOST {
            return Err(io::Error::from_raw_os_error(libc::EMSGSIZE));
        }
        if self.status().load(Ordering::Acquire) & THEIRS != 0 {
            return Err(io::Error::from_raw_os_error(libc::ENOBUFS));
        }
        // SAFETY: `next` is below SLOTS, so that header and frame, whose length was looked at, lie within the mapping; the
        // kernel leaves a slot that is ours alone.
        unsafe {
            let slot = self.slots.add(self.next * SLOT_BYTES);
            (*slot.cast::<libc::tpacket2_hdr>()).tp_len = frame.len() as u32;
            ptr::copy_nonoverlapping(frame.as_ptr(), slot.add(FRAME_AT), frame.len());
        }
        self.status().store(libc::TP_STATUS_SEND_REQUEST, Ordering::Release);
        // SAFETY: nothing is read at the null address, as the length is 0.
        let sent = unsafe { libc::send(self.socket.as_raw_fd(), ptr::null(), 0, libc::MSG_DONTWAIT) };
        if self.status().load(Ordering::Acquire) & LEFT != 0 {
            let error = io::Error::last_os_error();
            // Else it would go out together with the next one.
            self.status().store(libc::TP_STATUS_AVAILABLE, Ordering::Release);
            return Err(if sent < 0 { error } else { io::Error::from_raw_os_error(libc::EAGAIN) });
        }
        self.next = (self.next + 1) % SLOTS;
        Ok(())
    }

    /// The status of the next slot.
    #[inline]
    fn status(&self) -> &AtomicU32 {
        // SAFETY: `next` is below SLOTS, so this lies within the mapping, at a multiple of SLOT_BYTES from its first page,
        // and is initialised by the kernel; each side touches it atomically only.
        unsafe { AtomicU32::from_ptr(self.slots.add(self.next * SLOT_BYTES).cast()) }
    }
}

impl Drop for RingSender {
    fn drop(&mut self) {
        // SAFETY: the range was mapped by `open`, and no reference to it outlives `self`.
        let unmapped = unsafe { munmap(self.slots.cast(), RING_BYTES) };
        debug_assert!(unmapped.is_ok(), "munmap of an own mapping: {unmapped:?}");
    }
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::*;

    #[test]
    fn a_slot_is_laid_out_as_the_kernel_reads_it() {
        // The kernel looks for the frame behind the header, as long as TPACKET2_HDRLEN without an address.
        assert_eq!(FRAME_AT, libc::TPACKET2_HDRLEN - size_of::<libc::sockaddr_ll>());
        assert_eq!(offset_of!(libc::tpacket2_hdr, tp_status), 0);
        assert_eq!((SLOT_BYTES % libc::TPACKET_ALIGNMENT, BLOCK_BYTES % SLOT_BYTES), (0, 0));
        assert_eq!(RING_BYTES % BLOCK_BYTES, 0);
        const { assert!(FRAME_MOST >= 1500 + 14 + 4) };
    }
}
