//! The deadlines that a sound card sets: a grid fitted below the timestamps of its hardware pointer, as defined in
//! `docs/audio.md`.

use crate::timer::Grid;

/// The grid moves later by at most one ns in this many: 1000 ppm, ten times the error of a crystal. A late timestamp
/// moves it no faster than that.
pub const CREEP: i64 = 1000;

/// The deadlines of a card between two starts. All times are ns of the monotonic clock.
#[derive(Debug, Clone)]
pub struct Pace {
    grid: Grid,
    rate_hz: u32,
    /// Start of capture of the first frame, according to the timestamps.
    origin_ns: i64,
    /// The newest timestamp since the start.
    stamped_ns: Option<i64>,
    drift: Drift,
}

impl Pace {
    /// Creates the deadlines of a card that was not started.
    #[must_use]
    pub fn new(grid: Grid, rate_hz: u32) -> Self {
        Self { grid, rate_hz: rate_hz.max(1), origin_ns: 0, stamped_ns: None, drift: Drift::default() }
    }

    /// Restarts after the card was started, which counts frames from 0.
    pub fn start(&mut self, now_ns: i64) {
        self.origin_ns = now_ns;
        self.stamped_ns = None;
        self.drift.cut();
    }

    /// Adds a timestamp: at `at_ns` the kernel saw that the card had captured this many frames since its start.
    #[inline]
    pub fn stamp(&mut self, frames: u64, at_ns: i64) {
        #[expect(clippy::cast_possible_truncation, reason = "292 years fit")]
        let took_ns = (u128::from(frames) * 1_000_000_000 / u128::from(self.rate_hz)) as i64;
        let origin_ns = at_ns - took_ns;
        self.origin_ns = match self.stamped_ns.replace(at_ns) {
            Some(before_ns) if before_ns == at_ns => return,
            // A timestamp can be late, but never early, so the earliest one counts.
            Some(before_ns) => origin_ns.min(self.origin_ns + (at_ns - before_ns).max(0) / CREEP),
            None => origin_ns,
        };
        self.drift.add(at_ns, origin_ns);
    }

    /// Deadline of period `slot` since the start: the time at which it was captured completely.
    #[inline]
    #[must_use]
    pub fn deadline_ns(&self, slot: u64) -> i64 {
        self.origin_ns + self.grid.offset_ns(slot + 1)
    }

    /// Deviation of the card's rate by the clock, and its standard error, ppm; positive if the card is too fast.
    #[inline]
    #[must_use]
    pub fn rate_ppm(&self) -> Option<(f64, f64)> {
        self.drift.ppm()
    }
}

/// Linear regression over all timestamps: how the origin moves with time. Each start has its own origin.
///
/// A card may fill or empty internal buffers when it starts, which looks like another rate. Therefore the first time
/// stamps after a start are ignored, and so are starts that soon ended with an xrun.
#[derive(Debug, Clone, Default)]
struct Drift {
    /// First timestamp of this start, ns.
    started_ns: Option<i64>,
    /// Sums of this start.
    here: Sums,
    /// Sums of the earlier starts that lasted long enough.
    before: Sums,
}

/// Sums over timestamps, of one start or of several: the first stamp, ns; time from the first to the newest, s; means
/// relative to the first, s and ns; degrees of freedom; and sums of squares and products around the means, s and ns.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    first: Option<(i64, i64)>,
    lasted_s: f64,
    mean: (f64, f64),
    free: u64,
    squares: f64,
    products: f64,
    deviations: f64,
}

impl Sums {
    #[inline]
    fn add(&mut self, at_ns: i64, origin_ns: i64) {
        self.free += u64::from(self.first.is_some());
        let first = *self.first.get_or_insert((at_ns, origin_ns));
        let (at_s, origin) = ((at_ns - first.0) as f64 / 1e9, (origin_ns - first.1) as f64);
        self.lasted_s = at_s;
        let n = (self.free + 1) as f64;
        let (from_mean_s, from_mean) = (at_s - self.mean.0, origin - self.mean.1);
        self.mean.0 += from_mean_s / n;
        self.mean.1 += from_mean / n;
        self.squares += from_mean_s * (at_s - self.mean.0);
        self.products += from_mean_s * (origin - self.mean.1);
        self.deviations += from_mean * (origin - self.mean.1);
    }

    /// Adds another start, which contributes to the slope but not to the means. A start that was too short adds
    /// nothing.
    #[inline]
    fn with(self, other: &Self) -> Self {
        if other.lasted_s < LASTS_S {
            return self;
        }
        Self {
            free: self.free + other.free,
            squares: self.squares + other.squares,
            products: self.products + other.products,
            deviations: self.deviations + other.deviations,
            ..self
        }
    }
}

/// Timestamps are ignored for this long after a start, ns.
const SETTLED_NS: i64 = 100_000_000;
/// A start contributes only if it lasts at least this long, s.
const LASTS_S: f64 = 1.0;

impl Drift {
    /// Minimum number of timestamps.
    const LEAST: u64 = 16;

    fn cut(&mut self) {
        self.before = self.before.with(&self.here);
        self.here = Sums::default();
        self.started_ns = None;
    }

    #[inline]
    fn add(&mut self, at_ns: i64, origin_ns: i64) {
        if at_ns - *self.started_ns.get_or_insert(at_ns) >= SETTLED_NS {
            self.here.add(at_ns, origin_ns);
        }
    }

