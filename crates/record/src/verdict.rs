//! Validity, verdicts and caveats of a run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Extra;

/// Validity of a run: did it match the request?
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Validity {
    /// True if the figures may support a real-time verdict.
    pub valid: bool,
    /// Why the run is invalid; empty if it is valid.
    #[serde(default)]
    pub reasons: Vec<Reason>,
}

/// One reason why a run is invalid.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Reason {
    /// Stable identifier: `policy.refused`.
    pub id: String,
    /// The request, the actual run, and the effect of the difference on the figures.
    pub text: String,
    /// A command to paste.
    pub remedy: String,
}

/// The outcome of a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Outcome {
    /// The limits were kept, for long enough to show that the use tolerates what remains.
    Pass,
    /// A limit was exceeded more often than the use tolerates.
    Fail,
    /// The run shows neither.
    #[default]
    Inconclusive,
    /// The run does not match the request.
    Invalid,
}

/// The verdict on a run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// The outcome.
    pub outcome: Outcome,
    /// Reason, in one sentence.
    pub reason: String,
}

/// The verdict on one use.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct UseVerdict {
    /// Name of the profile: `avb-class-a`.
    pub profile: String,
    /// Name of the use in plain words.
    pub title: String,
    /// The outcome.
    pub outcome: Outcome,
    /// Reason, in one sentence.
    pub reason: String,
    /// Time between two cycles of the use, ns.
    pub period_ns: u64,
    /// Largest tolerable lateness, ns.
    pub limit_ns: i64,
    /// Largest measured lateness, ns; absent without samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worst_ns: Option<i64>,
    /// Place of the largest lateness: `CPU 1, load`; empty without samples.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub worst_where: String,
    /// Number of considered wake-ups.
    pub samples: u64,
    /// Wake-ups later than the limit.
    pub over_limit: u64,
    /// Deadlines of the use, at its own period, that these wake-ups would have missed.
    pub missed: u64,
    /// The conclusion that this number of samples permits, and how long to run for more.
    pub statement: String,
    /// How often the use tolerates to be late: `1 per hour`; empty in records before version 0.2.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tolerates: String,
    /// True if no cycle was late, and only the length of the run does not permit PASS.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub clean_so_far: bool,
    /// Fields that a newer version wrote.
    #[serde(flatten)]
    pub extra: Extra,
}

impl UseVerdict {
    /// The missed deadlines; `None` if no wake-up was considered.
    #[must_use]
    pub fn missed_known(&self) -> Option<u64> {
        (self.samples > 0 || self.missed > 0).then_some(self.missed)
    }
}

/// A limitation of a record.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Caveat {
    /// Kind: `overflow`, `omission`, `folded`, `clamped`, `mixed`, `units`, `lost`, `virtual`, …
    pub kind: String,
    /// Its meaning for the figures.
    pub text: String,
}

impl Outcome {
    /// The exit status of the process: 0 pass, 2 fail, 3 inconclusive, 4 invalid.
    #[must_use]
    pub fn exit_status(self) -> u8 {
        match self {
            Self::Pass => 0,
            Self::Fail => 2,
            Self::Inconclusive => 3,
            Self::Invalid => 4,
        }
    }

    /// The outcome in capitals, as in the JSON.
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
