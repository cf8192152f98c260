//! The wake-up to explain, and the thread that it belongs to.

/// The measuring thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MeasuredThread {
    /// Thread id.
    pub pid: u32,
    /// Priority as the kernel counts: -1 deadline, 0 to 98 real-time (99 minus the number), 100 to 139 ordinary.
    pub priority: i32,
    /// The CPU on which it woke up.
    pub cpu: u32,
    /// True if the thread never sleeps. Its "wake-ups" are gaps: from the deadline to the wake-up it did not run.
    pub spins: bool,
    /// The kernel may delay the thread's timers by this, ns; 0 for a real-time thread. Source: prctl(2),
    /// PR_SET_TIMERSLACK.
    pub slack_ns: u64,
    /// True if an interrupt of a device ends its wait, and not its timer.
    pub awaits_device: bool,
    /// True if its control group, or one above it, has a CPU quota, which can stop ordinary threads.
    pub has_quota: bool,
}

/// One wake-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WakeUp {
    /// The deadline, ns on CLOCK_MONOTONIC.
    pub deadline_ns: u64,
    /// When the measuring thread read the clock after waking up, ns on CLOCK_MONOTONIC.
    pub woke_ns: u64,
    /// The work after the wake-up, if it is part of the spike.
    pub work: Work,
}

/// Work of the measuring thread right after its wake-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Work {
    /// Duration, ns.
    pub ns: u64,
    /// Usual duration, ns.
    pub usual_ns: u64,
}

impl WakeUp {
    /// End of the explained time, ns on CLOCK_MONOTONIC.
    #[must_use]
    pub fn end_ns(&self) -> u64 {
        self.woke_ns.saturating_add(self.work.ns)
    }
}
