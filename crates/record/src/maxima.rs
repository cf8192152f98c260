//! Largest values over time, in bounded memory.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Maximum number of windows: one hour of seconds. Before there are more, windows are merged in pairs.
const WINDOWS_KEPT: usize = 3600;

/// Largest lateness in each window of the run, in order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Maxima {
    /// Length of a window, ns: 1 s, doubled whenever the run has more than 3600 windows.
    pub window_ns: u64,
    /// Largest lateness of each window, ns; `null` if no wake-up was in it.
    pub max_ns: Vec<Option<i64>>,
}

impl Default for Maxima {
    fn default() -> Self {
        Self { window_ns: 1_000_000_000, max_ns: Vec::new() }
    }
}

impl Maxima {
    /// Adds a lateness measured `at_ns` after the first deadline.
    pub fn add(&mut self, at_ns: u64, lateness_ns: i64) {
        while self.window_ns.checked_mul(WINDOWS_KEPT as u64).is_some_and(|kept_ns| at_ns >= kept_ns) {
            self.max_ns = self.max_ns.chunks(2).map(|pair| pair.iter().copied().flatten().max()).collect();
            self.window_ns *= 2;
        }
        #[expect(clippy::cast_possible_truncation, reason = "below WINDOWS_KEPT")]
        let window = (at_ns / self.window_ns) as usize;
        if window >= self.max_ns.len() {
            self.max_ns.resize(window + 1, None);
        }
        self.max_ns[window] = self.max_ns[window].max(Some(lateness_ns));
    }
}

impl Maxima {
    /// Adds those of another run or thread that began at the same time. Windows of different lengths are as long as the longer
    /// ones then.
    pub fn merge(&mut self, other: &Self) {
        let window_ns = self.window_ns.max(other.window_ns).max(1);
        let with_window = |of: &Self| {
            let together = usize::try_from(window_ns / of.window_ns.max(1)).unwrap_or(usize::MAX).max(1);
            of.max_ns.chunks(together).map(|windows| windows.iter().copied().flatten().max()).collect::<Vec<_>>()
        };
        let (mut merged, others) = (with_window(self), with_window(other));
        merged.resize(merged.len().max(others.len()), None);
        merged.iter_mut().zip(others).for_each(|(max_ns, other)| *max_ns = (*max_ns).max(other));
        *self = Self { window_ns, max_ns: merged };
    }

    /// True if it contains no value.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.max_ns.iter().all(Option::is_none)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_merge_by_their_windows() {
        let of = |window_ns, max_ns: &[Option<i64>]| Maxima { window_ns, max_ns: max_ns.to_vec() };
        let mut merged = of(1, &[Some(3), None, Some(7)]);
        merged.merge(&of(1, &[Some(5), None]));
        assert_eq!(merged, of(1, &[Some(5), None, Some(7)]));
        merged.merge(&of(2, &[None, None, Some(1)]));
        assert_eq!(merged, of(2, &[Some(5), Some(7), Some(1)]));
        assert!(!merged.is_empty() && of(4, &[None]).is_empty());
    }

    #[test]
    fn a_long_run_merges_its_windows() {
        let mut maxima = Maxima::default();
        for second in 0..10_000_u64 {
            maxima.add(second * 1_000_000_000, if second == 5_001 { 777 } else { 5 });
        }
        assert_eq!(maxima.window_ns, 4_000_000_000);
        assert_eq!(maxima.max_ns.len(), 2500);
        assert_eq!(maxima.max_ns.iter().position(|&max| max == Some(777)), Some(1250));
    }

    #[test]
    fn a_window_without_a_wake_up_stays_empty() {
        let mut maxima = Maxima::default();
        maxima.add(0, 3);
        maxima.add(2_500_000_000, -4);
        assert_eq!(maxima.max_ns, [Some(3), None, Some(-4)]);
    }
}
