//! Blocks and peaks of a series of windows, and their levels.

use crate::{
    Gev, Gpd, LEAST_SHAPE_OF_BLOCKS, Law, MOST_SHAPE, Random, Refusal,
    checks::{fits, stays_the_same},
    minimise::border,
};

/// The smallest number of windows with values.
pub const LEAST_WINDOWS: usize = 50;
/// For the checks, windows are merged to blocks as long as at least this number of them remains: more blocks show more.
const CHECKED_BLOCKS: usize = 100;
/// The number of blocks for a fit in long series.
const BLOCKS: usize = 100;
/// The smallest number of windows in a block for a fit, found by simulation. If single values are exponential, the largest of
/// fewer ones have no extreme-value distribution yet: with blocks of 2, every second interval is above the true level.
const LEAST_WINDOWS_PER_BLOCK: usize = 8;
/// The largest number of blocks in short series, whose blocks are shorter: few of them hide that misfit.
const SHORT_BLOCKS: usize = 40;
/// The smallest number of windows for peaks: a tenth of them are enough for a law.
const WINDOWS_FOR_PEAKS: usize = 500;
/// The largest number of peaks. More of them need a lower threshold, whose excesses are farther from their law, and a check of
/// a million windows takes twelve times as long.
const MOST_PEAKS: usize = 10_000;
/// So many values of the checked blocks, and of the fitted ones, must differ at least.
const LEAST_DIFFERENT: [usize; 2] = [20, 12];
/// The 95th percentile of chi-square with one degree of freedom.
const CHI_SQUARE_95: f64 = 3.841;
/// The likelihood of few values is less curved than that of many; found by simulation.
const FEW_VALUES: f64 = 5.0;
/// Halvings of the last step of a search for the end of an interval: to less than a thousandth.
const HALVINGS: u32 = 10;
/// The exceedances of a limit are searched up to this number of windows: 30 000 years of seconds.
const MOST_LOG_WINDOWS: f64 = 27.6;

/// The tail of a series of windows.
#[derive(Debug, Clone, PartialEq)]
pub struct Tail {
    /// Windows in a block.
    pub windows_per_block: usize,
    /// The largest values of the blocks.
    pub blocks: Fitted<Gev>,
    /// The windows above a high threshold; absent if there are fewer than 500 windows, or if their excesses have no
    /// generalized Pareto distribution.
    pub peaks: Option<Peaks>,
}

/// Peaks over a threshold. Each window has at most one, so that the values of one stall count once.
#[derive(Debug, Clone, PartialEq)]
pub struct Peaks {
    /// The threshold, in the unit of the values.
    pub threshold: f64,
    /// The share of windows with a peak.
    pub share: f64,
    /// The excesses over the threshold.
    pub excesses: Fitted<Gpd>,
}

/// Values with the law that makes them most likely.
#[derive(Debug, Clone, PartialEq)]
pub struct Fitted<L> {
    /// The law.
    pub law: L,
    /// The values in rising order.
    sorted: Vec<f64>,
    /// The negative logarithm of the likelihood.
    least: f64,
}

/// A level with its interval at 95 %.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Level {
    /// The most likely level.
    pub estimate: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end; absent if the values do not limit it.
    pub high: Option<f64>,
}

/// The tail of the largest values of windows of equal length, in order of time. Windows without a value are left out.
///
/// # Errors
///
/// Returns the reason why these values say nothing about larger ones.
pub fn tail(windows: &[Option<f64>]) -> Result<Tail, Refusal> {
    let windows: Vec<f64> = windows.iter().copied().flatten().collect();
    if windows.len() < LEAST_WINDOWS {
        return Err(Refusal::TooFew);
    }
    let mut checked = 1;
    while windows.len() / (2 * checked) >= CHECKED_BLOCKS {
        checked *= 2;
    }
    let windows_per_block = windows_per_block(windows.len());
    let (checked, blocks) = (largest(&windows, checked), sorted(largest(&windows, windows_per_block)));
    let is_coarse = |sorted: &[f64], least: usize| sorted.chunk_by(|a, b| a == b).count() < least;
    let [least_checked, least_fitted] = LEAST_DIFFERENT;
    if is_coarse(&sorted(checked.clone()), least_checked) || is_coarse(&blocks, least_fitted) {
        return Err(Refusal::FewValues);
    }
    stays_the_same(&checked)?;
    let mut random = Random(0);
    let checked: Fitted<Gev> = accepted(sorted(checked))?;
    fits(&checked.sorted, checked.law, &mut random)?;
    let blocks = accepted(blocks)?;
    Ok(Tail { windows_per_block, blocks, peaks: peaks(windows, &mut random) })
}

