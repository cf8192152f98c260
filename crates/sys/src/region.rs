//! Memory that is shared with the kernel.

use std::{io, mem::ManuallyDrop, os::fd::AsFd, ptr, sync::atomic::AtomicU32};

use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};

/// A mapped range, unmapped on drop. Because the kernel may write at any time, bytes are copied in and out; the only
/// references into the range are to atomic counters.
#[derive(Debug)]
pub struct Region {
    start: *mut u8,
    bytes: usize,
}

// SAFETY: the range belongs to this value alone on whichever thread owns it; the type is not Sync, so copies use one
// thread.
unsafe impl Send for Region {}

/// A value without padding for which every bit pattern is valid.
///
/// # Safety
/// The implementing type must have these properties.
pub unsafe trait Plain: Copy {}

// SAFETY: every bit pattern is a valid u64, and it has no padding.
unsafe impl Plain for u64 {}

impl Region {
    const ACCESS: ProtFlags = ProtFlags::READ.union(ProtFlags::WRITE);

    /// Allocates zeroed, populated memory.
    pub fn new(bytes: usize) -> io::Result<Self> {
        let flags = MapFlags::PRIVATE | MapFlags::POPULATE;
        // SAFETY: with a null address and without MAP_FIXED, the kernel picks a range that nothing else uses.
        let start = unsafe { mmap_anonymous(ptr::null_mut(), bytes, Self::ACCESS, flags) }?;
        Ok(Self { start: start.cast(), bytes })
    }

    /// Maps a descriptor's memory from `offset` on.
    pub fn of(file: impl AsFd, bytes: usize, offset: u64) -> io::Result<Self> {
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        // SAFETY: with a null address and without MAP_FIXED, the kernel picks a range that nothing else uses.
        let start = unsafe { mmap(ptr::null_mut(), bytes, Self::ACCESS, flags, file, offset) }?;
        Ok(Self { start: start.cast(), bytes })
    }

    /// Divides memory of [`new`](Self::new) at offset `at`, so that two threads can use one part each. `at` must be a
    /// multiple of the page size and at most the length; otherwise returns `None` and unmaps the memory.
    pub fn split_at(self, at: usize) -> Option<(Self, Self)> {
        if at > self.bytes || !at.is_multiple_of(rustix::param::page_size()) {
            return None;
        }
        let whole = ManuallyDrop::new(self);
        let first = Self { start: whole.start, bytes: at };
        // SAFETY: `at` is within the range; both parts start at page boundaries, so each can be unmapped alone, and the
        // whole is never unmapped.
        let second = Self { start: unsafe { whole.start.add(at) }, bytes: whole.bytes - at };
        Some((first, second))
    }

    /// The address, to be passed to the kernel.
    pub fn address(&self) -> u64 {
        self.start as u64
    }

    /// The length, bytes.
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Copies `bytes` to offset `at`; returns false if they do not fit.
    #[inline]
    #[must_use]
    pub fn write(&mut self, at: usize, bytes: &[u8]) -> bool {
        let fits = self.has(at, bytes.len());
        if fits {
            // SAFETY: the destination is within the range, and no slice can overlap it.
            unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.start.add(at), bytes.len()) };
        }
        fits
    }

    /// Fills `into` from offset `at`; returns false if that exceeds the range.
    #[inline]
    #[must_use]
    pub fn read(&self, at: usize, into: &mut [u8]) -> bool {
        let is_inside = self.has(at, into.len());
        if is_inside {
            // SAFETY: the source is within the range, and no slice can overlap it.
            unsafe { ptr::copy_nonoverlapping(self.start.add(at), into.as_mut_ptr(), into.len()) };
        }
        is_inside
    }

    /// The value at offset `at`; `None` outside the range.
    #[inline]
    pub fn get<T: Plain>(&self, at: usize) -> Option<T> {
        // SAFETY: the value is within the range; every bit pattern is valid, and the read may be unaligned.
        self.has(at, size_of::<T>()).then(|| unsafe { self.start.add(at).cast::<T>().read_unaligned() })
    }

    /// Stores a value at offset `at`; does nothing outside the range.
    #[inline]
    pub fn put<T: Plain>(&mut self, at: usize, value: T) {
        if self.has(at, size_of::<T>()) {
            // SAFETY: the value is within the range; a plain value has no destructor, and the write may be unaligned.
            unsafe { self.start.add(at).cast::<T>().write_unaligned(value) };
        }
    }

    /// The counter at offset `at`, which the kernel also modifies; `None` if it is outside the range or unaligned.
    #[inline]
    pub fn counter(&self, at: usize) -> Option<&AtomicU32> {
        let fits = self.has(at, size_of::<AtomicU32>()) && at.is_multiple_of(align_of::<AtomicU32>());
        // SAFETY: the counter is within the page-aligned range and aligned, and all accesses to it are atomic.
        fits.then(|| unsafe { AtomicU32::from_ptr(self.start.add(at).cast()) })
    }

    #[inline]
    fn has(&self, at: usize, bytes: usize) -> bool {
        at.checked_add(bytes).is_some_and(|end| end <= self.bytes)
    }
}

/// Memory that the kernel writes, and that several threads read.
#[derive(Debug)]
pub struct ReadRegion(Region);

// SAFETY: the type only reads the range, so threads cannot disturb each other.
unsafe impl Sync for ReadRegion {}

impl ReadRegion {
    pub fn new(region: Region) -> Self {
        Self(region)
    }

    /// The same as [`Region::read`].
    #[inline]
    #[must_use]
    pub fn read(&self, at: usize, into: &mut [u8]) -> bool {
        self.0.read(at, into)
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the range was mapped by us, and nothing that points into it outlives `self`.
        let unmapped = unsafe { munmap(self.start.cast(), self.bytes) };
        debug_assert!(unmapped.is_ok(), "munmap failed: {unmapped:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_independent() {
        let page = rustix::param::page_size();
        let (mut first, mut second) = Region::new(3 * page).unwrap().split_at(page).unwrap();
        assert_eq!((first.len(), second.len(), second.address() - first.address()), (page, 2 * page, page as u64));
        assert!(first.write(page - 1, &[7]) && !first.write(page, &[7]) && second.write(2 * page - 1, &[9]));
        drop(first);
        let mut read = [0; 1];
        assert!(second.read(0, &mut read) && read == [0] && second.read(2 * page - 1, &mut read) && read == [9]);
        assert!(Region::new(page).unwrap().split_at(1).is_none());
        assert!(Region::new(page).unwrap().split_at(2 * page).is_none());
    }

    #[test]
    fn rejects_accesses_outside_the_range() {
        let mut region = Region::new(4096).unwrap();
        assert!(region.write(4092, &[1, 2, 3, 4]) && !region.write(4093, &[9; 4]) && !region.write(usize::MAX, &[9]));
        let mut read = [0; 4];
        assert!(region.read(4092, &mut read) && read == [1, 2, 3, 4]);
        assert!(!region.read(4093, &mut read) && !region.read(usize::MAX, &mut read));
        region.put(8, 7_u64);
        region.put(4089, u64::MAX);
        assert_eq!((region.get::<u64>(8), region.get::<u64>(4089)), (Some(7), None));
        assert!(region.counter(4092).is_some() && region.counter(4094).is_none() && region.counter(4096).is_none());
    }
}
