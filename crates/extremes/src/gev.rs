//! The generalized extreme-value distribution (GEV): the largest values of blocks.

use crate::{
    LEAST_SHAPE_OF_BLOCKS, Law, MOST_SHAPE, Random, box_cox, box_cox_inverse,
    minimise::{border, simplex},
};

/// A generalized extreme-value distribution: `F(x) = exp(-(1 + shape (x - location) / scale)^(-1 / shape))`.
///
/// A positive shape is a heavy tail; a negative one has an end. `scipy.stats.genextreme` has the other sign.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gev {
    /// Location, in the unit of the values.
    pub location: f64,
    /// Scale, in the unit of the values; above 0.
    pub scale: f64,
    /// Shape.
    pub shape: f64,
}

impl Gev {
    /// `-ln(-ln F)`: negatively infinite below all possible values, infinite above them.
    fn reduced(&self, value: f64) -> f64 {
        let outside = if self.shape > 0.0 { f64::NEG_INFINITY } else { f64::INFINITY };
        box_cox_inverse((value - self.location) / self.scale, self.shape).unwrap_or(outside)
    }

    fn negative_log_likelihood(&self, known: &[f64], censored: usize) -> f64 {
        if !(LEAST_SHAPE_OF_BLOCKS..=MOST_SHAPE).contains(&self.shape) {
            return f64::INFINITY;
        }
        let mut sum = known.len() as f64 * self.scale.ln();
        for value in known {
            let reduced = self.reduced(*value);
            if reduced.is_infinite() {
                return f64::INFINITY;
            }
            sum += (-reduced).exp() + (1.0 + self.shape) * reduced;
        }
        match known.last() {
            Some(last) if censored > 0 => sum - censored as f64 * self.log_exceedance(*last),
            _ => sum,
        }
    }
}

/// The shape with `box_cox(log_periods, shape) = rise`; infinite if it is outside of the range of fits.
fn shape_with(rise: f64, log_periods: f64) -> f64 {
    let is_below = |shape: f64| box_cox(log_periods, shape) <= rise;
    if !is_below(LEAST_SHAPE_OF_BLOCKS) {
        f64::NEG_INFINITY
    } else if is_below(MOST_SHAPE) {
        f64::INFINITY
    } else {
        border(LEAST_SHAPE_OF_BLOCKS, MOST_SHAPE, 40, is_below)
    }
}

impl Law for Gev {
    fn fit(sorted: &[f64], censored: usize) -> Option<(Self, f64)> {
        /// `-ln(-ln F)` at the median, and the distance of the quartiles: a shape of 0.
        const MEDIAN: f64 = 0.367;
        const QUARTILES: f64 = 1.573;
        let known = &sorted[..sorted.len() - censored];
        let at = |quarter: usize| known[known.len() * quarter / 4];
        let between_quartiles = at(3) - at(1);
        let range = known.last()? - known.first()?;
        let scale = if between_quartiles > 0.0 { between_quartiles / QUARTILES } else { range / 4.0 };
        if scale <= 0.0 {
            return None;
        }
        let law = |&[location, log_scale, shape]: &[f64; 3]| Self { location, scale: log_scale.exp(), shape };
        let start = [at(2) - MEDIAN * scale, scale.ln(), 0.05];
        let (at, value) =
            simplex(start, [scale / 2.0, 0.3, 0.15], |at| law(at).negative_log_likelihood(known, censored));
        value.is_finite().then(|| (law(&at), value))
    }

    fn with_level(&self, sorted: &[f64], log_periods: f64, level: f64) -> (Self, f64) {
        let law = |&[location, log_scale]: &[f64; 2]| {
            let scale = log_scale.exp();
            Self { location, scale, shape: shape_with((level - location) / scale, log_periods) }
        };
        let start = [self.location, self.scale.ln()];
        let (at, value) = simplex(start, [self.scale / 10.0, 0.05], |at| law(at).negative_log_likelihood(sorted, 0));
        (law(&at), value)
    }

    fn level(&self, log_periods: f64) -> f64 {
        self.location + self.scale * box_cox(log_periods, self.shape)
    }

    fn log_periods(&self, level: f64) -> f64 {
        self.reduced(level)
    }

    fn log_exceedance(&self, value: f64) -> f64 {
        // 1 - F = 1 - exp(-t), with ln t = -reduced.
        (-(-(-self.reduced(value)).exp()).exp_m1()).ln()
    }

    fn draw(&self, random: &mut Random) -> f64 {
        self.level(-(-random.uniform().ln()).ln())
    }

    fn scale(&self) -> f64 {
        self.scale
    }
}
