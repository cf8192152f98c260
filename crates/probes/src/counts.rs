//! The histogram that a measuring thread writes while another thread reads it.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use record::{Histogram, layout};

/// Lateness below 2^40 ns (18 min) has a bucket.
const LATE_BITS: u32 = 40;
/// Earliness below 2^24 ns (16 ms) has a bucket.
const EARLY_BITS: u32 = 24;

/// Counts by lateness, with one writer, any number of readers, and no lock. All memory is allocated at the start.
#[derive(Debug)]
pub struct Counts {
    late: Box<[AtomicU64]>,
    early: Box<[AtomicU64]>,
}

impl Default for Counts {
    fn default() -> Self {
        Self { late: zeroes(layout::buckets_for_bits(LATE_BITS)), early: zeroes(layout::buckets_for_bits(EARLY_BITS)) }
    }
}

fn zeroes(len: usize) -> Box<[AtomicU64]> {
    // Storing touches every page; a zeroed allocation alone would not.
    let counts: Box<[AtomicU64]> = (0..len).map(|_| AtomicU64::new(u64::MAX)).collect();
    counts.iter().for_each(|count| count.store(0, Relaxed));
    counts
}

impl Counts {
    /// Counts one wake-up; `false` if the value is out of range and was not counted. For the only writer.
    #[inline]
    #[must_use]
    pub fn count(&self, lateness_ns: i64) -> bool {
        let side = if lateness_ns >= 0 { &self.late } else { &self.early };
        match side.get(layout::index_of(lateness_ns.unsigned_abs())) {
            Some(count) => {
                // There is only one writer, so a plain load and store suffice; a locked addition would cost more.
                count.store(count.load(Relaxed) + 1, Relaxed);
                true
            }
            None => false,
        }
    }

    /// True if `lateness_ns` is within the range.
    #[must_use]
    pub fn holds(&self, lateness_ns: i64) -> bool {
        let side = if lateness_ns >= 0 { &self.late } else { &self.early };
        layout::index_of(lateness_ns.unsigned_abs()) < side.len()
    }

    /// Returns the counts so far as a histogram.
    #[must_use]
    pub fn snapshot(&self) -> Histogram {
        let value_ns = |index| layout::highest_in(index).cast_signed();
        let early = used(&self.early).rev().map(|(index, count)| (-value_ns(index), count));
        Histogram::from_buckets(early.chain(used(&self.late).map(|(index, count)| (value_ns(index), count))))
    }
}

/// The buckets with a count, in ascending order: index, count. Nearly all have none, and this runs once a second.
fn used(side: &[AtomicU64]) -> impl DoubleEndedIterator<Item = (usize, u64)> + '_ {
    side.iter().map(|count| count.load(Relaxed)).enumerate().filter(|&(_, count)| count > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn refuses_values_out_of_range() {
        let counts = Counts::default();
        for (lateness_ns, counted) in [
            ((1 << LATE_BITS) - 1, true),
            (1 << LATE_BITS, false),
            (-(1 << EARLY_BITS) + 1, true),
            (-(1 << EARLY_BITS), false),
        ] {
            assert_eq!(counts.count(lateness_ns), counted, "{lateness_ns}");
        }
        assert_eq!(counts.snapshot().total(), 2);
    }

    proptest! {
        #[test]
        fn counts_like_the_sparse_histogram(values in prop::collection::vec(-16_000_000..1_000_000_000_000i64, 0..100)) {
            let counts = Counts::default();
            let mut sparse = Histogram::default();
            for &value in &values {
                prop_assert!(counts.count(value));
                sparse.record(value);
            }
            prop_assert_eq!(counts.snapshot(), sparse);
        }
    }
}
