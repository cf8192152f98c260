//! The times at which the kernel's handler of an interrupt begins: its trace event `irq:irq_handler_entry`, which a perf
//! event stamps with CLOCK_MONOTONIC (`include/uapi/linux/perf_event.h`).
//!
//! The kernel writes the stamps of each CPU to a ring in shared memory, so that reading them takes no system call.

use std::{
    ffi::CString,
    io,
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
    ptr,
    sync::atomic::{AtomicU64, Ordering},
};

use rustix::{
    mm::{MapFlags, ProtFlags, mmap, munmap},
    param::page_size,
};

/// Pages of the records of a ring, a power of two: 256 stamps fit into a page of 4 KiB.
const PAGES: usize = 8;
/// `PERF_TYPE_TRACEPOINT`: the configuration is the number of a trace event.
const TRACE_EVENT: u32 = 2;
/// `PERF_SAMPLE_TIME`: a record contains its time only.
const SAMPLE_TIME: u64 = 1 << 2;
/// Bits of the attributes: created disabled, and stamped with `clockid`.
const DISABLED: u64 = 1;
const USE_CLOCKID: u64 = 1 << 25;
/// `PERF_FLAG_FD_CLOEXEC`.
const CLOSE_ON_EXEC: libc::c_ulong = 8;
/// `PERF_EVENT_IOC_ENABLE`, and `PERF_EVENT_IOC_SET_FILTER` on architectures whose `_IOC_WRITE` is 1.
const ENABLE: u32 = 0x2400;
const SET_FILTER: u32 = 0x4008_2406;
/// Types of records: lost ones, whose number is in the second word after the header, and samples.
const LOST: u64 = 2;
const SAMPLE: u64 = 9;
/// Offsets in the first page of a ring, which describes it, bytes: the end of the records (written by the kernel), the
/// begin of those not yet read (written by the reader), and the place of the records in the mapping.
const HEAD: usize = 1024;
const TAIL: usize = 1032;
const DATA_OFFSET: usize = 1040;

/// A `perf_event_attr` of version 5.
#[repr(C)]
#[derive(Debug, Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_type: u32,
    config1: u64,
    config2: u64,
    branch_sample_type: u64,
    sample_registers_user: u64,
    sample_stack_user: u32,
    clockid: i32,
    sample_registers_interrupt: u64,
    aux_watermark: u32,
    sample_max_stack: u16,
    reserved: u16,
}

/// The stamps of the runs of a handler on some CPUs, from [`Handlers::open`] on.
#[derive(Debug)]
pub struct Handlers {
    rings: Vec<Ring>,
}

impl Handlers {
    /// Begins to stamp the handlers of the interrupt `number` on these CPUs. `event` is the number of the trace event
    /// `irq:irq_handler_entry`, from its file `id` in tracefs.
    ///
    /// # Errors
    /// EACCES or EPERM without rights (CAP_PERFMON, or root), ENOSYS or ENOENT if the kernel has no perf events.
    pub fn open(event: u64, number: u32, cpus: impl IntoIterator<Item = u32>) -> io::Result<Self> {
        let rings: Vec<Ring> = cpus.into_iter().map(|cpu| Ring::open(event, number, cpu)).collect::<io::Result<_>>()?;
        rings.iter().try_for_each(Ring::enable)?;
        Ok(Self { rings })
    }

    /// The oldest stamp that was not taken, ns on CLOCK_MONOTONIC; `None` if all were.
    #[inline]
    pub fn oldest_ns(&mut self) -> Option<i64> {
        self.rings.iter_mut().filter_map(Ring::oldest_ns).min()
    }

    /// Takes the oldest stamp.
    #[inline]
    pub fn take_ns(&mut self) -> Option<i64> {
        let stamped = self.rings.iter_mut().filter_map(|ring| Some((ring.oldest_ns()?, ring)));
        let (stamp_ns, ring) = stamped.min_by_key(|&(ns, _)| ns)?;
        ring.skip();
        Some(stamp_ns)
    }

    /// The number of stamps up to `end_ns` that were not taken.
    #[inline]
    pub fn count_until(&self, end_ns: i64) -> u64 {
        self.rings.iter().map(|ring| ring.count_until(end_ns)).sum()
    }

    /// Stamps that the kernel lost since the last call, because a ring was full. Only those before a stamp that was
    /// looked at are known.
    #[inline]
    pub fn take_lost(&mut self) -> u64 {
        self.rings.iter_mut().map(|ring| std::mem::take(&mut ring.lost)).sum()
    }
}

/// The stamps of one CPU.
#[derive(Debug)]
struct Ring {
    event: OwnedFd,
    start: *mut u8,
    /// Length of the mapping and of its records, bytes.
    length: usize,
    data_length: u64,
    data_offset: usize,
    /// The begin of the records not yet read; increases for ever.
    tail: u64,
    lost: u64,
}

// SAFETY: the mapping belongs to the ring alone on this side; the kernel's side is read and written with atomics.
unsafe impl Send for Ring {}

