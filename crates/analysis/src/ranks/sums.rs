//! Wilcoxon's rank sums: the shift between two samples.
//!
//! The estimate is the median of all differences of a value of one sample and a value of the other; the interval has the ends
//! that the rank-sum test does not reject (Hollander, Wolfe, Chicken, "Nonparametric Statistical Methods", 4.2 and 4.3).

use std::collections::BTreeMap;

use super::normal_quantile;
use crate::float::to_u64;

/// Above so many values of one sample, the distribution of the statistic is taken as normal, whose tails are a little longer.
const EXACT: usize = 40;

/// Intervals with one error probability.
#[derive(Debug)]
pub struct RankSums {
    /// The error probability of both ends together.
    alpha: f64,
    /// Results of [`rejected`] by the sizes of the samples.
    rejected: BTreeMap<(usize, usize), Option<usize>>,
}

impl RankSums {
    /// For intervals with the error probability `alpha`, 0 to 1, of both ends together.
    pub fn new(alpha: f64) -> Self {
        Self { alpha, rejected: BTreeMap::new() }
    }

    /// Estimate, lower and upper end of the shift from `a` to `b`. The ends are infinite if there are too few values. `None`
    /// if a sample is empty.
    pub fn shift(&mut self, a: &[f64], b: &[f64]) -> Option<(f64, f64, f64)> {
        if a.is_empty() || b.is_empty() {
            return None;
        }
        let rejected = self.rejected(a.len(), b.len());
        let mut differences: Vec<f64> = Vec::with_capacity(a.len() * b.len());
        for a in a {
            differences.extend(b.iter().map(|b| b - a));
        }
        let count = differences.len();
        let mut nth = |rank: usize| *differences.select_nth_unstable_by(rank, f64::total_cmp).1;
        let estimate = f64::midpoint(nth((count - 1) / 2), nth(count / 2));
        let (low, high) = match rejected {
            Some(rank) => (nth(rank), nth(count - 1 - rank)),
            None => (f64::NEG_INFINITY, f64::INFINITY),
        };
        Some((estimate, low, high))
    }

    /// True if the lower end of the shift from `a` to `b` is above 0.
    pub fn is_above(&mut self, a: &[f64], b: &[f64]) -> bool {
        let mut sorted = a.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        // Pairs whose difference is not above 0.
        let pairs: usize = b.iter().map(|b| sorted.len() - sorted.partition_point(|a| a < b)).sum();
        self.rejected(a.len(), b.len()).is_some_and(|rejected| pairs <= rejected)
    }

    fn rejected(&mut self, a: usize, b: usize) -> Option<usize> {
        let sizes = (a.min(b), a.max(b));
        *self.rejected.entry(sizes).or_insert_with(|| rejected(sizes.0, sizes.1, self.alpha))
    }
}

/// The smallest size of two equally large samples that can have an interval.
pub fn least(alpha: f64) -> u32 {
    // All values of one sample are below those of the other with the probability 2 / binomial(2n, n).
    let (mut size, mut ways) = (0_u32, 1.0);
    while 2.0 / ways > alpha {
        size += 1;
        ways *= f64::from(2 * (2 * size - 1)) / f64::from(size);
    }
    size
}

/// The largest value of the statistic that the test rejects on its side, with `alpha` for both sides; `None` if there is
/// none. The statistic is the number of pairs in which the value of the first sample is the larger one.
fn rejected(small: usize, large: usize, alpha: f64) -> Option<usize> {
    if large > EXACT {
        let (m, n) = (small as f64, large as f64);
        let deviation = (m * n * (m + n + 1.0) / 12.0).sqrt();
        let rank = (m * n / 2.0 - 0.5 - normal_quantile(alpha / 2.0) * deviation).floor();
        // With few values in one sample, the normal distribution promises more than all orders give.
        let most_extreme = (1..=small).fold(1.0, |share, i| share * i as f64 / (large + i) as f64);
        return (rank >= 0.0 && most_extreme <= alpha / 2.0)
            .then(|| usize::try_from(to_u64(rank)).unwrap_or(usize::MAX));
    }
    let mut below = 0.0;
    let accepted = distribution(small, large).iter().position(|one| {
        below += one;
        below > alpha / 2.0
    });
    accepted.unwrap_or(small * large + 1).checked_sub(1)
}

