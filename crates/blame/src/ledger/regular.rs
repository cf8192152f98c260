//! Finds the interval of periodic causes.

/// Minimum number of strikes.
const MIN_STRIKES: usize = 6;
/// Maximum distance of an interval from a multiple of the base, as a fraction of the base.
const JITTER: f64 = 0.06;
/// Minimum fraction of the strikes that must have been observed; with half of them, half the base would fit as well.
const MIN_SEEN: f64 = 0.55;
/// Minimum fraction of the intervals that must fit if there are many; all must fit if there are few.
const MIN_FITTING: f64 = 0.9;
const MANY: usize = 12;
/// Strikes at most this far apart count as one, ns: a cause may delay several deadlines or CPUs at once.
const BURST_LENGTHS_NS: [u64; 3] = [0, 20_000_000, 500_000_000];
/// Number of intervals tried as the base.
const CANDIDATES: usize = 16;

/// Returns the interval of periodic strikes, ns, even if some strikes are missing. `period_ns` is the time between two
/// deadlines, 0 if unknown: strikes cannot be closer, and being on this grid does not make them periodic.
pub(super) fn every_ns(mut strikes: Vec<u64>, period_ns: u64) -> Option<u64> {
    strikes.sort_unstable();
    BURST_LENGTHS_NS.iter().find_map(|&burst_ns| {
        let strikes = first_of_bursts(&strikes, burst_ns.max(period_ns / 2));
        base(&strikes).filter(|&base| base >= 2 * period_ns)
    })
}

fn first_of_bursts(strikes: &[u64], burst_ns: u64) -> Vec<u64> {
    let mut last = None;
    let is_first = |&&strike: &&u64| last.replace(strike).is_none_or(|last| strike - last > burst_ns);
    strikes.iter().filter(is_first).copied().collect()
}

/// Finds the base: the intervals are multiples of it.
fn base(strikes: &[u64]) -> Option<u64> {
    if strikes.len() < MIN_STRIKES {
        return None;
    }
    let intervals: Vec<f64> = strikes.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
    let mut rising = intervals.clone();
    rising.sort_by(f64::total_cmp);
    // If most strikes were observed, most intervals are equal to the base.
    let tried = (0..CANDIDATES).map(|k| rising[k * rising.len() / CANDIDATES]);
    tried.filter_map(|interval| refined(&intervals, interval)).find(|&base| fits(&intervals, base)).map(to_ns)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "intervals are positive and far below 2^63 ns; the fraction of a ns does not matter"
)]
fn to_ns(ns: f64) -> u64 {
    ns as u64
}

/// Refines the base near `first` to fit all intervals.
fn refined(intervals: &[f64], first: f64) -> Option<f64> {
    let mut base = first;
    for _ in 0..4 {
        let fitting = intervals.iter().filter_map(|interval| Some((interval, multiple(*interval, base)?)));
        let (sum, steps) = fitting.fold((0.0, 0.0), |(sum, steps), (interval, k)| (sum + interval, steps + k));
        if steps == 0.0 {
            return None;
        }
        base = sum / steps;
    }
    Some(base)
}

/// Returns which multiple of the base an interval is.
fn multiple(interval: f64, base: f64) -> Option<f64> {
    let k = (interval / base).round();
    (k >= 1.0 && (interval - k * base).abs() <= JITTER * base).then_some(k)
}

fn fits(intervals: &[f64], base: f64) -> bool {
    let multiples: Vec<f64> = intervals.iter().filter_map(|interval| multiple(*interval, base)).collect();
    let needed = if intervals.len() < MANY { 1.0 } else { MIN_FITTING };
    let seen = multiples.len() as f64 / multiples.iter().sum::<f64>();
    multiples.len() as f64 >= needed * intervals.len() as f64 && seen >= MIN_SEEN
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;
    const MS: u64 = 1_000_000;

    /// Random numbers (xorshift64*), the same in every run.
    struct Random(u64);

    impl Random {
        /// A number from 0 to below 1.
        fn next(&mut self) -> f64 {
            self.0 ^= self.0 >> 12;
            self.0 ^= self.0 << 25;
            self.0 ^= self.0 >> 27;
            (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) as f64 / (1_u64 << 53) as f64
        }
    }

    fn close(found: Option<u64>, expected_ns: u64) -> bool {
        found.is_some_and(|found| found.abs_diff(expected_ns) < expected_ns / 100)
    }

    #[test]
    fn finds_intervals_despite_jitter_and_missing_strikes() {
        let mut random = Random(7);
        for every_ns_expected in [5 * MS, 100 * MS, SECOND, 64 * SECOND] {
            for strikes in [6, 12, 60, 1000] {
                let jitter = |random: &mut Random| to_ns(random.next() * 0.03 * every_ns_expected as f64);
                let full: Vec<u64> =
                    (0..strikes).map(|k| SECOND + k * every_ns_expected + jitter(&mut random)).collect();
                assert!(close(every_ns(full.clone(), MS), every_ns_expected), "{strikes} strikes");
                let some: Vec<u64> = full.into_iter().filter(|_| random.next() > 0.25).collect();
                if strikes >= 60 {
                    assert!(close(every_ns(some, MS), every_ns_expected), "{strikes} strikes, a quarter missing");
                }
            }
        }
    }

    #[test]
    fn counts_bursts_once_and_accepts_drift() {
        let mut random = Random(11);
        let mut at_ns = SECOND;
        let mut strikes = Vec::new();
        for _ in 0..20 {
            strikes.extend((0..5).map(|k| at_ns + k * MS));
            at_ns += 64 * SECOND + to_ns(random.next() * SECOND as f64);
        }
        let found = every_ns(strikes, MS);
        assert!(close(found, 64 * SECOND + SECOND / 2), "{found:?}");
    }

    #[test]
    fn few_strikes_are_not_periodic() {
        assert_eq!(every_ns((0..5).map(|k| k * SECOND).collect(), MS), None);
        assert_eq!(every_ns(Vec::new(), 0), None);
        assert_eq!(every_ns(vec![SECOND; 100], MS), None);
    }

    #[test]
    fn random_strikes_are_hardly_ever_periodic() {
        let mut random = Random(3);
        for strikes in [6, 8, 12, 30, 300] {
            for mean_ns in [10.0 * MS as f64, SECOND as f64] {
                let tries = if strikes < 30 { 1000 } else { 200 };
                let regular = (0..tries)
                    .filter(|_| {
                        let mut at_ns = SECOND as f64;
                        let strikes = (0..strikes).map(|_| {
                            at_ns -= random.next().max(1e-12).ln() * mean_ns;
                            to_ns(at_ns) / MS * MS
                        });
                        every_ns(strikes.collect(), MS).is_some()
                    })
                    .count();
                assert!(regular * 100 <= tries, "{regular} of {tries} with {strikes} strikes, every {mean_ns} ns");
            }
        }
    }

    #[test]
    fn the_grid_of_deadlines_is_not_an_interval() {
        let mut random = Random(5);
        for seen in [0.3, 0.6, 0.9] {
            let strikes: Vec<u64> = (0..1000).filter(|_| random.next() < seen).map(|k| k * MS).collect();
            assert_eq!(every_ns(strikes, MS), None, "{seen} of all deadlines");
        }
    }
}
