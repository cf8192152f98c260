//! A bound of the scheduling latency, as the sum of the parts that the kernel's trace showed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Culprit, Extra};

/// The worst lateness that the parts seen in a series could make together, though they need not have met in the run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct CauseBound {
    /// The evidence for sections with interrupts or preemption off.
    pub basis: BoundBasis,
    /// The reason why there is no bound; absent if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<BoundRefusal>,
    /// The bound, ns; never below the largest measured lateness. Absent if refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound_ns: Option<u64>,
    /// The parts of the bound, the largest first. They add up to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Culprit>,
    /// Remedy for the largest part that has a cause other than the kernel's wake-up path; empty without any.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub remedy: String,
    /// Number of wake-ups of the thread in the trace.
    pub wake_ups: u64,
    /// Time from the first to the last event that was read, ns.
    pub traced_ns: u64,
    /// Number of trace events that were read.
    pub events: u64,
    /// Number of trace events that were lost, as far as the kernel counted them.
    pub lost_events: u64,
    /// CPU time that reading these events took, on another thread than the measuring one, ns.
    pub read_ns: u64,
    /// Fields that a newer version wrote.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The evidence for sections with interrupts or preemption off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BoundBasis {
    /// The delays of the thread's own wake-ups. A section that no wake-up met is not in the bound, and of a section that
    /// one met, only the rest after that moment is.
    #[default]
    WakeUps,
    /// Every section, from the kernel's events of `preemptirq`.
    Sections,
}

/// The reason why there is no bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BoundRefusal {
    /// The thread has no real-time priority, so that every other thread may delay it.
    NotRealTime,
    /// The kernel overwrote events before they were read.
    LostEvents,
    /// Reading all events of the measured CPUs would take more than a quarter of a CPU.
    TooCostly,
    /// The trace covers only a part of the time.
    PartOfTheTime,
    /// The run is shorter than 5 s or has fewer than 1000 wake-ups.
    TooShort,
    /// Interrupts, softirqs and threads of higher priority could together keep the CPU busy for longer than 90 ms.
    Overload,
}
