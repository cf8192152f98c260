//! A matrix: two threads on each pair of CPUs, at rest and beside a load, and what that recommends.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a measuring thread with a place of its own was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct AskedThread {
    /// What it is called: `base`, `servo`.
    pub role: String,
    /// CPU that it was to be pinned to.
    pub cpu: u32,
    /// Its policy: `fifo:90`.
    pub policy: String,
    /// Time between its deadlines, ns.
    pub period_ns: u64,
}

/// One cell: a pair of CPUs beside one load, all rounds taken together.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Cell {
    /// What ran beside the threads: [`NOLOAD`], or the loads as asked for.
    pub load: String,
    /// The threads: the first one's CPU is the row, the second one's the column.
    pub threads: Vec<CellThread>,
    /// The phases that it was measured in, one a round.
    pub phases: Vec<String>,
    /// How bad its worst round was: of the worse thread, the largest lateness in periods (1 at most) and the deadlines
    /// missed in a thousand, added up. 0 is perfect.
    pub badness: f64,
    /// How bad each round was.
    pub rounds: Vec<f64>,
    /// Why its figures do not tell about this pair; absent when they do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invalid: Option<String>,
}

/// Name of what runs beside the threads when nothing does.
pub const NOLOAD: &str = "noload";

/// What one thread saw in a cell.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct CellThread {
    /// Its role.
    pub role: String,
    /// CPU that it was to run on.
    pub cpu: u32,
    /// Time between its deadlines, ns.
    pub period_ns: u64,
    /// Wake-ups counted.
    pub samples: u64,
    /// Deadlines that passed before it looked at the clock again.
    pub missed: u64,
    /// Largest lateness, exactly, ns; absent without samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_ns: Option<i64>,
    /// Machine-tool jitter: largest |interval - period|, ns.
    pub jitter_ns: u64,
    /// How often it was found on its CPU.
    pub cpu_checks: u64,
}

/// What is known of a CPU that may explain a difference, or decide where the figures do not.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct CpuFacts {
    /// The CPU.
    pub cpu: u32,
    /// Whether it is isolated from the scheduler.
    pub isolated: bool,
    /// CPUs that are threads of the same core, itself among them, as the kernel writes a list; empty where unknown, as
    /// the next.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub core: String,
    /// CPUs that share its largest cache, itself among them.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cache: String,
    /// Interrupts of devices that it served each second while the matrix ran; absent where unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupts_per_s: Option<f64>,
}

/// Where to put the threads, and how sure that is.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Recommendation {
    /// The pair.
    pub pair: Vec<Placement>,
    /// Pairs whose rounds overlap with its own: no real difference.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub equal: Vec<Vec<Placement>>,
    /// Whether each of its rounds was better than any round of every other pair: the figures alone decide.
    pub certain: bool,
    /// In one sentence.
    pub text: String,
    /// Why, the figures first.
    pub why: Vec<String>,
    /// Facts about the machine that decided between equal pairs, or explain the figures.
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

impl Cell {
    /// Where its threads were to run.
    #[must_use]
    pub fn pair(&self) -> Vec<Placement> {
        self.threads.iter().map(|thread| Placement { role: thread.role.clone(), cpu: thread.cpu }).collect()
    }
}

impl CellThread {
    /// Deadlines missed, as a share of all of them, 0 to 1.
    #[must_use]
    pub fn missed_share(&self) -> f64 {
        self.missed as f64 / (self.samples + self.missed).max(1) as f64
    }

    /// Largest lateness, in periods; 0 when never late.
    #[must_use]
    pub fn periods_late(&self) -> f64 {
        self.max_ns.unwrap_or(0).max(0) as f64 / self.period_ns.max(1) as f64
    }
}
