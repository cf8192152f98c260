//! The real round-trip latency of a sound card, measured with a cable from its output to its input.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Extra;

/// Result of the measurement.
///
/// A noise signal is played and then found in the captured signal. The round trip is the time from the frame at which
/// it was written to the frame at which it was captured, with a resolution of one sample. What exceeds the latency of
/// the buffers comes from the converters, buffers that the card does not report, and the cable.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct SoundLoop {
    /// Capture device: `hw:CARD,DEVICE`, or the name of a server.
    pub capture: String,
    /// Playback device.
    pub playback: String,
    /// Buffer settings in words: periods, frames and, if it was chosen, the sample format.
    pub setup: String,
    /// Sample rate, Hz.
    pub rate_hz: u32,
    /// Latency of the buffers, samples.
    pub computed_samples: u64,
    /// Measured round trip, samples: the median of the successful rounds; absent if no round succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round_trip_samples: Option<u64>,
    /// Shortest round trip, samples; absent if no round succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least_samples: Option<u64>,
    /// Longest round trip, samples; absent if no round succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most_samples: Option<u64>,
    /// Measured round trip minus the latency of the buffers, samples; absent if no round succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub difference_samples: Option<i64>,
    /// The rounds in order.
    pub rounds: Vec<LoopRound>,
    /// Number of xruns. Rounds are unreliable unless this is 0.
    pub xruns: u64,
    /// Fields that a newer version wrote.
    #[serde(flatten)]
    pub extra: Extra,
}

/// One round. All fields are absent if the noise was not found clearly.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct LoopRound {
    /// Round trip, samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samples: Option<u64>,
    /// Gain: 1 for the level that was played, negative if the polarity is inverted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gain: Option<f64>,
    /// Ratio of the correlation peak to the highest correlation elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clarity: Option<f64>,
}

impl SoundLoop {
    /// Computes the summary fields from the rounds.
    #[must_use]
    pub fn summarized(self) -> Self {
        let mut found: Vec<u64> = self.rounds.iter().filter_map(|round| round.samples).collect();
        found.sort_unstable();
        let median = found.get(found.len() / 2).copied();
        Self {
            round_trip_samples: median,
            least_samples: found.first().copied(),
            most_samples: found.last().copied(),
            difference_samples: median.map(|samples| samples.cast_signed() - self.computed_samples.cast_signed()),
            ..self
        }
    }

    /// True if every round found the noise and there were no xruns.
    #[must_use]
    pub fn is_clear(&self) -> bool {
        !self.rounds.is_empty() && self.rounds.iter().all(|round| round.samples.is_some()) && self.xruns == 0
    }

    /// Converts samples to ms.
    #[must_use]
    pub fn ms(&self, samples: f64) -> f64 {
        samples / f64::from(self.rate_hz.max(1)) * 1e3
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sound_loop(found: &[Option<u64>], xruns: u64) -> SoundLoop {
        let rounds = found.iter().map(|&samples| LoopRound { samples, ..LoopRound::default() }).collect();
        SoundLoop { computed_samples: 128, rounds, xruns, ..SoundLoop::default() }.summarized()
    }

    #[test]
    fn the_round_trip_is_the_median_of_the_successful_rounds() {
        let result = sound_loop(&[Some(512), None, Some(524), Some(513)], 0);
        assert_eq!((result.round_trip_samples, result.difference_samples), (Some(513), Some(385)));
        assert_eq!((result.least_samples, result.most_samples), (Some(512), Some(524)));
        assert!(!result.is_clear() && sound_loop(&[Some(512)], 0).is_clear());
    }

    #[test]
    fn is_not_clear_without_a_signal_or_with_xruns() {
        let silent = sound_loop(&[None, None], 0);
        assert_eq!((silent.round_trip_samples, silent.difference_samples), (None, None));
        assert!(!silent.is_clear() && !sound_loop(&[Some(512)], 3).is_clear() && !sound_loop(&[], 0).is_clear());
    }
}
