//! The generalized Pareto distribution (GPD): how far values exceed a threshold.

use crate::{
    LEAST_SHAPE_OF_PEAKS, Law, MOST_SHAPE, Random, box_cox, box_cox_inverse,
    minimise::{between, simplex},
};

/// A generalized Pareto distribution of excesses: `F(y) = 1 - (1 + shape y / scale)^(-1 / shape)`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gpd {
    /// Scale, in the unit of the values; above 0.
    pub scale: f64,
    /// Shape, as that of [`Gev`](crate::Gev).
    pub shape: f64,
}

impl Gpd {
    fn negative_log_likelihood(&self, known: &[f64], censored: usize) -> f64 {
        let Some(last) = known.last() else { return f64::INFINITY };
        if !(LEAST_SHAPE_OF_PEAKS..=MOST_SHAPE).contains(&self.shape) || self.log_exceedance(*last).is_infinite() {
            return f64::INFINITY;
        }
        let sum: f64 = known.iter().map(|value| (1.0 + self.shape) * self.log_exceedance(*value)).sum();
        known.len() as f64 * self.scale.ln() - sum - censored as f64 * self.log_exceedance(*last)
    }
}

impl Law for Gpd {
    fn fit(sorted: &[f64], censored: usize) -> Option<(Self, f64)> {
        let known = &sorted[..sorted.len() - censored];
        let mean = known.iter().sum::<f64>() / known.len() as f64;
        if mean.is_nan() || mean <= 0.0 {
            return None;
        }
        let law = |&[log_scale, shape]: &[f64; 2]| Self { scale: log_scale.exp(), shape };
        let (at, value) =
            simplex([mean.ln(), 0.05], [0.3, 0.15], |at| law(at).negative_log_likelihood(known, censored));
        value.is_finite().then(|| (law(&at), value))
    }

    fn with_level(&self, sorted: &[f64], log_periods: f64, level: f64) -> (Self, f64) {
        let law = |shape: f64| Self { scale: level / box_cox(log_periods, shape), shape };
        let (shape, value) =
            between(LEAST_SHAPE_OF_PEAKS, MOST_SHAPE, |shape| law(shape).negative_log_likelihood(sorted, 0));
        (law(shape), value)
    }

    fn level(&self, log_periods: f64) -> f64 {
        self.scale * box_cox(log_periods, self.shape)
    }

    fn log_periods(&self, level: f64) -> f64 {
        box_cox_inverse(level / self.scale, self.shape).unwrap_or(f64::INFINITY)
    }

    fn log_exceedance(&self, value: f64) -> f64 {
        -self.log_periods(value)
    }

    fn draw(&self, random: &mut Random) -> f64 {
        self.level(-random.uniform().ln())
    }

    fn scale(&self) -> f64 {
        self.scale
    }
}
