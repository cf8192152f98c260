//! Estimates the period of a stream from its first frames.

use crate::bursts::{self, Bursts};
use crate::convert::{nearest, signed};
use crate::counter::usual_mean;
use crate::fit::quantile;
use crate::sequence::{Contained, Number};
use crate::track::SAME_PERIOD;

/// Maximum number of frames per period that is tried if no gaps between groups show it.
const GROUP_MAX: usize = 8;
/// Maximum number of frames of a burst with a place of their own in the grid.
const BURST_MAX: usize = 512;
/// Minimum part of equal distances in a regular stream: fewer than this are equal if frames are sent in pairs.
const REGULAR: f64 = 0.6;
/// A larger group must be more regular than a smaller one by this part.
const EQUALLY_REGULAR: f64 = 0.1;
/// The typical interval is at most this many times the interval; with losses and in groups, it is larger.
const TYPICAL_MAX: f64 = 1.6;
/// Number of frames for the typical interval.
const TYPICAL: usize = 16;
/// Part of intervals that must be multiples of the period in a stream with many losses.
const MULTIPLES: f64 = 0.9;
/// The quantile of the intervals that is one period, even if most frames were lost.
const ONE_PERIOD: f64 = 0.2;

/// The estimate.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Estimate {
    /// Mean time between frames, ns.
    pub(crate) interval_ns: f64,
    /// The time of each frame of a group against a regular stream, ns; empty if frames are not sent in groups.
    pub(crate) offsets_ns: Vec<f64>,
    /// The bursts, if they show no grid: they differ in length, or the stated period is not theirs.
    pub(crate) bursts: Option<Bursts>,
}

impl Estimate {
    /// The period: the time from one group of frames to the next, ns.
    pub(crate) fn period_ns(&self) -> f64 {
        self.interval_ns * self.offsets_ns.len().max(1) as f64
    }

    /// True if this is the period, or the time between frames.
    fn is_of(&self, known_ns: u64) -> bool {
        is_same(self.interval_ns, known_ns) || is_same(self.period_ns(), known_ns)
    }
}

/// The estimate from the first frames; `None` if they are not regular. `known_ns` is the stated period, if there is one.
pub(crate) fn estimate(frames: &[(Number, i64)], known_ns: Option<u64>) -> Option<Estimate> {
    let indexed = indexed(frames, known_ns);
    let found = estimate_of(&indexed, frames.first().is_some_and(|(number, _)| *number != Number::None), known_ns);
    // After a stall, most frames can be in the burst. All of them together show the period.
    let known = known_ns.filter(|&ns| mean_ns(&indexed).is_some_and(|mean_ns| is_same(mean_ns, ns)));
    match known {
        Some(ns) if !found.as_ref().is_some_and(|found| found.is_of(ns)) => {
            Some(Estimate { interval_ns: ns as f64, offsets_ns: Vec::new(), bursts: None })
        }
        _ => found,
    }
}

/// The estimate from these first frames, each of which comes twice; `None` if they are not regular.
pub(crate) fn of_pairs(frames: &[(Number, i64)]) -> Option<Estimate> {
    let indexed = indexed(frames, None);
    let (interval_ns, _) = regularity(&indexed, 2, None)?;
    let interval_ns = refined(&indexed, 2, interval_ns, false);
    Some(Estimate { interval_ns, offsets_ns: offsets(&indexed, 2, interval_ns), bursts: None })
}

/// True if the frames do not show their period well: they are not regular, not with the stated period, or their mean
/// interval is another one, for example because most of them are in the burst after a stall.
pub(crate) fn is_doubtful(found: Option<&Estimate>, frames: &[(Number, i64)], known_ns: Option<u64>) -> bool {
    let Some(found) = found else { return true };
    let is_mean = mean_ns(&indexed(frames, known_ns)).is_some_and(|mean_ns| mean_ns < found.interval_ns * TYPICAL_MAX);
    !is_mean || known_ns.is_some_and(|ns| !found.is_of(ns))
}

/// True if most frames of RTP contain the same time of the media as the frame before, such as the packets of a video frame.
pub(crate) fn repeats_media_times(frames: &[(Contained, i64)]) -> bool {
    let media = |number: Contained| if let Contained::Candidate(count) = number { count.media } else { None };
    let is_same = |pair: &&[(Contained, i64)]| {
        let times = media(pair[0].0).zip(media(pair[1].0));
        times.is_some_and(|(before, now)| before.timestamp == now.timestamp)
    };
    2 * frames.windows(2).filter(is_same).count() > frames.len()
}

/// The mean interval of the frames, ns; `None` with fewer than two.
pub(crate) fn mean_ns(indexed: &[(i64, i64)]) -> Option<f64> {
    let (first, last) = (indexed.first()?, indexed.last()?);
    (last.0 > first.0).then(|| last.1.saturating_sub(first.1) as f64 / (last.0 - first.0) as f64)
}

