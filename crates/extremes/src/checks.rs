//! Are the values of one law that does not change? The limits of each test refuse 1 to 4 of 100 series that are.

use crate::{Law, Random};

/// Samples drawn from a fitted law, to learn how far a fit deviates by chance.
const DRAWN: usize = 99;
/// A fit is refused if fewer than so many of them deviate as far: 2 of 100.
const LEAST_AS_FAR: usize = 2;
/// A gap is refused if fewer than so many of them have one as large: 4 of 100. A rare cause is easily missed.
const LEAST_AS_LARGE: usize = 4;
/// The few largest values, among which one can be of another cause.
const FEW: usize = 3;

/// The reason why values say nothing about larger ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// There are too few windows.
    TooFew,
    /// Too few of the values differ, so they have no measurable law.
    FewValues,
    /// The values rise, fall, or jump to another level.
    NotStationary,
    /// A large value has large neighbours.
    NotIndependent,
    /// The values have no extreme-value distribution.
    DoesNotFit,
    /// Some of the largest values are apart from the others: they have a rare cause of their own.
    SecondCause,
    /// The tail is so heavy that its mean would be infinite.
    TooHeavy,
}

/// Checks values in order of time.
pub fn stays_the_same(values: &[f64]) -> Result<(), Refusal> {
    /// `K` of a change of the level at 1 % (A. Pettitt, Applied Statistics 28, 1979): `p = 2 exp(-6 K^2 / (n^3 + n^2))`.
    const CHANGES: f64 = 0.01;
    /// Lags whose correlations are summed, and the 99th percentile of chi-square with so many degrees of freedom.
    const LAGS: usize = 10;
    const CORRELATED: f64 = 23.209;
    let ranks = centred_ranks(values);
    let n = values.len() as f64;
    let mut sum = 0.0;
    // Pettitt's U after k values is twice the sum of their centred ranks.
    let largest = ranks.iter().fold(0.0f64, |largest, rank| {
        sum += 2.0 * rank;
        largest.max(f64::abs(sum))
    });
    if 2.0 * (-6.0 * largest * largest / (n.powi(3) + n.powi(2))).exp() < CHANGES {
        return Err(Refusal::NotStationary);
    }
    // The sum of squared correlations (G. Ljung, G. Box, Biometrika 65, 1978) of the ranks, which need no normal law.
    let variance: f64 = ranks.iter().map(|rank| rank * rank).sum();
    let correlations = (1..=LAGS).map(|lag| {
        let product: f64 = ranks.iter().zip(&ranks[lag..]).map(|(a, b)| a * b).sum();
        (product / variance).powi(2) / (n - lag as f64)
    });
    if n * (n + 2.0) * correlations.sum::<f64>() > CORRELATED { Err(Refusal::NotIndependent) } else { Ok(()) }
}

/// The ranks of the values minus their mean; equal values share theirs.
fn centred_ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mean = (values.len() as f64 - 1.0) / 2.0;
    let mut ranks = vec![0.0; values.len()];
    let mut begin = 0;
    for equal in order.chunk_by(|&a, &b| values[a] == values[b]) {
        let rank = begin as f64 + (equal.len() as f64 - 1.0) / 2.0;
        equal.iter().for_each(|&index| ranks[index] = rank - mean);
        begin += equal.len();
    }
    ranks
}

/// Checks that the values, in rising order, fit a law that is fitted to them.
pub fn fits<L: Law>(sorted: &[f64], law: L, random: &mut Random) -> Result<(), Refusal> {
    let Some(seen) = Deviation::of(sorted, law) else { return Err(Refusal::DoesNotFit) };
    let (mut as_far, mut as_large) = (0, [0; 2]);
    for _ in 0..DRAWN {
        let mut drawn: Vec<f64> = sorted.iter().map(|_| law.draw(random)).collect();
        drawn.sort_unstable_by(f64::total_cmp);
        // A sample without a fit counts as one that deviates further.
        let other = L::fit(&drawn, 0).and_then(|(law, _)| Deviation::of(&drawn, law));
        as_far += usize::from(other.as_ref().is_none_or(|other| other.distance >= seen.distance));
        for (index, count) in as_large.iter_mut().enumerate() {
            *count += usize::from(other.as_ref().is_none_or(|other| other.gaps[index] >= seen.gaps[index]));
        }
    }
    if as_large.iter().any(|count| *count < LEAST_AS_LARGE) {
        Err(Refusal::SecondCause)
    } else if as_far < LEAST_AS_FAR {
        Err(Refusal::DoesNotFit)
    } else {
        Ok(())
    }
}

/// The distance of values from a law.
#[derive(Debug)]
struct Deviation {
    /// The distance of the distributions, with more weight on large values: AU2 of M. Ahmad, C. Sinclair and B. Spurr (Water
    /// Resources Research 24, 1988).
    distance: f64,
    /// The largest gap among the highest tenth of the values, and among the highest three; see [`largest_gap`].
    gaps: [f64; 2],
}

impl Deviation {
    fn of<L: Law>(sorted: &[f64], law: L) -> Option<Self> {
        /// A probability below 1e-300 counts as this one.
        const LEAST_LOG: f64 = -690.0;
        let n = sorted.len() as f64;
        let distance = sorted.iter().enumerate().fold(n / 2.0, |distance, (index, value)| {
            let log = law.log_exceedance(*value).max(LEAST_LOG);
            distance + 2.0 * log.exp_m1() - (2.0 - (2.0 * index as f64 + 1.0) / n) * log
        });
        let many = (sorted.len() / 10).max(FEW);
        Some(Self { distance, gaps: [largest_gap::<L>(sorted, many)?, largest_gap::<L>(sorted, FEW)?] })
    }
}

/// The largest gap below one of the highest `count` values, by the law of the others.
///
/// `-ln(1 - F)` of random values is exponential. The gap below the k-th largest of them, times k, is exponential with mean
/// 1 (A. Rényi, 1953). Values of another cause leave a larger gap, and the law of the others does not know them.
fn largest_gap<L: Law>(sorted: &[f64], count: usize) -> Option<f64> {
    /// The position of a value that the law of the others excludes.
    const IMPOSSIBLE: f64 = 1e6;
    let (others, largest) = sorted.split_at(sorted.len() - count);
    let (law, _) = L::fit(sorted, count)?;
    let position = |value: &f64| (-law.log_exceedance(*value)).min(IMPOSSIBLE);
    let mut before = position(others.last()?);
    let gaps = largest.iter().enumerate().map(|(index, value)| {
        let gap = (position(value) - before) * (count - index) as f64;
        before = position(value);
        gap
    });
    gaps.max_by(f64::total_cmp)
}
