//! The interface of a source of interrupts.

use std::{io, os::fd::AsFd, time::Duration};

use record::Interrupts;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
};
use sys::clock::Clock;

use crate::probe_threads::Pacer;

/// Some readings of a slow device, without an interruption, ns: see [`Clock::around`].
pub(super) const QUICK_NS: i64 = 10_000;
/// Most calls that discard events from before the start.
pub(super) const OLD_READS: usize = 64;
/// Longest wait of the measuring thread before it checks whether to end.
pub(super) const WAIT: Duration = Duration::from_millis(50);

/// A source of interrupts. Functions that take `&mut self` run on the measuring thread, and must not allocate, lock, print or
/// call anything unnecessary.
pub trait Source: Send {
    /// The constant part of its figures: what it is, and what gives the time of its interrupts.
    fn describe(&self) -> Interrupts;

    /// True if the kernel keeps an event for each interrupt until it is read; false if it only counts them.
    fn keeps_each(&self) -> bool;

    /// True if only an event or a signal ends [`wait`](Self::wait); false if it has a time limit. A wait without a limit is
    /// cheaper, because the kernel sets no timer, and a single system call can wait and read.
    fn waits_for_ever(&self) -> bool {
        false
    }

    /// Starts the device. Called once, when the thread starts.
    ///
    /// # Errors
    /// The error of the kernel.
    fn start(&mut self) -> io::Result<Pacer>;

    /// Waits for an interrupt for about 50 ms, or until a signal comes.
    ///
    /// # Errors
    /// The error of the kernel, if the source is gone.
    fn wait(&mut self) -> io::Result<Found>;

    /// Called once on the measuring thread after the last wait, if the source has started. Returns the number of interrupts
    /// that it served after that; `None` if it serves none.
    fn finish(&mut self) -> Option<u64> {
        None
    }
}

/// The result of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// An interrupt.
    Interrupt(Interrupted),
    /// One that the output line did not cause.
    Spurious,
    /// One whose handler is not in the trace, so that its time is not known.
    Untimed,
    /// None.
    Nothing,
}

/// An interrupt and its wake-up; times are ns on CLOCK_MONOTONIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interrupted {
    /// The best known time of the interrupt.
    pub zero_ns: i64,
    /// The kernel's stamp in its handler; `None` without one, or if it is the zero.
    pub kernel_ns: Option<i64>,
    /// When the thread read the clock after the wait.
    pub woke_ns: i64,
    /// Largest error of the zero, ns; `None` if its clock was not converted.
    pub uncertainty_ns: Option<i64>,
    /// Interrupts before this one that were lost.
    pub lost: u64,
    /// True if the kernel's queue was full before this one, so that it lost an unknown number of others.
    pub overrun: bool,
    /// Edges of the output line before that of this one that caused no interrupt.
    pub unanswered: u64,
}

/// Waits until a device can be read, and then reads the clock, ns on CLOCK_MONOTONIC; `None` if nothing came in time.
///
/// # Errors
/// The error of the kernel; ENODEV if the device is gone.
#[inline]
pub(super) fn ready(device: impl AsFd) -> io::Result<Option<i64>> {
    let is_ready = is_ready_within(device, WAIT);
    let now_ns = Clock::Monotonic.now_ns();
    Ok(is_ready?.then_some(now_ns))
}

/// As [`ready`], but does not wait if events were read before and not yet taken.
///
/// # Errors
/// The errors of [`ready`].
#[inline]
pub(super) fn ready_for_next(device: impl AsFd, is_empty: bool) -> io::Result<Option<i64>> {
    if is_empty { ready(device) } else { Ok(Some(Clock::Monotonic.now_ns())) }
}

/// True if a device can be read at once.
///
/// # Errors
/// The errors of [`ready`].
pub(super) fn is_ready(device: impl AsFd) -> io::Result<bool> {
    is_ready_within(device, Duration::ZERO)
}

/// Reads the events from before the start into the buffer of `device`, which the caller empties. A device that never
/// becomes empty is read a limited number of times.
///
/// # Errors
/// The errors of [`ready`] and of `read`.
pub(super) fn read_old<D: AsFd, T>(device: &mut D, read: impl Fn(&mut D) -> io::Result<T>) -> io::Result<()> {
    for _ in 0..OLD_READS {
        if !is_ready(&*device)? {
            break;
        }
        read(device)?;
    }
    Ok(())
}

#[inline]
fn is_ready_within(device: impl AsFd, time: Duration) -> io::Result<bool> {
    let timeout = Timespec { tv_sec: 0, tv_nsec: time.subsec_nanos().into() };
    let mut watched = [PollFd::new(&device, PollFlags::IN)];
    match poll(&mut watched, Some(&timeout)) {
        // A stop and its end interrupt the wait.
        Err(Errno::INTR) | Ok(0) => Ok(false),
        Ok(_) if watched[0].revents().contains(PollFlags::IN) => Ok(true),
        Ok(_) => Err(Errno::NODEV.into()),
        Err(error) => Err(error.into()),
    }
}
