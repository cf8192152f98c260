//! The grid that a stream kept, by the capture's clock: a robust line through its earliest frames.

use crate::track::{Earliest, Nominal};

/// The part of the earliest frames that may lie before the grid: they, too, have their scatter.
const LOW: f64 = 0.1;
/// Through fewer no line is laid.
const STRETCHES_TO_FIT: usize = 3;
/// So few stretches say nothing about a clock that wandered.
const STRETCHES_TO_TELL: usize = 16;

/// Slots at `origin_ns + k * period_ns`, ns after the stream's first frame.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Grid {
    pub(crate) period_ns: f64,
    pub(crate) origin_ns: f64,
    /// How far apart the earliest frames of stretches lie from a line, ns, without the farthest tenth on each side: a clock
    /// that wandered, or a stream that was late for long. `None` where there were too few.
    pub(crate) wander_ns: Option<f64>,
    /// How much another line through the same frames might differ in slope, parts of 1: their scatter over their span.
    pub(crate) slope_error: f64,
}

impl Grid {
    /// Fits it. The slope is the median of those of all pairs (Theil 1950, Sen 1968), which late stretches cannot turn until
    /// they are a quarter of all; the grid lies at the first tenth of the earliest frames.
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
        let origin_ns = quantile(&mut rest, LOW).unwrap_or(0.0);
        let scatter = quantile(&mut rest, 1.0 - LOW).unwrap_or(0.0) - origin_ns;
        let slots = kept.last().zip(kept.first()).map_or(0, |(last, first)| last.0 - first.0);
        let slope_error = scatter / (slots.max(1) as f64 * period_ns);
        let wander_ns = (kept.len() >= STRETCHES_TO_TELL).then_some(scatter);
        Self { period_ns, origin_ns, wander_ns, slope_error }
    }

    /// How far `at_ns` lies behind the slot `slot`, ns.
    #[inline]
    pub(crate) fn behind_ns(&self, slot: i64, at_ns: i64) -> i64 {
        (at_ns as f64 - self.origin_ns - slot as f64 * self.period_ns).round() as i64
    }

    /// The slot nearest to `at_ns`.
    #[inline]
    pub(crate) fn nearest(&self, at_ns: i64) -> i64 {
        ((at_ns as f64 - self.origin_ns) / self.period_ns).round() as i64
    }
}

fn quantile(values: &mut [f64], part: f64) -> Option<f64> {
    let at = (values.len().checked_sub(1)? as f64 * part) as usize;
    Some(*values.select_nth_unstable_by(at, f64::total_cmp).1)
}
