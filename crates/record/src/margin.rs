//! Margins of presentation times, counted frame by frame.

use crate::{Histogram, MarkedFrame, PresentationMargin, WORST_KEPT};

/// The frames with the largest values, in descending order; at most [`WORST_KEPT`].
#[derive(Debug, Clone, Default)]
pub struct LargestFrames(Vec<MarkedFrame>);

impl LargestFrames {
    /// Adds a frame, and drops the one with the smallest value if there are too many.
    #[inline]
    pub fn add(&mut self, frame: u64, at_ns: i64, ns: i64) {
        if self.0.len() == WORST_KEPT && self.0.last().is_some_and(|last| last.ns >= ns) {
            return;
        }
        let position = self.0.partition_point(|known| known.ns >= ns);
        self.0.insert(position, MarkedFrame { frame, at_ns, ns });
        self.0.truncate(WORST_KEPT);
    }

    /// The frames.
    #[must_use]
    pub fn as_slice(&self) -> &[MarkedFrame] {
        &self.0
    }

    /// The frames.
    #[must_use]
    pub fn into_vec(self) -> Vec<MarkedFrame> {
        self.0
    }
}

/// The margins of the frames of a stream so far.
#[derive(Debug, Clone, Default)]
pub struct MarginTally {
    range_ns: Option<(i64, i64)>,
    sum_ns: i128,
    margins: Histogram,
    late: u64,
    latest: LargestFrames,
}

impl MarginTally {
    /// Adds the margin of a frame that came `at_ns` after the first one. A frame with a negative margin is late, unless its
    /// timestamps are no times to play.
    #[inline]
    pub fn add(&mut self, frame: u64, at_ns: i64, margin_ns: i64, is_played: bool) {
        let (smallest_ns, largest_ns) = self.range_ns.unwrap_or((margin_ns, margin_ns));
        self.range_ns = Some((smallest_ns.min(margin_ns), largest_ns.max(margin_ns)));
        self.sum_ns += i128::from(margin_ns);
        self.margins.record(margin_ns);
        if margin_ns < 0 && is_played {
            self.late += 1;
            self.latest.add(frame, at_ns, margin_ns.saturating_neg());
        }
    }

    /// The margins; `None` without a frame.
    #[must_use]
    pub fn to_record(&self) -> Option<PresentationMargin> {
        let (min_ns, max_ns) = self.range_ns?;
        let as_margin = |marked: &MarkedFrame| MarkedFrame { ns: marked.ns.saturating_neg(), ..marked.clone() };
        Some(PresentationMargin {
            min_ns,
            mean_ns: self.sum_ns as f64 / self.margins.total() as f64,
            // A bucket of the histogram is wider than a margin.
            median_ns: self.margins.percentile(50.0).map(|ns| ns.clamp(min_ns, max_ns)),
            max_ns,
            late: self.late,
            worst: self.latest.as_slice().iter().map(as_margin).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_between_the_extremes() {
        let mut margins = MarginTally::default();
        for (frame, margin_ns) in [(1, -1_654_000_001), (2, -1_654_000_000), (3, -1_653_999_999)] {
            margins.add(frame, 0, margin_ns, true);
        }
        let margin = margins.to_record().unwrap();
        assert!((margin.min_ns..=margin.max_ns).contains(&margin.median_ns.unwrap()), "{margin:?}");
    }

    #[test]
    fn the_latest_frames_come_first() {
        let mut tally = MarginTally::default();
        assert_eq!(tally.to_record(), None);
        for frame in 1..=30 {
            tally.add(frame, 0, 5 - i64::try_from(frame).unwrap(), true);
        }
        let margin = tally.to_record().unwrap();
        assert_eq!((margin.min_ns, margin.max_ns, margin.late, margin.mean_ns), (-25, 4, 25, -10.5));
        assert_eq!(margin.median_ns, Some(-11), "15 of 30 are not above it");
        let worst: Vec<_> = margin.worst.iter().map(|marked| (marked.frame, marked.ns)).collect();
        assert_eq!((worst.len(), worst[0], worst[19]), (WORST_KEPT, (30, -25), (11, -6)));
    }

    #[test]
    fn timestamps_that_are_not_played_are_never_late() {
        let mut tally = MarginTally::default();
        tally.add(1, 0, -7, false);
        let margin = tally.to_record().unwrap();
        assert_eq!((margin.min_ns, margin.late, margin.worst), (-7, 0, Vec::new()));
    }
}
