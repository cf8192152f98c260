//! The document of `punctual tune --prove`: rounds measured with and without changes, and the conclusions from them.
//!
//! The document is rewritten after each round, so that a search goes on where a power cut ended it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Extra, Scenario, State, Tool};

/// Name and version of the format.
pub const PROOF_SCHEMA: &str = "punctual.proof/1";

/// Name of the candidate that changes nothing, and shows what chance alone does.
pub const CONTROL: &str = "control";

/// The search for the changes that make a machine more punctual.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Proof {
    /// Name and version of the format: `punctual.proof/1`.
    pub schema: String,
    /// The program that wrote the document.
    pub tool: Tool,
    /// Progress of the search: `complete` if its conclusions are final.
    pub state: State,
    /// When it first started, RFC 3339.
    pub started_at: String,
    /// When this document was last written, RFC 3339.
    pub written_at: String,
    /// The command line that started it.
    pub command: Vec<String>,
    /// Host name of the machine; absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
    /// Kernel release of the machine; absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// The requested measurement, the same in each round.
    pub scenario: Scenario,
    /// Digest of the requested measurement and of the candidates, 16 hexadecimal digits. A search can only be resumed
    /// with the same.
    pub digest: String,
    /// Seed of the random order of the rounds.
    pub seed: u64,
    /// Measured time of a round, ns.
    pub round_ns: u64,
    /// Number of blocks of four rounds that the budget allows.
    pub blocks: u32,
    /// The candidates. The one named `control` changes nothing.
    pub candidates: Vec<Candidate>,
    /// The rounds in the order in which they ran. Those of a block that a stop interrupted are repeated, and not here.
    pub rounds: Vec<Round>,
    /// Indices of the candidates that the confirmation tries together; absent before it starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chosen: Option<Vec<usize>>,
    /// Boots of the search; absent if the changes need no reboot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boots: Option<Boots>,
    /// The conclusions; absent until the search is complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conclusion: Option<Conclusion>,
    /// Fields that a newer version wrote.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Proof {
    /// An error in one line if the document contradicts itself.
    ///
    /// # Errors
    /// An index without a candidate, or conclusions about other candidates.
    pub fn check(&self) -> Result<(), String> {
        let count = self.candidates.len();
        let compared = self.rounds.iter().filter_map(|round| match round.compares {
            Compares::Without(index) => Some(index),
            Compares::Halves | Compares::Chosen => None,
        });
        let concluded = self.conclusion.iter().flat_map(|conclusion| &conclusion.kept);
        let applied = self.rounds.iter().flat_map(|round| &round.applied);
        let mut all = applied.chain(self.chosen.iter().flatten()).chain(concluded).copied().chain(compared);
        if let Some(index) = all.find(|&index| index >= count) {
            return Err(format!("it names the candidate {index}, but has {count}"));
        }
        if self.chosen.iter().flatten().any(|&index| self.candidates[index].id == CONTROL) {
            return Err("it chose the control, which changes nothing".to_owned());
        }
        match &self.conclusion {
            Some(conclusion) if conclusion.effects.len() != count => {
                Err(format!("it has {} effects of {count} candidates", conclusion.effects.len()))
            }
            _ => Ok(()),
        }
    }

    /// True if the control, which changes nothing, seems to have an effect: then chance was stronger than the search expects.
    #[must_use]
    pub fn is_restless(&self, effects: &[Effect]) -> bool {
        let mut judged = self.candidates.iter().zip(effects);
        judged.any(|(candidate, effect)| candidate.id == CONTROL && effect.judgement != Judgement::NoDifference)
    }

    /// The command that runs the search again, or the rest of it, quoted for a shell; empty if it is not known.
    #[must_use]
    pub fn next_command(&self) -> String {
        let mut words = self.command.clone();
        if self.state != State::Complete && !words.is_empty() && !words.iter().any(|word| word == "--resume") {
            // The words after `--` are those of the measurement.
            let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
            words.insert(end, "--resume".to_owned());
        }
        crate::shell::command(&words)
    }

    /// Returns the JSON Schema of this document, generated from the types.
    #[must_use]
    pub fn json_schema() -> serde_json::Value {
        crate::schema_of::<Self>(PROOF_SCHEMA)
    }
}

