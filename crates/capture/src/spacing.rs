//! Intervals between frames: their distribution and bursts.

use record::LargestFrames;

use crate::tally::Tally;

/// The state of measuring the intervals of a stream.
pub(crate) struct Spacing {
    nominal_ns: u64,
    last_ns: Option<i64>,
    pub(crate) all: Tally,
    pub(crate) worst: LargestFrames,
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
            worst: LargestFrames::default(),
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
        let mut largest = LargestFrames::default();
        (0..100).for_each(|n| largest.add(n, 0, (n * 37 % 100).cast_signed()));
        let kept: Vec<_> = largest.into_vec().iter().map(|one| one.ns).collect();
        assert_eq!(kept, (80..100).rev().collect::<Vec<_>>());
    }
}
