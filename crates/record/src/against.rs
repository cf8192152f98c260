//! Figures of another record laid beside those of a run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Figures;

/// What was laid beside a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Against {
    /// Name of a published reference, or the file of a record.
    pub name: String,
    /// The machine it was measured on, in a few words.
    pub on: String,
    /// Where it was published; empty for a record of one's own.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// For each group of threads of the run, the figures that match it best.
    pub pairs: Vec<Pair>,
    /// Groups of threads that nothing in it can be compared with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alone: Vec<String>,
}

/// Figures of a run and those that were laid beside them. They are never of the same machine, seldom of the same
/// conditions: `differs` says in what.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Pair {
    /// The run's: all CPUs of a phase and role together.
    pub ours: Figures,
    /// The best match for them.
    pub theirs: Figures,
    /// In what the conditions differ, each in a few words; empty where no difference is known.
    #[serde(default)]
    pub differs: Vec<String>,
    /// Ours divided by theirs.
    #[serde(default)]
    pub ratios: Ratios,
}

/// Ours divided by theirs; absent where either is unknown or theirs is not above 0.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Ratios {
    /// Of the largest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
    /// Of what 99 % did not exceed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p99: Option<f64>,
    /// Of the medians.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p50: Option<f64>,
    /// Of the means.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean: Option<f64>,
    /// Of the machine-tool jitters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter: Option<f64>,
    /// Of the largest times between two packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_gap: Option<f64>,
}
