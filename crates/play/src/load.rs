//! What the audio thread tells of its work, and others read at any time.

use std::sync::{
    OnceLock,
    atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed},
};

/// What the thread writes, it alone, and others read.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    periods: AtomicU64,
    xruns: AtomicU64,
    rests: AtomicU64,
    late: AtomicU64,
    work_ns: AtomicU64,
    played_ns: AtomicU64,
    period_ns: AtomicU64,
    /// Shares as bits: those of positive numbers rise with the number.
    most_share: AtomicU32,
    recent_share: AtomicU32,
    stop: AtomicBool,
    end: OnceLock<End>,
}

/// How the audio thread came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It was told to.
    Stopped,
    /// The card is gone.
    Gone,
    /// The card refused something, with this error number; 0 where it told none.
    Card(i32),
    /// The card moved in neither direction.
    Silent,
    /// JACK's server ended, or cut us off.
    Server,
    /// JACK's server changed its sample rate, to this one, Hz.
    Rate(u32),
    /// Ordinary threads did not get to run for five seconds.
    Starved,
    /// It panicked; its own words stand on standard error.
    Broken,
}

/// The work of the audio thread so far.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Load {
    /// Periods played.
    pub periods: u64,
    /// Times that the card ran over us.
    pub xruns: u64,
    /// Rests of 50 ms, because the thread never slept.
    pub rests: u64,
    /// Periods whose work took longer than a period.
    pub late: u64,
    /// Time of all work, ns.
    pub work_ns: u64,
    /// Time that all periods lasted, ns.
    pub played_ns: u64,
    /// Time that the last one lasted, ns.
    pub period_ns: u64,
    /// Largest share of a period that its work took: 1 for all of it.
    pub most_share: f32,
    /// Largest share since this was last read.
    pub recent_share: f32,
}

/// A plain addition: there is one writer.
fn add(count: &AtomicU64, more: u64) {
    count.store(count.load(Relaxed) + more, Relaxed);
}

impl Shared {
    #[inline]
    pub fn note(&self, work_ns: u64, period_ns: u64) {
        add(&self.periods, 1);
        add(&self.work_ns, work_ns);
        add(&self.played_ns, period_ns);
        add(&self.late, u64::from(work_ns > period_ns));
        self.period_ns.store(period_ns, Relaxed);
        let share = (work_ns as f32 / period_ns.max(1) as f32).to_bits();
        self.most_share.fetch_max(share, Relaxed);
        self.recent_share.fetch_max(share, Relaxed);
    }

    #[cold]
    pub fn note_xrun(&self) {
        add(&self.xruns, 1);
    }

    #[cold]
    pub fn note_rest(&self) {
        add(&self.rests, 1);
    }

    #[inline]
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Relaxed)
    }

    pub fn stop(&self) {
        self.stop.store(true, Relaxed);
    }

    pub fn set_end(&self, end: End) {
        // The thread ends once.
        let _ = self.end.set(end);
    }

    pub fn end(&self) -> Option<End> {
        self.end.get().copied()
    }

    /// The recent maximum begins anew.
    pub fn read(&self) -> Load {
        let get = |count: &AtomicU64| count.load(Relaxed);
        Load {
            periods: get(&self.periods),
            xruns: get(&self.xruns),
            rests: get(&self.rests),
            late: get(&self.late),
            work_ns: get(&self.work_ns),
            played_ns: get(&self.played_ns),
            period_ns: get(&self.period_ns),
            most_share: f32::from_bits(self.most_share.load(Relaxed)),
            recent_share: f32::from_bits(self.recent_share.swap(0, Relaxed)),
        }
    }
}

impl Load {
    /// Mean share of a period that the work took since an earlier look, 0 to 1 and beyond; 0 where nothing was played.
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
    fn work_is_added_up_and_the_recent_maximum_begins_anew() {
        let shared = Shared::default();
        shared.note(300, 1000);
        let before = shared.read();
        shared.note(1_100, 1000);
        shared.note(900, 3000);
        shared.note_xrun();
        let load = shared.read();
        assert_eq!((load.periods, load.xruns, load.late, load.period_ns), (3, 1, 1, 3000));
        assert_eq!((before.recent_share, load.most_share, load.recent_share), (0.3, 1.1, 1.1));
        assert!((load.share_since(&before) - 0.5).abs() < 1e-12);
        assert_eq!((shared.read().recent_share, load.share_since(&load)), (0.0, 0.0));
    }
}
