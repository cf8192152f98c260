//! Memory that the kernel reads and writes, too.

use std::{io, os::fd::AsFd, ptr, sync::atomic::AtomicU32};

use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};

/// A mapped range; unmapped when dropped. There is no reference into it but to its counters, since the kernel may write at
/// any time: bytes are copied in and out.
#[derive(Debug)]
pub struct Region {
    start: *mut u8,
    bytes: usize,
}

// SAFETY: the range belongs to this value alone, whatever thread has it; what is copied in and out needs `&self` on one
// thread, as the value is not Sync.
unsafe impl Send for Region {}

/// A value without padding for which every pattern of bits is valid.
///
/// # Safety
/// That must be so.
pub unsafe trait Plain: Copy {}

// SAFETY: a number.
unsafe impl Plain for u64 {}

impl Region {
    const ACCESS: ProtFlags = ProtFlags::READ.union(ProtFlags::WRITE);

    /// Memory of this process, all zeroes, in place.
    pub fn new(bytes: usize) -> io::Result<Self> {
        let flags = MapFlags::PRIVATE | MapFlags::POPULATE;
        // SAFETY: with a null address and without MAP_FIXED the kernel picks a range that nothing else uses.
        let start = unsafe { mmap_anonymous(ptr::null_mut(), bytes, Self::ACCESS, flags) }?;
        Ok(Self { start: start.cast(), bytes })
    }

    /// The kernel's memory behind a descriptor, from `offset` on.
    pub fn of(file: impl AsFd, bytes: usize, offset: u64) -> io::Result<Self> {
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        // SAFETY: as in `new`.
        let start = unsafe { mmap(ptr::null_mut(), bytes, Self::ACCESS, flags, file, offset) }?;
        Ok(Self { start: start.cast(), bytes })
    }

    /// Its address, for the kernel.
    pub fn address(&self) -> u64 {
        self.start as u64
    }

    /// Its length, bytes.
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Copies `bytes` to `at`; false where there is no room for them there.
    #[inline]
    #[must_use]
    pub fn write(&mut self, at: usize, bytes: &[u8]) -> bool {
        let has_room = self.has(at, bytes.len());
        if has_room {
            // SAFETY: the destination is within the range, and no slice of ours can lie in it.
            unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.start.add(at), bytes.len()) };
        }
        has_room
    }

    /// Fills `into` from what is at `at`; false where that is outside.
    #[inline]
    #[must_use]
    pub fn read(&self, at: usize, into: &mut [u8]) -> bool {
        let is_inside = self.has(at, into.len());
        if is_inside {
            // SAFETY: the source is within the range, and no slice of ours can lie in it.
            unsafe { ptr::copy_nonoverlapping(self.start.add(at), into.as_mut_ptr(), into.len()) };
        }
        is_inside
    }

    /// The value at `at`; `None` outside.
    #[inline]
    pub fn get<T: Plain>(&self, at: usize) -> Option<T> {
        // SAFETY: within the range; any bits make a value, and their alignment does not matter.
        self.has(at, size_of::<T>()).then(|| unsafe { self.start.add(at).cast::<T>().read_unaligned() })
    }

    /// Puts a value at `at`; nothing outside.
    #[inline]
    pub fn put<T: Plain>(&mut self, at: usize, value: T) {
        if self.has(at, size_of::<T>()) {
            // SAFETY: within the range; a plain value has nothing to drop, and its alignment does not matter.
            unsafe { self.start.add(at).cast::<T>().write_unaligned(value) };
        }
    }

    /// The counter at `at`, which the kernel changes as well; `None` outside or where it is not aligned.
    #[inline]
    pub fn counter(&self, at: usize) -> Option<&AtomicU32> {
        let fits = self.has(at, size_of::<AtomicU32>()) && at.is_multiple_of(align_of::<AtomicU32>());
        // SAFETY: within the range, which begins at a page; aligned; and all that ever touches it is atomic.
        fits.then(|| unsafe { AtomicU32::from_ptr(self.start.add(at).cast()) })
    }

    #[inline]
    fn has(&self, at: usize, bytes: usize) -> bool {
        at.checked_add(bytes).is_some_and(|end| end <= self.bytes)
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the range was mapped by us, and nothing that points into it outlives `self`.
        let unmapped = unsafe { munmap(self.start.cast(), self.bytes) };
        debug_assert!(unmapped.is_ok(), "munmap of an own mapping: {unmapped:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_outside_is_touched() {
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
