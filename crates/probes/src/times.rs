//! Statistics of one kind of time, written by one thread and read by another.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

use record::{Histogram, Times};

use crate::{counts::Counts, timer::shared::add};

/// Counters with one writer. Each is read separately, so they may differ by one value.
#[derive(Debug)]
pub struct TimeCounters {
    counts: Counts,
    sum_ns: AtomicI64,
    min_ns: AtomicI64,
    max_ns: AtomicI64,
    /// Times outside the histogram's range.
    outside: AtomicU64,
}

impl Default for TimeCounters {
    fn default() -> Self {
        Self {
            counts: Counts::default(),
            sum_ns: AtomicI64::new(0),
            min_ns: AtomicI64::new(i64::MAX),
            max_ns: AtomicI64::new(i64::MIN),
            outside: AtomicU64::new(0),
        }
    }
}

impl TimeCounters {
    /// Counts a time; `false` if it is out of the histogram's range.
    #[inline]
    pub fn note(&self, ns: i64) -> bool {
        self.sum_ns.store(self.sum_ns.load(Relaxed).wrapping_add(ns), Relaxed);
        if ns < self.min_ns.load(Relaxed) {
            self.min_ns.store(ns, Relaxed);
        }
        if ns > self.max_ns.load(Relaxed) {
            self.max_ns.store(ns, Relaxed);
        }
        let in_range = self.counts.count(ns);
        add(&self.outside, u64::from(!in_range));
        in_range
    }

    /// The largest time so far, ns; `i64::MIN` without any.
    #[inline]
    pub fn max_ns(&self) -> i64 {
        self.max_ns.load(Relaxed)
    }

    /// True if `ns` is within the histogram's range.
    pub fn holds(&self, ns: i64) -> bool {
        self.counts.holds(ns)
    }

    /// The histogram so far.
    pub fn histogram(&self) -> Histogram {
        self.counts.snapshot()
    }

    /// Number of times outside the histogram's range.
    pub fn outside(&self) -> u64 {
        self.outside.load(Relaxed)
    }

    /// The statistics so far; `None` if nothing was counted.
    pub fn to_record(&self) -> Option<Times> {
        let histogram = self.histogram();
        let count = histogram.total() + self.outside();
        (count > 0).then(|| Times {
            min_ns: self.min_ns.load(Relaxed),
            mean_ns: self.sum_ns.load(Relaxed) as f64 / count as f64,
            max_ns: self.max_ns.load(Relaxed),
            histogram,
        })
    }
}
