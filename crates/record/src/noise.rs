//! What a thread that never slept saw besides its gaps.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Extra;

/// The rest of a series of the noise probe, whose `raw` are the lengths of gaps.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Noise {
    /// How long it looked in each period, ns; the rest of the period it slept, which is not observed.
    pub runtime_ns: u64,
    /// What it looked at: `tsc`, `cntvct`, or `clock` for CLOCK_MONOTONIC.
    pub counter: String,
    /// Two readings further apart than this are a gap, ns.
    pub threshold_ns: u64,
    /// Time in which it looked, gaps included, ns.
    pub observed_ns: u64,
    /// Time lost in gaps, each without what one reading takes, ns.
    pub lost_ns: u64,
    /// Readings of the counter.
    pub iterations: u64,
    /// Of the spikes that are kept, those that struck all measured CPUs at once: firmware or hypervisor. Absent where the
    /// kernel's trace did not tell them from what all CPUs do at the same time, and with one CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strikes_of_all: Option<u64>,
    /// Fields that a newer version wrote.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Noise {
    /// The part of the observed time that was lost, 0 to 1; `None` where nothing was observed.
    #[must_use]
    pub fn lost_share(&self) -> Option<f64> {
        (self.observed_ns > 0).then(|| self.lost_ns as f64 / self.observed_ns as f64)
    }

    /// Time between two readings without the gaps, ns; `None` where nothing was read.
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
    fn shares_are_of_what_was_observed() {
        let noise = Noise { observed_ns: 1000, lost_ns: 20, iterations: 49, ..Noise::default() };
        assert_eq!((noise.lost_share(), noise.iteration_ns()), (Some(0.02), Some(20.0)));
        assert_eq!((Noise::default().lost_share(), Noise::default().iteration_ns()), (None, None));
    }
}
