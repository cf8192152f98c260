//! Fits a grid of slots to a stream, on the capture's clock: a robust line through its earliest frames.

use std::ops::RangeInclusive;

use record::saturating::Saturating;

use crate::convert::{nearest, signed};
use crate::track::{STRETCHES, is_earlier};
use crate::wander::{RATE_MAX, Wander, follow};

/// The quantile of the earliest frames at which the grid starts, because they also have jitter.
const ORIGIN_QUANTILE: f64 = 0.1;
/// Minimum number of stretches to fit a line.
pub(crate) const STRETCHES_TO_FIT: usize = 3;
/// Minimum number of stretches to report wander.
const STRETCHES_FOR_WANDER: usize = 16;
/// Maximum distance of neighbouring stretches in the same run: at least this part of the interval, and at most this part of
/// the period if they scatter.
const RUN_DISTANCE: f64 = 1.0 / 64.0;
const RUN_DISTANCE_MAX: f64 = 0.5;

/// A grid in which the frame with index `n` is due at `origin_ns + n * period_ns`, ns after the stream's first frame, and
/// later by the wander of the clocks. In streams with several frames per period, each position in the period has its own
/// offset from that.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Grid {
    pub(crate) period_ns: f64,
    pub(crate) origin_ns: f64,
    /// One offset for each frame of a group, ns.
    pub(crate) offsets_ns: Vec<f64>,
    /// The departure of the slots from a straight line, because they follow the clocks.
    pub(crate) wander: Wander,
    /// The spread of the earliest frames around the slots, without the outer tenth on each side, ns.
    pub(crate) scatter_ns: f64,
    /// The same spread, which is large if the stream was late for long, or if a clock wandered too fast to be followed. `None`
    /// with too few stretches.
    pub(crate) wander_ns: Option<f64>,
    /// The spread of the earliest frames around the lines through their neighbours, which is large if the clocks wandered
    /// between them, ns.
    pub(crate) between_ns: f64,
    /// The distance of the slots from the earliest frames over several stretches, ns. It is large if a clock wandered, or the phase
    /// changed, and the slots do not follow. 0 if only single stretches are apart.
    pub(crate) unfollowed_ns: f64,
    /// The usual time between frames over short times, if it is longer than the period because frames come in batches, ns.
    pub(crate) batches_ns: Option<f64>,
    /// Number of slots of the longest run.
    pub(crate) slots: i64,
    /// The possible relative error of the slope: the spread of the frames around the line and a step of the stamps, divided by their
    /// time span.
    pub(crate) slope_error: f64,
}

impl Grid {
    /// Fits the grid to `fine`, the index and the time of the earliest frame in each stretch, stamped in steps of
    /// `step_ns`. The slope is the median over all pairs of a run (Theil 1950, Sen 1968), which tolerates up to a quarter of
    /// late stretches. The origin is the first decile of the earliest frames.
    pub(crate) fn fit(approximate_ns: f64, fine: &[(i64, i64)], offsets_ns: Vec<f64>, step_ns: u64) -> Self {
        let kept = &joined(fine, approximate_ns)[..];
        let typical_ns = neighbour_slope(approximate_ns, kept);
        let group_ns = typical_ns * offsets_ns.len().max(1) as f64;
        let limits_ns = typical_ns * RUN_DISTANCE..=group_ns * RUN_DISTANCE_MAX;
        let batched = if offsets_ns.is_empty() { in_batches(kept, typical_ns) } else { None };
        let kept_runs = match batched {
            Some(_) => vec![kept.to_vec()],
            None => runs(typical_ns, limits_ns.clone(), kept, step_ns),
        };
        let slope = batched.or_else(|| median_slope(&kept_runs));
        let fitted = slope.filter(|&slope| slope > 0.0 && kept.len() >= STRETCHES_TO_FIT);
        let period_ns = fitted.unwrap_or(approximate_ns);
        // Each run has its own phase, so the longest one shows the scatter.
        let longest = longest_of(&kept_runs);
        let mut rest: Vec<f64> = longest.iter().map(|&(slot, at_ns)| at_ns as f64 - slot as f64 * period_ns).collect();
        let (line_origin_ns, line_scatter_ns) = origin_and_scatter(&mut rest);
        let slots = longest.last().zip(longest.first()).map_or(0, |(last, first)| last.0.saturating_sub(first.0));
        let slope_error = (line_scatter_ns + step_ns as f64) / (slots.max(1) as f64 * period_ns);
        let mut wander = Wander::default();
        let (mut origin_ns, mut scatter_ns) = (line_origin_ns, line_scatter_ns);
        let follow = |kept| follow(kept, period_ns, offsets_ns.len().max(1), step_ns);
        // One sudden change that does not last hides a slow wander from short stretches.
        if let Some(mut followed) = follow(fine).or_else(|| follow(kept)) {
            (origin_ns, scatter_ns) = origin_and_scatter(&mut followed.rest_ns);
            wander = followed.wander;
        }
        let steady: Vec<(i64, i64)> = match wander.is_none() {
            true => kept.to_vec(),
            false => fine.iter().map(|&(slot, at_ns)| (slot, wander.steady_ns(at_ns))).collect(),
        };
        let unfollowed_ns = match batched {
            Some(_) => 0.0,
            None => {
                let longest = runs(period_ns, limits_ns, &steady, step_ns);
                unfollowed_ns(&off_slots(longest_of(&longest), period_ns)).max(moved_ns(&off_slots(&steady, period_ns)))
            }
        };
        let wander_ns =
            (longest.len() >= STRETCHES_FOR_WANDER || !wander.is_none()).then_some(scatter_ns.max(unfollowed_ns));
        let (_, between_ns) = origin_and_scatter(&mut fine.windows(3).filter_map(off_neighbours).collect::<Vec<_>>());
        let batches_ns = batched.map(|_| typical_ns);
        Self {
            period_ns,
            origin_ns,
            offsets_ns,
            wander,
            scatter_ns,
            wander_ns,
            between_ns,
            unfollowed_ns,
            batches_ns,
            slots,
            slope_error,
        }
    }

