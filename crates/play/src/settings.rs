//! Settings of the audio thread.

use sys::{pcm::StreamConfig, sched::Policy};

/// Settings of the audio thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Settings of the card.
    pub card: StreamConfig,
    /// Input channel to play, from 0.
    pub input: u32,
    /// CPU to run on; any if `None`.
    pub cpu: Option<u32>,
    /// Scheduling policy.
    pub policy: Policy,
}

impl Settings {
    /// Length of a period, ns.
    #[must_use]
    pub fn period_ns(&self) -> u64 {
        u64::from(self.card.period_frames) * 1_000_000_000 / u64::from(self.card.rate_hz.max(1))
    }
}
