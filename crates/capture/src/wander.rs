//! Follows the clocks of talker and capture where they do not keep one rate.
//!
//! The rate of a crystal changes with its temperature by about 1 ppm in minutes, which moves a stream by tens of
//! microseconds against a straight line. The departure from the line is smooth: the earliest frames of neighbouring
//! stretches show it, except for their scatter. A clock can also change its rate suddenly, once or a few times.
//!
//! A talker that is late for longer and longer within seconds looks like a clock with another rate for a while. So a sudden
//! change is only followed if the rates before and after it last. A rate that changes smoothly, such as that of a clock that
//! settles, is followed however long it changes.

use std::ops::{Range, RangeInclusive};

use crate::convert::nearest;
use crate::fit::{STRETCHES_TO_FIT, quantile};

/// Minimum time between knots, ns. Clocks wander little within it, and the scatter of the frames changes the rate little.
pub(crate) const KNOT_NS: i64 = 1_000_000_000;
/// Minimum number of knots.
const KNOTS_MIN: usize = 16;
/// The usual rate around a knot is the median rate of so many intervals on each side.
const AROUND: usize = 3;
/// A knot is smoothed by the cubic through so many with it.
const SMOOTHED_OF: usize = 7;
/// One in so many of the earliest frames of a knot's stretches is earlier than it: single early frames do not move it.
const EARLIER_PART: usize = 4;
/// A knot that is before both of its neighbours by more than so many times the median distance of neighbours is an early one.
const EARLY: f64 = 5.0;
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
/// From a change of the phase to a sudden change of the rate, at least, ns.
const NO_CHANGE_NS: f64 = 5.0 * KNOT_NS as f64;
/// The largest difference of the rates of two clocks.
pub(crate) const RATE_MAX: f64 = 500e-6;
/// The spread of the knots around the line must be so many times their spread around their neighbours.
const SMOOTH: f64 = 3.0;
/// A clock changes its rate suddenly if the median rates of so many intervals before and after differ by this, and by so many
/// times the usual deviation of one.
const TURN_OF: usize = 4;
/// The change is larger there than so many intervals before and after.
const PEAK: usize = 2;
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
    /// Between these, the departure is that of a cubic (Hermite). Empty if the slots are on the line.
    knots: Vec<Smooth>,
    pub(crate) turns: Vec<Turn>,
}

/// The departure from a straight line at a time.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Smooth {
    /// When, ns after the stream's first frame.
    at_ns: f64,
    ns: f64,
    /// The rate there, less that of the line.
    rate: f64,
}

impl Smooth {
    fn on_line(self, at_ns: f64) -> f64 {
        self.ns + self.rate * (at_ns - self.at_ns)
    }
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
        let after = self.knots.partition_point(|knot| knot.at_ns <= at_ns);
        let from = after.checked_sub(1).and_then(|before| self.knots.get(before));
        match (from, self.knots.get(after)) {
            (Some(from), Some(to)) => {
                let time_ns = to.at_ns - from.at_ns;
                let part = (at_ns - from.at_ns) / time_ns;
                let chord_ns = to.ns - from.ns;
                let (off_from_ns, off_to_ns) = (from.rate * time_ns - chord_ns, to.rate * time_ns - chord_ns);
                from.ns + part * (chord_ns + (1.0 - part) * (off_from_ns * (1.0 - part) - off_to_ns * part))
            }
            (Some(end), None) | (None, Some(end)) => end.on_line(at_ns),
            (None, None) => 0.0,
        }
    }

    /// The largest difference between two departures, ns; `None` if the slots are on a straight line.
    pub(crate) fn range_ns(&self) -> Option<f64> {
        let all = || self.knots.iter().map(|knot| knot.ns);
        (!self.is_none()).then(|| all().fold(f64::MIN, f64::max) - all().fold(f64::MAX, f64::min))
    }

    /// The largest difference of the rate from that of the line.
    pub(crate) fn rate_max(&self) -> f64 {
        self.knots.iter().map(|knot| knot.rate.abs()).fold(0.0, f64::max)
    }
}

/// Follows the earliest frames `kept`, given by index and time, in steps of `step_ns`, where they depart smoothly from a line
/// with this interval. Frames are sent in groups of `group`. `None` if they only scatter around the line, or if nothing smooth
/// explains how they depart from it.
pub(crate) fn follow(kept: &[(i64, i64)], interval_ns: f64, group: usize, step_ns: u64) -> Option<Followed> {
    let all = knots(kept, interval_ns)?;
    let ends = (kept.first()?.1, kept.last()?.1);
    let group_ns = interval_ns * group as f64;
    let followed_from = |before: &Wander| follow_on(&all, before, ends, interval_ns, group_ns, step_ns);
    // Near the ends, where the rate around is not known, the second time finds more knots of the runs.
    followed_from(&followed_from(&Wander::default())?.wander)
}

