//! Medians and their spread.

use serde::Serialize;

/// A set of figures in five numbers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    /// The middle figure.
    pub median: f64,
    /// A quarter of the figures lie below it.
    pub lower_quartile: f64,
    /// A quarter of the figures lie above it.
    pub upper_quartile: f64,
    /// Lower end of the interval that holds the true median at 95 %; the smallest figure when there are fewer than 6.
    pub median_low: f64,
    /// Upper end of that interval; the largest figure when there are fewer than 6.
    pub median_high: f64,
    /// How many figures there were.
    pub count: usize,
}

impl Spread {
    /// The spread of `figures`; `None` of none.
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

/// The value that a `share` of the sorted figures lie below, interpolated between neighbours.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = share * (sorted.len() - 1) as f64;
    let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    // Two infinite neighbours have no difference.
    if below == above { below } else { below + (above - below) * place.fract() }
}

/// How many figures on either side lie outside the 95 % interval of the median. Each figure is on a given side of the
/// true median with probability 1/2, whatever the distribution.
fn outside_median_interval(count: usize) -> usize {
    let mut outside = 0;
    let mut exactly = 0.5f64.powi(count as i32);
    let mut at_most = exactly;
    while at_most <= 0.025 {
        outside += 1;
        exactly *= (count + 1 - outside) as f64 / outside as f64;
        at_most += exactly;
    }
    outside.saturating_sub(1)
}

/// `ours / theirs`, where nothing against nothing is equal.
pub fn ratio(ours: f64, theirs: f64) -> f64 {
    if ours == 0.0 && theirs == 0.0 { 1.0 } else { ours / theirs }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_figures() {
        let spread = Spread::of([5.0, 1.0, 4.0, 2.0, 3.0]).unwrap();
        assert_eq!((spread.lower_quartile, spread.median, spread.upper_quartile), (2.0, 3.0, 4.0));
        assert_eq!((spread.median_low, spread.median_high, spread.count), (1.0, 5.0, 5));
        assert_eq!(Spread::of([1.0, 2.0]).unwrap().median, 1.5);
        assert_eq!(Spread::of([]), None);
    }

    #[test]
    fn the_interval_of_the_median_is_the_one_in_the_tables_of_the_sign_test() {
        let outside = [(5, 0), (6, 0), (8, 0), (9, 1), (12, 2), (16, 3), (20, 5), (30, 9)];
        for (count, expected) in outside {
            assert_eq!(outside_median_interval(count), expected, "{count} figures");
        }
    }

    #[test]
    fn ratios_with_nothing() {
        assert_eq!(ratio(0.0, 0.0), 1.0);
        assert_eq!(ratio(3.0, 0.0), f64::INFINITY);
        assert_eq!(ratio(0.0, 3.0), 0.0);
        assert_eq!(Spread::of([f64::INFINITY; 3]).unwrap().median, f64::INFINITY);
    }

    proptest! {
        #[test]
        fn the_five_numbers_stand_in_order(figures in prop::collection::vec(-1e9..1e9f64, 1..60)) {
            let s = Spread::of(figures).unwrap();
            prop_assert!(s.lower_quartile <= s.median && s.median <= s.upper_quartile);
            prop_assert!(s.median_low <= s.median && s.median <= s.median_high);
        }
    }
}
