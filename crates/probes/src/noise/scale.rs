//! Conversion from ticks of a counter to ns of the clock.

use std::{thread, time::Duration};

use sys::{clock::Clock, counter::Ticks};

/// Duration of the calibration.
const CALIBRATION: Duration = Duration::from_millis(20);
/// Number of paired readings; the closest pair counts, because an interruption can separate the two.
const READINGS: usize = 9;
/// The counter is steady if it deviates from the clock's time by at most 1/`MAX_DEVIATION`, plus [`BETWEEN_NS`].
const MAX_DEVIATION: u64 = 1000;
/// Allowance for the time between reading the two, ns.
const BETWEEN_NS: u64 = 10_000;

/// Length of a tick.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    ns_per_tick: f64,
}

/// The same instant on the counter and on CLOCK_MONOTONIC.
#[derive(Debug, Clone, Copy)]
pub struct Anchor {
    pub ticks: u64,
    pub ns: i64,
    /// Largest possible distance between the two readings, ticks.
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

    /// Reads both several times and returns the closest pair.
    pub fn closest<T: Ticks>() -> Self {
        let first = Self::now::<T>();
        (1..READINGS)
            .map(|_| Self::now::<T>())
            .fold(first, |best, next| if next.width < best.width { next } else { best })
    }

    /// True if the two readings are at most `ticks` apart.
    pub fn is_within(&self, ticks: u64) -> bool {
        self.width <= ticks
    }
}

impl Scale {
    /// The scale of a counter in ns.
    pub const NANOSECONDS: Self = Self { ns_per_tick: 1.0 };

    /// Calibrates a counter with the clock.
    pub fn measure<T: Ticks>() -> Self {
        let begin = Anchor::closest::<T>();
        thread::sleep(CALIBRATION);
        let end = Anchor::closest::<T>();
        let ticks = end.ticks.wrapping_sub(begin.ticks).max(1);
        Self { ns_per_tick: (end.ns - begin.ns) as f64 / ticks as f64 }
    }

    /// Converts ticks to ns.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "not negative; saturates")]
    pub fn ns(self, ticks: u64) -> u64 {
        (ticks as f64 * self.ns_per_tick).round() as u64
    }

    /// Converts ns to ticks.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "not negative; saturates")]
    pub fn ticks(self, ns: u64) -> u64 {
        (ns as f64 / self.ns_per_tick).round() as u64
    }

    /// Time at which the counter was `ticks`, ns on CLOCK_MONOTONIC.
    #[expect(clippy::cast_possible_truncation, reason = "a time in a run; saturates")]
    pub fn at(self, anchor: Anchor, ticks: u64) -> i64 {
        let since = ticks.wrapping_sub(anchor.ticks).cast_signed();
        anchor.ns + (since as f64 * self.ns_per_tick).round() as i64
    }

    /// True if counter and clock agree on the time between two instants.
    pub fn is_steady(self, begin: Anchor, end: Anchor) -> bool {
        let by_clock_ns = end.ns.abs_diff(begin.ns);
        let by_counter_ns = self.ns(end.ticks.wrapping_sub(begin.ticks));
        let between_ns = BETWEEN_NS + self.ns(begin.width) + self.ns(end.width);
        by_clock_ns.abs_diff(by_counter_ns) <= by_clock_ns / MAX_DEVIATION + between_ns
    }
}

#[cfg(test)]
mod tests {
    use sys::counter::{Cycles, Nanoseconds};

    use super::*;

    #[test]
    fn the_clock_has_one_tick_per_ns() {
        let scale = Scale::measure::<Nanoseconds>();
        assert!((scale.ns_per_tick - 1.0).abs() < 1e-3, "{scale:?}");
        assert_eq!(Scale::NANOSECONDS.ticks(1500), 1500);
    }

    #[test]
    fn ticks_and_clock_agree() {
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
    fn handles_overflow_and_instants_before_the_anchor() {
        let anchor = Anchor { ticks: u64::MAX - 4, ns: 100, width: 0 };
        assert_eq!(Scale::NANOSECONDS.at(anchor, 5), 110);
        assert_eq!(Scale::NANOSECONDS.at(anchor, u64::MAX - 14), 90);
    }
}
