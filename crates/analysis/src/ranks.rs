//! Shifts with intervals that need no assumption about the distribution.
//!
//! [`SignedRanks`] is Wilcoxon's method for the shift of a symmetric distribution, [`RankSums`] that for the shift between two
//! samples (also called Mann-Whitney).
//!
//! The estimate is the median of all means of two values, also of a value with itself (Hodges and Lehmann, Annals of
//! Mathematical Statistics 34, 1963). The interval has the ends that the signed-rank test does not reject (Tukey 1949;
//! Hollander, Wolfe, Chicken, "Nonparametric Statistical Methods", 3.3). For few values this is exact, where the percentiles
//! of a bootstrap are too close together.

mod sums;

use std::collections::BTreeMap;

use crate::float::to_u64;
pub use sums::{RankSums, least as least_of_two};

/// Above so many values, the distribution of the signed ranks is taken as normal, whose tails are a little longer.
const EXACT: usize = 100;

/// Intervals with one error probability.
#[derive(Debug)]
pub struct SignedRanks {
    /// The error probability of both ends together.
    alpha: f64,
    /// Results of [`rejected`] by number of values.
    rejected: BTreeMap<usize, Option<usize>>,
}

impl SignedRanks {
    /// For intervals with the error probability `alpha`, 0 to 1, of both ends together.
    pub fn new(alpha: f64) -> Self {
        Self { alpha, rejected: BTreeMap::new() }
    }

    /// Estimate, lower and upper end of the shift of these values. The ends are infinite if there are too few values. `None`
    /// without values.
    pub fn shift(&mut self, values: &[f64]) -> Option<(f64, f64, f64)> {
        if values.is_empty() {
            return None;
        }
        let rejected = *self.rejected.entry(values.len()).or_insert_with(|| rejected(values.len(), self.alpha));
        let mut means: Vec<f64> = Vec::with_capacity(values.len() * (values.len() + 1) / 2);
        for (index, a) in values.iter().enumerate() {
            means.extend(values[index..].iter().map(|b| f64::midpoint(*a, *b)));
        }
        let count = means.len();
        let mut nth = |rank: usize| *means.select_nth_unstable_by(rank, f64::total_cmp).1;
        let estimate = f64::midpoint(nth((count - 1) / 2), nth(count / 2));
        let (low, high) = match rejected {
            Some(rank) => (nth(rank), nth(count - 1 - rank)),
            None => (f64::NEG_INFINITY, f64::INFINITY),
        };
        Some((estimate, low, high))
    }
}

/// The smallest number of values that can have an interval.
pub fn least(alpha: f64) -> u32 {
    // All values have the same sign with the probability 2 / 2^n.
    let values = (2.0 / alpha).log2().ceil();
    // Within the range of u32 for each alpha above 0.
    (1..=u32::from(u16::MAX)).find(|&count| f64::from(count) >= values).unwrap_or(u32::from(u16::MAX))
}

/// The largest sum of positive ranks that the test rejects on its side, with `alpha` for both sides; `None` if there is
/// none.
fn rejected(count: usize, alpha: f64) -> Option<usize> {
    if count > EXACT {
        let n = count as f64;
        let mean = n * (n + 1.0) / 4.0;
        let deviation = (n * (n + 1.0) * (2.0 * n + 1.0) / 24.0).sqrt();
        let rank = (mean - 0.5 - normal_quantile(alpha / 2.0) * deviation).floor();
        return (rank >= 0.0).then(|| usize::try_from(to_u64(rank)).unwrap_or(usize::MAX));
    }
    // The probability of each sum: each rank is positive in half of the cases.
    let mut probability = vec![0.0; count * (count + 1) / 2 + 1];
    probability[0] = 1.0;
    for rank in 1..=count {
        for sum in (0..probability.len()).rev() {
            let with = if sum >= rank { probability[sum - rank] } else { 0.0 };
            probability[sum] = f64::midpoint(probability[sum], with);
        }
    }
    let mut below = 0.0;
    let accepted = probability.iter().position(|one| {
        below += one;
        below > alpha / 2.0
    });
    accepted.unwrap_or(probability.len()).checked_sub(1)
}

/// The value that a standard normal variable exceeds with this probability, found by bisection in its distribution.
fn normal_quantile(above: f64) -> f64 {
    let (mut low, mut high) = (0.0, 40.0);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if normal_above(middle) > above { low = middle } else { high = middle }
    }
    low
}

/// The probability that a standard normal variable exceeds `value` >= 0 (Abramowitz and Stegun, 7.1.26 is not precise enough
/// in the tail: continued fraction 26.2.14 beyond 2, series 26.2.10 below).
fn normal_above(value: f64) -> f64 {
    let density = (-value * value / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
    if value > 2.0 {
        let fraction = (1..=60).rev().fold(value, |tail, term| value + f64::from(term) / tail);
        return density / fraction;
    }
    let (mut term, mut sum) = (value, value);
    for index in 1..=60 {
        term *= value * value / f64::from(2 * index + 1);
        sum += term;
    }
    0.5 - density * sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use extremes::Random;

    #[test]
    fn critical_values_are_those_of_the_tables() {
        // Two-sided, from the tables of Hollander, Wolfe and Chicken.
        for (count, alpha, sum) in
            [(6, 0.05, 0), (8, 0.05, 3), (10, 0.05, 8), (10, 0.01, 3), (20, 0.05, 52), (30, 0.01, 109)]
        {
            assert_eq!(rejected(count, alpha), Some(sum), "{count} values, {alpha}");
        }
        assert_eq!(rejected(5, 0.05), None);
        assert_eq!((least(0.05), least(0.01)), (6, 8));
    }

    #[test]
    fn the_normal_distribution_continues_the_exact_one() {
        for alpha in [0.05, 0.01] {
            let exact = rejected(EXACT, alpha).unwrap() as f64;
            let n = EXACT as f64 + 1.0;
            let normal = rejected(EXACT + 1, alpha).unwrap() as f64;
            // The sum of the ranks grows by half of the new one, less the growth of the spread.
            assert!((normal - exact) > 0.0 && (normal - exact) < n / 2.0 + 1.0, "{exact} and {normal}");
        }
        assert!((normal_quantile(0.025) - 1.959_963_985).abs() < 1e-8);
        assert!((normal_quantile(0.000_5) - 3.290_526_731).abs() < 1e-8);
    }

    #[test]
    fn the_interval_contains_the_shift_in_as_many_cases_as_it_says() {
        let mut random = Random(1);
        // Cauchy: no mean and no variance.
        let mut draw = || ((random.bits() >> 11) as f64 / (1u64 << 53) as f64 - 0.5) * std::f64::consts::PI;
        let mut ranks = SignedRanks::new(0.1);
        for count in [8, 20, 120] {
            let missed = (0..2_000).filter(|_| {
                let values: Vec<f64> = (0..count).map(|_| draw().tan() + 3.0).collect();
                let (_, low, high) = ranks.shift(&values).unwrap();
                low > 3.0 || high < 3.0
            });
            let missed = missed.count();
            assert!((120..=250).contains(&missed), "{missed} of 2000 with {count} values, expected at most 200");
        }
    }

    #[test]
    fn few_values_have_no_interval() {
        assert_eq!(SignedRanks::new(0.05).shift(&[]), None);
        assert_eq!(SignedRanks::new(0.05).shift(&[1.0, 3.0]), Some((2.0, f64::NEG_INFINITY, f64::INFINITY)));
    }
}
