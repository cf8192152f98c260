//! The interface of probes that work together with the timers of a phase: they give the timers work for each deadline,
//! may have their own threads, and have their own series.

use std::io;

use record::{Caveat, Reason, Series, Spike};
use sys::sched::Policy;

use crate::setup::{Grant, Scheduling};

/// A probe around the timers of one phase. It is created before the timers and exists until the phase has been
/// recorded.
///
/// All functions are called from an ordinary thread.
pub trait ProbeThreads {
    /// Returns the work of timer number `index` for each deadline. Called once per timer, before the timer is created.
    fn work(&mut self, index: usize) -> Option<Box<dyn Work>>;

    /// The probe's own threads.
    fn threads(&self) -> Vec<ThreadInfo<'_>>;

    /// Reads the data of its threads. Called about 25 times a second, and once after [`finish`](Self::finish).
    fn collect(&mut self);

    /// True if its own threads still wait for the first frame or datagram. Without timers, the duration of the phase
    /// begins with it; the wait lasts at most as long.
    fn awaits_first(&self) -> bool {
        false
    }

    /// True if its own threads have nothing more to receive. Without timers, this ends the phase.
    fn has_ended(&self) -> bool {
        true
    }

    /// Spikes of the work of timer number `index` since the last [`collect`](Self::collect), to be explained like those
    /// of the timer. Explanations written into them stay with the kept spikes.
    fn fresh_spikes(&mut self, _index: usize) -> &mut [Spike] {
        &mut []
    }

    /// Usual time of a timer's work, ns, if its spikes include the work; otherwise 0.
    fn usual_work_ns(&self) -> u64 {
        0
    }

    /// Counts a deadline of timer number `index` that had passed when the run was stopped, and for which no work was
    /// done.
    fn count_overdue(&mut self, _index: usize, _overdue: Overdue) {}

    /// Adds the results of its work to the series of timer number `index`.
    fn add_to(&self, _index: usize, _series: &mut Series) {}

    /// Waits for datagrams and frames in flight and ends the threads. Called when all timers have ended.
    fn finish(&mut self);

    /// The reason in words why the traffic has ended for good before the probe did: the other end or the interface is
    /// gone. Called after [`finish`](Self::finish).
    fn gone(&self) -> Option<String> {
        None
    }

    /// The series so far of its own threads, for the phase called `phase`. The caller fills in the memory lock and the
    /// idle state settings in `granted`.
    fn series(&self, phase: &str) -> Vec<Series>;

    /// Reasons why the run is invalid, as far as known. A reason that no longer holds is not returned again.
    fn reasons(&self) -> Vec<Reason>;

    /// Caveats about the figures. Called once, at the end.
    fn caveats(&self) -> Vec<Caveat>;
}

/// The work of a measuring thread at each deadline, after it has counted its lateness; e.g. to send a frame.
///
/// It runs on the measuring thread and must not allocate, lock, print or call anything unnecessary. It reports its
/// results like the thread itself, with counters and queues.
pub trait Work: Send {
    /// Does the work for one wake-up.
    fn at(&mut self, wake: Wake);

    /// Called once when the thread starts. Says what sets the deadlines; a device does so on the monotonic clock, in
    /// ascending order.
    ///
    /// # Errors
    /// If the device that sets the deadlines cannot be started.
    fn start(&mut self) -> io::Result<Pacer> {
        Ok(Pacer::Clock)
    }

    /// True if only a deadline or a signal ends [`wait`](Self::wait). The [`Timer`](crate::timer::Timer) then interrupts a
    /// wait that has lasted for a short time.
    fn waits_for_ever(&self) -> bool {
        false
    }

    /// Waits for the next deadline of a device. `None` if there was none for a short time, so that the thread can check
    /// whether to end.
    ///
    /// # Errors
    /// If the device that sets the deadlines stopped for good.
    fn wait(&mut self) -> io::Result<Option<Wake>> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// The source of the deadlines of a measuring thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pacer {
    /// The clock: every period.
    Clock,
    /// A device, every period: a deadline whose wake-up is pending at the end of the run is late.
    Periodic,
    /// A device, at any time: there is no deadline until it reports one.
    Irregular,
}

/// A wake-up, in times of the settings' clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wake {
    /// Number of the deadline, counted from the first one; missed deadlines count too.
    pub slot: u64,
    /// The deadline, ns.
    pub deadline_ns: i64,
    /// When the thread read the clock, ns.
    pub woke_ns: i64,
}

impl Wake {
    /// Wake-up time minus deadline, ns.
    #[inline]
    #[must_use]
    pub fn lateness_ns(&self) -> i64 {
        self.woke_ns - self.deadline_ns
    }
}

/// A deadline that had passed when a run was stopped, and whose thread had still not woken up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overdue {
    /// The deadline, ns after the first one.
    pub at_ns: u64,
    /// Time since then, ns: at least so late is its wake-up.
    pub lateness_ns: i64,
    /// Number of deadlines that have passed, with this one.
    pub deadlines: u64,
}

/// A measuring thread: its requested policy, and what the kernel granted.
#[derive(Debug, Clone)]
pub struct ThreadInfo<'a> {
    /// Name of the thread: `CPU 1`, `base`, `receiver`.
    pub place: String,
    /// The requested policy.
    pub policy: Policy,
    /// The settings that the kernel granted.
    pub grant: &'a Grant,
    /// Policy and CPUs at the end of the thread; `None` while it runs.
    pub at_end: Option<&'a Scheduling>,
}
