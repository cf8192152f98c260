//! Audio played in periods: how long after its deadline each was done, and which of them came too late for the card.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Extra, Times};

/// Role of the series of an audio thread.
pub const AUDIO: &str = "audio";
/// What paces audio where no card does.
pub const CLOCK: &str = "clock";

/// The rest of a series of the audio probe. Its wake-ups are those of a thread that a card wakes once a period, when the
/// period's samples are captured; its spikes are periods, and their lateness is their completion.
///
/// A card with `n` periods holds `n` of them for playback when it starts, and plays one in each. So what is made of the
/// period that is captured at deadline `k` must be written before deadline `k + n - 1`, when the card has played all that it
/// holds: a period that is done then or later is an **xrun**. The card is started anew after it, with the next deadline; the
/// periods whose deadlines have passed by then are lost. The same instant is the last one at which the captured period is
/// overwritten, so capture asks for nothing more.
///
/// Where a card paces the thread, a period is an xrun when the kernel found that card stopped before the period was handed
/// over, whatever its completion.
///
/// Each period is in exactly one of three: done in time, an xrun, or lost.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Audio {
    /// Sample rate, Hz.
    pub rate_hz: u32,
    /// Samples of a period. A period takes exactly `frames / rate_hz` seconds; the series' `period_ns` is that, rounded down.
    pub frames: u32,
    /// Periods that the card holds, 2 or more.
    pub periods: u32,
    /// What sets the deadlines: `clock`, or the name of a sound card.
    pub pacer: String,
    /// The card that does; absent for the clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card: Option<SoundCard>,
    /// The model that was played: its file, or `builtin:` and a name.
    pub model: String,
    /// The cabinet's file; empty without one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cab: String,
    /// The preset's file; empty without one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub preset: String,
    /// A completion from which a period is an xrun, ns, rounded up: `periods - 1` periods.
    pub limit_ns: u64,
    /// Periods that were played, in time or not.
    pub played: u64,
    /// Of them, those that were done too late for the card.
    pub xruns: u64,
    /// Periods that were not played, because they passed before the card was started anew.
    pub lost: u64,
    /// Of the periods played, those whose output was silent: a chain that is muted costs less than one that plays.
    #[serde(default)]
    pub silent: u64,
    /// What processing took, from when its thread turned to a period to when it was done; absent before the first period.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dsp: Option<Times>,
    /// When periods were done, from their deadlines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion: Option<Times>,
    /// Fields that a newer version wrote.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A sound card that sets the deadlines. Period `k` since its start is due when the card had captured `k + 1` of them, as the
/// stamps of its hardware pointer tell: each stamp says when frame 0 was captured; the earliest of these counts, and moves
/// towards later ones by at most a thousandth of the time that passes.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct SoundCard {
    /// What it was captured from: `hw:CARD,DEVICE`.
    pub capture: String,
    /// What it was played on.
    pub playback: String,
    /// How its samples look: `S32`.
    pub format: String,
    /// The format that was asked for; absent where the most exact was taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_format: Option<String>,
    /// The input that was read, counted from 1; absent where nothing tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<u32>,
    /// Whether the kernel starts and stops both directions in one call.
    pub linked: bool,
    /// How much faster than its sample rate it ran by the monotonic clock, ppm, by least squares over all stamps; absent
    /// before there were enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_ppm: Option<f64>,
    /// Standard error of that, ppm, as far as stamps are late independently of each other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_error_ppm: Option<f64>,
}

/// The search for the smallest buffer that holds: each phase of the run is a size that was tried.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct BufferSearch {
    /// The sizes that it was to choose among, frames, rising.
    pub candidates: Vec<u32>,
    /// The smallest that was tried and had no xrun, frames; absent where none had none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<u32>,
    /// The largest below it that was tried and had some, or of all; absent where none had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<u32>,
    /// The part of its periods that was mostly at fault then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<Part>,
    /// The main culprit of most of these; empty where nobody looked.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub culprit: String,
}

/// One period. What it waited and what processing took add up to its completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Played {
    /// From its deadline to when the thread turned to it, ns: the thread woke late, or was at the period before.
    pub wait_ns: i64,
    /// What processing took, ns.
    pub dsp_ns: i64,
    /// Whether it was an xrun.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub xrun: bool,
}

/// The part of a period that made it too late.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Its thread came late to it.
    Wake,
    /// Processing took too long.
    Dsp,
    /// Both.
    Both,
}

impl Played {
    /// When it was done, ns after its deadline.
    #[must_use]
    pub fn completion_ns(&self) -> i64 {
        self.wait_ns + self.dsp_ns
    }
}

impl Audio {
    /// Periods that were due, played or not.
    #[must_use]
    pub fn due(&self) -> u64 {
        self.played + self.lost
    }

    /// From a sample's way in to its way out, ns, without what converters take: the periods that the card holds.
    #[must_use]
    pub fn latency_ns(&self) -> u64 {
        u64::from(self.frames) * u64::from(self.periods) * 1_000_000_000 / u64::from(self.rate_hz.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latency_is_all_that_the_card_holds() {
        let audio = Audio { rate_hz: 48_000, frames: 64, periods: 3, played: 10, lost: 2, ..Audio::default() };
        assert_eq!((audio.latency_ns(), audio.due()), (4_000_000, 12));
        assert_eq!(Audio::default().latency_ns(), 0, "of a file that somebody else wrote");
        assert_eq!(Played { wait_ns: -20, dsp_ns: 70, xrun: false }.completion_ns(), 50);
    }
}