    /// The origin of a card that is too fast moves towards the past.
    fn ppm(&self) -> Option<(f64, f64)> {
        let Sums { free, squares, products, deviations, .. } = self.before.with(&self.here);
        if free < Self::LEAST || squares <= 0.0 {
            return None;
        }
        let slope = products / squares;
        let residual = (deviations - slope * products).max(0.0);
        let error = (residual / (free - 1) as f64 / squares).sqrt();
        // ns per second are thousandths of a ppm.
        Some((-slope / 1e3, error / 1e3))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RATE_HZ: u32 = 48_000;
    const FRAMES: u32 = 64;
    const STARTED_NS: i64 = 77_000_000_000;

    fn pace() -> Pace {
        let mut pace = Pace::new(Grid::of_frames(FRAMES, RATE_HZ), RATE_HZ);
        pace.start(STARTED_NS);
        pace
    }

    /// Time at which a card with this deviation in ppm has captured this many frames.
    #[expect(clippy::cast_possible_truncation, reason = "a few hours in ns")]
    fn captured_ns(frames: u64, ppm: f64) -> i64 {
        STARTED_NS + (frames as f64 * 1e9 / f64::from(RATE_HZ) / (1.0 + ppm / 1e6)) as i64
    }

    #[test]
    fn uses_the_start_time_before_the_first_stamp() {
        assert_eq!(pace().deadline_ns(0), STARTED_NS + 1_333_333);
        assert_eq!(pace().deadline_ns(2), STARTED_NS + 4_000_000, "including the fractions");
        assert_eq!(pace().rate_ppm(), None);
    }

    #[test]
    fn a_stamp_in_the_middle_of_a_period_gives_its_end() {
        let mut pace = pace();
        pace.stamp(96, captured_ns(96, 0.0));
        assert!((pace.deadline_ns(0) - captured_ns(64, 0.0)).abs() <= 1);
    }

    #[test]
    fn a_restart_resets_the_origin_and_keeps_the_rate() {
        let mut pace = pace();
        (1..=1000).for_each(|period| pace.stamp(period * 64, captured_ns(period * 64, 50.0)));
        let before = pace.rate_ppm().unwrap();
        assert!((before.0 - 50.0).abs() < 0.1, "{before:?}");
        pace.start(STARTED_NS + 9_000_000_000);
        assert_eq!(pace.deadline_ns(0), STARTED_NS + 9_001_333_333);
        assert_eq!(pace.rate_ppm(), Some(before));
    }

    /// A card with the exact rate that runs this many periods after each start, and whose first frames come 5 ms early
    /// each time.
    fn restarted(periods: &[u64]) -> Pace {
        let mut pace = pace();
        let mut started_ns = STARTED_NS;
        for periods in periods {
            pace.start(started_ns);
            for period in 1..=*periods {
                let settled_ns = 5_000_000 * u64::min(period, 8).cast_signed() / 8;
                let at_ns = started_ns - STARTED_NS + captured_ns(period * 64, 0.0);
                pace.stamp(period * 64, at_ns + settled_ns);
            }
            started_ns += 2_000_000_000;
        }
        pace
    }

    #[test]
    fn ignores_short_starts_and_the_first_stamps_of_each() {
        // A hundred starts of 80 ms.
        assert_eq!(restarted(&[60; 100]).rate_ppm(), None);
        // One start of 1.3 s among them that has ended, and then one that is still running.
        let (mut short, mut under_way) = ([60; 101], [60; 101]);
        (short[50], under_way[100]) = (1000, 1000);
        for starts in [short, under_way] {
            let (ppm, error_ppm) = restarted(&starts).rate_ppm().unwrap();
            assert!(ppm.abs() < 0.1 && error_ppm < 0.1, "{ppm} +- {error_ppm}");
        }
    }

    #[test]
    fn combines_all_long_starts() {
        let mut pace = pace();
        for start in 0..3 {
            let after_ns = start * 10_000_000_000;
            pace.start(STARTED_NS + after_ns);
            (1..=1000).for_each(|period| pace.stamp(period * 64, after_ns + captured_ns(period * 64, 50.0)));
        }
        let (ppm, _) = pace.rate_ppm().unwrap();
        assert!((ppm - 50.0).abs() < 0.1 && pace.drift.before.free > 1500, "{ppm}");
    }

    proptest! {
        /// Timestamps with random delays, one in eight without any: deadlines match the card.
        #[test]
        fn the_grid_follows_the_earliest_stamps(
            ppm in -500.0..500.0f64, late_ns in prop::collection::vec(prop_oneof![1 => Just(0), 7 => 0..900_000i64], 4000)
        ) {
            let mut pace = pace();
            let mut since_prompt = 1_000;
            for (slot, late_ns) in late_ns.into_iter().enumerate() {
                let frames = (slot as u64 + 1) * u64::from(FRAMES);
                let true_ns = captured_ns(frames, ppm);
                pace.stamp(frames, true_ns + late_ns);
                let error_ns = pace.deadline_ns(slot as u64) - true_ns;
                since_prompt = if late_ns == 0 { 0 } else { since_prompt + 1 };
                // 1333 ns of creep per period, some for a late stamp, and the deviation of the card.
                prop_assert!(since_prompt >= 1_000 || (-2..=since_prompt * 2_001 + 1_000).contains(&error_ns), "{slot}: {error_ns}");
                prop_assert!(pace.deadline_ns(slot as u64) <= true_ns + late_ns);
            }
            let (before, error) = pace.rate_ppm().unwrap();
            prop_assert!((before - ppm).abs() < 6.0 * error + 0.1, "{before} +- {error} of {ppm}");
        }
    }
}
