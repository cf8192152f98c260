//! Medians and their spread.

use serde::Serialize;

/// Five-number summary of a set of figures.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    /// Median.
    pub median: f64,
    /// First quartile.
    pub lower_quartile: f64,
    /// Third quartile.
    pub upper_quartile: f64,
    /// Lower end of the 95 % confidence interval of the median; the smallest figure if there are fewer than 6.
    pub median_low: f64,
    /// Upper end of that interval; the largest figure if there are fewer than 6.
    pub median_high: f64,
    /// Number of figures.
    pub count: usize,
}

impl Spread {
    /// Summarizes `figures`; `None` if there are none.
    pub fn of(figures: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = figures.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let count = sorted.len();
        if count == 0 {
            return None;
        }
        let outside = outside_median_interval(count);
        Some(Self {
            median: quantile(&sorted, 0.5),
            lower_quartile: quantile(&sorted, 0.25),
            upper_quartile: quantile(&sorted, 0.75),
            median_low: sorted[outside],
            median_high: sorted[count - 1 - outside],
            count,
        })
    }
}

/// The quantile of sorted figures, with linear interpolation.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let position = share * (sorted.len() - 1) as f64;
    let (below, above) = (sorted[index(position.floor())], sorted[index(position.ceil())]);
    // The difference of two infinities is not a number.
    if below == above { below } else { below + (above - below) * position.fract() }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a position between 0 and the number of figures"
)]
fn index(position: f64) -> usize {
    position as usize
}

/// Number of figures on each side outside the 95 % confidence interval of the median. A figure is on a given side of
/// the true median with probability 1/2, for any distribution.
fn outside_median_interval(count: usize) -> usize {
    let mut outside = 0;
    let mut exactly = 0.5f64.powi(i32::try_from(count).unwrap_or(i32::MAX));
    let mut at_most = exactly;
    while at_most <= 0.025 {
        outside += 1;
        exactly *= (count + 1 - outside) as f64 / outside as f64;
        at_most += exactly;
    }
    outside.saturating_sub(1)
}

/// `own / peer`; 1 if both are 0.
pub fn ratio(own: f64, peer: f64) -> f64 {
    if own == 0.0 && peer == 0.0 { 1.0 } else { own / peer }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn summarizes_known_figures() {
        let spread = Spread::of([5.0, 1.0, 4.0, 2.0, 3.0]).unwrap();
        assert_eq!((spread.lower_quartile, spread.median, spread.upper_quartile), (2.0, 3.0, 4.0));
        assert_eq!((spread.median_low, spread.median_high, spread.count), (1.0, 5.0, 5));
        assert_eq!(Spread::of([1.0, 2.0]).unwrap().median, 1.5);
        assert_eq!(Spread::of([]), None);
    }

    #[test]
    fn the_interval_agrees_with_tables_of_the_sign_test() {
        let outside = [(5, 0), (6, 0), (8, 0), (9, 1), (12, 2), (16, 3), (20, 5), (30, 9)];
        for (count, expected) in outside {
            assert_eq!(outside_median_interval(count), expected, "{count} figures");
        }
    }

    #[test]
    fn ratios_with_zero() {
        assert_eq!(ratio(0.0, 0.0), 1.0);
        assert_eq!(ratio(3.0, 0.0), f64::INFINITY);
        assert_eq!(ratio(0.0, 3.0), 0.0);
        assert_eq!(Spread::of([f64::INFINITY; 3]).unwrap().median, f64::INFINITY);
    }

    proptest! {
        #[test]
        fn the_five_numbers_are_in_order(figures in prop::collection::vec(-1e9..1e9f64, 1..60)) {
            let s = Spread::of(figures).unwrap();
            prop_assert!(s.lower_quartile <= s.median && s.median <= s.upper_quartile);
            prop_assert!(s.median_low <= s.median && s.median <= s.median_high);
        }
    }
}
