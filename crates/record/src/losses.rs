//! Missing results over time, in bounded memory.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Maximum number of windows: one hour of seconds. Before there are more, windows are merged in pairs.
const WINDOWS_KEPT: u64 = 3600;

/// The number of missing results in each window of the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Losses {
    /// Length of a window, ns: 1 s, doubled whenever the run has more than 3600 windows.
    pub window_ns: u64,
    /// The windows that contain missing results, in order: the number of the window, from 0 at the first deadline, and the
    /// number of results that are missing in it.
    pub counts: Vec<(u64, u64)>,
}

impl Default for Losses {
    fn default() -> Self {
        Self { window_ns: 1_000_000_000, counts: Vec::new() }
    }
}

impl Losses {
    /// Adds `count` results that are missing `at_ns` after the first deadline. The times can come in any order.
    pub fn add(&mut self, at_ns: u64, count: u64) {
        if count == 0 {
            return;
        }
        while self.window_ns.checked_mul(WINDOWS_KEPT).is_some_and(|kept_ns| at_ns >= kept_ns) {
            self.counts =
                std::mem::take(&mut self.counts).into_iter().fold(Vec::new(), |mut merged, (window, count)| {
                    add_to(&mut merged, window / 2, count);
                    merged
                });
            self.window_ns *= 2;
        }
        add_to(&mut self.counts, at_ns / self.window_ns, count);
    }

    /// Adds `count` consecutive results, `period_ns` apart. The last one is missing `last_ns` after the first deadline. Results
    /// before the first deadline count as at it.
    pub fn add_run(&mut self, last_ns: u64, count: u64, period_ns: u64) {
        let period_ns = period_ns.max(1);
        let (mut last_ns, mut left) = (last_ns, count);
        while left > 0 {
            let is_first_window = last_ns < self.window_ns;
            let in_window = if is_first_window { left } else { left.min(last_ns % self.window_ns / period_ns + 1) };
            self.add(last_ns, in_window);
            left -= in_window;
            last_ns = last_ns.saturating_sub(in_window.saturating_mul(period_ns));
        }
    }

    /// The number of missing results whose time is known.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.counts.iter().fold(0, |sum: u64, (_, count)| sum.saturating_add(*count))
    }

    /// True if no time of a missing result is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }
}

/// Adds a count to its window.
fn add_to(counts: &mut Vec<(u64, u64)>, window: u64, count: u64) {
    let place = counts.partition_point(|(known, _)| *known < window);
    match counts.get_mut(place) {
        Some((known, of_window)) if *known == window => *of_window = of_window.saturating_add(count),
        _ => counts.insert(place, (window, count)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    #[test]
    fn a_long_run_merges_its_windows() {
        let mut losses = Losses::default();
        [0, 1, 3_599, 5].into_iter().for_each(|second| losses.add(second * SECOND_NS, 2));
        assert_eq!((losses.window_ns, &losses.counts[..]), (SECOND_NS, &[(0, 2), (1, 2), (5, 2), (3_599, 2)][..]));
        losses.add(9_999 * SECOND_NS, 3);
        losses.add(9_999 * SECOND_NS, 0);
        assert_eq!((losses.window_ns, losses.total()), (4 * SECOND_NS, 11));
        assert_eq!(losses.counts, [(0, 4), (1, 2), (899, 2), (2_499, 3)]);
    }

    #[test]
    fn a_run_is_in_each_window_that_it_passed_through() {
        let run = |last_ms: u64, count, period_ms: u64| {
            let mut losses = Losses::default();
            losses.add_run(last_ms * 1_000_000, count, period_ms * 1_000_000);
            losses.counts
        };
        assert_eq!(run(2_010, 5, 10), [(1, 3), (2, 2)]);
        assert_eq!(run(2_010, 300, 10), [(0, 198), (1, 100), (2, 2)]);
        assert_eq!(run(6_000, 3, 2_500), [(1, 1), (3, 1), (6, 1)]);
        assert_eq!(run(6_000, 9, 2_500), [(0, 6), (1, 1), (3, 1), (6, 1)], "those before the begin count as at it");
        assert_eq!((run(5, 7, 0), run(5, 0, 1)), (vec![(0, 7)], Vec::new()));
    }
}
