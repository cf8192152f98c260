//! How far CLOCK_REALTIME, which the kernel's stamps are of, is ahead of the clock that we stamp on.
//!
//! Both clocks are read around each answer, so that the relation is never older than the answer. A step of the wall clock
//! makes the stamps of what was under way worthless, and is told.

use sys::clock::Clock;

/// A relation that is so old is renewed even by a reading that was disturbed, ns.
const OLD_NS: i64 = 100_000_000;
/// The wall clock is slewed by less than one part in this: chrony's fastest is 1 in 12 (its `maxslewrate`, 83 333 ppm).
const SLEW: i64 = 10;
/// What readings may differ by beside that, ns.
const SLACK_NS: i64 = 2_000;

/// The relation as it was read last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Realtime {
    clock: Clock,
    ahead_ns: i64,
    read_ns: i64,
    /// The narrowest window in which the wall clock was read, ns.
    narrowest_ns: i64,
    /// Half the widest window that was used, ns: the largest error.
    pub error_ns: i64,
    /// Steps of the wall clock.
    pub steps: u64,
    /// What was sent before is not to be judged by stamps, ns.
    void_before_ns: i64,
}

impl Realtime {
    /// The relation to `clock` now: the narrowest of several readings.
    #[must_use]
    pub fn to(clock: Clock) -> Self {
        let read = |_| {
            let (before_ns, real_ns, after_ns) = (clock.now_ns(), Clock::Realtime.now_ns(), clock.now_ns());
            (after_ns - before_ns, before_ns, real_ns)
        };
        let (width_ns, before_ns, real_ns) = (0..5).map(read).min().unwrap_or_default();
        Self {
            clock,
            ahead_ns: real_ns - before_ns - width_ns / 2,
            read_ns: before_ns,
            narrowest_ns: width_ns.max(1),
            error_ns: width_ns / 2,
            steps: 0,
            void_before_ns: i64::MIN,
        }
    }

    /// Reads both clocks, of which ours was read at `before_ns`.
    #[inline]
    pub fn look(&mut self, before_ns: i64) {
        let real_ns = Clock::Realtime.now_ns();
        self.take_in(before_ns, real_ns, self.clock.now_ns());
    }

    /// Takes in a reading of the wall clock between two of ours.
    #[inline]
    fn take_in(&mut self, before_ns: i64, real_ns: i64, after_ns: i64) {
        let width_ns = after_ns - before_ns;
        let ahead_ns = real_ns - before_ns - width_ns / 2;
        let age_ns = before_ns - self.read_ns;
        let stepped = (ahead_ns - self.ahead_ns).abs() > width_ns + age_ns / SLEW + SLACK_NS;
        if stepped {
            self.steps += 1;
            self.void_before_ns = after_ns;
        }
        self.narrowest_ns = self.narrowest_ns.min(width_ns.max(1));
        if stepped || width_ns <= 4 * self.narrowest_ns || age_ns > OLD_NS {
            (self.ahead_ns, self.read_ns) = (ahead_ns, before_ns);
            self.error_ns = self.error_ns.max(width_ns / 2);
        }
    }

    /// A stamp on our clock, ns.
    #[inline]
    #[must_use]
    pub fn on_ours(&self, stamp_ns: i64) -> i64 {
        stamp_ns - self.ahead_ns
    }

    /// Whether stamps of what was sent at `sent_ns` can be trusted.
    #[inline]
    #[must_use]
    pub fn can_judge(&self, sent_ns: i64) -> bool {
        sent_ns >= self.void_before_ns
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
            void_before_ns: i64::MIN,
        }
    }

    #[test]
    fn slewing_is_followed_and_is_no_step() {
        let mut clock = fresh();
        for n in 1..1000 {
            // A millisecond on ours, 500 ppm more on the wall's.
            let before_ns = n * 1_000_000;
            clock.take_in(before_ns, AHEAD_NS + before_ns + n * 500 + 30, before_ns + 60);
            assert_eq!(clock.on_ours(AHEAD_NS + before_ns + n * 500), before_ns);
        }
        assert_eq!((clock.steps, clock.error_ns), (0, 30));
        assert!(clock.can_judge(0));
    }

    #[test]
    fn a_step_voids_what_was_under_way_and_nothing_later() {
        for step_ns in [-3_000_000, 200_000, 5_000_000_000] {
            let mut clock = fresh();
            clock.take_in(1_000_000, AHEAD_NS + 1_000_030 + step_ns, 1_000_060);
            assert_eq!(clock.steps, 1, "{step_ns}");
            assert!(!clock.can_judge(999_999) && clock.can_judge(1_000_060));
            clock.take_in(2_000_000, AHEAD_NS + 2_000_030 + step_ns, 2_000_060);
            assert_eq!(clock.steps, 1);
        }
    }

    #[test]
    fn a_reading_that_was_disturbed_is_not_used() {
        let mut clock = fresh();
        // Something came in between for 80 us.
        clock.take_in(1_000_000, AHEAD_NS + 1_000_030, 1_080_060);
        assert_eq!((clock.on_ours(AHEAD_NS), clock.steps, clock.error_ns), (0, 0, 30));
        clock.take_in(200_000_000, AHEAD_NS + 200_000_030, 200_080_060);
        assert_eq!(clock.error_ns, 40_030, "unless there was none for long");
    }

    #[test]
    fn the_clocks_of_this_machine_are_related() {
        let mut clock = Realtime::to(Clock::Monotonic);
        let before_ns = Clock::Monotonic.now_ns();
        clock.look(before_ns);
        let now_ns = clock.on_ours(Clock::Realtime.now_ns());
        let after_ns = Clock::Monotonic.now_ns();
        assert!((before_ns - 1_000_000..after_ns + 1_000_000).contains(&now_ns), "{before_ns} {now_ns} {after_ns}");
    }
}
