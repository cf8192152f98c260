//! Comparison of a run with another record.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Caveat, Figures};

/// The comparison of a run with one reference or record.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// Name of the published reference, or file name of the record.
    pub name: String,
    /// Short description of the machine of the reference or record.
    pub on: String,
    /// Publication of the figures; empty for a user's own record.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// For each group of threads of the run, the best matching figures.
    pub pairs: Vec<ComparedPair>,
    /// Groups of threads of the run without comparable figures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alone: Vec<String>,
    /// The caveats of the other record: samples and facts that the other tool lost or mixed, if it was imported; that its run
    /// was not as requested or ended early.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub caveats: Vec<Caveat>,
}

/// Figures of a run and the figures that they are compared with. The machine is never the same and the conditions
/// seldom are: see `differs`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ComparedPair {
    /// Figures of the run: all CPUs of one phase and role together.
    pub ours: Figures,
    /// The best matching figures of the reference or record.
    pub theirs: Figures,
    /// Differences between the conditions, each in a few words; empty if none is known.
    #[serde(default)]
    pub differs: Vec<String>,
    /// The run's figures divided by the others.
    #[serde(default)]
    pub ratios: Ratios,
}

/// The run's figures divided by those of the reference or record; each is absent unless both are known and the divisor
/// is above 0.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Ratios {
    /// Ratio of the largest values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
    /// Ratio of the 99th percentiles.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p99: Option<f64>,
    /// Ratio of the medians.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p50: Option<f64>,
    /// Ratio of the means.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean: Option<f64>,
    /// Ratio of the machine-tool jitters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter: Option<f64>,
    /// Ratio of the largest times between two packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_gap: Option<f64>,
}