/// Follows these knots again, if a wander was found before. The stream is between these ends.
fn follow_on(
    all: &[OffLine],
    before: &Wander,
    ends: (i64, i64),
    interval_ns: f64,
    group_ns: f64,
    step_ns: u64,
) -> Option<Followed> {
    let near_ns = interval_ns * NEAR..group_ns * NEAR_MAX;
    let without: Vec<OffLine> = all.iter().map(|&(at_ns, off_ns)| (at_ns, off_ns - before.ns(at_ns))).collect();
    let InOnePhase { mut knots, longest, changes_ns } = in_one_phase(&without, &near_ns, step_ns)?;
    knots.iter_mut().for_each(|knot| knot.off_ns += before.ns(nearest(knot.at_ns)));
    let turns = turns(&knots)?;
    // Near a change of the rate, nothing shows by how much the phase changed.
    let hides_phase = |turn: &Turn| changes_ns.iter().any(|ns| (turn.at_ns as f64 - ns).abs() <= NO_CHANGE_NS);
    if turns.iter().any(hides_phase) {
        return None;
    }
    let parts: Vec<&[Knot]> = parts(&knots, &turns);
    let mut alone_ns: Vec<f64> = parts.iter().flat_map(|part| part.windows(3).map(off_neighbours)).collect();
    let mut off_ns: Vec<f64> = knots.iter().map(|knot| knot.off_ns).collect();
    let spread_ns = spread(&mut off_ns)?;
    if spread_ns <= (group_ns * LEAST).max(LEAST_NS) || spread_ns <= SMOOTH * spread(&mut alone_ns)? {
        return None;
    }
    let mut smooth: Vec<Smooth> = Vec::with_capacity(knots.len() + 2 * turns.len());
    let mut times_ns: Vec<f64> = knots.windows(2).map(|pair| pair[1].at_ns - pair[0].at_ns).collect();
    let longest_ns = SILENCE * quantile(&mut times_ns, 0.5)?;
    for (n, part) in parts.iter().enumerate() {
        let start = smooth.len();
        for some in part.chunk_by(|knot, next| next.at_ns - knot.at_ns <= longest_ns) {
            let (silence_end, before) = (smoothed(some, 0), smooth.get(start..).and_then(<[_]>::last).copied());
            // In a silence, nothing shows another rate than the mean one.
            if let Some(silence_start) = before {
                let time_ns = silence_end.at_ns - silence_start.at_ns;
                let rate = (silence_end.ns - silence_start.ns) / time_ns;
                smooth.extend([silence_start, silence_end].map(|end| Smooth { rate, ..end }));
            }
            smooth.extend((0..some.len()).map(|k| smoothed(some, k)));
        }
        if let (Some(turn), Some(next)) = (turns.get(n), parts.get(n + 1)) {
            let at_ns = turn.at_ns as f64;
            let (before, after) = (Line::through(last(part)), Line::through(first(next)));
            let ns = (before.at(at_ns) + after.at(at_ns)) / 2.0;
            smooth.extend([before, after].map(|line| Smooth { at_ns, ns, rate: line.rate }));
        }
    }
    // From the first frame to the last one.
    if let (Some(first_part), Some(last_part)) = (parts.first(), parts.last()) {
        smooth.splice(..0, before_first(first_part, ends.0 as f64));
        smooth.extend(after_last(last_part, ends.1 as f64));
    }
    smooth.retain(|knot| knot.ns.is_finite() && knot.rate.is_finite());
    let wander = Wander { knots: smooth, turns };
    if wander.rate_max() > RATE_MAX {
        return None;
    }
    let rest_ns = longest.iter().map(|&(at_ns, rest_ns)| rest_ns + before.ns(at_ns) - wander.ns(at_ns)).collect();
    Some(Followed { wander, rest_ns })
}

