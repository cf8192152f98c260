//! Times of other clocks on CLOCK_MONOTONIC.

use sys::clock::Clock;

use super::calls::{BOOTTIME, REALTIME, TAI};

/// The longest sleep whose end is used, and the longest time that a deadline may be in the past, ns.
const NEAR_NS: u64 = 3_600_000_000_000;

/// How far other clocks are ahead of CLOCK_MONOTONIC, ns; `None` if it is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClockOffsets {
    /// CLOCK_REALTIME.
    pub realtime_ns: Option<i64>,
    /// CLOCK_TAI.
    pub tai_ns: Option<i64>,
    /// CLOCK_BOOTTIME.
    pub boottime_ns: Option<i64>,
}

impl ClockOffsets {
    /// Reads the clocks.
    #[must_use]
    pub fn read() -> Self {
        /// The reading with the shortest time between its two readings of CLOCK_MONOTONIC is the most precise one.
        const READINGS: usize = 5;
        let reading = |clock: Clock| {
            let (before_ns, other_ns, after_ns) =
                (Clock::Monotonic.now_ns(), clock.now_ns(), Clock::Monotonic.now_ns());
            (after_ns - before_ns, other_ns - (before_ns + (after_ns - before_ns) / 2))
        };
        let offset_ns = |clock| (0..READINGS).map(|_| reading(clock)).min().map(|(_, offset_ns)| offset_ns);
        Self {
            realtime_ns: offset_ns(Clock::Realtime),
            tai_ns: offset_ns(Clock::Tai),
            boottime_ns: offset_ns(Clock::Boottime),
        }
    }

    /// A time of the clock with this number, or of CLOCK_MONOTONIC, as a time of CLOCK_MONOTONIC, ns. The kernel uses
    /// CLOCK_MONOTONIC for relative times of other clocks. `None` if the time is not near `now_ns`.
    pub(super) fn to_monotonic(self, clock: u64, at_ns: i64, now_ns: u64) -> Option<u64> {
        let offset_ns = match clock {
            REALTIME => self.realtime_ns,
            TAI => self.tai_ns,
            BOOTTIME => self.boottime_ns,
            _ => None,
        };
        let candidates = [Some(at_ns), offset_ns.and_then(|offset_ns| at_ns.checked_sub(offset_ns))];
        let near = candidates.into_iter().flatten().filter_map(|ns| u64::try_from(ns).ok());
        near.filter(|ns| ns.abs_diff(now_ns) < NEAR_NS).min_by_key(|ns| ns.abs_diff(now_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_other_clocks_are_converted() {
        let offsets = ClockOffsets { realtime_ns: Some(1 << 60), ..ClockOffsets::default() };
        assert_eq!(offsets.to_monotonic(REALTIME, (1 << 60) + 70, 50), Some(70));
        assert_eq!(offsets.to_monotonic(REALTIME, 70, 50), Some(70), "a relative time");
        assert_eq!(offsets.to_monotonic(TAI, (1 << 60) + 70, 50), None);
        assert_eq!(offsets.to_monotonic(1, i64::MAX, 50), None, "no timeout");
        assert!(ClockOffsets::read().realtime_ns.is_some_and(|ns| ns > 0));
    }

    /// Setting CLOCK_REALTIME therefore also changes CLOCK_TAI.
    #[test]
    fn tai_differs_from_realtime_by_whole_seconds() {
        const SECOND_NS: i64 = 1_000_000_000;
        let ahead_ns = (0..100).map(|_| {
            let offsets = ClockOffsets::read();
            offsets.tai_ns.unwrap() - offsets.realtime_ns.unwrap()
        });
        let error_ns = |ns: i64| ns.rem_euclid(SECOND_NS).min(-ns.rem_euclid(SECOND_NS) + SECOND_NS);
        let least_ns = ahead_ns.map(error_ns).min().unwrap();
        assert!(least_ns < SECOND_NS / 100, "{least_ns} ns");
    }
}
