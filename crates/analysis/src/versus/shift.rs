//! The shift between the rounds of two sides, and the number of rounds that would show one.

use extremes::Random;

use crate::ranks::{self, RankSums, SignedRanks};

/// Times below this count as this in ratios, ns: no use needs less, and ratios of shorter times say nothing.
pub const LEAST_NS: f64 = 1_000.0;
/// Tried numbers of rounds of each side.
const SIZES: [u32; 16] = [4, 5, 6, 7, 8, 10, 12, 15, 18, 22, 28, 36, 50, 70, 120, 200];
/// Comparisons that are simulated for each of them.
const SIMULATED: u32 = 400;
/// Number of them that must show the difference: 98 of 100, because rounds in a row are alike, which the simulation does not contain.
const SHOWN: u32 = 392;
/// Fewer degrees of freedom do not show how rounds vary.
const LEAST_FREEDOM: usize = 4;
/// The logarithm of 10.
const TEN_TIMES: f64 = std::f64::consts::LN_10;
/// If one side goes before the other, a difference counts if it is so many times larger than between the halves of a side.
const HALVES: f64 = 6.0;

/// If the sides alternate, always with the same one first, a difference counts if it is so many times larger than the trend from
/// one run to the next.
const TREND: f64 = 2.0;

/// The order of the rounds of two sides in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Of no importance.
    Any,
    /// The values with the same index were measured one after the other.
    Pairs,
    /// The same, always with the same side first, so that the trend of both sides from one run to the next looks like a shift.
    DriftingPairs,
    /// All of a side came before those of the other, so that a drift looks like a shift.
    Drifting,
}

/// A shift with its interval, whose ends are infinite if there are too few values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shifted {
    pub estimate: f64,
    pub low: f64,
    pub high: f64,
}

/// Shifts with one error probability.
#[derive(Debug)]
pub struct Shift {
    alpha: f64,
    least_ratio: f64,
    sums: RankSums,
    signed: SignedRanks,
    random: Random,
}

/// The logarithm of a time.
pub fn logarithm(ns: f64) -> f64 {
    ns.max(LEAST_NS).ln()
}

impl Shift {
    /// For intervals with the error probability `alpha` of both ends together. `least_ratio` is the relative difference
    /// that should be shown.
    pub fn new(alpha: f64, least_ratio: f64) -> Self {
        let (sums, signed) = (RankSums::new(alpha), SignedRanks::new(alpha));
        Self { alpha, least_ratio, sums, signed, random: Random(0) }
    }

    /// The relative difference that should be shown.
    pub fn least_ratio(&self) -> f64 {
        self.least_ratio
    }

    /// The smallest number of rounds of each side that can have an interval.
    pub fn least(&self) -> u32 {
        ranks::least_of_two(self.alpha)
    }

    /// The shift from `a` to `b`, each in the order of time; `None` if a side has no value.
    pub fn between(&mut self, a: &[f64], b: &[f64], order: Order) -> Option<Shifted> {
        let is_paired = matches!(order, Order::Pairs | Order::DriftingPairs);
        let (estimate, mut low, mut high) = if is_paired && a.len() >= ranks::least(self.alpha) as usize {
            let differences: Vec<f64> = a.iter().zip(b).map(|(a, b)| b - a).collect();
            self.signed.shift(&differences)?
        } else {
            self.sums.shift(a, b)?
        };
        match order {
            Order::Any | Order::Pairs => {}
            Order::DriftingPairs => {
                let trend = TREND * self.trend(a, b).abs();
                low -= trend;
                high += trend;
            }
            Order::Drifting => {
                let drift = HALVES * self.between_halves(a).abs().max(self.between_halves(b).abs());
                low = low.min(estimate - drift);
                high = high.max(estimate + drift);
            }
        }
        Some(Shifted { estimate, low, high })
    }

    /// The common trend of two sides whose runs alternate: the shift from one run to the next.
    fn trend(&mut self, a: &[f64], b: &[f64]) -> f64 {
        // The middles of the halves are half of the runs of both sides apart.
        let runs = (a.len() + b.len()) as f64 / 2.0;
        f64::midpoint(self.between_halves(a), self.between_halves(b)) / runs.max(1.0)
    }

    /// The shift from the first to the second half of a side; 0 for a single value.
    fn between_halves(&mut self, values: &[f64]) -> f64 {
        let (first, second) = values.split_at(values.len() / 2);
        self.sums.shift(first, second).map_or(0.0, |(estimate, ..)| estimate)
    }

    /// The number of rounds of each side that show the least difference in 95 of 100 cases, if rounds vary as these do;
    /// `None` if it is larger than 200, or if there are too few rounds to know how they vary.
    ///
    /// If the interval of `found` contains that difference, the known rounds did not decide about it, so more are needed.
    ///
    /// Comparisons of so many rounds are simulated with the deviations of the known ones from the median of their side. As
    /// few rounds show too small deviations, they are enlarged to the upper end of their interval (one-sided, 90 %).
    /// `n` rounds do not show what happens in fewer than one of `n`, so one in `n + 1` is ten times as late as the others
    /// (Laplace's rule of succession).
    pub fn needed(&mut self, a: &[f64], b: &[f64], found: Shifted) -> Option<u32> {
        let mut deviations: Vec<f64> = [a, b].into_iter().flat_map(deviations).collect();
        let freedom = deviations.len().checked_sub(2).filter(|&freedom| freedom >= LEAST_FREEDOM)?;
        let factor = enlargement(freedom as f64);
        deviations.iter_mut().for_each(|deviation| *deviation *= factor);
        deviations.push(TEN_TIMES);
        let by = Some(self.least_ratio.ln_1p()).filter(|&by| by > 0.0)?;
        let is_decided = -by < found.low && found.high < by;
        let used = if is_decided { 0 } else { u32::try_from(a.len().max(b.len())).ok()? };
        let least = self.least().max(used.saturating_add(1));
        SIZES.into_iter().filter(|&size| size >= least).find(|&size| self.is_shown(&deviations, by, size))
    }

