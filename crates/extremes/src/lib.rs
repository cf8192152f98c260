#![forbid(unsafe_code)]
//! Extreme-value statistics: levels that were not reached yet, from the largest values of windows of time.
//!
//! Two laws describe large values whatever the law of the single values is: the largest values of long blocks follow a
//! generalized extreme-value distribution ([`Gev`]), and the excesses over a high threshold a generalized Pareto
//! distribution ([`Gpd`]). [`tail()`] fits both, but only to values that pass the checks: values that drift, that come in
//! bursts, or that have a rare second cause say nothing about larger ones. Methods as in S. Coles, "An Introduction to
//! Statistical Modeling of Extreme Values", 2001, chapters 3 and 4.
//!
//! | module | contents |
//! |---|---|
//! | `tail` | blocks and peaks of a series of windows, and their levels with intervals |
//! | `gev`, `gpd` | the two laws |
//! | `checks` | are the values of one law that does not change? |
//! | `minimise` | minima without derivatives |
//! | `random` | repeatable random numbers |

mod checks;
mod gev;
mod gpd;
mod minimise;
mod random;
#[cfg(test)]
mod simulation;
mod tail;

pub use checks::Refusal;
pub use gev::Gev;
pub use gpd::Gpd;
pub use random::Random;
pub use tail::{Fitted, LEAST_WINDOWS, Level, Peaks, Tail, tail};

/// The smallest shape of a fit of [`Gev`]. Below it, the likelihood has no maximum. Theory confirms the intervals from the
/// likelihood above -0.5 only (R. Smith, Biometrika 72, 1985), simulations also below. A larger limit would be the end of the
/// search for laws with a sharp end, so that their intervals would be too narrow.
const LEAST_SHAPE_OF_BLOCKS: f64 = -1.0;
/// The smallest shape of a fit of [`Gpd`], whose intervals are right at this limit, too.
const LEAST_SHAPE_OF_PEAKS: f64 = -0.5;
/// The largest shape of a fit: from it on, the mean is infinite.
const MOST_SHAPE: f64 = 1.0;

/// A law of large values.
pub trait Law: Copy {
    /// The law that makes the values most likely, with its negative logarithm of the likelihood.
    ///
    /// `sorted` are the values in rising order. Of the last `censored` ones only the number counts: so many are above the
    /// others. `None` if the values have no scale.
    fn fit(sorted: &[f64], censored: usize) -> Option<(Self, f64)>;

    /// The law with this level that makes the values most likely, with its negative logarithm of the likelihood. The search
    /// begins near `self`. `log_periods` is the logarithm of the number of values among which one is above the level
    /// on average.
    fn with_level(&self, sorted: &[f64], log_periods: f64, level: f64) -> (Self, f64);

    /// The level that one of so many values exceeds on average, given the logarithm of their number.
    fn level(&self, log_periods: f64) -> f64;

    /// The logarithm of the number of values among which one exceeds `level` on average; infinite if no value can.
    fn log_periods(&self, level: f64) -> f64;

    /// The logarithm of the probability that a value exceeds this one; negatively infinite if none can.
    fn log_exceedance(&self, value: f64) -> f64;

    /// A random value.
    fn draw(&self, random: &mut Random) -> f64;

    /// The scale, in the unit of the values.
    fn scale(&self) -> f64;
}

/// The transformation of G. Box and D. Cox of `exp(log)`: `(exp(shape log) - 1) / shape`, and its limit `log` for a shape of 0.
fn box_cox(log: f64, shape: f64) -> f64 {
    if shape.abs() < 1e-6 { log } else { (shape * log).exp_m1() / shape }
}

/// The inverse of [`box_cox`]: `ln(1 + shape value) / shape`; `None` where the logarithm has no value.
fn box_cox_inverse(value: f64, shape: f64) -> Option<f64> {
    if shape.abs() < 1e-6 {
        return Some(value);
    }
    let inner = shape * value;
    (inner > -1.0).then(|| inner.ln_1p() / shape)
}
