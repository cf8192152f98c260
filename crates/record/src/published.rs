//! Figures that were published elsewhere: not measured by punctual, and never judged as if they were.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Extra, Histogram};

/// The source of a record whose figures were published elsewhere, and the figures.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Published {
    /// Name that it is found by: `vim3l-evl`.
    pub name: String,
    /// Title of the write-up.
    pub title: String,
    /// Who wrote it; empty where the write-up does not say, as the next three.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub author: String,
    /// Where it was published: a forum, a conference.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub place: String,
    /// Its address.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub url: String,
    /// When it was published, `2018-10-25`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub date: String,
    /// The machine in a few words: `Khadas VIM3L with the EVL core`.
    pub on: String,
    /// Its figures.
    pub figures: Vec<Figures>,
    /// What else it says that bears on the figures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
    /// Fields that a newer version wrote.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The figures of one measurement. What is not known is absent, never guessed; texts are empty where it is not.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Figures {
    /// What was measured, by the name of the probe that measures it: `timer`, `threads`, `udp`, `interrupt`, `stream`.
    pub probe: String,
    /// Short name of what ran beside it, unique with probe, role and placement: `idle`, `switch-200us`.
    pub phase: String,
    /// What ran beside it, in the source's words.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub said: String,
    /// The nearest loads of ours, as `punctual loads` names them; empty for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loads: Option<Vec<String>>,
    /// What the thread was: `base`, `servo`, `talker`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub role: String,
    /// CPUs that it was pinned to, as the kernel writes a list.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cpus: String,
    /// Whether they were kept free of other work: isolated at boot, or shielded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub isolated: Option<bool>,
    /// Whether all threads of the measurement ran on one CPU; absent with a single thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub together: Option<bool>,
    /// Policy in the form it is asked for: `fifo:90`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub policy: String,
    /// The tool that measured.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub tool: String,
    /// The command line that measured.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub command: String,
    /// When it began, as far as the source tells: `2021-12-22T10:55:45`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub started_at: String,
    /// Time between two deadlines, ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub period_ns: Option<u64>,
    /// How long it was measured, ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ns: Option<u64>,
    /// Wake-ups, round trips or packets counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub samples: Option<u64>,
    /// Deadlines that passed before the thread looked at the clock again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missed: Option<u64>,
    /// Smallest lateness, ns; of a round trip its whole length, as the next seven.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_ns: Option<i64>,
    /// Mean, ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean_ns: Option<f64>,
    /// The most frequent value, ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode_ns: Option<i64>,
    /// Median, ns; from a published histogram the upper end of its cell, as the next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p50_ns: Option<i64>,
    /// 99 % were no later, ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p99_ns: Option<i64>,
    /// Largest, ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_ns: Option<i64>,
    /// The largest lies above this, ns: the source could not tell how far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_above_ns: Option<i64>,
    /// When the largest was seen, ns after the beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_at_ns: Option<u64>,
    /// Machine-tool jitter: largest |interval - period|, ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter_ns: Option<u64>,
    /// Largest time between two packets, ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_gap_ns: Option<u64>,
    /// Packets that the source calls late.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late: Option<u64>,
    /// The histogram that was published, each cell at its upper end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub histogram: Option<Histogram>,
    /// What must be known to read these figures.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// Fields that a newer version wrote.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Published {
    /// The source in one line: author, title, place, date, address; what is known of them.
    #[must_use]
    pub fn source(&self) -> String {
        let parts = [&self.author, &self.title, &self.place, &self.date, &self.url];
        parts.into_iter().filter(|part| !part.is_empty()).cloned().collect::<Vec<_>>().join(", ")
    }
}
