//! What a run is worth: whether it is valid, which limits it holds, what it cannot tell.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Extra;

/// Whether what was asked for is what ran.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Validity {
    /// Whether the figures may support a real-time verdict.
    pub valid: bool,
    /// Why not; empty when valid.
    #[serde(default)]
    pub reasons: Vec<Reason>,
}

/// One reason why a run is invalid.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Reason {
    /// Stable name: `policy.refused`.
    pub id: String,
    /// What was asked for, what ran instead, and what that means for the figures.
    pub text: String,
    /// A command to paste.
    pub remedy: String,
}

/// What a record can support.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Outcome {
    /// The limits were held, and there are samples enough to say so.
    Pass,
    /// A limit was exceeded.
    Fail,
    /// Too few samples for the limit.
    #[default]
    Inconclusive,
    /// What was asked for is not what ran.
    Invalid,
}

/// The verdict on a run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// The outcome.
    pub outcome: Outcome,
    /// Why, in one sentence.
    pub reason: String,
}

/// The verdict on one use.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct UseVerdict {
    /// The profile's name: `avb-class-a`.
    pub profile: String,
    /// What the use is, in plain words.
    pub title: String,
    /// The outcome.
    pub outcome: Outcome,
    /// Why, in one sentence.
    pub reason: String,
    /// Time between two cycles of the use, ns.
    pub period_ns: u64,
    /// Lateness that the use can bear, ns.
    pub limit_ns: i64,
    /// Largest lateness seen, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worst_ns: Option<i64>,
    /// Where the largest lateness was seen: `CPU 1, load`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub worst_where: String,
    /// Wake-ups that were considered.
    pub samples: u64,
    /// Those later than the limit.
    pub over_limit: u64,
    /// Deadlines of the use that the considered wake-ups would have run over, at the use's own period.
    pub missed: u64,
    /// What this many samples allow to be said, with how long to run for more.
    pub statement: String,
    /// Fields that a newer version wrote.
    #[serde(flatten)]
    pub extra: Extra,
}

/// What a record cannot tell, or tells with less precision.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Caveat {
    /// Kind of loss: `overflow`, `omission`, `folded`, `clamped`, `mixed`, `units`, `lost`, `virtual`, …
    pub kind: String,
    /// What it means for the figures.
    pub text: String,
}

impl Outcome {
    /// The process exit status that says the same: 0 pass, 2 fail, 3 inconclusive, 4 invalid.
    #[must_use]
    pub fn exit_status(self) -> u8 {
        match self {
            Self::Pass => 0,
            Self::Fail => 2,
            Self::Inconclusive => 3,
            Self::Invalid => 4,
        }
    }

    /// The outcome in capitals, as in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Pass => "PASS",
            Self::Fail => "FAIL",
            Self::Inconclusive => "INCONCLUSIVE",
            Self::Invalid => "INVALID",
        }
    }
}
