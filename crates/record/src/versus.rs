//! The document of `punctual compare`: two sides of one or more records, and which of them is more punctual.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Caveat, Extra, Figures, Histogram, Maxima, Placement, Tool};

/// Name and version of the format.
pub const VERSUS_SCHEMA: &str = "punctual.compare/1";

/// Two sides and the differences between them. Ratios and differences are those of B against A.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Versus {
    /// Name and version of the format: `punctual.compare/1`.
    pub schema: String,
    /// The program that wrote the document.
    pub tool: Tool,
    /// When this document was written, RFC 3339.
    pub written_at: String,
    /// The first side.
    pub a: Side,
    /// The second side.
    pub b: Side,
    /// The order of their rounds in time.
    pub order: RoundOrder,
    /// Difference of the shares of records with the verdict PASS; absent if a side has no verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passes: Option<PassDifference>,
    /// Conditions in which the sides differ, or which vary within a side.
    pub differs: Vec<Differs>,
    /// The compared groups of threads.
    pub groups: Vec<VersusGroup>,
    /// The pairs of CPUs of two matrices; only the groups are judged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pairs: Vec<VersusPair>,
    /// Groups of one side without a counterpart.
    pub alone: Vec<String>,
    /// Groups that are not compared, because several of the other side are equally similar.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ambiguous: Vec<AmbiguousGroup>,
    /// The relative difference that the rounds should be able to show, e.g. 0.2.
    pub least_ratio: f64,
    /// The smallest number of rounds of each side that can show a difference.
    pub least_rounds: u32,
    /// The judgement on all groups.
    pub change: Change,
    /// Fields that a newer version wrote.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The same measurement at several values of one condition, each compared with the one before it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Across {
    /// Name and version of the format: `punctual.across/1`.
    pub schema: String,
    /// The program that wrote the document.
    pub tool: Tool,
    /// When this document was written, RFC 3339.
    pub written_at: String,
    /// The condition: `kernel`.
    pub what: String,
    /// Its values: versions and numbers in their order.
    pub steps: Vec<AcrossStep>,
    /// Records that belong to no value, because they do not contain the condition.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
    /// The comparison of the last step with the first one, which shows many small changes in one direction; absent for two
    /// steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overall: Option<Box<Versus>>,
    /// Fields that a newer version wrote.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Name and version of the format of [`Across`].
pub const ACROSS_SCHEMA: &str = "punctual.across/1";

/// The rounds at one value of the condition.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct AcrossStep {
    /// The value; `unknown` is one.
    pub value: String,
    /// Number of rounds.
    pub rounds: u64,
    /// Figures of each group of threads.
    pub groups: Vec<AcrossGroup>,
    /// The groups that only some of the records have; empty if all records have the same groups.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uneven: Vec<UnevenGroup>,
    /// Records left out of the comparison.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
    /// The caveats of imported records, each once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub caveats: Vec<Caveat>,
    /// The comparison with the step before; absent for the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub versus: Option<Box<Versus>>,
}

/// The figures of a group of threads.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct AcrossGroup {
    /// Its conditions.
    pub conditions: Figures,
    /// Number of rounds.
    #[serde(default)]
    pub rounds: u64,
    /// Medians of the rounds, ns or a share.
    pub medians: BTreeMap<Measure, f64>,
    /// The samples with known values; empty if unknown.
    #[serde(default)]
    pub histogram: Histogram,
    /// Number of further samples, which are above those of the histogram: imported histograms have a last cell.
    #[serde(default, skip_serializing_if = "crate::count::is_zero")]
    pub beyond: u64,
    /// The largest value of all rounds in each window of their time; absent if unknown.
    #[serde(default, skip_serializing_if = "Maxima::is_empty")]
    pub maxima: Maxima,
}

/// One side.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Side {
    /// Its records, in the order in which they were given. Each is a round of its groups.
    pub records: Vec<String>,
    /// The groups that only some of the records have; empty if all records have the same groups.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uneven: Vec<UnevenGroup>,
    /// Number of records whose verdict is PASS.
    pub passed: u64,
    /// Number of records with a verdict of PASS or FAIL.
    pub judged: u64,
    /// True if it has published figures or those of another tool.
    pub is_published: bool,
    /// Records left out of the comparison, because their runs were not as requested or ended early.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
    /// The caveats of imported records, each once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub caveats: Vec<Caveat>,
}

