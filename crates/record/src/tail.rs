//! Larger values than a run measured.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Extra;

/// The tail of the largest lateness of all threads of one role in one phase.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Tail {
    /// Name of the phase.
    pub phase: String,
    /// Role of the threads.
    pub role: String,
    /// Name of the far end that they were measured on; absent for the machine of the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Number of threads. Of each window, the largest value of all of them counts.
    pub threads: u64,
    /// Time between two deadlines, ns.
    pub period_ns: u64,
    /// Number of windows with a value.
    pub windows: u64,
    /// Length of a window, ns.
    pub window_ns: u64,
    /// Largest measured value, ns.
    pub max_ns: i64,
    /// The largest bound from causes of these threads, ns ([`CauseBound`](crate::CauseBound)); absent if a thread has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_causes_ns: Option<u64>,
    /// The reason why the windows say nothing about larger values; absent if they do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<TailRefusal>,
    /// The generalized extreme-value distribution of the largest values of blocks of windows; absent if refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks: Option<TailBlocks>,
    /// The generalized Pareto distribution of the windows above a threshold; absent with fewer than 500 windows, or if they have
    /// none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peaks: Option<TailPeaks>,
    /// Levels that are exceeded rarely, the most frequent first: of an hour, a day and a year, if they are longer than the run
    /// and at most 10 000 times as long.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub levels: Vec<TailLevel>,
    /// The limits of the judged uses above the largest measured value, with the time between two exceedances.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<TailLimit>,
    /// Fields that a newer version wrote.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The reason why a run says nothing about larger values than it measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TailRefusal {
    /// Fewer than 50 windows have a value.
    TooShort,
    /// Too few of the values differ.
    FewValues,
    /// The values rise, fall, or jump to another level during the run.
    NotStationary,
    /// A large value has large neighbours: late wake-ups come in bursts.
    NotIndependent,
    /// The values have no extreme-value distribution.
    DoesNotFit,
    /// Some of the largest values are apart from the others: they have a rare cause of their own.
    SecondCause,
    /// The tail is so heavy that it has no mean.
    TooHeavy,
}

/// A generalized extreme-value distribution: `F(x) = exp(-(1 + shape (x - location) / scale)^(-1 / shape))`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct TailBlocks {
    /// Number of blocks.
    pub count: u64,
    /// Length of a block, ns.
    pub block_ns: u64,
    /// Location, ns.
    pub location_ns: f64,
    /// Scale, ns.
    pub scale_ns: f64,
    /// Shape; positive for a heavy tail, negative for one with an end.
    pub shape: f64,
}

/// A generalized Pareto distribution of excesses: `F(y) = 1 - (1 + shape y / scale)^(-1 / shape)`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct TailPeaks {
    /// Number of windows above the threshold.
    pub count: u64,
    /// The threshold, ns.
    pub threshold_ns: f64,
    /// Scale, ns.
    pub scale_ns: f64,
    /// Shape, as that of the blocks.
    pub shape: f64,
}

/// A level that is exceeded once in a time, on average.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct TailLevel {
    /// The time, ns.
    pub once_in_ns: u64,
    /// The level by the blocks.
    pub by_blocks: LevelInterval,
    /// The level by the peaks; absent without them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by_peaks: Option<LevelInterval>,
}

/// A level with its interval at 95 %.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct LevelInterval {
    /// The most likely level, ns.
    pub estimate_ns: i64,
    /// Lower end, ns.
    pub low_ns: i64,
    /// Upper end, ns; absent if the run does not limit it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high_ns: Option<i64>,
}

/// A limit, and the time between two exceedances.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct TailLimit {
    /// The limit, ns.
    pub limit_ns: i64,
    /// The most likely time between two windows above the limit, ns; absent if it is longer than 10 000 times the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub once_in_ns: Option<u64>,
    /// Lower bound of that time, at 97.5 %, ns; at most 10 000 times the run.
    pub at_least_ns: u64,
}
