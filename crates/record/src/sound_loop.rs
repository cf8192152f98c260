//! The true round trip of a sound card, found through a cable from its output to its input.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Extra;

/// What was found.
///
/// A noise is played, and looked for in what comes in: from the frame at which it was written to the one at which it came in.
/// What the buffers alone take stands beside it; what is more is converters, buffers that the card tells nobody about, and
/// the cable. It resolves one sample.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct SoundLoop {
    /// What was captured from: `hw:CARD,DEVICE`, or a server's name.
    pub capture: String,
    /// What was played on.
    pub playback: String,
    /// How it was set, in words: periods, frames, sample format where one was chosen.
    pub setup: String,
    /// Sample rate, Hz.
    pub rate_hz: u32,
    /// What the buffers take, samples.
    pub computed_samples: u64,
    /// The round trip, samples: the median of the rounds that found one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round_trip_samples: Option<u64>,
    /// The shortest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least_samples: Option<u64>,
    /// The longest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most_samples: Option<u64>,
    /// The round trip less what the buffers take, samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub difference_samples: Option<i64>,
    /// The rounds in their order.
    pub rounds: Vec<LoopRound>,
    /// How often the card ran over us: rounds are not to be trusted then.
    pub xruns: u64,
    /// Fields that a newer version wrote.
    #[serde(flatten)]
    pub extra: Extra,
}

/// One round: what of the noise came back. Empty where nothing resembled it clearly.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct LoopRound {
    /// How long it was under way, samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samples: Option<u64>,
    /// Its level: 1 for the one that was played, negative where a wire is crossed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gain: Option<f64>,
    /// How many times larger its likeness is than all else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clarity: Option<f64>,
}

impl SoundLoop {
    /// With the figures that the rounds make.
    #[must_use]
    pub fn summed(self) -> Self {
        let mut found: Vec<u64> = self.rounds.iter().filter_map(|round| round.samples).collect();
        found.sort_unstable();
        let median = found.get(found.len() / 2).copied();
        Self {
            round_trip_samples: median,
            least_samples: found.first().copied(),
            most_samples: found.last().copied(),
            difference_samples: median.map(|samples| samples as i64 - self.computed_samples as i64),
            ..self
        }
    }

    /// Whether every round found the noise, and the card never ran over us.
    #[must_use]
    pub fn is_clear(&self) -> bool {
        !self.rounds.is_empty() && self.rounds.iter().all(|round| round.samples.is_some()) && self.xruns == 0
    }

    /// So many samples, ms.
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
        SoundLoop { computed_samples: 128, rounds, xruns, ..SoundLoop::default() }.summed()
    }

    #[test]
    fn the_round_trip_is_the_median_of_what_was_found() {
        let told = sound_loop(&[Some(512), None, Some(524), Some(513)], 0);
        assert_eq!((told.round_trip_samples, told.difference_samples), (Some(513), Some(385)));
        assert_eq!((told.least_samples, told.most_samples), (Some(512), Some(524)));
        assert!(!told.is_clear() && sound_loop(&[Some(512)], 0).is_clear());
    }

    #[test]
    fn without_a_signal_or_with_xruns_nothing_is_claimed() {
        let silent = sound_loop(&[None, None], 0);
        assert_eq!((silent.round_trip_samples, silent.difference_samples), (None, None));
        assert!(!silent.is_clear() && !sound_loop(&[Some(512)], 3).is_clear() && !sound_loop(&[], 0).is_clear());
    }
}
