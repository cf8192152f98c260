//! Fits a grid of slots to a stream, on the capture's clock: a robust line through its earliest frames.

use crate::convert::nearest;
use crate::track::{Earliest, Nominal};

/// The quantile of the earliest frames at which the grid starts, because they also have jitter.
const ORIGIN_QUANTILE: f64 = 0.1;
/// Minimum number of stretches to fit a line.
const STRETCHES_TO_FIT: usize = 3;
/// Minimum number of stretches to report wander.
const STRETCHES_FOR_WANDER: usize = 16;

/// A grid with slots at `origin_ns + k * period_ns`, ns after the stream's first frame.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Grid {
    pub(crate) period_ns: f64,
    pub(crate) origin_ns: f64,
    /// The spread of the earliest frames around the line, without the outer tenth on each side, ns. It is large if a
    /// clock wandered or the stream was late for long. `None` with too few stretches.
    pub(crate) wander_ns: Option<f64>,
    /// The possible relative error of the slope: the spread of the frames divided by their time span.
    pub(crate) slope_error: f64,
}

impl Grid {
    /// Fits the grid. The slope is the median over all pairs (Theil 1950, Sen 1968), which tolerates up to a quarter of
    /// late stretches. The origin is the first decile of the earliest frames.
    pub(crate) fn fit(nominal: Nominal, earliest: &Earliest) -> Self {
        let kept = &earliest.kept;
        let mut slopes = Vec::with_capacity(kept.len() * kept.len() / 2);
        for (n, a) in kept.iter().enumerate() {
            for b in &kept[n + 1..] {
                if b.0 > a.0 {
                    slopes.push((b.1 - a.1) as f64 / (b.0 - a.0) as f64);
                }
            }
        }
        let slope = quantile(&mut slopes, 0.5).filter(|&slope| slope > 0.0 && kept.len() >= STRETCHES_TO_FIT);
        let period_ns = slope.unwrap_or(nominal.ns as f64);
        let mut rest: Vec<f64> = kept.iter().map(|&(slot, at_ns)| at_ns as f64 - slot as f64 * period_ns).collect();
        let origin_ns = quantile(&mut rest, ORIGIN_QUANTILE).unwrap_or(0.0);
        let scatter = quantile(&mut rest, 1.0 - ORIGIN_QUANTILE).unwrap_or(0.0) - origin_ns;
        let slots = kept.last().zip(kept.first()).map_or(0, |(last, first)| last.0 - first.0);
        let slope_error = scatter / (slots.max(1) as f64 * period_ns);
        let wander_ns = (kept.len() >= STRETCHES_FOR_WANDER).then_some(scatter);
        Self { period_ns, origin_ns, wander_ns, slope_error }
    }

    /// The lateness of a frame at `at_ns` relative to `slot`, ns.
    #[inline]
    pub(crate) fn late_ns(&self, slot: i64, at_ns: i64) -> i64 {
        nearest(at_ns as f64 - self.origin_ns - slot as f64 * self.period_ns)
    }

    /// The slot nearest to `at_ns`.
    #[inline]
    pub(crate) fn nearest(&self, at_ns: i64) -> i64 {
        nearest((at_ns as f64 - self.origin_ns) / self.period_ns)
    }
}

fn quantile(values: &mut [f64], part: f64) -> Option<f64> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an index, rounded down")]
    let at = (values.len().checked_sub(1)? as f64 * part) as usize;
    Some(*values.select_nth_unstable_by(at, f64::total_cmp).1)
}