fn is_same(ns: f64, known_ns: u64) -> bool {
    (ns / known_ns as f64 - 1.0).abs() <= SAME_PERIOD
}

/// The distance of frames that are 1, 2, 3 ... apart shows the smallest number of frames after which the stream repeats.
fn estimate_of(indexed: &[(i64, i64)], numbered: bool, known_ns: Option<u64>) -> Option<Estimate> {
    if let Some(found) = bursts::find(indexed, numbered).filter(|found| found.frames != Some(1)) {
        return Some(of_bursts(indexed, found, numbered, known_ns));
    }
    let typical = typical_ns(indexed);
    let candidates = || (1..=GROUP_MAX).filter_map(|group| Some((group, regularity(indexed, group, typical)?)));
    let most = candidates().map(|(_, (_, regular))| regular).fold(REGULAR, f64::max);
    let Some((group, (interval, _))) = candidates().find(|(_, (_, regular))| *regular >= most - EQUALLY_REGULAR) else {
        return if numbered { None } else { with_losses(indexed) };
    };
    let interval_ns = refined(indexed, group, interval, numbered);
    let is_known = |ns: f64| known_ns.is_some_and(|known_ns| is_same(ns, known_ns));
    let is_group = !is_known(interval_ns) && (is_known(interval_ns * group as f64) || is_group(indexed, group));
    let offsets_ns = if is_group { offsets(indexed, group, interval_ns) } else { Vec::new() };
    Some(Estimate { interval_ns, offsets_ns, bursts: None })
}

/// The estimate for a stream that sends frames in bursts.
fn of_bursts(indexed: &[(i64, i64)], found: Bursts, numbered: bool, known_ns: Option<u64>) -> Estimate {
    let is_known = |ns: f64| known_ns.is_some_and(|known_ns| is_same(ns, known_ns));
    let group = found.frames.filter(|&frames| frames <= BURST_MAX);
    if let Some(group) = group.filter(|&group| !is_known(found.period_ns / group as f64)) {
        let interval_ns = refined(indexed, group, found.period_ns / group as f64, numbered);
        return Estimate { interval_ns, offsets_ns: offsets(indexed, group, interval_ns), bursts: None };
    }
    let interval_ns = mean_ns(indexed).unwrap_or(found.period_ns).max(1.0);
    Estimate { interval_ns, offsets_ns: Vec::new(), bursts: Some(found) }
}

/// The mean interval of frames that are `group` apart, ns, and the part of these distances that are equal. `None` if the
/// typical interval is another one.
fn regularity(indexed: &[(i64, i64)], group: usize, typical_ns: Option<f64>) -> Option<(f64, f64)> {
    let mut distances = distances(indexed, signed(group));
    let median = quantile(&mut distances, 0.5).filter(|&median| median > 0.0)?;
    let interval = median / group as f64;
    let near = distances.iter().filter(|&&one| (one - median).abs() <= interval / 4.0).count();
    let regular = near as f64 / distances.len() as f64;
    let is_typical = typical_ns.is_none_or(|typical| typical < interval * TYPICAL_MAX);
    (regular >= REGULAR && is_typical).then_some((interval, regular))
}

/// Index and time of the frames. Frames whose number does not follow are omitted. 8-bit numbers do not show losses of 256
/// frames, and after one of more than 128 a frame looks like an earlier one, unless as many periods passed.
pub(crate) fn indexed(frames: &[(Number, i64)], known_ns: Option<u64>) -> Vec<(i64, i64)> {
    let next_ns = |pair: &[(Number, i64)]| match (pair[0].0, pair[1].0) {
        (Number::Eight(before), Number::Eight(low)) if low.wrapping_sub(before) == 1 => {
            Some(pair[1].1.saturating_sub(pair[0].1))
        }
        _ => None,
    };
    // In batches, a single interval is that within a batch.
    let interval_ns = || usual_mean(&frames.windows(2).filter_map(next_ns).collect::<Vec<_>>());
    let interval_ns = known_ns.map(|ns| ns as f64).or_else(interval_ns).filter(|&ns| ns > 0.0);
    let mut indexed: Vec<(i64, i64)> = Vec::with_capacity(frames.len());
    let mut last = None;
    for &(number, at_ns) in frames {
        let step = match (last, number) {
            (None, _) => Some(0),
            (Some((Number::Eight(before), before_ns)), Number::Eight(low)) => {
                let ahead = i64::from(low.wrapping_sub(before));
                let passed = interval_ns.map(|ns| at_ns.saturating_sub(before_ns) as f64 / ns);
                let lost =
                    passed.map(|passed| (passed, ahead as f64 + 256.0 * ((passed - ahead as f64) / 256.0).round()));
                let fits = lost.filter(|&(passed, step)| step >= 1.0 && (passed - step).abs() <= 1.0 + passed / 2000.0);
                fits.map(|(_, step)| nearest(step)).or_else(|| Some(ahead).filter(|ahead| (1..128).contains(ahead)))
            }
            (Some((Number::Whole { run, seq: before }, _)), Number::Whole { run: same, seq }) if run == same => seq
                .checked_sub(before)
                .and_then(|step| i64::try_from(step).ok())
                .filter(|step| (1..1 << 32).contains(step)),
            _ => Some(1),
        };
        if let Some(step) = step {
            indexed.push((indexed.last().map_or(0, |(index, _)| index + step), at_ns));
            last = Some((number, at_ns));
        }
    }
    indexed
}

