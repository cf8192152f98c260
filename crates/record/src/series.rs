//! Series: the measurements of one thread in one phase, with its spikes.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{
    CAPTURE, CauseBound, Culprit, Evidence, EvlThread, Extra, Histogram, Losses, Maxima, Played, ROUND_TRIP,
    SeriesKind, Stretch, Trip,
    kind::{KindKeys, MeasuredBy},
    role::absent_together,
};

/// Name of the timer probe, and role of its threads.
pub const TIMER: &str = "timer";
/// Names of the probes that measure wake-ups, in published figures, which have no kind.
pub const WAKE_UP_PROBES: [&str; 2] = [TIMER, "threads"];

/// The measurements of one thread in one phase.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self")]
#[schemars(rename = "Series")]
pub struct Series {
    /// Name of the phase.
    pub phase: String,
    /// Role of the thread: `timer`, `noise`, or the name that it was given, e.g. `base` and `servo`;
    /// `audio`, `round-trip`, `response` or `capture`; for the kernel's own threads `timerlat/irq` and `timerlat/thread`.
    pub role: String,
    /// The kind of the values.
    #[serde(flatten, skip_deserializing)]
    #[schemars(with = "KindKeys", !skip_deserializing)]
    pub kind: SeriesKind,
    /// Name of the far end that it was measured on; absent for the machine of the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// CPU that the thread was pinned to; absent if it was not pinned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<u32>,
    /// Settings that the kernel granted the thread, read back.
    pub granted: Granted,
    /// Time between two deadlines, ns; for the noise probe, between the starts of two observations.
    pub period_ns: u64,
    /// The first deadline, ns on the clock of the scenario.
    pub first_deadline_ns: i64,
    /// Number of wake-ups; in a series of the noise probe all figures are for gaps instead.
    pub samples: u64,
    /// Deadlines that passed before the thread read the clock again.
    pub missed: u64,
    /// Wake-ups before their deadline; in `raw` they have negative values.
    pub early: u64,
    /// Smallest lateness, ns; absent without samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_ns: Option<i64>,
    /// Mean lateness, ns; absent without samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_ns: Option<f64>,
    /// Exact largest lateness, ns; absent without samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_ns: Option<i64>,
    /// Time of the largest lateness, ns after the first deadline; absent without samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_at_ns: Option<u64>,
    /// Machine-tool jitter: largest |interval - period|, ns. A constant lateness does not affect it.
    pub jitter_ns: u64,
    /// Histogram with one entry per wake-up.
    pub raw: Histogram,
    /// Like `raw`, but a late wake-up also counts for the deadlines that it omitted. Percentiles are read from this
    /// histogram.
    pub corrected: Histogram,
    /// Largest lateness in each window of the run.
    pub maxima: Maxima,
    /// Missing results in each window of the run, as far as their times are known: datagrams or questions without an answer,
    /// interrupts that did not come, frames that did not arrive. Absent if none is known, and in older records.
    #[serde(default, skip_serializing_if = "Losses::is_empty")]
    pub losses: Losses,
    /// Number of wake-ups later than the threshold, kept or not.
    pub spikes_total: u64,
    /// The worst spikes in order of time; at most 1000.
    #[serde(default)]
    pub spikes: Vec<Spike>,
    /// Overhead of the probe between waking and its timestamp, ns: the median time of reading the clock twice in a
    /// row.
    pub floor_ns: u64,
    /// Number of checks that found the thread on its CPU: every 1000 wake-ups, every second and at its end. A series
    /// ends if the thread is found on another CPU; `notes` then says so.
    #[serde(default)]
    pub cpu_checks: u64,
    /// CPU time that the thread used from its start until its end, ns. Absent before its end, for EVL threads, for
    /// threads without deadlines, and in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_time_ns: Option<u64>,
    /// Figures of an EVL thread; absent for Linux threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evl: Option<EvlThread>,
    /// The worst lateness that the parts in the kernel's trace could make together; absent for series that were not traced,
    /// and for threads that wait for something other than their deadlines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause_bound: Option<CauseBound>,
    /// Remarks, e.g. that a CPU went offline or that the guard acted.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Fields that a newer version wrote.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The largest number of spikes that a series keeps.
pub const SPIKES_KEPT: usize = 1000;

/// The number of time lines of spikes that a run keeps. Its measuring threads share them equally; each keeps at least
/// one. Because a time line takes up to 10 kB, those of all spikes would be most of a record.
pub const TIME_LINES_KEPT: usize = 256;

/// Text in the notes of a series whose thread was found on another CPU. Readers search for it, so it must not change.
pub const ON_ANOTHER_CPU: &str = "were on another CPU";

/// Text in the notes of a series that ended before the run did. Readers search for it, so it must not change.
pub const SERIES_ENDS: &str = "the series ends";

/// Role of a series of the kernel's timerlat tracer: lateness of its timer interrupt. The spikes counted here are
/// stored in the series of its thread.
pub const TIMERLAT_IRQ: &str = "timerlat/irq";
/// Role of a series of the kernel's timerlat tracer: lateness of its thread.
pub const TIMERLAT_THREAD: &str = "timerlat/thread";

/// Settings that the kernel granted a measuring thread, read back.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Granted {
    /// Scheduling policy, in the notation of the command line: `fifo:90`, `other`.
    pub policy: String,
    /// CPUs that the thread may run on, as the kernel writes a list.
    pub cpus: String,
    /// True if all memory of the process is locked.
    pub memory_locked: bool,
    /// Timer slack, ns; 0 for real-time policies.
    pub timer_slack_ns: u64,
    /// Method that keeps the CPU out of its idle states: `pm_qos`, `cpu_dma_latency`; absent if it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_awake: Option<String>,
    /// Fields that a newer version wrote.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A wake-up with a lateness above the threshold.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Spike {
    /// Exact lateness, ns; for a period of audio, its completion.
    pub lateness_ns: i64,
    /// Its deadline, ns after the first deadline; for a gap, its start.
    pub at_ns: u64,
    /// The causes of the lateness, the largest share first; empty if none was searched for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub culprits: Vec<Culprit>,
    /// The data that the culprits come from.
    #[serde(default, skip_serializing_if = "Evidence::is_none")]
    pub evidence: Evidence,
    /// The causes that occupied the CPU in order of time, from shortly before the deadline to the wake-up. Only the
    /// worst spikes of each series have it: a run keeps 256 time lines, and its series share them equally.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub timeline: Vec<Stretch>,
    /// The kernel's own measurement of the parts; only in series of its timerlat tracer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split: Option<Split>,
    /// The parts of the round trip; only in series of round trips.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trip: Option<Trip>,
    /// The parts of the period of audio; only in series of audio.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub played: Option<Played>,
}

