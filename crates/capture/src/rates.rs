//! Samples the intervals between frames, to find a talker that changes its period or sends frames between the regular ones.

use record::saturating::Saturating;

use crate::convert::nearest;
use crate::fit::quantile;

/// Number of samples that are kept: at most so many, and about half as many in a long stream.
const SAMPLES_MAX: usize = 1024;
/// 2^64 divided by the golden ratio: multiples of it are spread evenly (Knuth, The Art of Computer Programming, 6.4). Samples
/// at equal distances could all be at the same place of a pattern.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
/// Fewer samples on one side of a change show no period.
const SIDE_MIN: usize = 16;
/// Part of the samples that must be near the median in a regular stream.
const REGULAR: f64 = 0.6;
/// A sample is near the median within this part of it: frames can be late by a part of the period.
const NEAR: f64 = 0.4;
/// On each side of a change, this part of the samples is near the median, within the other part of it.
const PLAIN: f64 = 0.8;
const PLAIN_NEAR: f64 = 0.25;
/// A smaller change than this part can be that of a clock.
const LEAST: f64 = 1e-3;
/// So many standard errors of two medians are no difference.
pub(crate) const ERRORS: f64 = 5.0;
/// A longer interval than so many medians counts as that many, so that a pause does not hide a change.
const LONGEST: f64 = 4.0;
/// Medians of stamps that differ by at most so many of their resolution can be those of one period.
const COARSE: f64 = 2.0;

/// A frame that is late by more than so many intervals comes after a pause or in a stall.
const PAUSE: f64 = 8.0;
/// In the burst after a stall, frames are closer together than this part of the period.
const BURST: f64 = 0.1;
/// After a stall, frames catch up with at least this part of it.
const CAUGHT_UP: f64 = 0.9;

/// The mean of the two intervals before a frame: each second frame can be early or late.
#[derive(Debug, Clone, Copy)]
struct Sample {
    frame: u64,
    index: i64,
    at_ns: i64,
    interval_ns: f64,
    /// The pauses before it, ns.
    paused_ns: i64,
}

/// Samples of the intervals of a stream.
#[derive(Debug)]
pub(crate) struct Rates {
    samples: Vec<Sample>,
    /// Frames are sampled if the spread index has none of these bits.
    mask: u64,
    /// Index and time of the first frame, of the last one, and of the one before it; [`NO_FRAME`] if there is none.
    first: Option<(i64, i64)>,
    last: (i64, i64),
    last_but_one: (i64, i64),
    /// The sum of the times by which a frame was earlier than the one before, ns: the clock of the capture was set.
    back_ns: i64,
    /// The frames that were lost there: their time is not known.
    lost_there: i64,
    /// The approximate interval, and the sum of the pauses, ns.
    interval_ns: f64,
    paused_ns: i64,
}

/// Its index is not two before that of any frame.
const NO_FRAME: (i64, i64) = (i64::MIN, i64::MIN);

impl Rates {
    /// No samples of a stream whose interval is about `interval_ns`.
    pub(crate) fn new(interval_ns: f64) -> Self {
        Self {
            samples: Vec::new(),
            mask: 0,
            first: None,
            last: NO_FRAME,
            last_but_one: NO_FRAME,
            back_ns: 0,
            lost_there: 0,
            interval_ns,
            paused_ns: 0,
        }
    }
}

/// A change of the period.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Change {
    /// One of the first frames with the new period, and its time, ns.
    pub(crate) frame: u64,
    pub(crate) at_ns: i64,
    /// The median intervals before and after it, ns.
    pub(crate) before_ns: f64,
    pub(crate) after_ns: f64,
}

impl Rates {
    /// Adds a frame.
    #[inline(always)]
    pub(crate) fn add(&mut self, frame: u64, index: i64, at_ns: i64) {
        let (before_index, before_ns) = self.last_but_one;
        let (last_index, last_ns) = self.last;
        (self.last_but_one, self.last) = (self.last, (index, at_ns));
        if self.first.is_none() {
            self.first = Some(self.last);
        }
        if at_ns < last_ns {
            self.back_ns = self.back_ns.saturating_add(last_ns.saturating_sub(at_ns));
            let lost = index.saturating_sub(last_index).saturating_sub(1).max(0);
            self.lost_there = self.lost_there.saturating_add(lost);
        } else if at_ns.minus(last_ns) as f64 > PAUSE * self.interval_ns {
            self.add_pause(index.saturating_sub(last_index), at_ns.saturating_sub(last_ns));
        }
        if spread(index) & self.mask == 0 && index.wrapping_sub(before_index) == 2 {
            let interval_ns = at_ns.minus(before_ns) as f64 / 2.0;
            self.keep(Sample { frame, index, at_ns, interval_ns, paused_ns: self.paused_ns });
        }
    }

