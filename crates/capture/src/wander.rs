//! Follows the clocks of talker and capture where they do not keep one rate.
//!
//! The rate of a crystal changes with its temperature by about 1 ppm in minutes, which moves a stream by tens of
//! microseconds against a straight line. The departure from the line is smooth: the earliest frames of neighbouring
//! stretches show it, except for their scatter. A clock can also change its rate suddenly, once or a few times.
//!
//! A talker that is late for longer and longer within seconds looks like a clock with another rate for a while. So a sudden
//! change is only followed if the rates before and after it last.

use std::ops::{Range, RangeInclusive};

use crate::convert::nearest;
use crate::fit::{STRETCHES_TO_FIT, quantile};

/// Minimum time between knots, ns. Clocks wander little within it, and the scatter of the frames changes the rate little.
pub(crate) const KNOT_NS: i64 = 1_000_000_000;
/// Minimum number of knots.
const KNOTS_MIN: usize = 16;
/// The usual rate around a knot is the median rate of so many intervals on each side.
const AROUND: usize = 3;
/// A knot is smoothed by so many on each side.
const SMOOTHED_BY: usize = 2;
/// Over more than so many times the usual time between knots, the stream continues on the line.
const SILENCE: f64 = 4.0;
/// The part of the knots that must be in runs.
const IN_RUNS: f64 = 0.75;
/// Knots of a run are this near each other without the usual rate: at least this part of the interval, and at most this part of
/// the period if they scatter.
const NEAR: f64 = 1.0 / 64.0;
const NEAR_MAX: f64 = 0.5;
/// A smaller departure from the straight line than this part of the period, or this time, is within half of the tolerance.
const LEAST: f64 = 1.0 / 200.0;
const LEAST_NS: f64 = 500.0;
/// The largest difference of the rates of two clocks.
const RATE_MAX: f64 = 500e-6;
/// The spread of the knots around the line must be so many times their spread around their neighbours.
const SMOOTH: f64 = 3.0;
/// A clock changes its rate suddenly if the median rates of so many intervals before and after differ by this, and by so many
/// times the usual deviation of one.
const TURN_OF: usize = 4;
const TURN: f64 = 5e-6;
const TURN_DEVIATIONS: f64 = 8.0;
/// A rate lasts for this part of the knots, but at least and at most for so many.
const LASTS_PART: usize = 8;
const LASTS: RangeInclusive<usize> = 5..=20;

/// A sudden change of a clock's rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Turn {
    /// When, ns after the stream's first frame.
    pub(crate) at_ns: i64,
    /// The change, as a ratio: positive if the intervals became longer.
    pub(crate) by: f64,
}

/// The departure of a stream's slots from a straight line.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Wander {
    /// Times, ns after the stream's first frame, and the departure there, ns. Empty if the slots are on the line.
    knots: Vec<(f64, f64)>,
    pub(crate) turns: Vec<Turn>,
}

/// The fit of a stream that departs smoothly from a straight line.
#[derive(Debug)]
pub(crate) struct Followed {
    pub(crate) wander: Wander,
    /// The departure of the earliest frames of the longest run from the slots of a line and the wander, ns.
    pub(crate) rest_ns: Vec<f64>,
}

/// The time of a frame, ns after the stream's first frame, and its departure from a straight line, ns.
type OffLine = (i64, f64);

/// The earliest frame of a part of the stream, without the steps between runs.
#[derive(Debug, Clone, Copy)]
struct Knot {
    at_ns: f64,
    /// Its departure from a straight line, ns.
    off_ns: f64,
}

impl Wander {
    /// True if the slots are on a straight line.
    #[inline]
    pub(crate) fn is_none(&self) -> bool {
        self.knots.is_empty()
    }

    /// This time without the departure, ns. Not inlined, because most streams have none.
    #[inline(never)]
    pub(crate) fn steady_ns(&self, at_ns: i64) -> i64 {
        at_ns.saturating_sub(nearest(self.ns(at_ns)))
    }