/// One of the earliest frames of each part of [`KNOT_NS`]; `None` if there are too few parts, or if the clock was set back.
fn knots(kept: &[(i64, i64)], interval_ns: f64) -> Option<Vec<OffLine>> {
    let off_line = |&(slot, at_ns): &(i64, i64)| (at_ns, at_ns as f64 - slot as f64 * interval_ns);
    let mut all: Vec<OffLine> = Vec::new();
    let mut rest = kept;
    while let Some(first) = rest.first() {
        let (part, after) =
            rest.split_at(rest.iter().take_while(|one| one.1.saturating_sub(first.1) < KNOT_NS).count());
        let mut part: Vec<OffLine> = part.iter().map(off_line).collect();
        part.sort_unstable_by(|a, b| a.1.total_cmp(&b.1));
        all.push(*part.get((part.len() + 1) / EARLIER_PART)?);
        rest = after;
    }
    let is_in_order = kept.windows(2).all(|pair| pair[0].1 < pair[1].1);
    (is_in_order && all.len() >= KNOTS_MIN).then_some(all)
}

/// The knots of runs, without the steps between these.
struct InOnePhase {
    knots: Vec<Knot>,
    /// The knots of the longest run.
    longest: Vec<OffLine>,
    /// When another run continued, ns.
    changes_ns: Vec<f64>,
}

/// The knots of all runs without the steps between runs, and those of the longest run. `None` if most are in no run.
fn in_one_phase(all: &[OffLine], near_ns: &Range<f64>, step_ns: u64) -> Option<InOnePhase> {
    let rates: Vec<f64> = all.windows(2).map(|pair| (pair[1].1 - pair[0].1) / time_ns(pair[0], pair[1])).collect();
    let mut times_ns: Vec<f64> = all.windows(2).map(|pair| time_ns(pair[0], pair[1])).collect();
    let longest_ns = SILENCE * quantile(&mut times_ns, 0.5)?;
    // In a long silence, the error of a rate would move the stream by much.
    let usual = |n: usize, time_ns: f64| {
        if time_ns > longest_ns {
            return 0.0;
        }
        let first = n.saturating_sub(AROUND).min(rates.len().saturating_sub(2 * AROUND + 1));
        let around = &rates[first..rates.len().min(first + 2 * AROUND + 1)];
        let is_inside = first + AROUND == n;
        if is_inside { quantile(&mut around.to_vec(), 0.5).unwrap_or(0.0) } else { continued(around, n - first) }
    };
    // Without the usual rates, knots of one run are at one level.
    let mut usual_ns = 0.0;
    let mut level_ns = vec![all.first()?.1];
    for (n, pair) in all.windows(2).enumerate() {
        let time_ns = time_ns(pair[0], pair[1]);
        usual_ns += usual(n, time_ns) * time_ns;
        level_ns.push(pair[1].1 - usual_ns);
    }
    let near_ns = (3.0 * scatter_ns(&level_ns)?).clamp(near_ns.start, near_ns.end).max(step_ns as f64 * 1.5);
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
    let changes = in_runs.windows(2).filter(|pair| pair[0].1 != pair[1].1);
    let changes_ns = changes.map(|pair| all[pair[1].0].0 as f64).collect();
    // The first knot of a run continues the one before at the usual rate.
    let mut steps_ns: Vec<Option<f64>> = vec![None; runs.len()];
    let mut last_level_ns = None;
    let knot = |(n, run): (usize, usize)| {
        let step_ns = *steps_ns[run].get_or_insert_with(|| last_level_ns.map_or(0.0, |last_ns| level_ns[n] - last_ns));
        last_level_ns = Some(level_ns[n] - step_ns);
        Knot { at_ns: all[n].0 as f64, off_ns: all[n].1 - step_ns }
    };
    let knots = in_runs.into_iter().map(knot).collect();
    Some(InOnePhase { knots, longest, changes_ns })
}

/// The distance that most neighbouring knots of one run have at most, ns. Early ones do not count: each makes two steps.
fn scatter_ns(level_ns: &[f64]) -> Option<f64> {
    let steps = |levels: &[f64]| levels.windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect::<Vec<_>>();
    let early_ns = EARLY * quantile(&mut steps(level_ns), 0.5)?;
    let is_early = |n: usize| {
        let before = n.checked_sub(1).and_then(|before| level_ns.get(before));
        before.into_iter().chain(level_ns.get(n + 1)).all(|other| other - level_ns[n] > early_ns)
    };
    let others: Vec<f64> = (0..level_ns.len()).filter(|n| !is_early(*n)).map(|n| level_ns[n]).collect();
    quantile(&mut steps(&others), 0.75)
}