/// A group of threads that only some records of a side have.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct UnevenGroup {
    /// Its name: phase, role, policy and period.
    pub group: String,
    /// The records that have it.
    pub records: Vec<String>,
}

/// A group of threads with several counterparts.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct AmbiguousGroup {
    /// Its name: phase, role, policy and period.
    pub group: String,
    /// True if it is a group of the second side.
    pub is_of_b: bool,
    /// The equally similar groups of the other side.
    pub similar: Vec<String>,
}

/// A record left out of the comparison.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct LeftOut {
    /// The record.
    pub record: String,
    /// The reason: `the run is invalid: policy.refused`, `it does not contain the kernel`.
    pub why: String,
}

/// The difference of two shares, from -1 to 1; its interval is right in 95 % of cases.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct PassDifference {
    /// The share of B minus that of A.
    pub estimate: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// The order of the rounds of both sides in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RoundOrder {
    /// Not known, or of different machines.
    #[default]
    Unknown,
    /// Not known, because files of other tools do not say when they were measured, or because the clock of the machine was not
    /// set. Judged like `one_after_the_other`, each side in the order of its dates, or else of its files in the command.
    Untimed,
    /// On each machine, all rounds of a side before those of the other: a drift of the machine looks like a difference. A
    /// difference counts only if it is several times larger than the drift within a side, for the distance of the sides.
    OneAfterTheOther,
    /// On each machine, in a few long blocks of one side: a drift of the machine looks like a difference. Judged like
    /// `one_after_the_other`.
    InBlocks,
    /// On each machine, mixed, but not in pairs.
    Mixed,
    /// On each machine, in pairs of one round of each side.
    Alternating,
    /// The same, always with the same side first: a drift makes the other side look different. A difference counts only if it is
    /// larger than the common trend of both sides.
    AlternatingSameFirst,
}

/// A condition that differs between the sides.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Differs {
    /// The condition: `kernel`, `governor`, `period`.
    pub what: String,
    /// The values of the first side; `unknown` is one.
    pub a: Vec<String>,
    /// The values of the second side.
    pub b: Vec<String>,
}

/// A group of threads that both sides have.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct VersusGroup {
    /// Conditions on the first side.
    pub a: Figures,
    /// Conditions on the second side.
    pub b: Figures,
    /// Number of rounds of the first side.
    pub rounds_a: u64,
    /// Number of rounds of the second side.
    pub rounds_b: u64,
    /// Different conditions of the groups.
    pub differs: Vec<Differs>,
    /// The effect on each figure that both sides have.
    pub effects: BTreeMap<Measure, MeasureEffect>,
    /// Why a figure is absent although a side has it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub absent: BTreeMap<Measure, String>,
    /// Ratios of percentiles, from low to high ones. Each interval alone is right in 95 % of cases.
    pub percentiles: Vec<PercentileRatio>,
    /// The samples of the first side with known values; empty if unknown.
    pub histogram_a: Histogram,
    /// The samples of the second side with known values; empty if unknown.
    pub histogram_b: Histogram,
    /// Number of further samples of the first side, above those of its histogram: imported histograms have a last cell.
    #[serde(default, skip_serializing_if = "crate::count::is_zero")]
    pub beyond_a: u64,
    /// Number of further samples of the second side, above those of its histogram.
    #[serde(default, skip_serializing_if = "crate::count::is_zero")]
    pub beyond_b: u64,
    /// The largest value of all rounds of the first side in each window of their time; absent if unknown.
    #[serde(default, skip_serializing_if = "Maxima::is_empty")]
    pub maxima_a: Maxima,
    /// The largest value of all rounds of the second side in each window of their time; absent if unknown.
    #[serde(default, skip_serializing_if = "Maxima::is_empty")]
    pub maxima_b: Maxima,
    /// The judgement on all figures.
    pub change: Change,
}

/// Two threads on a pair of CPUs that both sides have in their matrices. Jitter is the largest |interval - period|.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct VersusPair {
    /// The load on the first side.
    pub load_a: String,
    /// The load on the second side.
    pub load_b: String,
    /// The threads with their CPUs.
    pub places: Vec<Placement>,
    /// Jitter of each thread on the first side, ns: the median of the rounds.
    pub jitter_a_ns: Vec<f64>,
    /// Jitter of each thread on the second side, ns: the median of the rounds.
    pub jitter_b_ns: Vec<f64>,
}

