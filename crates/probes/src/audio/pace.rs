//! The deadlines that a sound card sets: a grid laid under the stamps of its hardware pointer, as `docs/audio.md` defines it.

use crate::timer::Grid;

/// Of so many ns the grid follows a card that is too slow by one: 1000 ppm, ten times what a crystal is off. A stamp that
/// came late draws it no faster than that.
pub const CREEP: i64 = 1000;

/// The grid of a card, from one start to the next. All times are ns of the monotonic clock.
#[derive(Debug, Clone)]
pub struct Pace {
    grid: Grid,
    rate_hz: u32,
    /// When the first frame began to be captured, as the stamps tell.
    origin_ns: i64,
    /// The newest stamp since the start.
    stamped_ns: Option<i64>,
    drift: Drift,
}

impl Pace {
    /// That of a card with such periods.
    #[must_use]
    pub fn new(grid: Grid, rate_hz: u32) -> Self {
        Self { grid, rate_hz: rate_hz.max(1), origin_ns: 0, stamped_ns: None, drift: Drift::default() }
    }

    /// The card was started; it counts from 0.
    pub fn start(&mut self, now_ns: i64) {
        self.origin_ns = now_ns;
        self.stamped_ns = None;
        self.drift.cut();
    }

    /// The kernel learned at `at_ns` that the card had captured so many frames since its start.
    #[inline]
    pub fn stamp(&mut self, frames: u64, at_ns: i64) {
        let took_ns = (u128::from(frames) * 1_000_000_000 / u128::from(self.rate_hz)) as i64;
        let origin_ns = at_ns - took_ns;
        self.origin_ns = match self.stamped_ns.replace(at_ns) {
            Some(before_ns) if before_ns == at_ns => return,
            // It can be late, and never early: the earliest counts.
            Some(before_ns) => origin_ns.min(self.origin_ns + (at_ns - before_ns).max(0) / CREEP),
            None => origin_ns,
        };
        self.drift.add(at_ns, origin_ns);
    }

    /// When period `slot` since the start was captured to its end.
    #[inline]
    #[must_use]
    pub fn deadline_ns(&self, slot: u64) -> i64 {
        self.origin_ns + self.grid.offset_ns(slot + 1)
    }

    /// How much faster than its rate the card runs by the clock, and the standard error of that, ppm.
    #[inline]
    #[must_use]
    pub fn rate_ppm(&self) -> Option<(f64, f64)> {
        self.drift.ppm()
    }
}

/// Least squares over all stamps: how the origin that they tell moves with time. Each start has an origin of its own.
///
/// A card may fill or empty buffers of its own when it starts, which looks like another rate. So the first stamps of a start
/// are left out, and starts that an xrun ended soon are left out altogether.
#[derive(Debug, Clone, Default)]
struct Drift {
    /// When this start was stamped first, ns.
    started_ns: Option<i64>,
    /// Of this start.
    here: Sums,
    /// Of those before it that lasted.
    before: Sums,
}

/// Of stamps: the first, ns; how far from there the newest lies, s; means from there, s and ns; and what is free of them, and
/// sums of squares and products around the means, s and ns, of one start or of several.
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

    /// With those of another start, whose slope counts and whose means do not; nothing of it where it was too short.
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

/// Stamps of a start count after so long, ns, ...
const SETTLED_NS: i64 = 100_000_000;
/// ... and when they reach over so much time, s.
const LASTS_S: f64 = 1.0;

impl Drift {
    /// Fewer stamps tell nothing.
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

    /// A card that is too fast has its origin move towards the past.
    fn ppm(&self) -> Option<(f64, f64)> {
        let Sums { free, squares, products, deviations, .. } = self.before.with(&self.here);
        if free < Self::LEAST || squares <= 0.0 {
            return None;
        }
        let slope = products / squares;
        let left = (deviations - slope * products).max(0.0);
        let error = (left / (free - 1) as f64 / squares).sqrt();
        // ns a second are thousandths of a ppm.
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

    /// When a card that is off by so many ppm has captured so many frames.
    fn captured_ns(frames: u64, ppm: f64) -> i64 {
        STARTED_NS + (frames as f64 * 1e9 / f64::from(RATE_HZ) / (1.0 + ppm / 1e6)) as i64
    }

    #[test]
    fn before_the_first_stamp_the_start_tells() {
        assert_eq!(pace().deadline_ns(0), STARTED_NS + 1_333_333);
        assert_eq!(pace().deadline_ns(2), STARTED_NS + 4_000_000, "with the thirds");
        assert_eq!(pace().rate_ppm(), None);
    }

    #[test]
    fn a_pointer_in_the_middle_of_a_period_tells_when_it_ended() {
        let mut pace = pace();
        pace.stamp(96, captured_ns(96, 0.0));
        assert!((pace.deadline_ns(0) - captured_ns(64, 0.0)).abs() <= 1);
    }

    #[test]
    fn after_a_start_all_counts_anew_and_the_rate_stays() {
        let mut pace = pace();
        (1..=1000).for_each(|period| pace.stamp(period * 64, captured_ns(period * 64, 50.0)));
        let told = pace.rate_ppm().unwrap();
        assert!((told.0 - 50.0).abs() < 0.1, "{told:?}");
        pace.start(STARTED_NS + 9_000_000_000);
        assert_eq!(pace.deadline_ns(0), STARTED_NS + 9_001_333_333);
        assert_eq!(pace.rate_ppm(), Some(told));
    }

    /// A card of exactly its rate that runs this many periods each time, and whose first frames come 5 ms too soon each time.
    fn restarted(periods: &[u64]) -> Pace {
        let mut pace = pace();
        let mut started_ns = STARTED_NS;
        for periods in periods {
            pace.start(started_ns);
            for period in 1..=*periods {
                let settled_ns = 5_000_000 * period.min(8) as i64 / 8;
                let at_ns = started_ns - STARTED_NS + captured_ns(period * 64, 0.0);
                pace.stamp(period * 64, at_ns + settled_ns);
            }
            started_ns += 2_000_000_000;
        }
        pace
    }

    #[test]
    fn short_starts_and_how_they_began_say_nothing_of_the_rate() {
        // A hundred starts of 80 ms.
        assert_eq!(restarted(&[60; 100]).rate_ppm(), None);
        // One of 1.3 s among them, which has ended, and then one that goes on.
        let (mut short, mut under_way) = ([60; 101], [60; 101]);
        (short[50], under_way[100]) = (1000, 1000);
        for starts in [short, under_way] {
            let (ppm, error_ppm) = restarted(&starts).rate_ppm().unwrap();
            assert!(ppm.abs() < 0.1 && error_ppm < 0.1, "{ppm} +- {error_ppm}");
        }
    }

    #[test]
    fn starts_that_lasted_count_together() {
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
        /// Stamps are as late as they may be, one in eight of them prompt: deadlines are where the card has them.
        #[test]
        fn the_grid_lies_under_the_stamps(
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
                // 1333 ns of creep a period, some for a late stamp, and what the card is off itself.
                prop_assert!(since_prompt >= 1_000 || (-2..=since_prompt * 2_001 + 1_000).contains(&error_ns), "{slot}: {error_ns}");
                prop_assert!(pace.deadline_ns(slot as u64) <= true_ns + late_ns);
            }
            let (told, error) = pace.rate_ppm().unwrap();
            prop_assert!((told - ppm).abs() < 6.0 * error + 0.1, "{told} +- {error} of {ppm}");
        }
    }
}
