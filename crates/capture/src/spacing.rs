//! Intervals between frames: their distribution, bursts and resolution.

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
    /// Greatest common divisor of all intervals, ns; 0 before the first one.
    step_ns: u64,
    run: u64,
    pub(crate) bursts: u64,
    pub(crate) longest_burst: u64,
}

impl Spacing {
    pub(crate) fn new(nominal_ns: u64) -> Self {
        Self {
            nominal_ns,
            last_ns: None,
            all: Tally::new(),
            worst: Largest::default(),
            max_deviation_ns: 0,
            out_of_order: 0,
            step_ns: 0,
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
        if self.step_ns != 1 {
            self.step_ns = gcd(self.step_ns, gap_ns.unsigned_abs());
        }
        if gap_ns < (self.nominal_ns / 4).cast_signed() {
            self.run += 1;
            self.bursts += u64::from(self.run == 2);
            self.longest_burst = self.longest_burst.max(self.run);
        } else {
            self.run = 1;
        }
        Some(gap_ns)
    }

    /// The timestamp resolution derived from the intervals, ns; 1 if unknown. If all intervals are multiples of about
    /// one period, that shows a regular stream, not a coarse clock.
    pub(crate) fn found_resolution_ns(&self) -> u64 {
        let regular = self.nominal_ns / 2..=self.nominal_ns.saturating_mul(3) / 2;
        if self.all.total < 16 || self.step_ns == 0 || regular.contains(&self.step_ns) { 1 } else { self.step_ns }
    }
}

/// The greatest common divisor. One division if `a` divides `b`, the usual case.
#[inline]
fn gcd(mut a: u64, mut b: u64) -> u64 {
    while a != 0 {
        (a, b) = (b % a, a);
    }
    b
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn computes_greatest_common_divisors() {
        assert_eq!([gcd(0, 12), gcd(12, 0), gcd(12, 18), gcd(5, 10), gcd(7, 13)], [12, 12, 6, 5, 1]);
    }

    #[test]
    fn keeps_the_largest_in_order() {
        let mut largest = Largest::default();
        (0..100).for_each(|n| largest.add(n, 0, (n * 37 % 100).cast_signed()));
        let kept: Vec<_> = largest.into_vec().iter().map(|one| one.ns).collect();
        assert_eq!(kept, (80..100).rev().collect::<Vec<_>>());
    }
}
