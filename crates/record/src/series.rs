//! What was seen: one series a thread and phase, with its spikes.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{
    CAPTURE, Culprit, Evidence, EvlThread, Extra, Histogram, Maxima, Played, SeriesKind, Stretch, Trip, kind::KindKeys,
};

/// What one thread saw in one phase.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self")]
#[schemars(rename = "Series")]
pub struct Series {
    /// The phase it belongs to.
    pub phase: String,
    /// What the thread is: `timer`, `noise`, or the name it was given, as `base` and `servo`; [`AUDIO`](crate::AUDIO); [`ROUND_TRIP`](crate::ROUND_TRIP); [`CAPTURE`]; [`TIMERLAT_IRQ`] and [`TIMERLAT_THREAD`] for the kernel's own.
    pub role: String,
    /// What the values of this series are.
    #[serde(flatten, skip_deserializing)]
    #[schemars(with = "KindKeys", !skip_deserializing)]
    pub kind: SeriesKind,
    /// Name of the [far end](crate::Far) that it was seen on; absent for the machine of the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// CPU it was pinned to; absent when it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<u32>,
    /// What the kernel granted, read back.
    pub granted: Granted,
    /// Time between two deadlines, ns; of the noise probe between two begins to look.
    pub period_ns: u64,
    /// The first deadline, ns on the series' clock.
    pub first_deadline_ns: i64,
    /// Wake-ups counted; gaps in a series of the noise probe, as in all of its figures.
    pub samples: u64,
    /// Deadlines that passed before the thread looked at the clock again.
    pub missed: u64,
    /// Wake-ups before their deadline; they stand in `raw` as negative values.
    pub early: u64,
    /// Smallest lateness, ns; absent with no samples, as the next three.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_ns: Option<i64>,
    /// Mean lateness, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_ns: Option<f64>,
    /// Largest lateness, exactly, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_ns: Option<i64>,
    /// When the largest lateness was seen, ns after the first deadline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_at_ns: Option<u64>,
    /// Machine-tool jitter: largest |interval - period|, ns. It cannot see constant lateness.
    pub jitter_ns: u64,
    /// One entry a wake-up.
    pub raw: Histogram,
    /// As `raw`, but a late wake-up also stands for the deadlines it ran over. Percentiles are read from this one.
    pub corrected: Histogram,
    /// Largest lateness in each stretch of the run.
    pub maxima: Maxima,
    /// Wake-ups later than the threshold, all of them counted.
    pub spikes_total: u64,
    /// The worst of them, in order of time; at most [`SPIKES_KEPT`].
    #[serde(default)]
    pub spikes: Vec<Spike>,
    /// What the probe itself costs between waking and its stamp, ns: the median of reading the clock twice in a row.
    pub floor_ns: u64,
    /// How often the thread was found on the CPU that it was pinned to: once in 1000 wake-ups, once a second and at
    /// its end. A series
    /// ends where it is found elsewhere, and says so in `notes`.
    #[serde(default)]
    pub cpu_checks: u64,
    /// The rest of what was seen of a thread of the EVL core; absent for threads of Linux.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evl: Option<EvlThread>,
    /// Remarks: a CPU that went away, a guard that stepped in.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Fields that a newer version wrote.
    #[serde(flatten)]
    pub extra: Extra,
}

/// How many spikes a series keeps.
pub const SPIKES_KEPT: usize = 1000;

/// What stands in the notes of a series whose thread was found on another CPU than its own.
pub const ELSEWHERE: &str = "were on another CPU";

/// Role of a series of the kernel's timerlat tracer: how late its timer's interrupt came. The spikes that it counts
/// stand in the series of the thread.
pub const TIMERLAT_IRQ: &str = "timerlat/irq";
/// Role of a series of the kernel's timerlat tracer: how late its thread ran.
pub const TIMERLAT_THREAD: &str = "timerlat/thread";

