//! A ring in memory shared with the kernel: one side produces descriptors, the other consumes them.
//!
//! Each side has a counter that wraps at 2^32. The descriptors between the two counters are in the ring. The slot of a
//! descriptor is its counter modulo the size, which is a power of two.

use std::{
    io,
    marker::PhantomData,
    os::fd::AsFd,
    sync::atomic::{
        AtomicU32,
        Ordering::{Acquire, Relaxed, Release, SeqCst},
        fence,
    },
};

use crate::convert;
use crate::region::{Plain, Region};

// SAFETY: the type consists of integers without padding.
unsafe impl Plain for libc::xdp_desc {}
// SAFETY: the type consists of integers without padding.
unsafe impl Plain for libc::xdp_mmap_offsets {}
// SAFETY: the type consists of integers without padding.
unsafe impl Plain for libc::xdp_options {}
// SAFETY: the type consists of integers without padding.
unsafe impl Plain for libc::xdp_statistics {}

/// The consumer of the receive ring and of the completion ring.
#[derive(Debug)]
pub struct Consumer<T>(Ring<T>);

/// The producer of the transmit ring and of the fill ring.
#[derive(Debug)]
pub struct Producer<T>(Ring<T>);

#[derive(Debug)]
struct Ring<T> {
    region: Region,
    /// Offsets within the region.
    offsets: libc::xdp_ring_offset,
    size: u32,
    /// Our counter.
    ours: u32,
    /// The kernel's counter when it was last read.
    theirs: u32,
    of: PhantomData<T>,
}

impl<T: Plain> Ring<T> {
    /// Maps the ring of `size` descriptors at offset `page` of the socket.
    fn map(socket: impl AsFd, page: u64, offsets: libc::xdp_ring_offset, size: u32) -> io::Result<Self> {
        let bytes = convert::offset(offsets.desc) + size as usize * size_of::<T>();
        let region = Region::of(socket, bytes, page)?;
        let are_valid = [offsets.producer, offsets.consumer, offsets.flags]
            .into_iter()
            .all(|offset| region.counter(convert::offset(offset)).is_some());
        if !are_valid || !size.is_power_of_two() {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(Self { region, offsets, size, ours: 0, theirs: 0, of: PhantomData })
    }

    #[inline]
    fn counter(&self, offset: u64) -> &AtomicU32 {
        static NONE: AtomicU32 = AtomicU32::new(0);
        // `map` has checked that the counter exists.
        self.region.counter(convert::offset(offset)).unwrap_or(&NONE)
    }

    #[inline]
    fn producer(&self) -> &AtomicU32 {
        self.counter(self.offsets.producer)
    }

    #[inline]
    fn consumer(&self) -> &AtomicU32 {
        self.counter(self.offsets.consumer)
    }

    #[inline]
    fn slot_offset(&self, counter: u32) -> usize {
        convert::offset(self.offsets.desc) + (counter & (self.size - 1)) as usize * size_of::<T>()
    }

    #[inline]
    fn needs_wakeup(&self) -> bool {
        // The kernel sets the flag before it reads the ring for the last time, so we must read the flag after
        // producing.
        fence(SeqCst);
        self.counter(self.offsets.flags).load(Relaxed) & libc::XDP_RING_NEED_WAKEUP != 0
    }
}

impl<T: Plain> Consumer<T> {
    pub fn map(socket: impl AsFd, page: u64, offsets: libc::xdp_ring_offset, size: u32) -> io::Result<Self> {
        let mut ring = Ring::map(socket, page, offsets, size)?;
        ring.ours = ring.consumer().load(Relaxed);
        ring.theirs = ring.ours;
        Ok(Self(ring))
    }

    /// Consumes the oldest descriptor.
    #[inline]
    pub fn take(&mut self) -> Option<T> {
        let ring = &mut self.0;
        if ring.theirs == ring.ours {
            ring.theirs = ring.producer().load(Acquire);
            if ring.theirs == ring.ours {
                return None;
            }
        }
        let taken = ring.region.get(ring.slot_offset(ring.ours));
        ring.ours = ring.ours.wrapping_add(1);
        ring.consumer().store(ring.ours, Release);
        taken
    }
}

impl<T: Plain> Producer<T> {
    pub fn map(socket: impl AsFd, page: u64, offsets: libc::xdp_ring_offset, size: u32) -> io::Result<Self> {
        let mut ring = Ring::map(socket, page, offsets, size)?;
        ring.ours = ring.producer().load(Relaxed);
        ring.theirs = ring.consumer().load(Relaxed);
        Ok(Self(ring))
    }

