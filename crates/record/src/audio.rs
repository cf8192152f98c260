//! Audio processed in periods: completion times, xruns and lost periods.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Extra, Times};

/// Role of the series of an audio thread.
pub const AUDIO: &str = "audio";
/// Pacer of audio without a sound card.
pub const CLOCK: &str = "clock";

/// The figures of an audio thread. The wake-ups of its series are those of a thread that a sound card wakes once per
/// period, when the period's samples have been captured. Its spikes are periods, and their lateness is their
/// completion.
///
/// A card with `n` periods starts with `n` periods of silence for playback and plays one per period. The output for the
/// period captured at deadline `k` must therefore be written before deadline `k + n - 1`, when the card has played all
/// it had: a period completed then or later is an **xrun**. After an xrun the card restarts at the next deadline;
/// periods whose deadlines passed until then are lost. The captured period is overwritten at the same instant, so
/// capture has no earlier limit.
///
/// If a sound card paces the thread, a period is an xrun if the kernel reported the card as stopped before the period
/// was written, whatever its completion.
///
/// Each period is counted once: in time, as an xrun, or as lost.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Audio {
    /// Sample rate, Hz.
    pub rate_hz: u32,
    /// Samples per period. A period takes exactly `frames / rate_hz` seconds; `period_ns` of the series is that value
    /// rounded down.
    pub frames: u32,
    /// Periods in the card's buffer, 2 or more.
    pub periods: u32,
    /// Source of the deadlines: `clock`, or the name of a sound card.
    pub pacer: String,
    /// The sound card that sets the deadlines; absent for the clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card: Option<SoundCard>,
    /// The played model: its file name, or `builtin:` and a name.
    pub model: String,
    /// File name of the cabinet's impulse response; empty without one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cab: String,
    /// File name of the preset; empty without one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub preset: String,
    /// Smallest completion that makes a period an xrun, ns: `periods - 1` periods, rounded up.
    pub limit_ns: u64,
    /// Processed periods, in time or not.
    pub played: u64,
    /// Processed periods that were completed too late for the card.
    pub xruns: u64,
    /// Lost periods: their deadlines passed before the card was restarted.
    pub lost: u64,
    /// Processed periods with silent output. A muted chain needs less time than one that plays.
    #[serde(default)]
    pub silent: u64,
    /// Processing times, from the start of processing of a period to its end; absent before the first period.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dsp: Option<Times>,
    /// Completion times, from the deadline of a period to the end of its processing; absent before the first period.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion: Option<Times>,
    /// Fields that a newer version wrote.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A sound card that sets the deadlines. Period `k` since its start is due when the card has captured `k + 1` periods
/// according to the timestamps of its hardware pointer. From each stamp follows the time of frame 0; the earliest one
/// counts, and it may move later by at most a thousandth of the elapsed time.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct SoundCard {
    /// Capture device: `hw:CARD,DEVICE`.
    pub capture: String,
    /// Playback device.
    pub playback: String,
    /// Sample format: `S32`.
    pub format: String,
    /// The requested sample format; absent if the most precise one was chosen automatically.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_format: Option<String>,
    /// The input channel that was read, counted from 1; absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<u32>,
    /// True if the kernel starts and stops both directions with one call.
    pub linked: bool,
    /// Deviation of the card's rate from its sample rate by the monotonic clock, ppm, positive if the card is faster,
    /// by least squares over all timestamps; absent with too few of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_ppm: Option<f64>,
    /// Standard error of `rate_ppm`, ppm, if the delays of the timestamps are independent; absent with too few of
    /// them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_error_ppm: Option<f64>,
}

/// The search for the smallest buffer without xruns. Each phase of the run is one buffer size.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct BufferSearch {
    /// The sizes to choose from, frames, ascending.
    pub candidates: Vec<u32>,
    /// The smallest tested size without xruns, frames; absent if all had some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<u32>,
    /// The largest tested size below `held` that had xruns, or the largest of all if none held, frames; absent if none
    /// had any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<u32>,
    /// The part that caused most of the late periods at size `failed`; absent without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<Part>,
    /// The most frequent main culprit of these periods; empty if spikes were not analysed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub culprit: String,
}

/// The times of one period. Waiting and processing add up to its completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Played {
    /// From the deadline to the start of processing, ns: the thread woke late or was still processing the period
    /// before.
    pub wait_ns: i64,
    /// Processing time, ns.
    pub dsp_ns: i64,
    /// True if the period was an xrun.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub xrun: bool,
}

/// The part of a late period that caused its lateness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Processing started late.
    Wake,
    /// Processing took too long.
    Dsp,
    /// Both together.
    Both,
}

impl Played {
    /// Completion, ns after the deadline.
    #[must_use]
    pub fn completion_ns(&self) -> i64 {
        self.wait_ns + self.dsp_ns
    }
}

impl Audio {
    /// Periods that were due, processed or lost.
    #[must_use]
    pub fn due(&self) -> u64 {
        self.played + self.lost
    }

    /// Latency of a sample from input to output, ns, without the converters: the length of the card's buffer.
    #[must_use]
    pub fn latency_ns(&self) -> u64 {
        u64::from(self.frames) * u64::from(self.periods) * 1_000_000_000 / u64::from(self.rate_hz.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latency_is_the_length_of_the_buffer() {
        let audio = Audio { rate_hz: 48_000, frames: 64, periods: 3, played: 10, lost: 2, ..Audio::default() };
        assert_eq!((audio.latency_ns(), audio.due()), (4_000_000, 12));
        assert_eq!(Audio::default().latency_ns(), 0, "a foreign file may have a rate of 0");
        assert_eq!(Played { wait_ns: -20, dsp_ns: 70, xrun: false }.completion_ns(), 50);
    }
}