/// The number of windows in a block for a fit.
fn windows_per_block(windows: usize) -> usize {
    windows.div_ceil(SHORT_BLOCKS).min((windows / BLOCKS).max(LEAST_WINDOWS_PER_BLOCK))
}

/// The largest values of blocks of so many windows.
fn largest(windows: &[f64], per_block: usize) -> Vec<f64> {
    windows.chunks_exact(per_block).map(|block| block.iter().copied().fold(f64::MIN, f64::max)).collect()
}

/// The law of blocks, if it is not at the border of the known ones.
fn accepted(sorted: Vec<f64>) -> Result<Fitted<Gev>, Refusal> {
    let blocks: Fitted<Gev> = Fitted::of(sorted).ok_or(Refusal::DoesNotFit)?;
    if blocks.law.shape > MOST_SHAPE - 0.01 {
        return Err(Refusal::TooHeavy);
    }
    // The interval would end where the search for laws ends.
    if blocks.law.shape < LEAST_SHAPE_OF_BLOCKS + 0.1 {
        return Err(Refusal::DoesNotFit);
    }
    Ok(blocks)
}

fn peaks(windows: Vec<f64>, random: &mut Random) -> Option<Peaks> {
    let (all, count) = (windows.len(), (windows.len() / 10).min(MOST_PEAKS));
    if all < WINDOWS_FOR_PEAKS {
        return None;
    }
    let windows = sorted(windows);
    let threshold = windows[all - count - 1];
    let excesses = windows[all - count..].iter().map(|value| value - threshold).collect();
    let excesses: Fitted<Gpd> = Fitted::of(excesses)?;
    fits(&excesses.sorted, excesses.law, random).ok()?;
    Some(Peaks { threshold, share: count as f64 / all as f64, excesses })
}

impl Tail {
    /// The level that the blocks exceed once in so many windows, on average.
    #[must_use]
    pub fn level(&self, windows: f64) -> Level {
        self.blocks.level((windows / self.windows_per_block as f64).ln())
    }

    /// The same level by the peaks.
    #[must_use]
    pub fn level_by_peaks(&self, windows: f64) -> Option<Level> {
        let peaks = self.peaks.as_ref()?;
        let Level { estimate, low, high } = peaks.excesses.level((windows * peaks.share).ln());
        let of = |excess: f64| peaks.threshold + excess;
        Some(Level { estimate: of(estimate), low: of(low), high: high.map(of) })
    }

    /// The number of windows from one block above `limit` to the next, on average: the most likely number, infinite if no value
    /// can exceed the limit, and the lower bound, at 97.5 %. `None` if blocks exceed it often.
    #[must_use]
    pub fn windows_between(&self, limit: f64) -> Option<(f64, f64)> {
        let per_block = self.windows_per_block as f64;
        let (estimate, least) = self.blocks.log_periods(limit)?;
        Some((estimate.exp() * per_block, least.exp() * per_block))
    }
}

impl<L: Law> Fitted<L> {
    /// The number of values.
    #[must_use]
    pub fn count(&self) -> usize {
        self.sorted.len()
    }

    pub(crate) fn of(sorted: Vec<f64>) -> Option<Self> {
        let (law, least) = L::fit(&sorted, 0)?;
        Some(Self { law, sorted, least })
    }

    /// The law with this level that is most likely; `None` if the values contradict it at 95 % (profile likelihood; S. Coles,
    /// section 2.6.6).
    fn possible(&self, near: L, log_periods: f64, level: f64) -> Option<L> {
        let (law, value) = near.with_level(&self.sorted, log_periods, level);
        let limit = CHI_SQUARE_95 * (1.0 + FEW_VALUES / self.sorted.len() as f64);
        (2.0 * (value - self.least) <= limit).then_some(law)
    }

    pub(crate) fn level(&self, log_periods: f64) -> Level {
        let estimate = self.law.level(log_periods);
        let end = |direction: f64| self.end(log_periods, estimate, direction * self.law.scale());
        Level { estimate, low: end(-1.0).unwrap_or(f64::NEG_INFINITY), high: end(1.0) }
    }

    /// The end of the interval from the estimate in the direction of `scale`; `None` if none is found.
    fn end(&self, log_periods: f64, estimate: f64, scale: f64) -> Option<f64> {
        let (mut inside, mut law, mut step) = (estimate, self.law, scale / 8.0);
        for _ in 0..50 {
            let next = inside + step;
            let Some(possible) = self.possible(law, log_periods, next) else {
                return Some(border(inside, next, HALVINGS, |level| self.possible(law, log_periods, level).is_some()));
            };
            (inside, law, step) = (next, possible, step * 1.5);
        }
        None
    }

