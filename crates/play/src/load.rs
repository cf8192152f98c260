//! Load of the audio thread, and the reason of its end: written by that thread, read by others at any time.

use std::sync::{
    OnceLock,
    atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed},
};

/// State shared with the audio thread, which is the only writer of everything but `stop`.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    periods: AtomicU64,
    xruns: AtomicU64,
    throttled: AtomicU64,
    overruns: AtomicU64,
    work_ns: AtomicU64,
    played_ns: AtomicU64,
    period_ns: AtomicU64,
    /// Bits of an `f32`. The bits of positive numbers are ordered like their values, so `fetch_max` works on them.
    max_share: AtomicU32,
    recent_max_share: AtomicU32,
    stop: AtomicBool,
    end: OnceLock<End>,
}

/// Why the audio thread ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Another thread asked it to stop.
    Stopped,
    /// The card was removed.
    Gone,
    /// The card failed with this error number, 0 if unknown.
    Card(i32),
    /// The card stopped in both directions.
    Silent,
    /// The JACK server ended, or removed this client.
    Server,
    /// The JACK server changed its sample rate to this one, Hz.
    Rate(u32),
    /// Ordinary threads did not run for five seconds.
    Starved,
    /// It panicked; the message is on standard error.
    Broken,
}

/// Load of the audio thread since its start.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Load {
    /// Periods played.
    pub periods: u64,
    /// Overruns and underruns of the card.
    pub xruns: u64,
    /// Forced sleeps of 50 ms, because the thread never slept by itself.
    pub throttled: u64,
    /// Periods whose processing took longer than a period.
    pub overruns: u64,
    /// Total processing time, ns.
    pub work_ns: u64,
    /// Total length of all periods, ns.
    pub played_ns: u64,
    /// Length of the last period, ns.
    pub period_ns: u64,
    /// Largest processing time of a period, as a fraction of the period.
    pub max_share: f32,
    /// The same since the last call of [`Engine::load`](crate::Engine::load).
    pub recent_max_share: f32,
}

/// Adds without an atomic read-modify-write, because there is only one writer.
fn add(count: &AtomicU64, more: u64) {
    count.store(count.load(Relaxed) + more, Relaxed);
}

impl Shared {
    /// Counts a period.
    #[inline]
    pub fn note(&self, work_ns: u64, period_ns: u64) {
        add(&self.periods, 1);
        add(&self.work_ns, work_ns);
        add(&self.played_ns, period_ns);
        add(&self.overruns, u64::from(work_ns > period_ns));
        self.period_ns.store(period_ns, Relaxed);
        let share = (work_ns as f32 / period_ns.max(1) as f32).to_bits();
        self.max_share.fetch_max(share, Relaxed);
        self.recent_max_share.fetch_max(share, Relaxed);
    }

    #[cold]
    pub fn note_xrun(&self) {
        add(&self.xruns, 1);
    }

    #[cold]
    pub fn note_throttled(&self) {
        add(&self.throttled, 1);
    }

    #[inline]
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Relaxed)
    }

    pub fn stop(&self) {
        self.stop.store(true, Relaxed);
    }

    /// Records the reason of the end. Only the first call has an effect.
    pub fn set_end(&self, end: End) {
        let _ = self.end.set(end);
    }

    pub fn end(&self) -> Option<End> {
        self.end.get().copied()
    }

    /// The current load. Resets the recent maximum.
    pub fn read(&self) -> Load {
        let get = |count: &AtomicU64| count.load(Relaxed);
        Load {
            periods: get(&self.periods),
            xruns: get(&self.xruns),
            throttled: get(&self.throttled),
            overruns: get(&self.overruns),
            work_ns: get(&self.work_ns),
            played_ns: get(&self.played_ns),
            period_ns: get(&self.period_ns),
            max_share: f32::from_bits(self.max_share.load(Relaxed)),
            recent_max_share: f32::from_bits(self.recent_max_share.swap(0, Relaxed)),
        }
    }
}

impl Load {
    /// Mean fraction of a period that processing took since `earlier`; 0 if nothing was played, above 1 if it was late.
    #[must_use]
    pub fn share_since(&self, earlier: &Self) -> f64 {
        match self.played_ns.saturating_sub(earlier.played_ns) {
            0 => 0.0,
            played_ns => self.work_ns.saturating_sub(earlier.work_ns) as f64 / played_ns as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_work_and_resets_the_recent_maximum() {
        let shared = Shared::default();
        shared.note(300, 1000);
        let before = shared.read();
        shared.note(1_100, 1000);
        shared.note(900, 3000);
        shared.note_xrun();
        let load = shared.read();
        assert_eq!((load.periods, load.xruns, load.overruns, load.period_ns), (3, 1, 1, 3000));
        assert_eq!((before.recent_max_share, load.max_share, load.recent_max_share), (0.3, 1.1, 1.1));
        assert!((load.share_since(&before) - 0.5).abs() < 1e-12);
        assert_eq!((shared.read().recent_max_share, load.share_since(&load)), (0.0, 0.0));
    }
}
