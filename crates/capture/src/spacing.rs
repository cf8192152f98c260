//! Intervals between frames: their distribution and bursts.

use record::{MarkedFrame, WORST_KEPT};

use crate::tally::Tally;

/// The largest values, in descending order.
#[derive(Default)]
pub(crate) struct Largest(Vec<MarkedFrame>);

impl Largest {
    #[inline]
    pub(crate) fn add(&mut self, frame: u64, at_ns: i64, ns: i64) {
        if self.0.len() == WORST_KEPT && self.0.last().is_some_and(|last| last.ns >= ns) {
            return;
        }
        let position = self.0.partition_point(|known| known.ns >= ns);
        self.0.insert(position, MarkedFrame { frame, at_ns, ns });
        self.0.truncate(WORST_KEPT);
    }

    pub(crate) fn as_slice(&self) -> &[MarkedFrame] {
        &self.0
    }

    pub(crate) fn into_vec(self) -> Vec<MarkedFrame> {
        self.0
    }
}

/// The state of measuring the intervals of a stream.
pub(crate) struct Spacing {
    nominal_ns: u64,
    last_ns: Option<i64>,
    pub(crate) all: Tally,
    pub(crate) worst: Largest,
    pub(crate) max_deviation_ns: u64,
    pub(crate) out_of_order: u64,
    /// Frames per period.
    group: u64,
    run: u64,
    pub(crate) bursts: u64,
    pub(crate) longest_burst: u64,
}

impl Spacing {
    pub(crate) fn new(nominal_ns: u64, group: u64) -> Self {
        Self {
            nominal_ns,
            group,
            last_ns: None,
            all: Tally::new(),
            worst: Largest::default(),
            max_deviation_ns: 0,
            out_of_order: 0,
            run: 1,
            bursts: 0,
            longest_burst: 0,
        }
    }

    /// Adds a frame; returns the interval before it, ns.
    #[inline]
    pub(crate) fn add(&mut self, frame: u64, at_ns: i64) -> Option<i64> {
        let gap_ns = at_ns.saturating_sub(self.last_ns.replace(at_ns)?);
        self.all.record(gap_ns);
        self.worst.add(frame, at_ns, gap_ns);
        self.max_deviation_ns = self.max_deviation_ns.max(gap_ns.abs_diff(self.nominal_ns.cast_signed()));
        self.out_of_order += u64::from(gap_ns < 0);
        if gap_ns < (self.nominal_ns / 4).cast_signed() {
            self.run += 1;
            self.bursts += u64::from(self.run == self.group + 1);
            if self.run > self.group {
                self.longest_burst = self.longest_burst.max(self.run);
            }
        } else {
            self.run = 1;
        }
        Some(gap_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_largest_in_order() {
        let mut largest = Largest::default();
        (0..100).for_each(|n| largest.add(n, 0, (n * 37 % 100).cast_signed()));
        let kept: Vec<_> = largest.into_vec().iter().map(|one| one.ns).collect();
        assert_eq!(kept, (80..100).rev().collect::<Vec<_>>());
    }
}
