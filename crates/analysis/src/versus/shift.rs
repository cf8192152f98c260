//! The shift between the rounds of two sides, and the number of rounds that would show one.

use extremes::Random;
use record::versus::RoundOrder;

use super::timeline::{self, Machine};
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

    /// The shift from `a` to `b`, whose rounds are those of `machines` and of others; `None` if a side has no value.
    pub fn between(&mut self, a: &[f64], b: &[f64], order: RoundOrder, machines: &[Machine]) -> Option<Shifted> {
        let differences: Vec<f64> = match order {
            RoundOrder::Alternating | RoundOrder::AlternatingSameFirst => {
                machines.iter().flat_map(Machine::differences).collect()
            }
            _ => Vec::new(),
        };
        let (estimate, low, high) = match differences.len() >= ranks::least(self.alpha) as usize {
            true => self.signed.shift(&differences)?,
            false => self.sums.shift(a, b)?,
        };
        let drift = timeline::drift(order, machines, &mut self.sums);
        Some(match order {
            // The trend of the pairs is in each of their differences.
            RoundOrder::AlternatingSameFirst => Shifted { estimate, low: low - drift, high: high + drift },
            _ => Shifted { estimate, low: low.min(estimate - drift), high: high.max(estimate + drift) },
        })
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
    use crate::versus::timeline::{Start, Timeline};

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

    /// The shift of rounds of one machine, a minute each, in this order of sides; a dot is a minute without a round.
    fn between(order: &str, level: impl Fn(u32, bool) -> f64) -> Shifted {
        let (mut sides, mut values) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
        for (minute, letter) in (0..).zip(order.chars()).filter(|(_, letter)| *letter != '.') {
            let is_b = letter == 'B';
            let at = format!("2026-01-01T{:02}:{:02}:00.000000000Z", minute / 60, minute % 60);
            sides[usize::from(is_b)].push(Start { at, host: Some("board".to_owned()), is_imported: false });
            values[usize::from(is_b)].push(level(minute, is_b) + 0.004 * f64::from(minute * 7 % 5));
        }
        let [a, b] = sides.each_ref().map(|side| side.iter().collect::<Vec<_>>());
        let timeline = Timeline::of(&a, &b, &[&a[..], &b[..]].concat());
        let machines = timeline.with(|is_b, index| Some(values[usize::from(is_b)][index]));
        Shift::new(0.05, 0.2).between(&values[0], &values[1], timeline.order, &machines).unwrap()
    }

    #[test]
    fn a_drift_is_no_difference_in_any_order() {
        for order in [
            "AAAAAAAAAABBBBBBBBBB",
            "AAAAAAAAAA..............................BBBBBBBBBB",
            "AAAAAAAAABBBBBBBBBBA",
            "BAAAAAAAAAABBBBBBBBB",
            "AAAAAAABBBBBBBAAAAAAABBBBBBB",
            "ABABABABABABABABABAB",
            "ABBAABBAABBAABBAABBA",
        ] {
            let drifting = between(order, |minute, _| 0.02 * f64::from(minute));
            assert!(drifting.low < 0.0 && drifting.high > 0.0, "{order} {drifting:?}");
            let steady = between(order, |_, is_b| if is_b { 0.5 } else { 0.0 });
            assert!(steady.low > 0.0, "{order} {steady:?}");
        }
    }

    #[test]
    fn a_trend_is_no_difference_if_the_same_side_is_always_first() {
        let order = "AB".repeat(10);
        let drift = |minute: u32| 0.06 * f64::from(minute);
        let more = |is_b: bool| if is_b { 0.4 } else { 0.0 };
        assert!(between(&order, |minute, is_b| drift(minute) + more(is_b)).low > 0.0, "more than the trend");
        assert!(between(&order, |_, is_b| 0.25 * more(is_b)).low > 0.0);
    }
}
