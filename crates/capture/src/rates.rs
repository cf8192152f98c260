//! Samples the intervals between frames, to find a talker that changes its period or sends frames between the regular ones.

use crate::fit::quantile;
use crate::track::SAME_PERIOD;

/// Number of samples that are kept: at most so many, and about half as many in a long stream.
const SAMPLES_MAX: usize = 1024;
/// 2^64 divided by the golden ratio: multiples of it are spread evenly (Knuth, The Art of Computer Programming, 6.4). Samples
/// at equal distances could all be at the same place of a pattern.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
/// Fewer samples on one side of a change show no period.
const SIDE_MIN: usize = 16;
/// Part of the samples that must be near the median in a regular stream.
const REGULAR: f64 = 0.6;
/// A sample is near the median within this part of it.
const NEAR: f64 = 0.1;
/// A longer interval than so many medians counts as that many, so that a pause does not hide a change.
const LONGEST: f64 = 4.0;
/// Medians of stamps that differ by at most so many of their resolution can be those of one period.
const COARSE: f64 = 2.0;

/// The interval before a frame, in a stream of which each frame follows the one before.
#[derive(Debug, Clone, Copy)]
struct Sample {
    frame: u64,
    index: i64,
    at_ns: i64,
    interval_ns: f64,
}

/// Samples of the intervals of a stream.
#[derive(Debug, Default)]
pub(crate) struct Rates {
    samples: Vec<Sample>,
    /// Frames are sampled if the spread index has none of these bits.
    mask: u64,
    /// Index and time of the first and the last frame.
    first: Option<(i64, i64)>,
    last: Option<(i64, i64)>,
    /// The sum of the times by which a frame was earlier than the one before, ns: the clock of the capture was set.
    back_ns: i64,
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
    #[inline]
    pub(crate) fn add(&mut self, frame: u64, index: i64, at_ns: i64) {
        let last = self.last.replace((index, at_ns));
        self.first = self.first.or(self.last);
        if let Some((_, last_ns)) = last.filter(|&(_, last_ns)| at_ns < last_ns) {
            self.back_ns = self.back_ns.saturating_add(last_ns.saturating_sub(at_ns));
        }
        if spread(index) & self.mask == 0
            && let Some((last_index, last_ns)) = last
            && index.wrapping_sub(last_index) == 1
        {
            self.keep(Sample { frame, index, at_ns, interval_ns: at_ns.saturating_sub(last_ns) as f64 });
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
        let median_ns = typical_ns(&self.samples, NEAR)?;
        let mut off: Vec<f64> = self.samples.iter().map(|sample| (sample.interval_ns - median_ns).abs()).collect();
        // Of a normal distribution: the standard deviation is 1.48 median deviations, and the standard error of a median
        // 1.25 times that of a mean.
        let error_ns = 1.48 * 1.25 * quantile(&mut off, 0.5)? / (self.samples.len() as f64).sqrt();
        Some((median_ns, error_ns))
    }

    /// The mean interval, ns; `None` with fewer than two frames.
    pub(crate) fn mean_ns(&self) -> Option<f64> {
        let (first, (index, at_ns)) = self.first.zip(self.last)?;
        mean_ns(first, (index, at_ns.saturating_add(self.back_ns)))
    }

    /// The change of the period that divides the stream best, if both of its parts are regular. Stamps have this resolution.
    pub(crate) fn change(&self, resolution_ns: u64) -> Option<Change> {
        let median_ns = median_ns(&self.samples)?;
        let limited = |sample: &Sample| sample.interval_ns.min(LONGEST * median_ns);
        let mean_ns = self.samples.iter().map(limited).sum::<f64>() / self.samples.len() as f64;
        // The sum of the differences from the mean is furthest from 0 where their sign changes.
        let mut sum = 0.0;
        let off = self.samples.iter().map(|sample| {
            sum += limited(sample) - mean_ns;
            sum.abs()
        });
        let (last_before, _) = off.enumerate().max_by(|a, b| a.1.total_cmp(&b.1))?;
        let (before, after) = self.samples.split_at_checked(last_before + 1)?;
        let first = after.first().filter(|_| before.len().min(after.len()) >= SIDE_MIN)?;
        let difference_ns = (self::median_ns(after)? - self::median_ns(before)?).abs();
        // After a stall, frames catch up: their mean interval is the period.
        let regular_ns = |samples: &[Sample], from: (i64, i64), to: (i64, i64)| {
            let median_ns = typical_ns(samples, difference_ns / 4.0 / self::median_ns(samples)?)?;
            let mean_ns = self::mean_ns(from, to)?;
            ((mean_ns - median_ns).abs() <= difference_ns / 4.0).then_some(median_ns)
        };
        let border = before.last().map(|sample| (sample.index, sample.at_ns))?;
        let (before_ns, after_ns) = (regular_ns(before, self.first?, border)?, regular_ns(after, border, self.last?)?);
        let differs = (after_ns / before_ns - 1.0).abs() > SAME_PERIOD && difference_ns > COARSE * resolution_ns as f64;
        differs.then_some(Change { frame: first.frame, at_ns: first.at_ns, before_ns, after_ns })
    }
}

/// The mean interval between two frames, of which index and time are given, ns.
fn mean_ns(from: (i64, i64), to: (i64, i64)) -> Option<f64> {
    (to.0 > from.0).then(|| to.1.saturating_sub(from.1) as f64 / to.0.saturating_sub(from.0) as f64)
}

#[inline]
fn spread(index: i64) -> u64 {
    index.cast_unsigned().wrapping_mul(SPREAD) >> 32
}

fn median_ns(samples: &[Sample]) -> Option<f64> {
    let mut all: Vec<f64> = samples.iter().map(|sample| sample.interval_ns).collect();
    quantile(&mut all, 0.5).filter(|&ns| ns > 0.0)
}

/// The median, if most samples are within this part of it.
fn typical_ns(samples: &[Sample], near: f64) -> Option<f64> {
    let median_ns = median_ns(samples)?;
    let is_near = |sample: &&Sample| (sample.interval_ns - median_ns).abs() <= near * median_ns;
    (samples.iter().filter(is_near).count() as f64 >= REGULAR * samples.len() as f64).then_some(median_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stream whose intervals are 1 ms for so many frames, and then `after_ns`; each 50th frame is lost.
    fn stream(frames: u64, changes_at: u64, after_ns: i64) -> Rates {
        let (mut rates, mut at_ns) = (Rates::default(), 0);
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
                let found = stream(frames, changes_at, after_ns).change(1).expect("a change");
                let ns = |ns: f64, truth: i64| (ns / truth as f64 - 1.0).abs() < 0.005;
                assert!(ns(found.before_ns, 1_000_000) && ns(found.after_ns, after_ns), "{found:?}");
                assert!(found.frame.abs_diff(changes_at) <= frames / 300 + 60, "{found:?} of {changes_at}");
            }
        }
    }

    #[test]
    fn a_regular_stream_does_not_change() {
        assert_eq!(stream(50_000, 50_000, 1_000_000).change(1), None);
        assert_eq!(stream(50_000, 25_000, 1_001_000).change(1), None, "less than 1 %");
        assert_eq!(stream(50_000, 25_000, 1_300_000).change(200_000), None, "coarse stamps");
        assert_eq!(stream(20, 10, 2_000_000).change(1), None, "too short");
    }
}
