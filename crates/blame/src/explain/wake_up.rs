//! The wake-up to explain, and the thread that it belongs to.

/// The measuring thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MeasuredThread {
    /// Its process id (that of the thread).
    pub pid: u32,
    /// Its priority as the kernel counts: -1 deadline, 0 to 98 real-time (99 minus it), 100 to 139 ordinary.
    pub priority: i32,
    /// The CPU on which it woke.
    pub cpu: u32,
    /// It never sleeps: what is explained is a gap, from the deadline to the wake-up, in which it did not get on.
    pub spins: bool,
}

/// One wake-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WakeUp {
    /// When it was to be, ns on CLOCK_MONOTONIC.
    pub deadline_ns: u64,
    /// When the measuring thread looked at the clock, ns on CLOCK_MONOTONIC.
    pub woke_ns: u64,
    /// What it did then, where that is to be explained, too.
    pub work: Work,
}

/// Work that a measuring thread did as soon as it woke.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Work {
    /// How long it took, ns.
    pub ns: u64,
    /// How long it usually takes, ns.
    pub usual_ns: u64,
}

impl WakeUp {
    /// When everything that is to be explained was over, ns on CLOCK_MONOTONIC.
    #[must_use]
    pub fn end_ns(&self) -> u64 {
        self.woke_ns.saturating_add(self.work.ns)
    }
}
