//! Times of one kind, counted by one thread and read by another.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

use record::{Histogram, Times};

use crate::{counts::Counts, timer::shared::add};

/// Counters that one thread alone writes. Each is read on its own; together they may be one time apart.
#[derive(Debug)]
pub struct Counted {
    counts: Counts,
    sum_ns: AtomicI64,
    min_ns: AtomicI64,
    max_ns: AtomicI64,
    /// Times outside the histogram's range.
    outside: AtomicU64,
}

impl Default for Counted {
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

impl Counted {
    /// Counts one; `false` where it lies outside the histogram's range.
    #[inline]
    pub fn note(&self, ns: i64) -> bool {
        self.sum_ns.store(self.sum_ns.load(Relaxed).wrapping_add(ns), Relaxed);
        if ns < self.min_ns.load(Relaxed) {
            self.min_ns.store(ns, Relaxed);
        }
        if ns > self.max_ns.load(Relaxed) {
            self.max_ns.store(ns, Relaxed);
        }
        let counted = self.counts.count(ns);
        add(&self.outside, u64::from(!counted));
        counted
    }

    /// The largest so far, ns; `i64::MIN` for none.
    #[inline]
    pub fn max_ns(&self) -> i64 {
        self.max_ns.load(Relaxed)
    }

    /// Whether `ns` lies inside the histogram's range.
    pub fn holds(&self, ns: i64) -> bool {
        self.counts.holds(ns)
    }

    /// The histogram so far.
    pub fn histogram(&self) -> Histogram {
        self.counts.snapshot()
    }

    /// Times that are in no bucket.
    pub fn outside(&self) -> u64 {
        self.outside.load(Relaxed)
    }

    /// What has been counted so far; `None` where nothing was.
    pub fn told(&self) -> Option<Times> {
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
