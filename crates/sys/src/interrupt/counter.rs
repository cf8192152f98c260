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
/// Type and scope of a component that is an extension of a count.
const EXTENSION: u8 = 5;
const OF_COUNT: u8 = 2;

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

/// An extension of a count, such as a capture register, whose value comes with each event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extension {
    /// Number of the count.
    pub count: u8,
    /// Number of the extension: its `component_id` in sysfs.
    pub id: u8,
}

/// An event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// The kernel's stamp, ns on CLOCK_MONOTONIC.
    pub stamp_ns: i64,
    /// The value of the extension; 0 without one.
    pub value: u64,
    /// The error number of the driver if it could not read that value; otherwise 0.
    pub error: u8,
}

/// A device that reports one kind of event. Its descriptor is ready to be read when one has come.
#[derive(Debug)]
pub struct Device {
    file: File,
    records: Records<SIZE, READ>,
    events_kept: usize,
}

impl Device {
    /// Opens a device, `/dev/counterN`, and lets it report the events of this kind and channel, each with the value of
    /// `extension`. Only one program can use the events of a device. `events_kept` is the length of the kernel's queue (its
    /// `events_queue_size` in sysfs).
    ///
    /// # Errors
    /// The error of the kernel: ENOENT, EACCES, ENOTTY or EINVAL from a device without such events or extension.
    pub fn open(
        path: &Path,
        kind: EventKind,
        channel: u8,
        extension: Option<Extension>,
        events_kept: usize,
    ) -> io::Result<Self> {
        let file = File::open(path)?;
        let component = extension.map_or([0; 4], |Extension { count, id }| [EXTENSION, OF_COUNT, count, id]);
        exchange(&file, &mut Watch { component, kind: kind as u8, channel })?;
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

    /// Takes the oldest event that was read.
    #[inline]
    pub fn take(&mut self) -> Option<Event> {
        self.records.take().map(parse)
    }
}

impl AsFd for Device {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Parses a `counter_event`.
#[inline]
fn parse(record: &[u8; SIZE]) -> Event {
    let [error] = bytes(record, 22);
    Event { stamp_ns: i64::from_ne_bytes(bytes(record, 0)), value: u64::from_ne_bytes(bytes(record, 8)), error }
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
    fn parses_events() {
        let mut record = [0; SIZE];
        record[..8].copy_from_slice(&12_345_i64.to_ne_bytes());
        record[8..16].copy_from_slice(&(u64::MAX - 1).to_ne_bytes());
        // The component, the event and the channel.
        record[16..22].copy_from_slice(&[EXTENSION, OF_COUNT, 0, 4, 6, 1]);
        record[22] = 5;
        assert_eq!(parse(&record), Event { stamp_ns: 12_345, value: u64::MAX - 1, error: 5 });
    }

    #[test]
    fn another_file_is_no_counter() {
        let error = Device::open(Path::new("/dev/null"), EventKind::Index, 0, None, EVENTS_KEPT).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOTTY));
    }
}