    /// The time of a frame on a clock that does not wander against that of the talker, ns.
    #[inline]
    pub(crate) fn steady_ns(&self, at_ns: i64) -> i64 {
        if self.wander.is_none() { at_ns } else { self.wander.steady_ns(at_ns) }
    }

    /// The lateness of the frame with this index, ns.
    #[inline]
    pub(crate) fn late_ns(&self, index: i64, at_ns: i64) -> i64 {
        let at_ns = self.steady_ns(at_ns);
        let due_ns = self.origin_ns + index as f64 * self.period_ns + offset_ns(&self.offsets_ns, index);
        // A time of many days, such as that since the clock of the capture was set, is not exact as a float.
        at_ns.minus(nearest(due_ns))
    }

    /// Frames per period.
    #[inline]
    pub(crate) fn frames(&self) -> u64 {
        self.offsets_ns.len().max(1) as u64
    }

    /// The largest time between two frames of a group, or from its last one to the next group, ns.
    pub(crate) fn idle_ns(&self) -> f64 {
        let next = self.offsets_ns.iter().cycle().skip(1);
        let gaps_ns = self.offsets_ns.iter().zip(next).map(|(one, next)| self.period_ns + next - one);
        gaps_ns.fold(0.0, f64::max)
    }

    /// The time from the first frame of a group to that of the next group, ns.
    #[inline]
    pub(crate) fn group_ns(&self) -> f64 {
        self.period_ns * self.offsets_ns.len().max(1) as f64
    }
}

/// The earliest frames of at most [`STRETCHES`] stretches, each of several of these: the line needs all pairs.
fn joined(fine: &[(i64, i64)], interval_ns: f64) -> Vec<(i64, i64)> {
    let earlier = |one: (i64, i64), next: &(i64, i64)| if is_earlier(*next, one, interval_ns) { *next } else { one };
    let earliest = |some: &[(i64, i64)]| some.iter().skip(1).fold(some[0], earlier);
    fine.chunks(fine.len().div_ceil(STRETCHES).max(1)).map(earliest).collect()
}

/// The distance of the second of three frames from the line through the others, ns.
fn off_neighbours(three: &[(i64, i64)]) -> Option<f64> {
    let [a, b, c] = *three else { return None };
    let slots = b.0.saturating_sub(a.0) as f64;
    Some(b.1.saturating_sub(a.1) as f64 - slots * slope(a, c)?)
}

/// The first decile of these departures from a line, and their spread without the outer tenth on each side, ns.
fn origin_and_scatter(rest_ns: &mut [f64]) -> (f64, f64) {
    let [origin_ns, last_ns] =
        [ORIGIN_QUANTILE, 1.0 - ORIGIN_QUANTILE].map(|part| quantile(rest_ns, part).unwrap_or(0.0));
    (origin_ns, last_ns - origin_ns)
}

/// The run with the most earliest frames.
fn longest_of(runs: &[Vec<(i64, i64)>]) -> &[(i64, i64)] {
    runs.iter().max_by_key(|run| run.len()).map_or(&[], Vec::as_slice)
}

/// The times of these earliest frames, and how far they are behind their slots, ns.
fn off_slots(earliest: &[(i64, i64)], period_ns: f64) -> Vec<(i64, f64)> {
    earliest.iter().map(|&(slot, at_ns)| (at_ns, at_ns as f64 - slot as f64 * period_ns)).collect()
}