/// The probability of each value of the statistic, if the samples come from one distribution.
///
/// The largest of all values belongs to one of the two samples, which leads to a smaller case each:
/// `P(m, n, u) = (m P(m - 1, n, u - n) + n P(m, n - 1, u)) / (m + n)`.
fn distribution(small: usize, large: usize) -> Vec<f64> {
    // For 0 values in the first sample, and each number in the second.
    let mut all: Vec<Vec<f64>> = (0..=large).map(|_| vec![1.0]).collect();
    for m in 1..=small {
        let mut next: Vec<Vec<f64>> = vec![vec![1.0]];
        for n in 1..=large {
            let at = |known: &[f64], u: Option<usize>| u.and_then(|u| known.get(u).copied()).unwrap_or(0.0);
            let of = |u: usize| {
                let (first, second) = (at(&all[n], u.checked_sub(n)), at(&next[n - 1], Some(u)));
                (m as f64 * first + n as f64 * second) / (m + n) as f64
            };
            let values = (0..=m * n).map(of).collect();
            next.push(values);
        }
        all = next;
    }
    all.swap_remove(large)
}

#[cfg(test)]
mod tests {
    use super::*;
    use extremes::Random;

    #[test]
    fn critical_values_are_those_of_the_tables() {
        // Two-sided, from the tables of Mann and Whitney's statistic in Hollander, Wolfe and Chicken.
        for (small, large, alpha, value) in [
            (4, 4, 0.05, 0),
            (5, 5, 0.05, 2),
            (5, 5, 0.01, 0),
            (8, 8, 0.05, 13),
            (10, 10, 0.05, 23),
            (20, 20, 0.05, 127),
        ] {
            assert_eq!(rejected(small, large, alpha), Some(value), "{small} and {large} values, {alpha}");
        }
        assert_eq!(rejected(3, 3, 0.05), None);
        assert_eq!(rejected(1, 1_000, 0.001), None, "one value in a sample");
        assert_eq!((least(0.05), least(0.01), least(0.001)), (4, 5, 7));
        let all: f64 = distribution(7, 11).iter().sum();
        assert!((all - 1.0).abs() < 1e-12);
    }

    #[test]
    fn the_normal_distribution_continues_the_exact_one() {
        let (exact, normal) = (rejected(40, 40, 0.01).unwrap() as f64, rejected(40, 41, 0.01).unwrap() as f64);
        // Half of the 40 new pairs, less the growth of the spread.
        assert!((5.0..20.0).contains(&(normal - exact)), "{exact} and {normal}");
    }

    #[test]
    fn the_interval_contains_the_shift_in_as_many_cases_as_it_says() {
        let mut random = Random(1);
        // Cauchy: no mean and no variance.
        let mut draw = || (((random.bits() >> 11) as f64 / (1u64 << 53) as f64 - 0.5) * std::f64::consts::PI).tan();
        let mut sums = RankSums::new(0.1);
        for (small, large) in [(6, 6), (5, 20), (30, 60)] {
            let missed = (0..2_000).filter(|_| {
                let a: Vec<f64> = (0..small).map(|_| draw()).collect();
                let b: Vec<f64> = (0..large).map(|_| draw() + 3.0).collect();
                let (_, low, high) = sums.shift(&a, &b).unwrap();
                assert_eq!(sums.is_above(&a, &b), low > 0.0);
                low > 3.0 || high < 3.0
            });
            let missed = missed.count();
            assert!((120..=250).contains(&missed), "{missed} of 2000 with {small} and {large}, expected at most 200");
        }
    }

    #[test]
    fn few_values_have_no_interval() {
        let mut sums = RankSums::new(0.05);
        assert_eq!(sums.shift(&[], &[1.0]), None);
        assert_eq!(sums.shift(&[1.0], &[3.0]), Some((2.0, f64::NEG_INFINITY, f64::INFINITY)));
    }
}
