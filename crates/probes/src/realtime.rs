//! The offset of CLOCK_REALTIME, the clock of the kernel's timestamps, from the run's clock.
//!
//! Both clocks are read around each answer, so that the offset is never older than the answer. A step of the wall clock
//! invalidates the timestamps of datagrams in flight, and is counted.

use sys::clock::{Around, Clock};

/// Age after which the offset is renewed even by a disturbed reading, ns.
const OLD_NS: i64 = 100_000_000;
/// The wall clock is slewed by less than one part in this: chrony's fastest slew is 1 in 12 (`maxslewrate`, 83 333
/// ppm).
const SLEW: i64 = 10;
/// Additional tolerance between readings, ns.
const SLACK_NS: i64 = 2_000;

/// The offset as read last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Realtime {
    clock: Clock,
    ahead_ns: i64,
    read_ns: i64,
    /// The shortest interval around a reading of the wall clock, ns.
    narrowest_ns: i64,
    /// Half of the longest interval that was used, ns: the largest error.
    pub error_ns: i64,
    /// Steps of the wall clock.
    pub steps: u64,
    /// Timestamps of datagrams sent before this time are invalid, ns.
    invalid_before_ns: i64,
}

impl Realtime {
    /// Reads the offset from `clock`: the most precise of several readings.
    #[must_use]
    pub fn to(clock: Clock) -> Self {
        let Around { value: real_ns, at_ns, error_ns } = clock.around(0, || Clock::Realtime.now_ns());
        Self {
            clock,
            ahead_ns: real_ns - at_ns,
            read_ns: at_ns,
            narrowest_ns: (2 * error_ns).max(1),
            error_ns,
            steps: 0,
            invalid_before_ns: i64::MIN,
        }
    }

    /// Reads both clocks; the run's clock was read at `before_ns`.
    #[inline]
    pub fn update(&mut self, before_ns: i64) {
        let real_ns = Clock::Realtime.now_ns();
        self.add(before_ns, real_ns, self.clock.now_ns());
    }

    /// Adds a reading of the wall clock between two readings of the run's clock.
    #[inline]
    fn add(&mut self, before_ns: i64, real_ns: i64, after_ns: i64) {
        let width_ns = after_ns - before_ns;
        let ahead_ns = real_ns - before_ns - width_ns / 2;
        let age_ns = before_ns - self.read_ns;
        let stepped = (ahead_ns - self.ahead_ns).abs() > width_ns + age_ns / SLEW + SLACK_NS;
        if stepped {
            self.steps += 1;
            self.invalid_before_ns = after_ns;
        }
        self.narrowest_ns = self.narrowest_ns.min(width_ns.max(1));
        if stepped || width_ns <= 4 * self.narrowest_ns || age_ns > OLD_NS {
            (self.ahead_ns, self.read_ns) = (ahead_ns, before_ns);
            self.error_ns = self.error_ns.max(width_ns / 2);
        }
    }

    /// Converts a timestamp to the run's clock, ns.
    #[inline]
    #[must_use]
    pub fn to_run_clock(&self, stamp_ns: i64) -> i64 {
        stamp_ns - self.ahead_ns
    }

    /// Converts the timestamp of a datagram that was read at `read_ns`, ns on the run's clock. Returns `None` if the wall
    /// clock was set since the timestamp, or if the timestamp is later than the reading.
    #[inline]
    #[must_use]
    pub fn converted(&mut self, stamp_ns: i64, read_ns: i64) -> Option<i64> {
        self.update(read_ns);
        let at_ns = self.to_run_clock(stamp_ns);
        (self.is_valid_for(at_ns) && at_ns <= read_ns).then_some(at_ns)
    }

    /// True if the timestamps of a datagram sent at `sent_ns` are valid.
    #[inline]
    #[must_use]
    pub fn is_valid_for(&self, sent_ns: i64) -> bool {
        sent_ns >= self.invalid_before_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AHEAD_NS: i64 = 1_700_000_000_000_000_000;

    fn fresh() -> Realtime {
        Realtime {
            clock: Clock::Monotonic,
            ahead_ns: AHEAD_NS,
            read_ns: 0,
            narrowest_ns: 60,
            error_ns: 30,
            steps: 0,
            invalid_before_ns: i64::MIN,
        }
    }

    #[test]
    fn follows_slewing_without_counting_a_step() {
        let mut clock = fresh();
        for n in 1..1000 {
            // A millisecond on the run's clock, plus 500 ppm on the wall clock.
            let before_ns = n * 1_000_000;
            clock.add(before_ns, AHEAD_NS + before_ns + n * 500 + 30, before_ns + 60);
            assert_eq!(clock.to_run_clock(AHEAD_NS + before_ns + n * 500), before_ns);
        }
        assert_eq!((clock.steps, clock.error_ns), (0, 30));
        assert!(clock.is_valid_for(0));
    }

    #[test]
    fn a_step_invalidates_only_datagrams_in_flight() {
        for step_ns in [-3_000_000, 200_000, 5_000_000_000] {
            let mut clock = fresh();
            clock.add(1_000_000, AHEAD_NS + 1_000_030 + step_ns, 1_000_060);
            assert_eq!(clock.steps, 1, "{step_ns}");
            assert!(!clock.is_valid_for(999_999) && clock.is_valid_for(1_000_060));
            clock.add(2_000_000, AHEAD_NS + 2_000_030 + step_ns, 2_000_060);
            assert_eq!(clock.steps, 1);
        }
    }

    #[test]
    fn ignores_a_disturbed_reading() {
        let mut clock = fresh();
        // An interruption of 80 us between the readings.
        clock.add(1_000_000, AHEAD_NS + 1_000_030, 1_080_060);
        assert_eq!((clock.to_run_clock(AHEAD_NS), clock.steps, clock.error_ns), (0, 0, 30));
        clock.add(200_000_000, AHEAD_NS + 200_000_030, 200_080_060);
        assert_eq!(clock.error_ns, 40_030, "used after a long time without a better one");
    }

    #[test]
    fn converts_between_the_clocks_of_this_machine() {
        let mut clock = Realtime::to(Clock::Monotonic);
        let before_ns = Clock::Monotonic.now_ns();
        clock.update(before_ns);
        let now_ns = clock.to_run_clock(Clock::Realtime.now_ns());
        let after_ns = Clock::Monotonic.now_ns();
        assert!((before_ns - 1_000_000..after_ns + 1_000_000).contains(&now_ns), "{before_ns} {now_ns} {after_ns}");
    }
}
