//! Figures published by others. punctual did not measure them and never judges them as if it had.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Extra, Histogram, Noise, Phase, Record, Series, SeriesKind, TIMERLAT_IRQ, TIMERLAT_THREAD, WAKE_UP_PROBES,
};

/// Identifier of the reason of an imported record, and kind of the caveat that says so.
pub const IMPORTED: &str = "imported";
/// Kind of the caveat that says that figures were published elsewhere.
pub const PUBLISHED: &str = "published";

/// A publication and its figures.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Published {
    /// Short name to select it by: `vim3l-evl`.
    pub name: String,
    /// Title of the write-up.
    pub title: String,
    /// Author; empty if the publication does not say.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub author: String,
    /// Place of publication, e.g. a forum or a conference; empty if unknown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub place: String,
    /// URL; empty if unknown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub url: String,
    /// Date of publication, `2018-10-25`; empty if unknown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub date: String,
    /// Short description of the machine: `Khadas VIM3L with the EVL core`.
    pub on: String,
    /// The published figures.
    pub figures: Vec<Figures>,
    /// Further statements of the publication that matter for the figures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
    /// Fields that a newer version wrote.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The figures of one measurement. Unknown figures are absent, never guessed; unknown texts are empty.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Figures {
    /// Name of punctual's probe for the same thing: `timer`, `threads`, `udp`, `interrupt`, `stream`.
    pub probe: String,
    /// Short name of the load: `idle`, `switch-200us`. Unique together with probe, role and placement.
    pub phase: String,
    /// The load in the publication's words.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub said: String,
    /// The most similar loads of punctual, by the names in `punctual loads`; an empty list for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loads: Option<Vec<String>>,
    /// Role of the thread: `base`, `servo`, `talker`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub role: String,
    /// True if times of interrupts begin in the kernel's handler, false if at the interrupt; absent for others, and if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_kernel: Option<bool>,
    /// CPUs that the thread was pinned to, as the kernel writes a list.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cpus: String,
    /// True if these CPUs were kept free of other work: isolated at boot, or shielded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub isolated: Option<bool>,
    /// True if all threads of the measurement ran on one CPU; absent for a single thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub together: Option<bool>,
    /// Scheduling policy, in punctual's notation: `fifo:90`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub policy: String,
    /// Name of the tool that measured.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub tool: String,
    /// Command line of the measurement.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub command: String,
    /// Start of the measurement, as precise as the publication says: `2021-12-22T10:55:45`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub started_at: String,
    /// Time between two deadlines, ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub period_ns: Option<u64>,
    /// Duration of the measurement, ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ns: Option<u64>,
    /// Number of wake-ups, round trips or packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub samples: Option<u64>,
    /// Deadlines that passed before the thread read the clock again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missed: Option<u64>,
    /// Smallest lateness, ns. For round trips, this and all other lateness values are the length of the round trip.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_ns: Option<i64>,
    /// Mean lateness, ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean_ns: Option<f64>,
    /// Most frequent lateness, ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode_ns: Option<i64>,
    /// Median lateness, ns; from a published histogram, the upper end of its cell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p50_ns: Option<i64>,
    /// 99th percentile of lateness, ns; from a published histogram, the upper end of its cell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p99_ns: Option<i64>,
    /// Largest lateness, ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_ns: Option<i64>,
    /// Lower bound of the largest lateness, ns, if the publication does not say how large it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_above_ns: Option<i64>,
    /// Time of the largest lateness, ns after the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_at_ns: Option<u64>,
    /// Machine-tool jitter: largest |interval - period|, ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter_ns: Option<u64>,
    /// Largest time between two packets, ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_gap_ns: Option<u64>,
    /// Number of packets that the publication calls late.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late: Option<u64>,
    /// The published histogram, each cell at its upper end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub histogram: Option<Histogram>,
    /// A remark that is needed to interpret these figures.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// Fields that a newer version wrote.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Name of the figures of several threads together.
pub const ALL_THREADS: &str = "all-threads";

impl Record {
    /// The record with each of its published figures as a series, for formats that contain series. Those of all threads
    /// together are left out. A histogram is `raw`; it is also `corrected` if it has all samples.
    #[must_use]
    pub fn with_published_series(&self) -> Cow<'_, Self> {
        let Some(published) = &self.published else { return Cow::Borrowed(self) };
        let threads = published.figures.iter().filter(|figures| figures.phase != ALL_THREADS);
        let series: Vec<Series> = threads.clone().map(Figures::to_series).collect();
        let mut phases: Vec<Phase> = Vec::new();
        for figures in threads {
            if !phases.iter().any(|phase| phase.name == figures.phase) {
                let duration_ns = figures.duration_ns.unwrap_or_default();
                phases.push(Phase { name: figures.phase.clone(), duration_ns, ..Phase::default() });
            }
        }
        Cow::Owned(Self { series, phases, ..self.clone() })
    }
}

impl Figures {
    /// The figures as a series of their kind. Unknown numbers are 0 there, so they must not be shown.
    fn to_series(&self) -> Series {
        let kind = match (self.probe.as_str(), self.role.as_str()) {
            (_, TIMERLAT_IRQ) => SeriesKind::TimerlatIrq,
            (_, TIMERLAT_THREAD) => SeriesKind::TimerlatThread,
            ("noise", _) => SeriesKind::Gaps(Box::<Noise>::default()),
            ("udp", _) => SeriesKind::RoundTrips(Box::default()),
            ("interrupt", _) => SeriesKind::Interrupts(Box::default()),
            _ => SeriesKind::WakeUps,
        };
        let role =
            if self.role.is_empty() && WAKE_UP_PROBES.contains(&&*self.probe) { &self.probe } else { &self.role };
        Series {
            phase: self.phase.clone(),
            role: role.clone(),
            kind,
            cpu: self.cpus.parse().ok(),
            period_ns: self.period_ns.unwrap_or_default(),
            samples: self.samples.unwrap_or_default(),
            missed: self.missed.unwrap_or_default(),
            min_ns: self.min_ns,
            mean_ns: self.mean_ns,
            max_ns: self.max_ns,
            raw: self.histogram.clone().unwrap_or_default(),
            corrected: self.whole_histogram().cloned().unwrap_or_default(),
            ..Series::default()
        }
    }

    /// The histogram, and the number of samples above its last cell, whose values are unknown. `None` without any value.
    #[must_use]
    pub fn samples_with_beyond(&self) -> Option<(&Histogram, u64)> {
        let histogram = self.histogram.as_ref().filter(|histogram| !histogram.is_empty())?;
        Some((histogram, self.samples.unwrap_or_default().saturating_sub(histogram.total())))
    }

    /// The histogram, if it has all samples. One that lacks those beyond its last cell gives too low percentiles, and a
    /// curve that ends too low.
    #[must_use]
    pub fn whole_histogram(&self) -> Option<&Histogram> {
        self.samples_with_beyond().filter(|(_, beyond)| *beyond == 0).map(|(histogram, _)| histogram)
    }
}

impl Published {
    /// Returns the source in one line: author, title, place, date and URL, as far as known.
    #[must_use]
    pub fn source(&self) -> String {
        let parts = [&self.author, &self.title, &self.place, &self.date, &self.url];
        parts.into_iter().filter(|part| !part.is_empty()).cloned().collect::<Vec<_>>().join(", ")
    }
}
