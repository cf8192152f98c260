//! Figures of a thread that never sleeps, in addition to its gaps.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Extra;

/// Name of the noise probe, and role of its threads.
pub const NOISE: &str = "noise";

/// The figures of a noise probe. In its series `raw` contains the lengths of gaps.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Noise {
    /// Time that the thread runs in each period, ns. It sleeps for the rest of the period, which is not observed.
    pub runtime_ns: u64,
    /// The counter that it reads: `tsc`, `cntvct`, or `clock` for CLOCK_MONOTONIC.
    pub counter: String,
    /// Two readings further apart than this are a gap, ns.
    pub threshold_ns: u64,
    /// Observed time including gaps, ns.
    pub observed_ns: u64,
    /// The longest time from the planned begin of a period to the first reading, ns: the delay of its wake-up, which is not
    /// observed. Absent in records of version 0.1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latest_start_ns: Option<u64>,
    /// Time lost in gaps, ns, without the usual time of one reading per gap.
    pub lost_ns: u64,
    /// Readings of the counter.
    pub iterations: u64,
    /// Kept spikes that hit all measured CPUs at once, caused by firmware or a hypervisor. Absent with a single CPU,
    /// and without the kernel trace, which distinguishes them from work that all CPUs do at the same time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strikes_of_all: Option<u64>,
    /// Fields that a newer version wrote.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Noise {
    /// The lost share of the observed time, 0 to 1; `None` if nothing was observed.
    #[must_use]
    pub fn lost_share(&self) -> Option<f64> {
        (self.observed_ns > 0).then(|| self.lost_ns as f64 / self.observed_ns as f64)
    }

    /// Mean time between two readings without the gaps, ns; `None` without readings.
    #[must_use]
    pub fn iteration_ns(&self) -> Option<f64> {
        let looping_ns = self.observed_ns.saturating_sub(self.lost_ns);
        (self.iterations > 0).then(|| looping_ns as f64 / self.iterations as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn computes_shares_of_the_observed_time() {
        let noise = Noise { observed_ns: 1000, lost_ns: 20, iterations: 49, ..Noise::default() };
        assert_eq!((noise.lost_share(), noise.iteration_ns()), (Some(0.02), Some(20.0)));
        assert_eq!((Noise::default().lost_share(), Noise::default().iteration_ns()), (None, None));
    }
}