/// The value at this place of a line through values at equal distances: the median of the median slopes of each one (Siegel 1982).
/// Near the ends of the stream, the median of the rates around would be that of a later or earlier time.
fn continued(values: &[f64], at: usize) -> f64 {
    let median = |values: &mut Vec<f64>| quantile(values, 0.5).unwrap_or(0.0);
    let slope_at = |n: usize| {
        let others = values.iter().enumerate().filter(|(other, _)| *other != n);
        median(&mut others.map(|(other, value)| (value - values[n]) / (other as f64 - n as f64)).collect())
    };
    let slope = median(&mut (0..values.len()).map(slope_at).collect());
    let there = values.iter().enumerate().map(|(n, value)| value + slope * (at as f64 - n as f64));
    median(&mut there.collect())
}

/// The sudden changes of the rate, in order; `None` if some are so near each other that a rate did not last.
fn turns(knots: &[Knot]) -> Option<Vec<Turn>> {
    let rates: Vec<f64> = knots.windows(2).map(|pair| rate(pair[0], pair[1])).collect();
    let median = |range: Range<usize>| quantile(&mut rates[range].to_vec(), 0.5).unwrap_or(0.0);
    let mut off: Vec<f64> = rates.windows(3).map(|three| (three[1] - (three[0] + three[2]) / 2.0).abs()).collect();
    let least = TURN.max(TURN_DEVIATIONS * quantile(&mut off, 0.5)?);
    // The change at the interval `n` itself, which can have a part of both rates.
    let changes: Vec<f64> = (TURN_OF..rates.len().saturating_sub(TURN_OF))
        .map(|n| median(n + 1..n + 1 + TURN_OF) - median(n - TURN_OF..n))
        .collect();
    let lasts = (knots.len() / LASTS_PART).clamp(*LASTS.start(), *LASTS.end());
    let mut turns = Vec::new();
    let (mut from, mut next) = (0, 0);
    for (n, &most) in changes.iter().enumerate() {
        let around = &changes[n.saturating_sub(PEAK)..(n + PEAK + 1).min(changes.len())];
        if n < next || most.abs() <= least || around.iter().any(|change| change.abs() > most.abs()) {
            continue;
        }
        let is_full = |change: &&f64| **change / most >= 0.9;
        let full_before = changes[..n].iter().rev().take(TURN_OF).take_while(is_full).count();
        let full_after = changes[n + 1..].iter().take(TURN_OF).take_while(is_full).count();
        let middles = n + TURN_OF - full_before..=n + TURN_OF + full_after;
        let sudden = middles.filter_map(|middle| Some((middle, sudden(knots, middle)?)));
        let Some((middle, Sudden { turn, .. })) = sudden.min_by(|a, b| a.1.off_ns.total_cmp(&b.1.off_ns)) else {
            continue;
        };
        if middle - from < lasts || knots.len() - middle < lasts {
            return None;
        }
        (from, next) = (middle, n + full_after + 1);
        turns.push(turn);
    }
    Some(turns)
}

/// A sudden change of the rate.
struct Sudden {
    turn: Turn,
    /// The sum of the distances of the knots around it from the lines before and after it, ns.
    off_ns: f64,
}