/// The times between frames that are this many numbers apart.
fn distances(indexed: &[(i64, i64)], apart: i64) -> Vec<f64> {
    let next = |(n, one): (usize, &(i64, i64))| {
        let other = indexed[n + 1..].iter().take_while(|other| other.0 <= one.0 + apart);
        other.last().filter(|other| other.0 == one.0 + apart).map(|other| other.1.saturating_sub(one.1) as f64)
    };
    indexed.iter().enumerate().filter_map(next).collect()
}

/// The median of the mean interval of 16 frames, which a single pause does not change; `None` with fewer frames.
fn typical_ns(indexed: &[(i64, i64)]) -> Option<f64> {
    let mean = |pair: &[(i64, i64)]| {
        let (first, last) = (pair.first()?, pair.last()?);
        Some(last.1.saturating_sub(first.1) as f64 / (last.0 - first.0).max(1) as f64)
    };
    quantile(&mut indexed.windows(TYPICAL + 1).filter_map(mean).collect::<Vec<_>>(), 0.5)
}

/// The interval from ever more distant frames, so that their jitter counts less. They are whole groups apart.
fn refined(indexed: &[(i64, i64)], group: usize, interval_ns: f64, numbered: bool) -> f64 {
    let mut refined_ns = interval_ns;
    let mut apart = 2 * group;
    while apart <= indexed.len() / 2 {
        let mean = |pair: &[(i64, i64)]| {
            let (first, last) = (pair.first()?, pair.last()?);
            let time = last.1.saturating_sub(first.1) as f64;
            // Without numbers, frames may be missing. After a loss, frames are not whole groups apart.
            let frames = if numbered { (last.0 - first.0) as f64 } else { (time / refined_ns).round() };
            let is_whole = !numbered || (last.0 - first.0) % signed(group) == 0;
            // A pause or a skipped slot between them does not count.
            let is_near = (time - frames * refined_ns).abs() <= refined_ns * group as f64 / 2.0;
            (frames >= 1.0 && is_whole && is_near).then(|| time / frames)
        };
        let mut means: Vec<_> = indexed.windows(apart + 1).filter_map(mean).collect();
        refined_ns = quantile(&mut means, 0.5).filter(|&ns| ns > 0.0).unwrap_or(refined_ns);
        apart *= 2;
    }
    refined_ns
}

/// True if all frames but one of each group follow the one before within half of the largest interval.
fn is_group(indexed: &[(i64, i64)], group: usize) -> bool {
    let mut neighbours = distances(indexed, 1);
    let largest_ns = quantile(&mut neighbours, 1.0 - 0.5 / group as f64).unwrap_or(0.0);
    let close = neighbours.iter().filter(|&&one| one < largest_ns / 2.0).count();
    group > 1 && close as f64 >= neighbours.len() as f64 * REGULAR * (group - 1) as f64 / group as f64 && close > 0
}

/// The median time of each frame of a group against a regular stream; the earliest is 0.
fn offsets(indexed: &[(i64, i64)], group: usize, interval_ns: f64) -> Vec<f64> {
    let of = |position: i64| {
        let frames = indexed.iter().filter(|(index, _)| index % signed(group) == position);
        let mut rest: Vec<f64> = frames.map(|&(index, at_ns)| at_ns as f64 - index as f64 * interval_ns).collect();
        quantile(&mut rest, 0.5).unwrap_or(0.0)
    };
    let offsets: Vec<f64> = (0..signed(group)).map(of).collect();
    let earliest = offsets.iter().copied().fold(f64::INFINITY, f64::min);
    offsets.into_iter().map(|offset| offset - earliest).collect()
}

/// The period of a stream without numbers whose intervals are multiples of it.
fn with_losses(indexed: &[(i64, i64)]) -> Option<Estimate> {
    let mut intervals = distances(indexed, 1);
    let period_ns = quantile(&mut intervals, ONE_PERIOD).filter(|&ns| ns > 0.0)?;
    let is_multiple = |ns: f64| {
        let periods = (ns / period_ns).round();
        periods >= 1.0 && (ns - periods * period_ns).abs() <= period_ns / 8.0
    };
    let multiples = intervals.iter().filter(|&&ns| is_multiple(ns)).count();
    let regular = intervals.len() >= TYPICAL && multiples as f64 >= intervals.len() as f64 * MULTIPLES;
    regular.then(|| Estimate {
        interval_ns: refined(indexed, 1, period_ns, false),
        offsets_ns: Vec::new(),
        bursts: None,
    })
}