    /// True if enough comparisons of `size` rounds of each side show a shift.
    fn is_shown(&mut self, deviations: &[f64], by: f64, size: u32) -> bool {
        let mut missed = 0;
        for _ in 0..SIMULATED {
            let (a, b) = (self.drawn(deviations, 0.0, size), self.drawn(deviations, by, size));
            missed += u32::from(!self.sums.is_above(&a, &b));
            if missed > SIMULATED - SHOWN {
                return false;
            }
        }
        true
    }

    /// So many of the values, drawn at random, each plus `by`.
    fn drawn(&mut self, values: &[f64], by: f64, size: u32) -> Vec<f64> {
        let count = values.len() as u64;
        // The remainder is an index, so it fits.
        (0..size).map(|_| values[usize::try_from(self.random.bits() % count).unwrap_or(0)] + by).collect()
    }
}

/// The differences of all values from their median.
fn deviations(values: &[f64]) -> Vec<f64> {
    let Some(middle) = super::median(values.to_vec()) else { return Vec::new() };
    values.iter().map(|value| value - middle).collect()
}

/// The factor from an observed to the largest likely standard deviation with so many degrees of freedom, one-sided 90 %.
///
/// The 10th percentile of a chi-square distribution by the approximation of Wilson and Hilferty (1931).
fn enlargement(freedom: f64) -> f64 {
    /// The 10th percentile of the normal distribution.
    const NORMAL_10: f64 = -1.281_552;
    let part = 2.0 / (9.0 * freedom);
    (1.0 - part + NORMAL_10 * part.sqrt()).powi(3).sqrt().recip()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_rounds_may_vary_more_than_they_show() {
        // The 10th percentiles of chi-square: 3.490 with 8 degrees of freedom, 24.797 with 35.
        assert!((enlargement(8.0) - (8.0f64 / 3.490).sqrt()).abs() < 0.01, "{}", enlargement(8.0));
        assert!((enlargement(35.0) - (35.0f64 / 24.797).sqrt()).abs() < 0.01, "{}", enlargement(35.0));
    }

    #[test]
    fn rounds_that_vary_more_need_more_rounds() {
        let side = |spread: f64| -> Vec<f64> { (0..10).map(|i| 10.0 + spread * f64::from(i % 5)).collect() };
        let none = Shifted { estimate: 0.0, low: 0.0, high: 0.0 };
        let needed = |spread: f64| Shift::new(0.01, 0.2).needed(&side(spread), &side(spread), none);
        assert_eq!(needed(0.0), Some(15), "rounds that did not vary may do so rarely");
        let (some, more) = (needed(0.05).unwrap(), needed(0.1).unwrap());
        assert!(15 < some && some < more, "{some} {more}");
        assert_eq!(needed(5.0), None, "more than 200");
        assert_eq!(Shift::new(0.01, 0.2).needed(&[1.0], &[2.0], none), None, "nothing is known about single rounds");
        let (many, vague) = (side(0.0).repeat(2), Shifted { high: 0.3, ..none });
        assert_eq!(Shift::new(0.01, 0.2).needed(&many, &many, vague), Some(22), "more than the 20 that did not decide");
    }

    #[test]
    fn a_trend_is_no_difference_if_the_same_side_is_always_first() {
        let noise = |i: u32| 0.004 * f64::from(i * 7 % 5);
        let side = |first: u32, more: f64| -> Vec<f64> {
            (0..10).map(|i| more + 0.06 * f64::from(2 * i + first) + noise(2 * i + first)).collect()
        };
        let (a, b) = (side(0, 0.0), side(1, 0.0));
        let mut shift = Shift::new(0.05, 0.2);
        assert!(shift.between(&a, &b, Order::Pairs).unwrap().low > 0.0);
        let drifting = shift.between(&a, &b, Order::DriftingPairs).unwrap();
        assert!(drifting.low < 0.0 && drifting.high > 0.0, "{drifting:?}");
        assert!(shift.between(&a, &side(1, 0.4), Order::DriftingPairs).unwrap().low > 0.0, "more than the trend");
        let steady = |more: f64| -> Vec<f64> { (0..10).map(|i| more + noise(i)).collect() };
        assert!(shift.between(&steady(0.0), &steady(0.1), Order::DriftingPairs).unwrap().low > 0.0);
    }

    #[test]
    fn a_drift_is_no_difference_if_the_sides_follow_one_another() {
        let drift = |from: u32| -> Vec<f64> { (from..from + 10).map(|i| 0.1 * f64::from(i)).collect() };
        let (a, b) = (drift(0), drift(10));
        let mut shift = Shift::new(0.05, 0.2);
        assert!(shift.between(&a, &b, Order::Any).unwrap().low > 0.0);
        assert!(shift.between(&a, &b, Order::Drifting).unwrap().low <= 0.0);
        let step: Vec<f64> = (0..10).map(|i| 1.0 + 0.01 * f64::from(i % 3)).collect();
        let later: Vec<f64> = step.iter().map(|value| value + 1.0).collect();
        assert!(shift.between(&step, &later, Order::Drifting).unwrap().low > 0.0);
    }
}