    /// Adds the time between two frames that are so many intervals apart, if it is much longer than that.
    #[cold]
    fn add_pause(&mut self, frames: i64, ns: i64) {
        let more_ns = ns as f64 - frames as f64 * self.interval_ns;
        if self.last_but_one != NO_FRAME && more_ns > PAUSE * self.interval_ns {
            self.paused_ns = self.paused_ns.saturating_add(nearest(more_ns));
        }
    }

    #[cold]
    fn keep(&mut self, sample: Sample) {
        if self.samples.len() == SAMPLES_MAX {
            self.mask = self.mask << 1 | 1;
            self.samples.retain(|sample| spread(sample.index) & self.mask == 0);
        }
        self.samples.push(sample);
    }

    /// The median interval between frames that follow each other, and its standard error, ns, if most are near it.
    pub(crate) fn typical_ns(&self) -> Option<(f64, f64)> {
        let mut all = intervals(&self.samples);
        let median = Median::of(&mut all)?;
        let is_near = |ns: &&f64| (**ns - median.ns).abs() <= NEAR * median.ns;
        let is_regular = all.iter().filter(is_near).count() as f64 >= REGULAR * all.len() as f64;
        is_regular.then_some((median.ns, median.error_ns))
    }

    /// The mean interval, ns; `None` with fewer than two frames.
    pub(crate) fn mean_ns(&self) -> Option<f64> {
        let (first, (index, at_ns)) = (self.first?, self.last);
        mean_ns(first, (index.saturating_sub(self.lost_there), at_ns.saturating_add(self.back_ns)))
    }

    /// The change of the period that divides the stream best, if both of its parts have one. Stamps have this resolution. With
    /// numbers, losses do not lengthen the intervals.
    pub(crate) fn change(&self, resolution_ns: u64, by_numbers: bool) -> Option<Change> {
        let slopes = || {
            let pairs = self.samples.iter().zip(self.samples.iter().skip(1));
            pairs.map(|(a, b)| mean_ns((a.index, a.at_ns), (b.index, b.at_ns)).unwrap_or(0.0)).collect()
        };
        let mut values: Vec<f64> = if by_numbers { slopes() } else { intervals(&self.samples) };
        let border = best_border(&values)?;
        let (samples_before, samples_after) = self.samples.split_at_checked(border)?;
        let (before, after) = values.split_at_mut_checked(border)?;
        if before.len().min(after.len()) < SIDE_MIN {
            return None;
        }
        let (before, after) = (Median::of(before)?, Median::of(after)?);
        let difference_ns = after.ns - before.ns;
        let error_ns = ERRORS * (before.error_ns + after.error_ns);
        let coarse_ns = COARSE * resolution_ns as f64;
        if difference_ns.abs() <= error_ns.max(LEAST * before.ns).max(coarse_ns) {
            return None;
        }
        let agrees = |other_ns: f64, error_ns: f64| {
            (other_ns - difference_ns).abs() <= difference_ns.abs() / 4.0 + ERRORS * error_ns
        };
        // A talker that skips slots has the same usual interval.
        let usual_before = Median::of(&mut intervals(samples_before))?;
        let usual_after = Median::of(&mut intervals(samples_after))?;
        let near_ns = PLAIN_NEAR * usual_before.ns.min(usual_after.ns);
        let is_usual = is_plain(samples_before, usual_before, near_ns)
            && is_plain(samples_after, usual_after, near_ns)
            && agrees(usual_after.ns - usual_before.ns, usual_before.error_ns + usual_after.error_ns);
        // After a stall, frames catch up: their mean interval is the period.
        let (last, first) = (samples_before.last()?, samples_after.first()?);
        let border = (last.index, last.at_ns);
        let (from, to) = (self.first?, self.last);
        let mean_agrees = |paused_before_ns: i64, paused_after_ns: i64| {
            let before_ns = mean_ns(from, (border.0, border.1.saturating_sub(paused_before_ns)));
            let after_ns = mean_ns(border, (to.0, to.1.saturating_sub(paused_after_ns)));
            let difference_ns = before_ns.zip(after_ns).map(|(before_ns, after_ns)| after_ns - before_ns);
            difference_ns.is_some_and(|ns| agrees(ns, before.error_ns + after.error_ns))
        };
        // After a pause, a talker with another period does not catch up.
        let [frames_before, frames_after] = [border.0.saturating_sub(from.0), to.0.saturating_sub(border.0)];
        let [paused_before_ns, paused_after_ns] = [last.paused_ns, self.paused_ns.saturating_sub(last.paused_ns)];
        let (shorter, longer, frames, paused_ns) = if difference_ns < 0.0 {
            (after, before, frames_after, paused_after_ns)
        } else {
            (before, after, frames_before, paused_before_ns)
        };
        let caught_up = paused_ns > 0 && difference_ns.abs() * frames as f64 >= CAUGHT_UP * paused_ns as f64;
        let resumes = !caught_up && shorter.ns >= BURST * longer.ns;
        let is_mean = mean_agrees(0, 0) || resumes && mean_agrees(paused_before_ns, paused_after_ns);
        let change = Change { frame: first.frame, at_ns: first.at_ns, before_ns: before.ns, after_ns: after.ns };
        (is_usual && is_mean).then_some(change)
    }
}

