//! The campaign record: one entry a scenario, in the order they run, each naming the run record that it made.
//!
//! It is written anew after each scenario, so it says at every moment what is done and what is still to do.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Extra, Outcome, Record, RoleResult, State, Tool};

/// Name and version of the campaign document's form.
pub const CAMPAIGN_SCHEMA: &str = "punctual.campaign/1";

/// One campaign: the document `campaign.json` in the folder of its records.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Campaign {
    /// Name and version of this form: [`CAMPAIGN_SCHEMA`].
    pub schema: String,
    /// What wrote it.
    pub tool: Tool,
    /// How far the campaign got: `complete` when each scenario has run.
    pub state: State,
    /// Its name.
    pub name: String,
    /// What it is, in words.
    #[serde(default)]
    pub title: String,
    /// Where the table comes from; empty where the file does not say.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// FNV-1a digest of the plan, 16 hexadecimal digits: only the same plan can be resumed.
    pub digest: String,
    /// When it began, RFC 3339; kept when it is resumed.
    pub started_at: String,
    /// When this document was last written, RFC 3339.
    pub written_at: String,
    /// The command line that began it.
    pub command: Vec<String>,
    /// Host name of the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
    /// Its kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// Published references to be laid beside.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub against: Vec<String>,
    /// How long all scenarios were to take, with the rests between, ns.
    pub planned_ns: u64,
    /// How long those that ran took, with the rests between, ns. Time between a stop and a resume is not counted.
    pub took_ns: u64,
    /// What stood in for words that fit no CPU of the machine, and what else was to be known before it ran.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The scenarios in the order in which they run.
    pub scenarios: Vec<ScenarioEntry>,
    /// Fields that a newer version wrote.
    #[serde(flatten)]
    pub extra: Extra,
}

/// One scenario of a campaign.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ScenarioEntry {
    /// Its name, unique among those of the same repeat.
    pub name: String,
    /// Name of the probe, as in the campaign file; as the next three.
    pub probe: String,
    /// Name of the load.
    pub load: String,
    /// Name of the placement.
    pub placement: String,
    /// Name of the settings.
    pub settings: String,
    /// Which repeat, from 1.
    pub repeat: u32,
    /// CPUs that it measures, as the kernel writes a list; empty for all that may be used.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cpus: String,
    /// CPUs that all else is moved off; empty for no shield.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub shield: String,
    /// Policy of its threads.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub policy: String,
    /// What runs beside it, as on the command line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loads: Vec<String>,
    /// How long it was to take, ns.
    pub planned_ns: u64,
    /// File of its run record, beside this document.
    pub record: String,
    /// What it gave; absent until it has run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<ScenarioResult>,
    /// Why it could not run; absent when it could, or was not tried yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The figures of a scenario that a table needs; the rest stands in its run record.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ScenarioResult {
    /// When it ran, RFC 3339.
    pub started_at: String,
    /// How long it took, ns.
    pub took_ns: u64,
    /// Whether what was asked for is what ran.
    pub valid: bool,
    /// The verdict on the profiles; absent when none was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// The name of the heaviest culprit, as the ledger's first line; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub culprit: Option<String>,
    /// One entry a role: `timer`, `base`, `servo`, `noise`, `round-trip`, `talker`.
    pub roles: Vec<RoleResult>,
}

impl Campaign {
    /// Whether each scenario has run.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.scenarios.iter().all(|scenario| scenario.result.is_some())
    }

    /// The JSON Schema of this document, generated from the types.
    #[must_use]
    pub fn json_schema() -> serde_json::Value {
        let mut schema = schemars::schema_for!(Self);
        schema.insert("$id".into(), format!("https://punctual.invalid/schema/{CAMPAIGN_SCHEMA}").into());
        schema.insert("title".into(), CAMPAIGN_SCHEMA.into());
        schema.to_value()
    }
}

impl ScenarioResult {
    /// The figures of a run.
    #[must_use]
    pub fn of(record: &Record, took_ns: u64, culprit: Option<String>) -> Self {
        let mut roles: Vec<&str> = record.series.iter().map(|series| series.role.as_str()).collect();
        let mut seen = std::collections::BTreeSet::new();
        roles.retain(|role| seen.insert(*role));
        Self {
            started_at: record.started_at.clone(),
            took_ns,
            valid: record.validity.valid,
            outcome: record.verdict.as_ref().map(|verdict| verdict.outcome),
            culprit,
            roles: roles.into_iter().map(|role| RoleResult::of(role, record)).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_campaign_is_complete_when_each_scenario_has_run() {
        let done = ScenarioEntry { result: Some(ScenarioResult::default()), ..ScenarioEntry::default() };
        let mut campaign = Campaign { scenarios: vec![done.clone(), ScenarioEntry::default()], ..Campaign::default() };
        assert!(!campaign.is_complete());
        campaign.scenarios[1] = done;
        assert!(campaign.is_complete());
    }
}