    /// The departure from the line at this time, ns.
    fn ns(&self, at_ns: i64) -> f64 {
        let at_ns = at_ns as f64;
        let after =
            self.knots.partition_point(|knot| knot.0 <= at_ns).clamp(1, self.knots.len().saturating_sub(1).max(1));
        match self.knots.get(after - 1..=after) {
            Some(&[from, to]) => from.1 + (at_ns - from.0) * (to.1 - from.1) / (to.0 - from.0),
            _ => 0.0,
        }
    }

    /// The largest difference between two departures, ns; `None` if the slots are on a straight line.
    pub(crate) fn range_ns(&self) -> Option<f64> {
        let all = || self.knots.iter().map(|knot| knot.1);
        (!self.is_none()).then(|| all().fold(f64::MIN, f64::max) - all().fold(f64::MAX, f64::min))
    }

    /// The largest difference of the rate from that of the line.
    pub(crate) fn rate_max(&self) -> f64 {
        let rates = self.knots.windows(2).map(|pair| (pair[1].1 - pair[0].1) / (pair[1].0 - pair[0].0));
        rates.map(f64::abs).fold(0.0, f64::max)
    }
}

/// Follows the earliest frames `kept`, given by index and time, in steps of `step_ns`, where they depart smoothly from a line
/// with this interval. Frames are sent in groups of `group`. `None` if they only scatter around the line, or if nothing smooth
/// explains how they depart from it.
pub(crate) fn follow(kept: &[(i64, i64)], interval_ns: f64, group: usize, step_ns: u64) -> Option<Followed> {
    let knots = knots(kept, interval_ns)?;
    let group_ns = interval_ns * group as f64;
    let near_ns = interval_ns * NEAR..group_ns * NEAR_MAX;
    let (knots, longest) = in_one_phase(&knots, &near_ns, step_ns)?;
    let turns = turns(&knots)?;
    let parts: Vec<&[Knot]> = parts(&knots, &turns);
    let mut alone_ns: Vec<f64> = parts.iter().flat_map(|part| part.windows(3).map(off_neighbours)).collect();
    let mut off_ns: Vec<f64> = knots.iter().map(|knot| knot.off_ns).collect();
    let spread_ns = spread(&mut off_ns)?;
    if spread_ns <= (group_ns * LEAST).max(LEAST_NS) || spread_ns <= SMOOTH * spread(&mut alone_ns)? {
        return None;
    }
    let mut smooth: Vec<(f64, f64)> = Vec::with_capacity(knots.len() + turns.len());
    for (n, part) in parts.iter().enumerate() {
        smooth.extend((0..part.len()).map(|k| smoothed(part, k)));
        if let (Some(turn), Some(next)) = (turns.get(n), parts.get(n + 1)) {
            let at_ns = turn.at_ns as f64;
            let (before, after) = (Line::through(last(part)), Line::through(first(next)));
            smooth.push((at_ns, (before.at(at_ns) + after.at(at_ns)) / 2.0));
        }
    }
    smooth.dedup_by(|next, before| next.0 <= before.0);
    let wander = Wander { knots: smooth, turns };
    if wander.rate_max() > RATE_MAX {
        return None;
    }
    let rest_ns = longest.iter().map(|&(at_ns, rest_ns)| rest_ns - wander.ns(at_ns)).collect();
    Some(Followed { wander, rest_ns })
}

/// The earliest frame of each part of [`KNOT_NS`]; `None` if there are too few, or if the clock was set back.
fn knots(kept: &[(i64, i64)], interval_ns: f64) -> Option<Vec<OffLine>> {
    let rest_ns = |&(slot, at_ns): &(i64, i64)| at_ns as f64 - slot as f64 * interval_ns;
    let mut parts: Vec<(i64, (i64, i64))> = Vec::new();
    for one in kept {
        match parts.last_mut() {
            Some((from_ns, earliest)) if one.1.saturating_sub(*from_ns) < KNOT_NS => {
                if rest_ns(one) < rest_ns(earliest) {
                    *earliest = *one;
                }
            }
            _ => parts.push((one.1, *one)),
        }
    }
    let all: Vec<OffLine> = parts.iter().map(|(_, one)| (one.1, rest_ns(one))).collect();
    let is_in_order = kept.windows(2).all(|pair| pair[0].1 < pair[1].1);
    (is_in_order && all.len() >= KNOTS_MIN).then_some(all)
}