/// The spread of these earliest frames around the middle of their neighbours, ns.
fn spread_alone_ns(off_slots: &[(i64, f64)]) -> f64 {
    let mut alone: Vec<f64> = off_slots.windows(3).map(|some| some[1].1 - (some[0].1 + some[2].1) / 2.0).collect();
    origin_and_scatter(&mut alone).1
}

/// The distance by which the earliest frames of a run move from the slots, ns; 0 if they only scatter.
fn unfollowed_ns(off_slots: &[(i64, f64)]) -> f64 {
    /// So many are together at another level.
    const TOGETHER: usize = 3;
    /// They scatter if their levels are apart by at most so many times their spread around their neighbours.
    const SCATTER: f64 = 3.0;
    let level = |some: &[(i64, f64)]| quantile(&mut some.iter().map(|one| one.1).collect::<Vec<_>>(), 0.5);
    let levels = || off_slots.windows(TOGETHER).filter_map(level);
    let apart_ns = levels().fold(f64::MIN, f64::max) - levels().fold(f64::MAX, f64::min);
    if apart_ns > SCATTER * spread_alone_ns(off_slots) { apart_ns } else { 0.0 }
}

/// The largest change over earliest frames that are later and later, or earlier and earlier, at the rate of a clock, ns. Such ones
/// at the start or the end of a stream are no run.
fn moved_ns(off_slots: &[(i64, f64)]) -> f64 {
    /// At least so many changes follow each other, for so long.
    const CHANGES: usize = 3;
    const LEAST_NS: i64 = 300_000_000;
    /// Each is larger than so many times the spread of single ones.
    const SCATTER: f64 = 2.0;
    let scatter_ns = SCATTER * spread_alone_ns(off_slots);
    let change_ns = |pair: &[(i64, f64)]| pair[1].1 - pair[0].1;
    let is_clock = |pair: &[(i64, f64)]| {
        let change_ns = change_ns(pair).abs();
        change_ns > scatter_ns && change_ns <= RATE_MAX * pair[1].0.saturating_sub(pair[0].0) as f64
    };
    let pairs: Vec<&[(i64, f64)]> = off_slots.windows(2).collect();
    let continues = |a: &&[(i64, f64)], b: &&[(i64, f64)]| {
        is_clock(a) && is_clock(b) && change_ns(a).signum() == change_ns(b).signum()
    };
    let moved = pairs.chunk_by(continues).filter(|some| some.len() >= CHANGES).filter_map(|some| {
        let (first, last) = (some.first()?.first()?, some.last()?.last()?);
        (last.0.saturating_sub(first.0) >= LEAST_NS).then(|| (last.1 - first.1).abs())
    });
    moved.fold(0.0, f64::max)
}

/// True if neighbouring stretches of one stream differ by more than half a period, as if slots between them were skipped.
pub(crate) fn is_uneven(kept: &[(i64, i64)], period_ns: f64) -> bool {
    let pairs = kept.iter().zip(kept.get(1..).unwrap_or_default());
    let mut more_ns: Vec<f64> =
        pairs.map(|(a, b)| b.1.saturating_sub(a.1) as f64 - b.0.saturating_sub(a.0) as f64 * period_ns).collect();
    let [first, last] =
        [ORIGIN_QUANTILE, 1.0 - ORIGIN_QUANTILE].map(|part| quantile(&mut more_ns, part).unwrap_or(0.0));
    last - first > period_ns / 2.0
}

/// The offset of the frame with this index in its group, ns; 0 if frames are not sent in groups.
#[inline]
pub(crate) fn offset_ns(offsets_ns: &[f64], index: i64) -> f64 {
    if offsets_ns.is_empty() {
        return 0.0;
    }
    let position = usize::try_from(index.rem_euclid(signed(offsets_ns.len())));
    position.ok().and_then(|position| offsets_ns.get(position)).copied().unwrap_or(0.0)
}

/// The rate of the second time of each pair against the first one. Both are those of the earliest frame of a stretch, ns, in
/// steps of `step_ns`. A step of one time against the other begins a new run, so it is not in the rate. `None` if most
/// stretches are in runs that are too short to show it. Frames are `interval_ns` apart.
pub(crate) fn rate_in_runs(kept: &[(i64, i64)], interval_ns: f64, step_ns: u64) -> Option<f64> {
    let mut runs = runs(neighbour_slope(1.0, kept), 0.0..=interval_ns * RUN_DISTANCE_MAX, kept, step_ns);
    runs.retain(|run| run.len() >= STRETCHES_TO_FIT);
    let in_runs: usize = runs.iter().map(Vec::len).sum();
    median_slope(&runs).filter(|_| 2 * in_runs >= kept.len())
}