/// What the kernel granted a measuring thread, read back after it was set.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Granted {
    /// Policy in the form it is asked for: `fifo:90`, `other`.
    pub policy: String,
    /// CPUs the thread may run on, as the kernel writes a list.
    pub cpus: String,
    /// Whether all memory of the process is locked.
    pub memory_locked: bool,
    /// Timer slack, ns; 0 for real-time policies.
    pub timer_slack_ns: u64,
    /// How the CPU is held out of its idle states: `pm_qos`, `cpu_dma_latency`; absent when it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_awake: Option<String>,
    /// Fields that a newer version wrote.
    #[serde(flatten)]
    pub extra: Extra,
}

/// One wake-up above the threshold.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Spike {
    /// How late, exactly, ns; of a period of audio when it was done.
    pub lateness_ns: i64,
    /// Which deadline was missed, ns after the first.
    pub at_ns: u64,
    /// What ran, or kept the CPU from us, the largest share first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub culprits: Vec<Culprit>,
    /// What the culprits were found from.
    #[serde(default, skip_serializing_if = "Evidence::is_none")]
    pub evidence: Evidence,
    /// What had the CPU, in order of time, from a little before the deadline to the wake-up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub timeline: Vec<Stretch>,
    /// Where the kernel itself saw the time go; only in a series of its timerlat tracer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split: Option<Split>,
    /// Where the time of a round trip went; only in a series of those.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trip: Option<Trip>,
    /// Where the time of a period of audio went; only in a series of those.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub played: Option<Played>,
}

/// One cycle of the kernel's timerlat tracer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Split {
    /// When the timer's interrupt ran, ns after the deadline.
    pub irq_ns: u64,
    /// When the thread ran, ns after the deadline.
    pub thread_ns: u64,
}

impl Serialize for Series {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Self::serialize(self, serializer)
    }
}

impl<'de> Deserialize<'de> for Series {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut series = Self::deserialize(deserializer)?;
        series.kind = SeriesKind::take(&mut series.extra, &series.role)?;
        Ok(series)
    }
}

impl Series {
    /// The series in words: `CPU 1`, or `unpinned` for a thread that may wander; `base on CPU 1`, `CPU 1 timerlat/irq`,
    /// `listener on CPU 1 of board-b`.
    #[must_use]
    pub fn place(&self) -> String {
        let cpu = self.cpu.map_or_else(|| "unpinned".to_owned(), |cpu| format!("CPU {cpu}"));
        let place = self.host.as_ref().map_or_else(|| cpu.clone(), |host| format!("{cpu} of {host}"));
        let role = &self.role;
        match &self.kind {
            SeriesKind::TimerlatIrq | SeriesKind::TimerlatThread => format!("{place} {role}"),
            SeriesKind::Capture => CAPTURE.to_owned(),
            _ if self.has_own_role() && self.cpu.is_some() => format!("{role} on {place}"),
            _ if self.has_own_role() => format!("{role}, {place}"),
            _ => place,
        }
    }

    /// True if the thread has a name of its own, other than that of the probe.
    #[must_use]
    pub fn has_own_role(&self) -> bool {
        match self.kind {
            SeriesKind::WakeUps => !["", "timer"].contains(&self.role.as_str()),
            SeriesKind::Gaps(_) | SeriesKind::TimerlatIrq | SeriesKind::TimerlatThread => false,
            SeriesKind::RoundTrips(_)
            | SeriesKind::Stream(_)
            | SeriesKind::Audio(_)
            | SeriesKind::Process(_)
            | SeriesKind::Capture => !self.role.is_empty(),
        }
    }

    /// Whether its thread was found on another CPU than its own.
    #[must_use]
    pub fn was_elsewhere(&self) -> bool {
        self.notes.iter().any(|note| note.contains(ELSEWHERE))
    }

    /// True if the kernel's timerlat tracer measured it: its threads are not the probe's.
    #[must_use]
    pub fn is_timerlat(&self) -> bool {
        matches!(self.kind, SeriesKind::TimerlatIrq | SeriesKind::TimerlatThread)
    }
}
