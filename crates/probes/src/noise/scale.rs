//! From ticks of a counter to ns on the clock.

use std::{thread, time::Duration};

use sys::{clock::Clock, counter::Ticks};

/// How long the counter is held against the clock.
const HELD_FOR: Duration = Duration::from_millis(20);
/// How often the two are read together; the closest pair counts, since something may come between.
const LOOKS: usize = 9;
/// The counter may be off by one part in so many of the time that the clock tells, ...
const STEADY: u64 = 1000;
/// ... and by this much, for what comes between reading the two, ns.
const BETWEEN_NS: u64 = 10_000;

/// How long a tick is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    ns_per_tick: f64,
}

/// The same moment on the counter and on CLOCK_MONOTONIC.
#[derive(Debug, Clone, Copy)]
pub struct Anchor {
    pub ticks: u64,
    pub ns: i64,
    /// How far apart the two may lie, ticks.
    width: u64,
}

impl Anchor {
    /// Reads both once.
    #[inline]
    pub fn now<T: Ticks>() -> Self {
        let before = T::now();
        let ns = Clock::Monotonic.now_ns();
        let width = T::now().wrapping_sub(before);
        Self { ticks: before.wrapping_add(width / 2), ns, width }
    }

    /// Reads both a few times.
    pub fn closest<T: Ticks>() -> Self {
        let first = Self::now::<T>();
        (1..LOOKS).map(|_| Self::now::<T>()).fold(first, |best, look| if look.width < best.width { look } else { best })
    }

    /// Whether nothing longer than `ticks` came between reading the two.
    pub fn is_within(&self, ticks: u64) -> bool {
        self.width <= ticks
    }
}

impl Scale {
    /// That of a counter of ns.
    pub const NANOSECONDS: Self = Self { ns_per_tick: 1.0 };

    /// Holds a counter against the clock.
    pub fn measure<T: Ticks>() -> Self {
        let begin = Anchor::closest::<T>();
        thread::sleep(HELD_FOR);
        let end = Anchor::closest::<T>();
        let ticks = end.ticks.wrapping_sub(begin.ticks).max(1);
        Self { ns_per_tick: (end.ns - begin.ns) as f64 / ticks as f64 }
    }

    /// So many ticks in ns.
    pub fn ns(self, ticks: u64) -> u64 {
        (ticks as f64 * self.ns_per_tick).round() as u64
    }

    /// So many ns in ticks.
    pub fn ticks(self, ns: u64) -> u64 {
        (ns as f64 / self.ns_per_tick).round() as u64
    }

    /// When the counter stood at `ticks`, ns on CLOCK_MONOTONIC.
    pub fn at(self, anchor: Anchor, ticks: u64) -> i64 {
        let since = ticks.wrapping_sub(anchor.ticks) as i64;
        anchor.ns + (since as f64 * self.ns_per_tick).round() as i64
    }

    /// Whether counter and clock tell the same time between two moments.
    pub fn is_steady(self, begin: Anchor, end: Anchor) -> bool {
        let by_clock_ns = end.ns.abs_diff(begin.ns);
        let by_counter_ns = self.ns(end.ticks.wrapping_sub(begin.ticks));
        let between_ns = BETWEEN_NS + self.ns(begin.width) + self.ns(end.width);
        by_clock_ns.abs_diff(by_counter_ns) <= by_clock_ns / STEADY + between_ns
    }
}

#[cfg(test)]
mod tests {
    use sys::counter::{Cycles, Nanoseconds};

    use super::*;

    #[test]
    fn the_clock_is_its_own_measure() {
        let scale = Scale::measure::<Nanoseconds>();
        assert!((scale.ns_per_tick - 1.0).abs() < 1e-3, "{scale:?}");
        assert_eq!(Scale::NANOSECONDS.ticks(1500), 1500);
    }

    #[test]
    fn ticks_and_clock_tell_the_same_time() {
        let scale = Scale::measure::<Cycles>();
        let begin = Anchor::closest::<Cycles>();
        thread::sleep(Duration::from_millis(10));
        let end = Anchor::closest::<Cycles>();
        assert!(scale.is_steady(begin, end), "{scale:?} {begin:?} {end:?}");
        let slow = Scale { ns_per_tick: scale.ns_per_tick * 1.2 };
        assert!(!slow.is_steady(begin, end));
        let off_ns = scale.at(begin, end.ticks).abs_diff(end.ns);
        assert!(off_ns < 10_000 + scale.ns(begin.width + end.width), "{off_ns}");
    }

    #[test]
    fn a_counter_may_run_over_and_a_moment_lie_before_its_anchor() {
        let anchor = Anchor { ticks: u64::MAX - 4, ns: 100, width: 0 };
        assert_eq!(Scale::NANOSECONDS.at(anchor, 5), 110);
        assert_eq!(Scale::NANOSECONDS.at(anchor, u64::MAX - 14), 90);
    }
}