/// The change of the rate between this knot and the next one, if a line before and one after it are nearer to the knots than one
/// cubic through all. A rate that changes smoothly is nearer to the cubic.
fn sudden(knots: &[Knot], middle: usize) -> Option<Sudden> {
    let (before, after) = (last(&knots[..=middle]), first(&knots[middle + 1..]));
    let (line_before, line_after) = (Line::through(before), Line::through(after));
    let from_ns = knots[middle.saturating_sub(1)].at_ns;
    let to_ns = knots.get(middle + 2)?.at_ns;
    let at_ns = line_before.meets(&line_after).filter(|at_ns| (from_ns..to_ns).contains(at_ns))?;
    let off_ns = line_before.off_ns(before) + line_after.off_ns(after);
    let all: Vec<Knot> = before.iter().chain(after).copied().collect();
    let cubic = Cubic::through(&all, knots[middle].at_ns);
    let turn = Turn { at_ns: nearest(at_ns), by: line_after.rate - line_before.rate };
    (off_ns < all.iter().map(|knot| cubic.off(knot).abs()).sum()).then_some(Sudden { turn, off_ns })
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

/// A knot of a part, moved to the cubic through those around it.
fn smoothed(part: &[Knot], n: usize) -> Smooth {
    let first = n.saturating_sub(SMOOTHED_OF / 2).min(part.len().saturating_sub(SMOOTHED_OF));
    let cubic = Cubic::through(&part[first..part.len().min(first + SMOOTHED_OF)], part[n].at_ns);
    cubic.smooth()
}

/// The departure at the time of the first frame of the stream, before the first knot.
fn before_first(part: &[Knot], at_ns: f64) -> Option<Smooth> {
    let cubic = Cubic::through(&part[..part.len().min(SMOOTHED_OF)], at_ns);
    part.first().filter(|knot| at_ns < knot.at_ns).map(|_| cubic.smooth())
}

/// The departure at the time of the last frame of the stream, after the last knot.
fn after_last(part: &[Knot], at_ns: f64) -> Option<Smooth> {
    let cubic = Cubic::through(&part[part.len().saturating_sub(SMOOTHED_OF)..], at_ns);
    part.last().filter(|knot| at_ns > knot.at_ns).map(|_| cubic.smooth())
}

/// A cubic near knots, or a line near few of them. Single knots far from it move it little.
#[derive(Debug)]
struct Cubic {
    middle_ns: f64,
    /// The longest time of a knot from the middle.
    unit_ns: f64,
    /// The coefficients of the powers of the time from the middle, in these units.
    terms: [f64; Self::TERMS],
}

impl Cubic {
    const TERMS: usize = 4;
    /// The sum of the squares of the distances, each divided by the distance from the fit before, approaches the sum of the
    /// distances after so many fits.
    const FITS: usize = 6;
    /// A smaller distance counts as this one, ns.
    const LEAST_NS: f64 = 10.0;

    fn through(knots: &[Knot], middle_ns: f64) -> Self {
        let degrees = if knots.len() > Self::TERMS { Self::TERMS } else { knots.len().min(2) };
        let unit_ns = knots.iter().map(|knot| (knot.at_ns - middle_ns).abs()).fold(1.0, f64::max);
        let mut cubic = Self { middle_ns, unit_ns, terms: [0.0; Self::TERMS] };
        let mut weights = vec![1.0; knots.len()];
        for _ in 0..Self::FITS {
            let mut sums = [[0.0; Self::TERMS + 1]; Self::TERMS];
            for (knot, weight) in knots.iter().zip(&weights) {
                let powers = cubic.powers(knot.at_ns);
                for (row, power) in sums.iter_mut().zip(powers) {
                    for (sum, other) in row.iter_mut().zip(powers.into_iter().chain([knot.off_ns])) {
                        *sum += weight * power * other;
                    }
                }
            }
            cubic.terms = solved(&mut sums, degrees);
            weights = knots.iter().map(|knot| 1.0 / cubic.off(knot).abs().max(Self::LEAST_NS)).collect();
        }
        cubic
    }

    /// The departure in its middle.
    fn smooth(&self) -> Smooth {
        Smooth { at_ns: self.middle_ns, ns: self.terms[0], rate: self.terms[1] / self.unit_ns }
    }

    fn powers(&self, at_ns: f64) -> [f64; Self::TERMS] {
        let time = (at_ns - self.middle_ns) / self.unit_ns;
        [1.0, time, time * time, time * time * time]
    }

    /// The departure of a knot from it, ns.
    fn off(&self, knot: &Knot) -> f64 {
        let near = self.powers(knot.at_ns).into_iter().zip(self.terms).map(|(power, term)| power * term);
        knot.off_ns - near.sum::<f64>()
    }
}

/// The solution of the first `size` of these linear equations, whose last column is the right side; the others are 0.
fn solved(rows: &mut [[f64; Cubic::TERMS + 1]; Cubic::TERMS], size: usize) -> [f64; Cubic::TERMS] {
    let mut terms = [0.0; Cubic::TERMS];
    for n in 0..size {
        let pivot = rows[n];
        for row in &mut rows[n + 1..size] {
            let factor = row[n] / pivot[n];
            row.iter_mut().zip(pivot).for_each(|(value, of_pivot)| *value -= factor * of_pivot);
        }
    }
    for n in (0..size).rev() {
        let known: f64 = (n + 1..size).map(|other| rows[n][other] * terms[other]).sum();
        terms[n] = (rows[n][Cubic::TERMS] - known) / rows[n][n];
    }
    terms
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

    /// The sum of the distances of these knots from it, ns.
    fn off_ns(&self, knots: &[Knot]) -> f64 {
        knots.iter().map(|knot| (knot.off_ns - self.at(knot.at_ns)).abs()).sum()
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