    /// Produces a descriptor; returns false if the ring is full.
    #[inline]
    #[must_use]
    pub fn put(&mut self, descriptor: T) -> bool {
        let ring = &mut self.0;
        if ring.ours.wrapping_sub(ring.theirs) == ring.size {
            ring.theirs = ring.consumer().load(Acquire);
            if ring.ours.wrapping_sub(ring.theirs) == ring.size {
                return false;
            }
        }
        ring.region.put(ring.slot_offset(ring.ours), descriptor);
        ring.ours = ring.ours.wrapping_add(1);
        ring.producer().store(ring.ours, Release);
        true
    }

    /// Retracts the newest descriptor, if the kernel has not consumed it. The kernel must not consume concurrently.
    #[inline]
    #[must_use]
    pub fn retract(&mut self) -> bool {
        let ring = &mut self.0;
        ring.theirs = ring.consumer().load(Acquire);
        let is_pending = ring.theirs != ring.ours;
        if is_pending {
            ring.ours = ring.ours.wrapping_sub(1);
            ring.producer().store(ring.ours, Release);
        }
        is_pending
    }

    /// True if the kernel reads the ring only after a wake-up call.
    #[inline]
    pub fn needs_wakeup(&self) -> bool {
        self.0.needs_wakeup()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::{collections::VecDeque, os::fd::OwnedFd};

    use proptest::prelude::*;
    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

    use super::*;

    const OFFSETS: libc::xdp_ring_offset = libc::xdp_ring_offset { producer: 0, consumer: 64, flags: 128, desc: 192 };
    const SIZE: u32 = 8;

    /// Both sides of one ring, with counters starting at `at`.
    pub fn both_sides(at: u32) -> (Producer<u64>, Consumer<u64>) {
        let file: OwnedFd = memfd_create("ring", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&file, 4096).unwrap();
        let region = Region::of(&file, 4096, 0).unwrap();
        for offset in [OFFSETS.producer, OFFSETS.consumer] {
            region.counter(convert::offset(offset)).unwrap().store(at, Relaxed);
        }
        (Producer::map(&file, 0, OFFSETS, SIZE).unwrap(), Consumer::map(&file, 0, OFFSETS, SIZE).unwrap())
    }

    #[test]
    fn holds_exactly_its_size_across_the_wrap() {
        let (mut inlet, mut outlet) = both_sides(u32::MAX - 2);
        assert_eq!(outlet.take(), None);
        for value in 0..8 {
            assert!(inlet.put(value));
        }
        assert!(!inlet.put(8), "full");
        for value in 0..8 {
            assert_eq!(outlet.take(), Some(value));
        }
        assert_eq!(outlet.take(), None);
        assert_eq!((inlet.0.ours, outlet.0.ours), (5, 5), "both counters wrapped");
    }

    #[test]
    fn consumed_descriptors_cannot_be_retracted() {
        let (mut inlet, mut outlet) = both_sides(u32::MAX);
        assert!(inlet.put(1) && inlet.put(2) && inlet.retract());
        assert_eq!((outlet.take(), outlet.take()), (Some(1), None));
        assert!(!inlet.retract());
        assert!(inlet.put(3));
        assert_eq!(outlet.take(), Some(3));
    }

    #[test]
    fn needs_wakeup_follows_the_kernels_flag() {
        let (inlet, _outlet) = both_sides(0);
        assert!(!inlet.needs_wakeup());
        inlet.0.counter(OFFSETS.flags).store(libc::XDP_RING_NEED_WAKEUP, Relaxed);
        assert!(inlet.needs_wakeup());
    }

    #[test]
    fn rejects_invalid_layouts() {
        let file: OwnedFd = memfd_create("ring", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&file, 4096).unwrap();
        let map = |offsets, size| Producer::<u64>::map(&file, 0, offsets, size);
        assert!(map(OFFSETS, 7).is_err());
        assert!(map(libc::xdp_ring_offset { flags: 4096, ..OFFSETS }, SIZE).is_err());
        assert!(map(libc::xdp_ring_offset { producer: 2, ..OFFSETS }, SIZE).is_err());
    }

    proptest! {
        /// Compared with a queue of the standard library.
        #[test]
        fn behaves_like_a_queue(at in prop_oneof![0..4_u32, u32::MAX - 4..=u32::MAX], steps in prop::collection::vec(0..3_u8, 0..200)) {
            let (mut inlet, mut outlet) = both_sides(at);
            let mut model = VecDeque::new();
            for (value, step) in (0_u64..).zip(steps) {
                match step {
                    0 => {
                        let has_space = model.len() < SIZE as usize;
                        prop_assert_eq!(inlet.put(value), has_space);
                        model.extend(has_space.then_some(value));
                    }
                    1 => prop_assert_eq!(outlet.take(), model.pop_front()),
                    // Only if the consumer has not seen the descriptor; the kernel would otherwise have consumed it.
                    _ if outlet.0.theirs != inlet.0.ours => prop_assert_eq!(inlet.retract(), model.pop_back().is_some()),
                    _ => {}
                }
            }
        }
    }
}