fn intervals(samples: &[Sample]) -> Vec<f64> {
    samples.iter().map(|sample| sample.interval_ns).collect()
}

/// The number of values before the place that divides them best into two parts of different means.
fn best_border(values_ns: &[f64]) -> Option<usize> {
    let limit_ns = LONGEST * Median::of(&mut values_ns.to_vec())?.ns;
    let limited = || values_ns.iter().map(|ns| ns.min(limit_ns));
    let mean_ns = limited().sum::<f64>() / values_ns.len() as f64;
    // The sum of the differences from the mean is furthest from 0 where their sign changes.
    let mut sum_ns = 0.0;
    let off = limited().map(|ns| {
        sum_ns += ns - mean_ns;
        sum_ns.abs()
    });
    off.enumerate().max_by(|a, b| a.1.total_cmp(&b.1)).map(|(last_before, _)| last_before + 1)
}

/// True if most samples are near the median: losses and skipped slots make some longer by whole periods.
fn is_plain(samples: &[Sample], median: Median, near_ns: f64) -> bool {
    let is_near = |sample: &&Sample| (sample.interval_ns - median.ns).abs() <= near_ns;
    samples.iter().filter(is_near).count() as f64 >= PLAIN * samples.len() as f64
}

/// A median.
#[derive(Debug, Clone, Copy)]
struct Median {
    ns: f64,
    /// Its standard error. That of a normal distribution is 1.25 times that of the mean, and the standard deviation is 1.48
    /// median deviations.
    error_ns: f64,
}

impl Median {
    /// The median of these intervals; `None` if it is not positive.
    fn of(intervals_ns: &mut [f64]) -> Option<Self> {
        let ns = quantile(intervals_ns, 0.5).filter(|&ns| ns > 0.0)?;
        let mut off: Vec<f64> = intervals_ns.iter().map(|one| (one - ns).abs()).collect();
        let deviation_ns = quantile(&mut off, 0.5)?;
        Some(Self { ns, error_ns: 1.48 * 1.25 * deviation_ns / (off.len() as f64).sqrt() })
    }
}

/// The mean interval between two frames, each given by its index and time, ns.
fn mean_ns(from: (i64, i64), to: (i64, i64)) -> Option<f64> {
    (to.0 > from.0).then(|| to.1.saturating_sub(from.1) as f64 / to.0.saturating_sub(from.0) as f64)
}

#[inline]
fn spread(index: i64) -> u64 {
    index.cast_unsigned().wrapping_mul(SPREAD) >> 32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stream whose intervals are 1 ms for so many frames, and then `after_ns`; each 50th frame is lost.
    fn stream(frames: u64, changes_at: u64, after_ns: i64) -> Rates {
        let (mut rates, mut at_ns) = (Rates::new(1e6), 0);
        for n in 0..frames {
            // A scatter of a few microseconds.
            let scatter_ns = (n * 7919 % 5000).cast_signed();
            if n % 50 != 7 {
                rates.add(n, n.cast_signed(), at_ns + scatter_ns);
            }
            at_ns += if n < changes_at { 1_000_000 } else { after_ns };
        }
        rates
    }

    #[test]
    fn a_change_of_the_period_is_found_where_it_is() {
        for (frames, changes_at) in [(300, 100), (3_000, 2_000), (100_000, 10_000), (200_000, 190_000)] {
            for after_ns in [1_020_000, 1_300_000, 2_000_000, 500_000] {
                let found = stream(frames, changes_at, after_ns).change(1, true).expect("a change");
                let ns = |ns: f64, truth: i64| (ns / truth as f64 - 1.0).abs() < 0.005;
                assert!(ns(found.before_ns, 1_000_000) && ns(found.after_ns, after_ns), "{found:?}");
                assert!(found.frame.abs_diff(changes_at) <= frames / 300 + 60, "{found:?} of {changes_at}");
            }
        }
    }

    #[test]
    fn a_regular_stream_does_not_change() {
        assert_eq!(stream(50_000, 50_000, 1_000_000).change(1, true), None);
        assert_eq!(stream(50_000, 25_000, 1_001_000).change(1, true), None, "less than 1 %");
        assert_eq!(stream(50_000, 25_000, 1_300_000).change(200_000, true), None, "coarse stamps");
        assert_eq!(stream(20, 10, 2_000_000).change(1, true), None, "too short");
    }
}
