//! Counters shared by the measuring thread and its reader.

use std::{
    io,
    sync::atomic::{AtomicI32, AtomicU64, Ordering::Relaxed},
};

use rustix::io::Errno;

use crate::times::TimeCounters;

/// The error of a source whose stamps are not on the clock that the kernel promises.
pub const OTHER_CLOCK: Errno = Errno::RANGE;

/// Checks that a stamp is not later than the reading after it; both in ns on CLOCK_MONOTONIC.
///
/// # Errors
/// [`OTHER_CLOCK`] if it is later.
#[inline]
pub fn check_clock(stamp_ns: i64, woke_ns: i64) -> io::Result<()> {
    if stamp_ns > woke_ns { Err(OTHER_CLOCK.into()) } else { Ok(()) }
}

/// An error after which a source is gone, in words.
pub fn in_words(error: i32) -> String {
    match Errno::from_raw_os_error(error) {
        OTHER_CLOCK => {
            "a stamp is later than its reading, or earlier than the run: its driver stamps with another clock \
                        than the one that was set, or that clock was changed during the run"
                .to_owned()
        }
        Errno::NODEV => "the device was removed".to_owned(),
        Errno::OVERFLOW => "the time of an interrupt is ambiguous, because it came more than half of the range of its \
                            counter before the reading"
            .to_owned(),
        _ => io::Error::from_raw_os_error(error).to_string(),
    }
}

/// Counters that only the measuring thread writes, except for `error`.
#[derive(Debug, Default)]
pub struct Shared {
    /// Interrupts that were counted.
    pub seen: AtomicU64,
    pub lost: AtomicU64,
    /// Times that the kernel's queue was full, and lost an unknown number of interrupts. For a device that only counts,
    /// also interrupts whose handler is not in the trace.
    pub overruns: AtomicU64,
    pub spurious: AtomicU64,
    pub unanswered: AtomicU64,
    /// Interrupts after the end of the measurement.
    pub after_end: AtomicU64,
    /// From the interrupt to the kernel's stamp.
    pub to_kernel: TimeCounters,
    /// From the kernel's stamp to the wake-up.
    pub to_thread: TimeCounters,
    /// Errors of the conversion between clocks.
    pub uncertainty: TimeCounters,
    /// The error number after which the source is gone; 0 without one. Also written by the thread that checks whether
    /// the source still exists.
    pub error: AtomicI32,
}

impl Shared {
    /// The error after which the source is gone, if there is one.
    pub fn check_presence(&self) -> io::Result<()> {
        match self.error.load(Relaxed) {
            0 => Ok(()),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }

    /// Keeps the error of a source that is gone.
    pub fn fail(&self, error: &io::Error) {
        self.error.store(error.raw_os_error().unwrap_or(Errno::IO.raw_os_error()), Relaxed);
    }
}
