//! Finds bursts: frames that follow each other closely, with a much longer gap at regular times, such as the packets of a
//! video frame.
//!
//! A stalled talker makes such gaps, too, but then its frames catch up. A burst is not followed by frames that make up for
//! the gap.

use record::saturating::Saturating;

use crate::convert::nearest;
use crate::fit::quantile;

/// A gap between bursts is at least so many intervals longer than the interval within them.
const GAP: f64 = 2.0;
/// Number of bursts that show their period: among the first frames, and in a whole stream, where gaps can be losses.
const FIRST_MIN: usize = 3;
const ALL_MIN: usize = 8;
/// The gaps are at least this part of the time. Losses at regular times are less.
const GAPS_PART: f64 = 0.02;
/// Part of the bursts that must be equally long, or start at equal distances.
const REGULAR: f64 = 0.6;
/// With numbers, at most so many bursts, or this part of them, have other numbers of frames, except for several without a gap.
const OTHERS_MAX: f64 = 2.0;
const OTHERS_PART: f64 = 0.1;
/// Number of gaps that are kept.
const GAPS_MAX: usize = 256;

/// The bursts of a stream.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Bursts {
    /// Frames of a burst; `None` if they differ.
    pub(crate) frames: Option<usize>,
    /// Time from one burst to the next, ns.
    pub(crate) period_ns: f64,
}

/// A frame after a gap.
#[derive(Debug, Clone, Copy)]
struct Start {
    index: i64,
    at_ns: i64,
    /// The gap less the time of the frames in it, ns.
    excess_ns: f64,
}

/// The gaps between the frames of a stream.
#[derive(Debug)]
pub(crate) struct Gaps {
    starts: Vec<Start>,
    /// Index and time of the last frame.
    last: (i64, i64),
    /// The smallest gap, ns.
    gap_ns: i64,
}

impl Gaps {
    /// No gaps yet in a stream whose frames follow each other after about `interval_ns`.
    pub(crate) fn new(interval_ns: f64) -> Self {
        // No time has passed before the first frame.
        Self { starts: Vec::new(), last: (0, i64::MAX), gap_ns: nearest((GAP + 1.0) * interval_ns) }
    }

    /// Adds a frame of a stream whose frames follow each other after `interval_ns`.
    #[inline]
    pub(crate) fn add(&mut self, index: i64, at_ns: i64, interval_ns: f64) {
        let passed_ns = at_ns.minus(self.last.1);
        if passed_ns > self.gap_ns {
            self.add_gap(index, at_ns, interval_ns);
        }
        self.last = (index, at_ns);
    }

    #[cold]
    fn add_gap(&mut self, index: i64, at_ns: i64, interval_ns: f64) {
        let (last_index, last_ns) = self.last;
        let slots = index.saturating_sub(last_index) as f64;
        let excess_ns = at_ns.saturating_sub(last_ns) as f64 - slots * interval_ns;
        if excess_ns > GAP * interval_ns && self.starts.len() < GAPS_MAX {
            self.starts.push(Start { index, at_ns, excess_ns });
        }
    }

    /// The bursts of a whole stream between these gaps; `None` if they do not recur regularly, or if the frames catch up after
    /// them.
    pub(crate) fn bursts(&self, interval_ns: f64) -> Option<Bursts> {
        self.at_least(ALL_MIN, interval_ns, false)
    }

    fn at_least(&self, bursts_min: usize, interval_ns: f64, numbered: bool) -> Option<Bursts> {
        let (first, last) = (self.starts.first()?, self.starts.last()?);
        let pairs = || self.starts.windows(2).map(|pair| (pair[0], pair[1]));
        let mut distances_ns: Vec<f64> = pairs().map(|(a, b)| b.at_ns.saturating_sub(a.at_ns) as f64).collect();
        let period_ns = quantile(&mut distances_ns, 0.5)?;
        let regular = distances_ns.iter().filter(|&&ns| (ns - period_ns).abs() <= period_ns / 8.0).count();
        let gaps_ns: f64 = self.starts.iter().skip(1).map(|start| start.excess_ns).sum();
        let frames_ns = last.index.saturating_sub(first.index) as f64 * interval_ns;
        let added_ns = last.at_ns.saturating_sub(first.at_ns) as f64 - frames_ns;
        let is_regular = self.starts.len() >= bursts_min && is_most(regular, distances_ns.len());
        if !is_regular || added_ns < (gaps_ns / 2.0).max(GAPS_PART * frames_ns) {
            return None;
        }
        let in_order: Vec<i64> = pairs().map(|(a, b)| b.index.saturating_sub(a.index)).collect();
        let mut sizes = in_order.clone();
        sizes.sort_unstable();
        let usual = sizes.chunk_by(|a, b| a == b).max_by_key(|run| run.len())?;
        let frames = usual.first().filter(|_| is_most(usual.len(), sizes.len()));
        let others = |frames: i64| {
            // A group whose first frame was lost begins later, and has the more frames before it.
            let is_whole = |size: i64| size % frames == 0;
            let is_other =
                |three: &&[i64]| !is_whole(three[1]) && three.windows(2).all(|two| !is_whole(two[0] + two[1]));
            in_order.windows(3).filter(is_other).count()
        };
        let are_equal =
            |frames: i64| !numbered || others(frames) as f64 <= OTHERS_MAX.max(OTHERS_PART * sizes.len() as f64);
        let frames = frames.filter(|&&frames| are_equal(frames));
        // Single frames are a stream with another period.
        let bursts = Bursts { frames: frames.and_then(|&frames| usize::try_from(frames).ok()), period_ns };
        (bursts.frames != Some(1)).then_some(bursts)
    }
}

fn is_most(some: usize, all: usize) -> bool {
    some as f64 >= REGULAR * all as f64
}

/// The bursts of a stream with these first frames: their indexes and times. Without numbers, lost frames have no index.
pub(crate) fn find(indexed: &[(i64, i64)], numbered: bool) -> Option<Bursts> {
    let next_ns =
        |pair: &[(i64, i64)]| (pair[1].0 == pair[0].0 + 1).then(|| pair[1].1.saturating_sub(pair[0].1) as f64);
    let mut next: Vec<f64> = indexed.windows(2).filter_map(next_ns).collect();
    let interval_ns = quantile(&mut next, 0.5).filter(|&ns| ns > 0.0)?;
    let mut gaps = Gaps::new(interval_ns);
    indexed.iter().for_each(|&(index, at_ns)| gaps.add(index, at_ns, interval_ns));
    gaps.at_least(FIRST_MIN, interval_ns, numbered)
}