/// A search whose rounds are boots, because its changes need a reboot.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Boots {
    /// Arguments of the kernel without any change.
    pub arguments: String,
    /// Path of the kernel's image without any change.
    pub kernel: String,
    /// Number of boots in a row that were requested without the requested kernel coming up.
    pub attempts: u32,
    /// Number of the round, from 0, that the next boot is for; absent while none is requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested: Option<u64>,
}

/// One change whose effect is measured.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Candidate {
    /// Its id in `punctual tune`.
    pub id: String,
    /// The change in a few words.
    pub change: String,
}

/// One measurement with some of the candidates applied.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Round {
    /// Number of its block of four rounds, from 0.
    pub block: u32,
    /// The comparison that its block makes.
    pub compares: Compares,
    /// Indices of the candidates that were applied.
    pub applied: Vec<usize>,
    /// True for the side of a comparison whose effect is asked: A in A/B/B/A.
    pub is_with: bool,
    /// When it started, RFC 3339.
    pub started_at: String,
    /// Number of samples.
    pub samples: u64,
    /// Its figures.
    pub figures: RoundFigures,
}

/// The comparison that a block makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Compares {
    /// Half of the candidates with the other half.
    #[default]
    Halves,
    /// The chosen candidates with the starting point.
    Chosen,
    /// The chosen candidates with the same without this one.
    Without(usize),
}

/// A figure of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Figure {
    /// 99th percentile, ns.
    #[default]
    P99,
    /// 99.99th percentile, ns.
    #[serde(rename = "p99_99")]
    P9999,
    /// Largest time, ns.
    Max,
    /// Missed, lost and late ones, as a share of all, 0 to 1.
    Missed,
}

impl Figure {
    /// All figures.
    pub const ALL: [Self; 4] = [Self::P99, Self::P9999, Self::Max, Self::Missed];

    /// Its name in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::P99 => "p99",
            Self::P9999 => "p99.99",
            Self::Max => "max",
            Self::Missed => "missed",
        }
    }
}

/// The figures of a round, all CPUs together; a figure that could not be measured is absent.
pub type RoundFigures = BTreeMap<Figure, f64>;

/// The conclusions of a search.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Conclusion {
    /// One entry for each candidate, in their order.
    pub effects: Vec<Effect>,
    /// The effect of all kept candidates together, against the starting point; absent if none was chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub together: Option<Effect>,
    /// Indices of the candidates that are kept.
    pub kept: Vec<usize>,
    /// Why none of the chosen candidates is kept; absent if that did not happen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why_not: Option<String>,
}

/// The effect of a candidate, or of several together.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Effect {
    /// The judgement.
    pub judgement: Judgement,
    /// Its effect on each figure that could be measured.
    pub on: BTreeMap<Figure, Interval>,
    /// Its effect beside the other chosen ones: these with it against these without it. Absent if that was not measured.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub beside: BTreeMap<Figure, Interval>,
}

/// The judgement on a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Judgement {
    /// No difference was measurable.
    #[default]
    NoDifference,
    /// It makes at least one figure better, and none worse.
    Helps,
    /// It makes at least one figure worse, and none better.
    Harms,
    /// It makes one figure better and another one worse.
    Mixed,
    /// It makes a figure better, but the rounds with the largest times all had it.
    RareHarm,
}

/// An estimate with its confidence interval.
///
/// For times: the ratio of the figure with the change to that without, so that 0.5 is half as late. For `missed`: the
/// difference of the shares.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    /// The estimate.
    pub estimate: f64,
    /// Lower end; absent if there are too few blocks for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Upper end; absent if there are too few blocks for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// Number of blocks of four rounds that it comes from.
    pub blocks: u32,
}
