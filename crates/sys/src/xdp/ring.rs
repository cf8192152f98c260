//! A queue in memory that program and kernel share: the one end puts descriptors in, the other takes them out.
//!
//! Each end has a counter that runs on and wraps at 2^32; what lies between the two is in the queue. A place is its counter
//! modulo the size, which is a power of two.

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

use crate::region::{Plain, Region};

// SAFETY: numbers without padding; so below.
unsafe impl Plain for libc::xdp_desc {}
// SAFETY: as above.
unsafe impl Plain for libc::xdp_mmap_offsets {}
// SAFETY: as above.
unsafe impl Plain for libc::xdp_options {}
// SAFETY: as above.
unsafe impl Plain for libc::xdp_statistics {}

/// The end that takes out, of the rings for frames received and frames done with.
#[derive(Debug)]
pub struct Outlet<T>(Ring<T>);

/// The end that puts in, of the rings for frames to send and for room to receive into.
#[derive(Debug)]
pub struct Inlet<T>(Ring<T>);

#[derive(Debug)]
struct Ring<T> {
    region: Region,
    /// Where things are in it.
    offsets: libc::xdp_ring_offset,
    size: u32,
    /// Our counter.
    ours: u32,
    /// The kernel's, when we last looked.
    theirs: u32,
    of: PhantomData<T>,
}