/// The knots of all runs without the steps between runs, and those of the longest run. `None` if most are in no run.
fn in_one_phase(all: &[OffLine], near_ns: &Range<f64>, step_ns: u64) -> Option<(Vec<Knot>, Vec<OffLine>)> {
    let rates: Vec<f64> = all.windows(2).map(|pair| (pair[1].1 - pair[0].1) / time_ns(pair[0], pair[1])).collect();
    let mut times_ns: Vec<f64> = all.windows(2).map(|pair| time_ns(pair[0], pair[1])).collect();
    let longest_ns = SILENCE * quantile(&mut times_ns, 0.5)?;
    // In a long silence, the error of a rate would move the stream by much.
    let usual = |n: usize, time_ns: f64| {
        if time_ns > longest_ns {
            return 0.0;
        }
        let around = n.saturating_sub(AROUND)..(n + AROUND + 1).min(rates.len());
        quantile(&mut rates[around].to_vec(), 0.5).unwrap_or(0.0)
    };
    // Without the usual rates, knots of one run are at one level.
    let mut usual_ns = 0.0;
    let mut level_ns = vec![all.first()?.1];
    for (n, pair) in all.windows(2).enumerate() {
        let time_ns = time_ns(pair[0], pair[1]);
        usual_ns += usual(n, time_ns) * time_ns;
        level_ns.push(pair[1].1 - usual_ns);
    }
    let mut steps_ns: Vec<f64> = level_ns.windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect();
    let scatter_ns = 3.0 * quantile(&mut steps_ns, 0.75)?;
    let near_ns = scatter_ns.clamp(near_ns.start, near_ns.end).max(step_ns as f64 * 1.5);
    let mut runs: Vec<Vec<usize>> = Vec::new();
    for (n, ns) in level_ns.iter().enumerate() {
        let near = |run: &&mut Vec<usize>| run.last().is_some_and(|&last| (level_ns[last] - ns).abs() <= near_ns);
        match runs.iter_mut().rev().find(near) {
            Some(run) => run.push(n),
            None => runs.push(vec![n]),
        }
    }
    runs.retain(|run| run.len() >= STRETCHES_TO_FIT);
    let longest = runs.iter().max_by_key(|run| run.len())?.iter().map(|&n| all[n]).collect();
    let mut in_runs: Vec<(usize, usize)> =
        runs.iter().enumerate().flat_map(|(run, knots)| knots.iter().map(move |&n| (n, run))).collect();
    in_runs.sort_unstable();
    if (in_runs.len() as f64) < IN_RUNS * all.len() as f64 {
        return None;
    }
    // The first knot of a run continues the one before at the usual rate.
    let mut steps_ns: Vec<Option<f64>> = vec![None; runs.len()];
    let mut last_level_ns = None;
    let knot = |(n, run): (usize, usize)| {
        let step_ns = *steps_ns[run].get_or_insert_with(|| last_level_ns.map_or(0.0, |last_ns| level_ns[n] - last_ns));
        last_level_ns = Some(level_ns[n] - step_ns);
        Knot { at_ns: all[n].0 as f64, off_ns: all[n].1 - step_ns }
    };
    Some((in_runs.into_iter().map(knot).collect(), longest))
}

