//! Counts by value with one increment per value while a file is read. Converted to the record's histogram at the end.

use record::{Histogram, layout};

/// Values up to one minute have their own bucket.
const BITS: u32 = 36;

/// A histogram under construction.
pub(crate) struct Tally {
    counts: Vec<u64>,
    /// Negative values and values above the range.
    rest: Histogram,
    pub(crate) total: u64,
    pub(crate) min_ns: i64,
    pub(crate) max_ns: i64,
    sum_ns: i128,
}

impl Tally {
    pub(crate) fn new() -> Self {
        Self {
            counts: vec![0; layout::buckets_for_bits(BITS)],
            rest: Histogram::default(),
            total: 0,
            min_ns: i64::MAX,
            max_ns: i64::MIN,
            sum_ns: 0,
        }
    }

    #[inline]
    pub(crate) fn record(&mut self, ns: i64) {
        self.total += 1;
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
        self.sum_ns += i128::from(ns);
        self.count(ns);
    }

    /// Adds values as [`Self::record`] does.
    #[inline]
    pub(crate) fn record_all(&mut self, all_ns: impl ExactSizeIterator<Item = i64>) {
        self.total += all_ns.len() as u64;
        let (mut min_ns, mut max_ns, mut sum_ns) = (self.min_ns, self.max_ns, 0);
        for ns in all_ns {
            (min_ns, max_ns, sum_ns) = (min_ns.min(ns), max_ns.max(ns), sum_ns + i128::from(ns));
            self.count(ns);
        }
        (self.min_ns, self.max_ns) = (min_ns, max_ns);
        self.sum_ns += sum_ns;
    }

    #[inline(always)]
    fn count(&mut self, ns: i64) {
        let bucket = u64::try_from(ns).ok().and_then(|ns| self.counts.get_mut(layout::index_of(ns)));
        match bucket {
            Some(count) => *count += 1,
            None => self.rest.record(ns),
        }
    }

    pub(crate) fn mean_ns(&self) -> Option<f64> {
        (self.total > 0).then(|| self.sum_ns as f64 / self.total as f64)
    }

    pub(crate) fn into_histogram(self) -> Histogram {
        let mut histogram = self.rest;
        // The buckets outside min and max are empty.
        let Ok(max) = u64::try_from(self.max_ns) else { return histogram };
        let (first, last) = (layout::index_of(self.min_ns.max(0).cast_unsigned()), layout::index_of(max));
        let filled = self.counts.iter().enumerate().take(last + 1).skip(first).filter(|(_, count)| **count > 0);
        filled.for_each(|(index, count)| histogram.add(layout::highest_in(index).cast_signed(), *count));
        histogram
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn equals_a_histogram_of_the_same_values(values in prop::collection::vec(prop_oneof![any::<i64>(), -5_000..2_000_000i64], 1..200)) {
            let (mut tally, mut plain) = (Tally::new(), Histogram::default());
            let (one_by_one, together) = values.split_at(values.len() / 3);
            one_by_one.iter().for_each(|&ns| tally.record(ns));
            tally.record_all(together.iter().copied());
            values.iter().for_each(|&ns| plain.record(ns));
            prop_assert_eq!(tally.sum_ns, values.iter().copied().map(i128::from).sum::<i128>());
            prop_assert_eq!(tally.total, values.len() as u64);
            prop_assert_eq!((tally.min_ns, tally.max_ns), (*values.iter().min().unwrap(), *values.iter().max().unwrap()));
            prop_assert_eq!(tally.into_histogram(), plain);
        }
    }
}
