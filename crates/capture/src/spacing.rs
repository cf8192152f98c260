//! Intervals between frames: their distribution and bursts.

use record::{LargestFrames, saturating::Saturating};

use crate::tally::Tally;

/// Part of the intervals that are those within groups if frames come in groups: half of them in groups of two.
const IN_GROUPS: f64 = 0.4;
/// Fewer groups are those of stalls.
const GROUPS_MIN: u64 = 8;

/// The state of measuring the intervals of a stream.
pub(crate) struct Spacing {
    nominal_ns: u64,
    /// A smaller interval is one within a burst, ns.
    quarter_ns: i64,
    last_ns: Option<i64>,
    /// The time of the last frame that is not a copy, ns.
    original_ns: i64,
    pub(crate) all: Tally,
    pub(crate) worst: LargestFrames,
    pub(crate) out_of_order: u64,
    /// Frames per period.
    group: u64,
    run: u64,
    /// Intervals of less than a quarter of the period.
    close: u64,
    /// Groups of frames with such intervals.
    groups: u64,
    pub(crate) bursts: u64,
    pub(crate) longest_burst: u64,
}

impl Spacing {
    /// For frames with this nominal period, sent in groups of so many, with a pause of `idle_ns` after each group.
    pub(crate) fn new(nominal_ns: u64, group: u64, idle_ns: i64) -> Self {
        let quarter_ns = (nominal_ns / 4).cast_signed();
        Self {
            nominal_ns,
            quarter_ns: if group > 1 { quarter_ns.min(idle_ns / 2) } else { quarter_ns },
            group,
            last_ns: None,
            original_ns: 0,
            all: Tally::new(),
            worst: LargestFrames::default(),
            out_of_order: 0,
            run: 1,
            close: 0,
            groups: 0,
            bursts: 0,
            longest_burst: 0,
        }
    }

    /// The largest difference of an interval from the nominal one, ns; 0 without intervals.
    pub(crate) fn max_deviation_ns(&self) -> u64 {
        let deviation_ns = |ns: i64| ns.abs_diff(self.nominal_ns.cast_signed());
        if self.all.total == 0 { 0 } else { deviation_ns(self.all.min_ns).max(deviation_ns(self.all.max_ns)) }
    }

    /// True if most frames come in groups, or nearly half of them in groups of two.
    pub(crate) fn is_in_groups(&self) -> bool {
        self.close as f64 >= IN_GROUPS * self.all.total as f64 && self.groups >= GROUPS_MIN
    }

    /// Adds a frame. A copy that the capture made belongs to no burst.
    #[inline(always)]
    pub(crate) fn add(&mut self, frame: u64, at_ns: i64, is_copy: bool) {
        let Some(last_ns) = self.last_ns.replace(at_ns) else {
            self.original_ns = at_ns;
            return;
        };
        let gap_ns = at_ns.minus(last_ns);
        self.all.record(gap_ns);
        self.worst.add(frame, at_ns, gap_ns);
        self.out_of_order += u64::from(gap_ns < 0);
        if is_copy {
            return;
        }
        let since_original_ns = at_ns.minus(self.original_ns);
        self.original_ns = at_ns;
        // If the stamps go back, frames are not in their order, or the clock of the capture was set.
        if (0..self.quarter_ns).contains(&since_original_ns) {
            self.run += 1;
            self.close += 1;
            self.groups += u64::from(self.run == 2);
            self.bursts += u64::from(self.run == self.group + 1);
            if self.run > self.group {
                self.longest_burst = self.longest_burst.max(self.run);
            }
        } else {
            self.run = 1;
        }
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