/// The median slope of neighbouring stretches, or the approximate one. In a burst after a stall, frames are much less than a
/// period apart.
fn neighbour_slope(approximate: f64, kept: &[(i64, i64)]) -> f64 {
    let is_near = |slope: &f64| (slope / approximate - 1.0).abs() <= 0.5;
    let slopes = kept.windows(2).filter_map(|pair| slope(pair[0], pair[1]));
    quantile(&mut slopes.filter(is_near).collect::<Vec<_>>(), 0.5).unwrap_or(approximate)
}

/// The period of a stream that a card delivers in batches: it waits a little longer than a period, so the frames are later and
/// later until two of them come at once, and most neighbouring stretches show the time that the card waits. A straight line with a
/// shorter period is near all of them. `None` if there is none.
pub(crate) fn in_batches(kept: &[(i64, i64)], typical_ns: f64) -> Option<f64> {
    /// The period is shorter by at least this part.
    const SHORTER: f64 = 1e-3;
    /// Most periods that frames are apart from the line, and how many times more they are from that of the typical interval.
    const APART: f64 = 3.0;
    const MORE: f64 = 3.0;
    let stride = (kept.len() / 8).max(1);
    let mut slopes: Vec<f64> = kept.iter().zip(kept.get(stride..)?).filter_map(|(a, b)| slope(*a, *b)).collect();
    let period_ns = quantile(&mut slopes, 0.5)?;
    let spread_ns = |period_ns: f64| {
        let mut rest: Vec<f64> = kept.iter().map(|&(slot, at_ns)| at_ns as f64 - slot as f64 * period_ns).collect();
        let [first, last] = [0.05, 0.95].map(|part| quantile(&mut rest, part).unwrap_or(0.0));
        last - first
    };
    let is_shorter = period_ns > 0.0 && period_ns < typical_ns * (1.0 - SHORTER);
    let near_ns = spread_ns(period_ns);
    (is_shorter && near_ns <= APART * period_ns && spread_ns(typical_ns) > (MORE * near_ns).max(MORE * period_ns))
        .then_some(period_ns)
}

/// The median of the slopes of all pairs of each run.
fn median_slope(runs: &[Vec<(i64, i64)>]) -> Option<f64> {
    let pairs = |run: &Vec<(i64, i64)>| run.len() * run.len() / 2;
    let mut slopes = Vec::with_capacity(runs.iter().map(pairs).sum());
    for run in runs {
        for (n, a) in run.iter().enumerate() {
            slopes.extend(run[n + 1..].iter().filter_map(|b| slope(*a, *b)));
        }
    }
    quantile(&mut slopes, 0.5)
}

/// The earliest frames of each run: a part of the stream with one phase. Stretches belong to a run if they are near the
/// latest one of that run: within three times what most neighbours differ by, limited to `limits_ns`. A stretch of late frames
/// is a short run of its own.
fn runs(period_ns: f64, limits_ns: RangeInclusive<f64>, kept: &[(i64, i64)], step_ns: u64) -> Vec<Vec<(i64, i64)>> {
    let mut steps: Vec<f64> = kept.windows(2).map(|pair| distance(pair[0], pair[1], period_ns)).collect();
    // Neighbouring stretches of one run are apart by their scatter, and by a step of their stamps.
    let scatter_ns = 3.0 * quantile(&mut steps, 0.75).unwrap_or(0.0);
    let near_ns = scatter_ns.clamp(*limits_ns.start(), *limits_ns.end()).max(step_ns as f64 * 1.5);
    let mut runs: Vec<Vec<(i64, i64)>> = Vec::new();
    for &one in kept {
        let near = |run: &&mut Vec<_>| run.last().is_some_and(|last| distance(*last, one, period_ns) <= near_ns);
        match runs.iter_mut().rev().find(near) {
            Some(run) => run.push(one),
            None => runs.push(vec![one]),
        }
    }
    runs
}

fn slope(a: (i64, i64), b: (i64, i64)) -> Option<f64> {
    (b.0 > a.0).then(|| b.1.saturating_sub(a.1) as f64 / b.0.saturating_sub(a.0) as f64)
}

/// The distance of two frames in the phase of a grid with this period, ns.
fn distance(a: (i64, i64), b: (i64, i64), period_ns: f64) -> f64 {
    (b.1.saturating_sub(a.1) as f64 - b.0.saturating_sub(a.0) as f64 * period_ns).abs()
}

pub(crate) fn quantile(values: &mut [f64], part: f64) -> Option<f64> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an index, rounded down")]
    let at = (values.len().checked_sub(1)? as f64 * part) as usize;
    Some(*values.select_nth_unstable_by(at, f64::total_cmp).1)
}