/// The sudden changes of the rate, in order; `None` if some are so near each other that a rate did not last, or not sudden.
fn turns(knots: &[Knot]) -> Option<Vec<Turn>> {
    let rates: Vec<f64> = knots.windows(2).map(|pair| rate(pair[0], pair[1])).collect();
    let median = |range: Range<usize>| quantile(&mut rates[range].to_vec(), 0.5).unwrap_or(0.0);
    let mut off: Vec<f64> = rates.windows(3).map(|three| (three[1] - (three[0] + three[2]) / 2.0).abs()).collect();
    let least = TURN.max(TURN_DEVIATIONS * quantile(&mut off, 0.5)?);
    // The change at the interval `n` itself, which can have a part of both rates.
    let changes: Vec<(usize, f64)> = (TURN_OF..rates.len().saturating_sub(TURN_OF))
        .map(|n| (n, median(n + 1..n + 1 + TURN_OF) - median(n - TURN_OF..n)))
        .collect();
    let mut turns = Vec::new();
    let mut from = 0;
    for sudden in changes.split_inclusive(|change| change.1.abs() <= least) {
        let sudden: Vec<_> = sudden.iter().filter(|change| change.1.abs() > least).collect();
        let Some(most) = sudden.iter().map(|change| change.1.abs()).max_by(f64::total_cmp) else { continue };
        let is_full = |change: &&&(usize, f64)| change.1.abs() >= 0.9 * most;
        let (Some(start), Some(end)) = (sudden.iter().find(is_full), sudden.iter().rfind(is_full)) else { continue };
        let (start, end) = (start.0, end.0);
        let lasts = (knots.len() / LASTS_PART).clamp(*LASTS.start(), *LASTS.end());
        if sudden.len() > 2 * TURN_OF + 1 || start - from < lasts || knots.len() - end < lasts {
            return None;
        }
        from = end;
        let (before, after) = (Line::through(last(&knots[..=start])), Line::through(first(&knots[end + 1..])));
        let meets_ns =
            before.meets(&after).filter(|at_ns| (knots[start].at_ns..knots[end + 1].at_ns).contains(at_ns))?;
        turns.push(Turn { at_ns: nearest(meets_ns), by: after.rate - before.rate });
    }
    Some(turns)
}

/// The knots between the turns.
fn parts<'a>(knots: &'a [Knot], turns: &[Turn]) -> Vec<&'a [Knot]> {
    let mut rest = knots;
    let mut parts = Vec::with_capacity(turns.len() + 1);
    for turn in turns {
        let (before, after) = rest.split_at(rest.partition_point(|knot| knot.at_ns < turn.at_ns as f64));
        parts.push(before);
        rest = after;
    }
    parts.push(rest);
    parts
}

fn first(knots: &[Knot]) -> &[Knot] {
    &knots[..knots.len().min(TURN_OF + 1)]
}

fn last(knots: &[Knot]) -> &[Knot] {
    &knots[knots.len() - knots.len().min(TURN_OF + 1)..]
}

/// A knot of a part, moved to the line through those around it.
fn smoothed(part: &[Knot], n: usize) -> (f64, f64) {
    let around = &part[n.saturating_sub(SMOOTHED_BY)..(n + SMOOTHED_BY + 1).min(part.len())];
    (part[n].at_ns, Line::through(around).at(part[n].at_ns))
}

/// A line through knots: the median of the rates of all pairs, and the median level.
#[derive(Debug)]
struct Line {
    rate: f64,
    level_ns: f64,
}

impl Line {
    fn through(knots: &[Knot]) -> Self {
        let pairs = knots.iter().enumerate().flat_map(|(n, a)| knots[n + 1..].iter().map(|b| rate(*a, *b)));
        let rate = quantile(&mut pairs.collect::<Vec<_>>(), 0.5).unwrap_or(0.0);
        let mut levels_ns: Vec<f64> = knots.iter().map(|knot| knot.off_ns - rate * knot.at_ns).collect();
        Self { rate, level_ns: quantile(&mut levels_ns, 0.5).unwrap_or(0.0) }
    }

    fn at(&self, at_ns: f64) -> f64 {
        self.level_ns + self.rate * at_ns
    }

    /// The time at which the lines meet, ns; `None` if they are parallel.
    fn meets(&self, other: &Self) -> Option<f64> {
        (other.rate != self.rate).then(|| (self.level_ns - other.level_ns) / (other.rate - self.rate))
    }
}

fn time_ns(a: OffLine, b: OffLine) -> f64 {
    b.0.saturating_sub(a.0) as f64
}

fn rate(a: Knot, b: Knot) -> f64 {
    (b.off_ns - a.off_ns) / (b.at_ns - a.at_ns)
}

/// The distance of the second of three knots from the line through the others, ns.
fn off_neighbours(three: &[Knot]) -> f64 {
    let [a, b, c] = [three[0], three[1], three[2]];
    b.off_ns - a.off_ns - rate(a, c) * (b.at_ns - a.at_ns)
}

/// The spread of these values without the outer tenth on each side.
fn spread(values: &mut [f64]) -> Option<f64> {
    Some(quantile(values, 0.9)? - quantile(values, 0.1)?)
}
