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

#[cfg(test)]
mod tests {
    use super::*;

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