impl Ring {
    fn open(event: u64, number: u32, cpu: u32) -> io::Result<Self> {
        let attributes = Attributes {
            kind: TRACE_EVENT,
            size: u32::try_from(size_of::<Attributes>()).expect("it is small"),
            config: event,
            sample_period: 1,
            sample_type: SAMPLE_TIME,
            flags: DISABLED | USE_CLOCKID,
            clockid: libc::CLOCK_MONOTONIC,
            ..Attributes::default()
        };
        let (all_threads, no_group): (libc::pid_t, libc::c_int) = (-1, -1);
        // SAFETY: the attributes are live, and their size is that of their layout (tested below).
        let opened = unsafe {
            libc::syscall(libc::SYS_perf_event_open, &raw const attributes, all_threads, cpu, no_group, CLOSE_ON_EXEC)
        };
        let Some(opened) = i32::try_from(opened).ok().filter(|&fd| fd >= 0) else {
            return Err(io::Error::last_os_error());
        };
        // SAFETY: the kernel has just returned this descriptor, which nothing else owns.
        let event = unsafe { OwnedFd::from_raw_fd(opened) };
        let filter = CString::new(format!("irq=={number}"))?;
        // SAFETY: the filter is a live string that ends with a zero; the type of the number depends on the C library.
        let filtered = unsafe { libc::ioctl(event.as_raw_fd(), SET_FILTER as _, filter.as_ptr()) };
        if filtered < 0 {
            return Err(io::Error::last_os_error());
        }
        let length = (1 + PAGES) * page_size();
        // SAFETY: with a null address, the kernel picks a range that nothing else uses.
        let start =
            unsafe { mmap(ptr::null_mut(), length, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED, &event, 0) }?;
        let data_length = (PAGES * page_size()) as u64;
        let mut ring =
            Self { event, start: start.cast(), length, data_length, data_offset: page_size(), tail: 0, lost: 0 };
        ring.data_offset = usize::try_from(ring.word(DATA_OFFSET).load(Ordering::Relaxed)).unwrap_or(0);
        let fits = ring.data_offset.checked_add(PAGES * page_size()).is_some_and(|end| end <= length);
        if fits && ring.data_offset.is_multiple_of(8) { Ok(ring) } else { Err(io::ErrorKind::Unsupported.into()) }
    }

    fn enable(&self) -> io::Result<()> {
        // SAFETY: the request takes no pointer; the type of the number depends on the C library.
        let enabled = unsafe { libc::ioctl(self.event.as_raw_fd(), ENABLE as _, 0) };
        if enabled < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// A word of the mapping, at an offset that is a multiple of 8 and within it.
    #[inline]
    fn word(&self, offset: usize) -> &AtomicU64 {
        assert!(offset.is_multiple_of(8) && offset + 8 <= self.length, "outside the ring");
        // SAFETY: the word is within the mapping, which is page-aligned and lives as long as `self`; the kernel also
        // accesses it as a whole.
        unsafe { AtomicU64::from_ptr(self.start.add(offset).cast()) }
    }

    /// The word of the records at a position that increases for ever; a ring of whole words splits none.
    #[inline]
    fn record_word(&self, position: u64) -> u64 {
        let at = usize::try_from(position % self.data_length).unwrap_or(0);
        self.word(self.data_offset + at).load(Ordering::Relaxed)
    }

    /// Type and length of the record at a position, bytes.
    #[inline]
    fn header(&self, position: u64) -> (u64, u64) {
        let header = self.record_word(position);
        // A `perf_event_header`: type (32 bits), further bits (16), length (16).
        if cfg!(target_endian = "little") {
            (header & 0xffff_ffff, header >> 48)
        } else {
            (header >> 32, header & 0xffff)
        }
    }

    /// The end of the records that the kernel has written.
    #[inline]
    fn head(&self) -> u64 {
        self.word(HEAD).load(Ordering::Acquire)
    }

    /// Frees the record at the tail.
    #[inline]
    fn skip(&mut self) {
        let (_, length) = self.header(self.tail);
        self.tail += length.max(8);
        self.word(TAIL).store(self.tail, Ordering::Release);
    }

    /// The oldest stamp; records of other kinds before it are skipped.
    #[inline]
    fn oldest_ns(&mut self) -> Option<i64> {
        let head = self.head();
        while self.tail < head {
            match self.header(self.tail).0 {
                SAMPLE => return Some(self.record_word(self.tail + 8).cast_signed()),
                LOST => self.lost += self.record_word(self.tail + 16),
                _ => {}
            }
            self.skip();
        }
        None
    }

    /// The number of stamps up to `end_ns`.
    #[inline]
    fn count_until(&self, end_ns: i64) -> u64 {
        let (head, mut position, mut count) = (self.head(), self.tail, 0);
        while position < head {
            let (kind, length) = self.header(position);
            if kind == SAMPLE {
                if self.record_word(position + 8).cast_signed() > end_ns {
                    break;
                }
                count += 1;
            }
            position += length.max(8);
        }
        count
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the range was mapped by `open`, and no reference to it outlives `self`.
        let unmapped = unsafe { munmap(self.start.cast(), self.length) };
        debug_assert!(unmapped.is_ok(), "munmap failed: {unmapped:?}");
    }
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::*;

    /// The expected values follow from the order of the fields in the kernel's header, which has `PERF_ATTR_SIZE_VER5`.
    #[test]
    fn layout_matches_the_kernel_header() {
        assert_eq!(size_of::<Attributes>(), 112);
        assert_eq!([offset_of!(Attributes, flags), offset_of!(Attributes, clockid)], [40, 92]);
    }

    #[test]
    fn an_unknown_event_is_an_error() {
        assert!(Handlers::open(u64::from(u32::MAX), 0, [0]).is_err());
    }
}