impl<T: Plain> Ring<T> {
    /// Maps the ring of `size` descriptors that lies at `page` behind the socket.
    fn map(socket: impl AsFd, page: u64, offsets: libc::xdp_ring_offset, size: u32) -> io::Result<Self> {
        let bytes = offsets.desc as usize + size as usize * size_of::<T>();
        let region = Region::of(socket, bytes, page)?;
        let are_there = [offsets.producer, offsets.consumer, offsets.flags]
            .into_iter()
            .all(|offset| region.counter(offset as usize).is_some());
        if !are_there || !size.is_power_of_two() {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(Self { region, offsets, size, ours: 0, theirs: 0, of: PhantomData })
    }

    #[inline]
    fn counter(&self, offset: u64) -> &AtomicU32 {
        static NONE: AtomicU32 = AtomicU32::new(0);
        // `map` has looked that they are there.
        self.region.counter(offset as usize).unwrap_or(&NONE)
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
    fn place(&self, counter: u32) -> usize {
        self.offsets.desc as usize + (counter & (self.size - 1)) as usize * size_of::<T>()
    }

    #[inline]
    fn wants_waking(&self) -> bool {
        // The kernel asks to be woken before it looks at the ring for the last time; so we look after we have put in.
        fence(SeqCst);
        self.counter(self.offsets.flags).load(Relaxed) & libc::XDP_RING_NEED_WAKEUP != 0
    }
}

impl<T: Plain> Outlet<T> {
    pub fn map(socket: impl AsFd, page: u64, offsets: libc::xdp_ring_offset, size: u32) -> io::Result<Self> {
        let mut ring = Ring::map(socket, page, offsets, size)?;
        ring.ours = ring.consumer().load(Relaxed);
        ring.theirs = ring.ours;
        Ok(Self(ring))
    }

    /// Takes the oldest descriptor out.
    #[inline]
    pub fn take(&mut self) -> Option<T> {
        let ring = &mut self.0;
        if ring.theirs == ring.ours {
            ring.theirs = ring.producer().load(Acquire);
            if ring.theirs == ring.ours {
                return None;
            }
        }
        let taken = ring.region.get(ring.place(ring.ours));
        ring.ours = ring.ours.wrapping_add(1);
        ring.consumer().store(ring.ours, Release);
        taken
    }
}

impl<T: Plain> Inlet<T> {
    pub fn map(socket: impl AsFd, page: u64, offsets: libc::xdp_ring_offset, size: u32) -> io::Result<Self> {
        let mut ring = Ring::map(socket, page, offsets, size)?;
        ring.ours = ring.producer().load(Relaxed);
        ring.theirs = ring.consumer().load(Relaxed);
        Ok(Self(ring))
    }

    /// Puts a descriptor in; false where there is no room.
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
        ring.region.put(ring.place(ring.ours), descriptor);
        ring.ours = ring.ours.wrapping_add(1);
        ring.producer().store(ring.ours, Release);
        true
    }

    /// Takes the newest descriptor back, which the kernel has not taken out, and cannot take out meanwhile.
    #[inline]
    #[must_use]
    pub fn take_back(&mut self) -> bool {
        let ring = &mut self.0;
        ring.theirs = ring.consumer().load(Acquire);
        let is_there = ring.theirs != ring.ours;
        if is_there {
            ring.ours = ring.ours.wrapping_sub(1);
            ring.producer().store(ring.ours, Release);
        }
        is_there
    }

    /// Whether the kernel looks at the ring only when it is told to.
    #[inline]
    pub fn wants_waking(&self) -> bool {
        self.0.wants_waking()
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::VecDeque, os::fd::OwnedFd};

    use proptest::prelude::*;
    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

    use super::*;

    const OFFSETS: libc::xdp_ring_offset = libc::xdp_ring_offset { producer: 0, consumer: 64, flags: 128, desc: 192 };
    const SIZE: u32 = 8;

    /// Both ends of one ring, whose counters stand at `at`.
    fn ends(at: u32) -> (Inlet<u64>, Outlet<u64>) {
        let file: OwnedFd = memfd_create("ring", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&file, 4096).unwrap();
        let region = Region::of(&file, 4096, 0).unwrap();
        for offset in [OFFSETS.producer, OFFSETS.consumer] {
            region.counter(offset as usize).unwrap().store(at, Relaxed);
        }
        (Inlet::map(&file, 0, OFFSETS, SIZE).unwrap(), Outlet::map(&file, 0, OFFSETS, SIZE).unwrap())
    }

    #[test]
    fn it_holds_its_size_across_the_wrap_and_no_more() {
        let (mut inlet, mut outlet) = ends(u32::MAX - 2);
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
    fn what_was_taken_out_cannot_be_taken_back() {
        let (mut inlet, mut outlet) = ends(u32::MAX);
        assert!(inlet.put(1) && inlet.put(2) && inlet.take_back());
        assert_eq!((outlet.take(), outlet.take()), (Some(1), None));
        assert!(!inlet.take_back());
        assert!(inlet.put(3));
        assert_eq!(outlet.take(), Some(3));
    }

    #[test]
    fn the_kernel_asks_to_be_woken_by_a_flag() {
        let (inlet, _outlet) = ends(0);
        assert!(!inlet.wants_waking());
        inlet.0.counter(OFFSETS.flags).store(libc::XDP_RING_NEED_WAKEUP, Relaxed);
        assert!(inlet.wants_waking());
    }

    #[test]
    fn layouts_that_cannot_be_are_refused() {
        let file: OwnedFd = memfd_create("ring", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&file, 4096).unwrap();
        let map = |offsets, size| Inlet::<u64>::map(&file, 0, offsets, size);
        assert!(map(OFFSETS, 7).is_err());
        assert!(map(libc::xdp_ring_offset { flags: 4096, ..OFFSETS }, SIZE).is_err());
        assert!(map(libc::xdp_ring_offset { producer: 2, ..OFFSETS }, SIZE).is_err());
    }

    proptest! {
        /// Against a queue of the standard library.
        #[test]
        fn it_is_a_queue(at in prop_oneof![0..4_u32, u32::MAX - 4..=u32::MAX], steps in prop::collection::vec(0..3_u8, 0..200)) {
            let (mut inlet, mut outlet) = ends(at);
            let mut model = VecDeque::new();
            for (value, step) in (0_u64..).zip(steps) {
                match step {
                    0 => {
                        let has_room = model.len() < SIZE as usize;
                        prop_assert_eq!(inlet.put(value), has_room);
                        model.extend(has_room.then_some(value));
                    }
                    1 => prop_assert_eq!(outlet.take(), model.pop_front()),
                    // Not where the other end has seen it: the kernel would not have looked.
                    _ if outlet.0.theirs != inlet.0.ours => prop_assert_eq!(inlet.take_back(), model.pop_back().is_some()),
                    _ => {}
                }
            }
        }
    }
}
