//! Devices of the counter subsystem, such as encoder inputs and capture timers: `include/uapi/linux/counter.h` (Linux 5.16
//! and later). The kernel stamps each event when the driver reports it in its handler.

use std::{
    fs::File,
    io,
    os::fd::{AsFd, BorrowedFd},
    path::Path,
};

use rustix::io::Errno;

use super::{
    records::{Records, bytes},
    request::{Request, command, exchange},
};

/// Length of an event, bytes.
const SIZE: usize = 24;
/// Events that the kernel keeps by default; further ones are lost.
pub const EVENTS_KEPT: usize = 64;
/// Events that one call reads: more than the kernel keeps, so that a call empties its queue.
const READ: usize = EVENTS_KEPT + 1;
/// The request that starts the events that were requested before.
const START: u32 = 0x3e01;

/// A kind of event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// The count exceeded its ceiling.
    Overflow,
    /// The count fell below its floor.
    Underflow,
    /// One of both.
    OverflowUnderflow,
    /// The count reached a threshold.
    Threshold,
    /// An index signal.
    Index,
    /// The state of the counter changed.
    ChangeOfState,
    /// The count was captured.
    Capture,
}

impl EventKind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [Self; 7] = [
        Self::Overflow,
        Self::Underflow,
        Self::OverflowUnderflow,
        Self::Threshold,
        Self::Index,
        Self::ChangeOfState,
        Self::Capture,
    ];

    /// Its name, e.g. `change-of-state`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Overflow => "overflow",
            Self::Underflow => "underflow",
            Self::OverflowUnderflow => "overflow-underflow",
            Self::Threshold => "threshold",
            Self::Index => "index",
            Self::ChangeOfState => "change-of-state",
            Self::Capture => "capture",
        }
    }
}

/// A device that reports one kind of event. Its descriptor is ready to be read when one has come.
#[derive(Debug)]
pub struct Device {
    file: File,
    records: Records<SIZE, READ>,
    events_kept: usize,
}

impl Device {
    /// Opens a device, `/dev/counterN`, and lets it report the events of this kind and channel. Only one program can use
    /// the events of a device. `events_kept` is the length of the kernel's queue (its `events_queue_size` in sysfs).
    ///
    /// # Errors
    /// The error of the kernel: ENOENT, EACCES, ENOTTY or EINVAL from a device without such events.
    pub fn open(path: &Path, kind: EventKind, channel: u8, events_kept: usize) -> io::Result<Self> {
        let file = File::open(path)?;
        // Without a component, whose value nothing needs.
        exchange(&file, &mut Watch { component: [0; 4], kind: kind as u8, channel })?;
        // SAFETY: this request takes nothing.
        unsafe { command(&file, START, 0) }?;
        Ok(Self { file, records: Records::new(), events_kept })
    }

    /// True if the next event must be read from the kernel.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Reads events from the kernel; waits for one if there is none. Events that were not taken are lost. Returns true if
    /// the kernel's queue was full, so that an unknown number of events may be lost.
    ///
    /// # Errors
    /// ENODEV if the device is gone.
    #[inline]
    pub fn read(&mut self) -> io::Result<bool> {
        self.records.fill(&self.file, self.events_kept)
    }

    /// Checks that the device still exists.
    ///
    /// # Errors
    /// ENODEV if it is gone.
    pub fn exists(&self) -> io::Result<()> {
        // The kernel refuses to read less than an event, unless the device is gone.
        match rustix::io::read(&self.file, &mut [0; 1]) {
            Err(Errno::INVAL) | Ok(_) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes the stamp of the oldest event that was read, ns on CLOCK_MONOTONIC.
    #[inline]
    pub fn take(&mut self) -> Option<i64> {
        self.records.take().map(|record| i64::from_ne_bytes(bytes(record, 0)))
    }
}

impl AsFd for Device {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// A `counter_watch`.
#[repr(C)]
struct Watch {
    component: [u8; 4],
    kind: u8,
    channel: u8,
}

// SAFETY: COUNTER_ADD_WATCH_IOCTL takes a pointer to a `counter_watch`, which has this layout (tested below).
unsafe impl Request for Watch {
    const CODE: u32 = 0x4006_3e00;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected values were computed by a C compiler from the kernel's header.
    #[test]
    fn layouts_match_the_kernel_header() {
        assert_eq!((size_of::<Watch>(), std::mem::offset_of!(Watch, kind)), (6, 4));
        let numbers = EventKind::ALL.map(|kind| kind as u8);
        assert_eq!(numbers, [0, 1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn another_file_is_no_counter() {
        let error = Device::open(Path::new("/dev/null"), EventKind::Index, 0, EVENTS_KEPT).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOTTY));
    }
}
