//! A matrix: two threads on each pair of CPUs, idle and under load, and the recommended pair.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Record;

/// The requested settings of a measuring thread with its own role and CPU.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct AskedThread {
    /// Name of its role: `base`, `servo`.
    pub role: String,
    /// CPU to pin it to.
    pub cpu: u32,
    /// Scheduling policy: `fifo:90`.
    pub policy: String,
    /// Time between its deadlines, ns.
    pub period_ns: u64,
}

/// One cell of a matrix: a pair of CPUs under one load, all rounds together.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Cell {
    /// The load during the measurement: `noload`, or the loads as requested.
    pub load: String,
    /// The threads: the CPU of the first one is the row, that of the second one the column.
    pub threads: Vec<CellThread>,
    /// The phases that measured it, one per round.
    pub phases: Vec<String>,
    /// Badness of the worst round: largest lateness in periods (at most 1) plus missed deadlines per thousand, for the
    /// worse of the two threads. 0 is perfect.
    pub badness: f64,
    /// Badness of each round.
    pub rounds: Vec<f64>,
    /// Badness of each round for each thread, in the order of `threads`; absent in records of versions up to 0.2.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub thread_rounds: Vec<Vec<f64>>,
    /// Why the cell's figures cannot be used; absent if they can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invalid: Option<String>,
}

/// Name of the load of an idle machine.
pub const NOLOAD: &str = "noload";

/// Figures of one thread in a cell.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct CellThread {
    /// Its role.
    pub role: String,
    /// CPU that it was pinned to.
    pub cpu: u32,
    /// Time between its deadlines, ns.
    pub period_ns: u64,
    /// Wake-ups counted.
    pub samples: u64,
    /// Deadlines that passed before the thread read the clock again.
    pub missed: u64,
    /// Largest lateness, exactly, ns; absent without samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_ns: Option<i64>,
    /// Machine-tool jitter: largest |interval - period|, ns.
    pub jitter_ns: u64,
    /// Number of checks that found the thread on its CPU.
    pub cpu_checks: u64,
}

/// Facts about a CPU that may explain a difference, or decide if the figures do not.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct CpuFacts {
    /// The CPU.
    pub cpu: u32,
    /// True if it is isolated from the scheduler.
    pub isolated: bool,
    /// CPUs of the same core including itself (SMT siblings), as the kernel writes a list; empty if unknown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub core: String,
    /// CPUs that share its largest cache including itself, as the kernel writes a list; empty if unknown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cache: String,
    /// Device interrupts per second on this CPU while the matrix ran; absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupts_per_s: Option<f64>,
}

/// The recommended CPUs for the threads, or the pairs that may be the best.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Recommendation {
    /// The recommended pair; empty if no pair is shown to be better than all others.
    pub pair: Vec<Placement>,
    /// The pairs that may be the best, because their rounds show no real difference; empty if one is recommended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub equal: Vec<Vec<Placement>>,
    /// True if each round of this pair was better than every round of all other pairs.
    pub certain: bool,
    /// The recommendation in one sentence.
    pub text: String,
    /// Reasons, the figures first.
    pub why: Vec<String>,
    /// Facts about the machine that explain the figures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<String>,
}

/// A thread on a CPU.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, JsonSchema)]
pub struct Placement {
    /// Its role.
    pub role: String,
    /// Its CPU.
    pub cpu: u32,
}

impl Record {
    /// The recommended pair of a matrix; `None` if nothing is recommended.
    #[must_use]
    pub fn recommended_pair(&self) -> Option<&[Placement]> {
        self.recommendation.as_ref().map(|advice| advice.pair.as_slice()).filter(|pair| !pair.is_empty())
    }
}

impl Cell {
    /// Returns the CPU of each thread.
    #[must_use]
    pub fn pair(&self) -> Vec<Placement> {
        self.threads.iter().map(|thread| Placement { role: thread.role.clone(), cpu: thread.cpu }).collect()
    }
}

impl CellThread {
    /// Share of missed deadlines, 0 to 1.
    #[must_use]
    pub fn missed_share(&self) -> f64 {
        self.missed as f64 / (self.samples + self.missed).max(1) as f64
    }

    /// Largest lateness in periods; 0 if never late.
    #[must_use]
    pub fn periods_late(&self) -> f64 {
        self.max_ns.unwrap_or(0).max(0) as f64 / self.period_ns.max(1) as f64
    }
}
