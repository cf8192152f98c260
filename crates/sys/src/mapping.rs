//! Anonymous memory that is mapped and unmapped explicitly, without an allocator that could cache it.

use std::{io, ops::DerefMut, ptr, slice};

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

/// Private anonymous memory, initially zero. Unmapped on drop.
#[derive(Debug)]
pub struct Mapping {
    start: *mut u8,
    bytes: usize,
}

impl Mapping {
    /// Maps `bytes` bytes, rounded up to whole pages by the kernel. Pages are backed by memory only once they are
    /// touched.
    ///
    /// # Errors
    /// ENOMEM, or EINVAL for zero bytes.
    pub fn new(bytes: usize) -> io::Result<Self> {
        if isize::try_from(bytes).is_err() {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        // SAFETY: with a null address and without MAP_FIXED, the kernel picks a range that nothing else uses.
        let start =
            unsafe { mmap_anonymous(ptr::null_mut(), bytes, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE) }?;
        Ok(Self { start: start.cast(), bytes })
    }
}

impl std::ops::Deref for Mapping {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the range is mapped, initialised by the kernel, at most isize::MAX long, and ours until the drop.
        unsafe { slice::from_raw_parts(self.start, self.bytes) }
    }
}

impl DerefMut for Mapping {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: the same as in `deref`; `&mut self` makes this the only reference.
        unsafe { slice::from_raw_parts_mut(self.start, self.bytes) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range was mapped by `new`, and no reference to it outlives `self`.
        let unmapped = unsafe { munmap(self.start.cast(), self.bytes) };
        debug_assert!(unmapped.is_ok(), "munmap failed: {unmapped:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_mapped(start: usize) -> bool {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        maps.lines().any(|line| {
            let (low, high) = line.split_once(' ').unwrap().0.split_once('-').unwrap();
            let bound = |text| usize::from_str_radix(text, 16).unwrap();
            (bound(low)..bound(high)).contains(&start)
        })
    }

    #[test]
    fn is_zeroed_writable_and_unmapped_on_drop() {
        let mut mapping = Mapping::new(256 << 20).unwrap();
        let middle = mapping.as_ptr() as usize + (128 << 20);
        assert_eq!(mapping.len(), 256 << 20);
        assert_eq!(mapping[128 << 20], 0);
        mapping[128 << 20] = 7;
        assert_eq!(mapping[128 << 20], 7);
        assert!(is_mapped(middle));
        drop(mapping);
        assert!(!is_mapped(middle));
    }

    #[test]
    fn rejects_impossible_sizes() {
        assert!(Mapping::new(0).is_err() && Mapping::new(usize::MAX).is_err());
    }
}