    /// The logarithm of the number of values among which one exceeds `limit`: the estimate and its lower bound.
    fn log_periods(&self, limit: f64) -> Option<(f64, f64)> {
        let estimate = self.law.log_periods(limit);
        let mut inside = estimate.min(MOST_LOG_WINDOWS);
        let mut law = self.law;
        while inside > 0.5 {
            let next = inside - 0.5;
            let Some(possible) = self.possible(law, next, limit) else {
                return Some((
                    estimate,
                    border(inside, next, HALVINGS, |log| self.possible(law, log, limit).is_some()),
                ));
            };
            (inside, law) = (next, possible);
        }
        None
    }
}

/// The values in rising order.
pub(crate) fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_unstable_by(f64::total_cmp);
    values
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        #[test]
        fn any_values_have_ordered_intervals_or_a_reason(
            shares in prop::collection::vec(prop::option::weighted(0.95, 1e-12..1.0f64), 0..150),
            (location, scale) in (-1e18..1e18f64, 1e-3..1e18f64),
            shape in -2.0..3.0f64,
        ) {
            let law = Gev { location, scale, shape };
            let value = |share: f64| (law.level(-(-share.ln()).ln()) * 1e3).round() / 1e3;
            let windows: Vec<Option<f64>> = shares.into_iter().map(|of| of.map(value)).collect();
            let Ok(tail) = tail(&windows) else { return Ok(()) };
            for times in [1.0, 10.0, 10_000.0] {
                let Level { estimate, low, high } = tail.level(times * windows.len() as f64);
                prop_assert!(low <= estimate && high.is_none_or(|high| high >= estimate), "{low} {estimate} {high:?}");
            }
            let most = windows.iter().flatten().copied().fold(f64::MIN, f64::max);
            if let Some((estimate, least)) = tail.windows_between(most + scale) {
                prop_assert!(least > 0.0 && least <= estimate * 1.001, "{least} {estimate}");
            }
        }
    }

    /// 200 values of each law, and what scipy 1.17.1 finds for them: `genextreme.nnlf` and `genpareto.nnlf`, minimised by the
    /// method of Nelder and Mead to 1e-11; the interval of the level of 10 000 from the profile of the same functions.
    fn agrees<L: Law>(
        seed: u64,
        law: L,
        values: [f64; 3],
        parameters: impl Fn(L) -> [f64; 3],
        least: f64,
        level: [f64; 3],
    ) {
        let mut random = Random(seed);
        let fitted: Fitted<L> = Fitted::of(sorted((0..200).map(|_| law.draw(&mut random)).collect())).unwrap();
        let near = |ours: f64, theirs: f64, by: f64| {
            assert!((ours - theirs).abs() <= by * theirs.abs().max(1.0), "{ours} {theirs} of seed {seed}");
        };
        parameters(fitted.law).into_iter().zip(values).for_each(|(ours, theirs)| near(ours, theirs, 1e-3));
        near(fitted.least, least, 1e-8);
        let Level { estimate, low, high } = fitted.level(1e4f64.ln());
        [estimate, low, high.unwrap()].into_iter().zip(level).for_each(|(ours, theirs)| near(ours, theirs, 2e-3));
    }

    #[test]
    fn fits_and_intervals_agree_with_scipy() {
        let gev = |shape: f64| Gev { location: 40.0, scale: 6.0, shape };
        let of = |law: Gev| [law.location, law.scale, law.shape];
        agrees(1, gev(0.0), [39.9333, 6.08693, -0.0295703], of, 673.038_685, [89.010_0, 76.311_4, 117.304]);
        agrees(2, gev(0.2), [40.2154, 6.07408, 0.133766], of, 691.847_348, [150.475, 108.654, 251.509]);
        agrees(3, gev(-0.2), [40.0385, 5.73996, -0.232745], of, 639.343_976, [61.809_5, 58.017_0, 70.136_0]);
        let gpd = |shape: f64| Gpd { scale: 9.0, shape };
        let of = |law: Gpd| [0.0, law.scale, law.shape];
        agrees(1, gpd(0.0), [0.0, 8.87093, 0.0434537], of, 645.246_597, [100.472, 68.534_4, 213.834]);
        agrees(2, gpd(0.2), [0.0, 8.50639, 0.252697], of, 678.702_912, [311.429, 156.718, 964.727]);
        agrees(3, gpd(-0.2), [0.0, 9.28997, -0.239522], of, 597.882_674, [34.513_9, 30.181_5, 47.864_5]);
    }
}
