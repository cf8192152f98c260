//! The meter of a thread: when it must stop, and how much it has done.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

/// Signals a thread to stop, and counts its operations.
pub(crate) struct Meter {
    pub stop: Arc<AtomicBool>,
    pub done: Arc<Count>,
}

/// A counter on its own cache line, so that threads do not slow each other down by counting.
#[repr(align(128))]
#[derive(Default)]
pub(crate) struct Count(pub AtomicU64);

impl Meter {
    /// A meter that is never stopped.
    #[cfg(test)]
    pub(crate) fn idle() -> Self {
        Self { stop: Arc::default(), done: Arc::default() }
    }

    /// True until the thread must stop.
    pub(crate) fn running(&self) -> bool {
        !self.stop.load(Ordering::Relaxed)
    }

    /// Adds operations.
    pub(crate) fn add(&self, operations: u64) {
        self.done.0.fetch_add(operations, Ordering::Relaxed);
    }

    /// Sets the number of operations, if something else counts them.
    pub(crate) fn set(&self, operations: u64) {
        self.done.0.store(operations, Ordering::Relaxed);
    }

    /// Sleeps for `time`, or less if the thread must stop. Returns false in that case.
    pub(crate) fn pause(&self, time: Duration) -> bool {
        const STEP: Duration = Duration::from_millis(20);
        let until = Instant::now() + time;
        while self.running() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            thread::sleep(left.min(STEP));
        }
        false
    }
}