/// A compared figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// Median, ns.
    Median,
    /// 99th percentile, ns.
    P99,
    /// 99.9th percentile, ns.
    #[serde(rename = "p99_9")]
    P999,
    /// 99.99th percentile, ns.
    #[serde(rename = "p99_99")]
    P9999,
    /// Largest value, ns.
    Max,
    /// Largest difference of an interval from the period, ns.
    Jitter,
    /// Missed, lost and unanswered ones, as a share of all, 0 to 1.
    Missed,
}

impl Measure {
    /// All of them, as in tables.
    pub const ALL: [Self; 7] =
        [Self::Median, Self::P99, Self::P999, Self::P9999, Self::Max, Self::Jitter, Self::Missed];

    /// Its name in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Median => "median",
            Self::P99 => "p99",
            Self::P999 => "p99.9",
            Self::P9999 => "p99.99",
            Self::Max => "max",
            Self::Jitter => "jitter",
            Self::Missed => "missed",
        }
    }
}

/// The effect on one figure.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct MeasureEffect {
    /// Median of the first side's rounds, ns or a share.
    pub a: f64,
    /// Median of the second side's rounds, ns or a share.
    pub b: f64,
    /// The ratio of B to A; for `missed` the difference of the shares.
    pub estimate: f64,
    /// Lower end of its interval; absent if there are too few rounds for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Upper end of its interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// The judgement on this figure.
    pub change: Change,
    /// Number of rounds of each side, alternating as A B B A or on different machines, that show a difference of `least_ratio` in 95
    /// of 100 cases, if the rounds vary as these did; absent if it is larger than 200, or unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rounds_needed: Option<u32>,
    /// Number of rounds of each side that have the figure; absent if all have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rounds: Option<[u64; 2]>,
    /// Why the figure is not judged; empty if it is.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why_not: String,
}

/// The ratio of one percentile.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct PercentileRatio {
    /// The percentile, e.g. 99.9.
    pub percent: f64,
    /// The ratio of B to A.
    pub estimate: f64,
    /// Lower end of its interval; absent if there are too few rounds for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Upper end of its interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
}

/// What the second side is against the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// More punctual.
    Better,
    /// Less punctual.
    Worse,
    /// Better in one figure or group, and worse in another.
    Mixed,
    /// No difference was shown.
    NoDifference,
    /// There are too few rounds for a judgement.
    TooFewRounds,
    /// The sides have no figure in common.
    #[default]
    NotComparable,
}

impl Change {
    /// The judgement on several figures or groups.
    #[must_use]
    pub fn of_all(changes: &[Self]) -> Self {
        let any = |wanted: &[Self]| changes.iter().any(|change| wanted.contains(change));
        match (any(&[Self::Better, Self::Mixed]), any(&[Self::Worse, Self::Mixed])) {
            (true, true) => Self::Mixed,
            (true, false) => Self::Better,
            (false, true) => Self::Worse,
            (false, false) if any(&[Self::NoDifference]) => Self::NoDifference,
            (false, false) if any(&[Self::TooFewRounds]) => Self::TooFewRounds,
            (false, false) => Self::NotComparable,
        }
    }
}

impl Versus {
    /// Returns the JSON Schema of this document, generated from the types.
    #[must_use]
    pub fn json_schema() -> serde_json::Value {
        crate::schema_of::<Self>(VERSUS_SCHEMA)
    }
}

impl Across {
    /// Returns the JSON Schema of this document, generated from the types.
    #[must_use]
    pub fn json_schema() -> serde_json::Value {
        crate::schema_of::<Self>(ACROSS_SCHEMA)
    }
}

#[cfg(test)]
mod tests {
    use super::Change::{Better, Mixed, NoDifference, NotComparable, TooFewRounds, Worse};
    use super::*;

    #[test]
    fn the_judgement_on_all_says_if_any_is_worse() {
        for (all, expected) in [
            (&[NoDifference, Worse][..], Worse),
            (&[Better, NoDifference, TooFewRounds], Better),
            (&[Better, Worse], Mixed),
            (&[Mixed], Mixed),
            (&[TooFewRounds, NoDifference], NoDifference),
            (&[TooFewRounds, NotComparable], TooFewRounds),
            (&[], NotComparable),
        ] {
            assert_eq!(Change::of_all(all), expected, "{all:?}");
        }
    }
}