/// One cycle of the kernel's timerlat tracer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Split {
    /// Start of the timer interrupt's handler, ns after the deadline.
    pub irq_ns: u64,
    /// Start of the thread, ns after the deadline.
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
    /// Describes the thread: `CPU 1`; `unpinned` for a thread that may migrate; `base on CPU 1`, `CPU 1 timerlat/irq`,
    /// `listener on CPU 1 of board-b`.
    #[must_use]
    pub fn place(&self) -> String {
        let cpu = self.cpu.map_or_else(|| "unpinned".to_owned(), |cpu| format!("CPU {cpu}"));
        let place = self.host.as_ref().map_or_else(|| cpu.clone(), |host| format!("{cpu} of {host}"));
        let role = &self.role;
        match self.kind.properties().by {
            MeasuredBy::Kernel => format!("{place} {role}"),
            MeasuredBy::Observer => CAPTURE.to_owned(),
            MeasuredBy::Judge => format!("{place} as the outside judge saw it"),
            MeasuredBy::Probe if self.has_own_role() && self.cpu.is_some() => format!("{role} on {place}"),
            MeasuredBy::Probe if self.has_own_role() => format!("{role}, {place}"),
            MeasuredBy::Probe => place,
        }
    }

    /// True if the thread has a name of its own, other than that of the probe.
    #[must_use]
    pub fn has_own_role(&self) -> bool {
        !self.role.is_empty() && self.role != self.kind.properties().default_role
    }

    /// The name of the traffic class of these round trips; `None` if they are not those of a class.
    #[must_use]
    pub fn traffic_class(&self) -> Option<&str> {
        let is_named = !self.role.is_empty() && self.role != ROUND_TRIP;
        self.kind.round_trip().filter(|_| is_named).map(|_| self.role.as_str())
    }

    /// Deadlines, answers, interrupts and frames that never came.
    #[must_use]
    pub fn absent(&self) -> u64 {
        self.missed.saturating_add(self.kind.lost().unwrap_or(0))
    }

    /// Deadlines, answers, interrupts and frames of the series of one phase that never came, those of parts of the measurement
    /// not counted again.
    #[must_use]
    pub fn absent_of_all(all: &[&Self]) -> u64 {
        absent_together(&all.iter().map(|series| (series.kind.properties().measured, series.absent())))
    }

    /// The jitter, ns; `None` if the kind has none.
    #[must_use]
    pub fn jitter(&self) -> Option<u64> {
        self.kind.properties().has_jitter.then_some(self.jitter_ns)
    }

    /// True if its thread was found on another CPU.
    #[must_use]
    pub fn was_migrated(&self) -> bool {
        self.notes.iter().any(|note| note.contains(ON_ANOTHER_CPU))
    }

    /// True if it is a series of the kernel's timerlat tracer and not of the probe.
    #[must_use]
    pub fn is_timerlat(&self) -> bool {
        self.kind.properties().by == MeasuredBy::Kernel
    }
}
