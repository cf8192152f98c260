//! The campaign document: one entry per scenario in running order, each with the name of its run record.
//!
//! The document is rewritten after each scenario, so it always shows which scenarios have run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Extra, Outcome, Record, RoleResult, State, Tool, Verdict};

/// Name and version of the campaign format.
pub const CAMPAIGN_SCHEMA: &str = "punctual.campaign/1";

/// One campaign: the document `campaign.json` in the folder of its run records.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Campaign {
    /// Name and version of the format: `punctual.campaign/1`.
    pub schema: String,
    /// The program that wrote the document.
    pub tool: Tool,
    /// Progress of the campaign: `complete` if each scenario has run.
    pub state: State,
    /// Its name.
    pub name: String,
    /// Description in one line; empty if the campaign file has none.
    #[serde(default)]
    pub title: String,
    /// The publication that the campaign reproduces; empty if the campaign file names none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// FNV-1a digest of the plan, 16 hexadecimal digits. A campaign can only be resumed with the same plan.
    pub digest: String,
    /// When the campaign first started, RFC 3339.
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
    /// Published references to compare with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub against: Vec<String>,
    /// Planned duration of all scenarios with the pauses between them, ns.
    pub planned_ns: u64,
    /// Duration of the scenarios that ran with the pauses between them, ns. Time between a stop and a resume does not
    /// count.
    pub took_ns: u64,
    /// Remarks on the plan, e.g. which CPUs replaced a word of the file that matched no CPU of this machine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The scenarios in running order.
    pub scenarios: Vec<ScenarioEntry>,
    /// Fields that a newer version wrote.
    #[serde(flatten)]
    pub extra: Extra,
}

/// One scenario of a campaign.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ScenarioEntry {
    /// Name, unique within a repeat.
    pub name: String,
    /// Name of the probe in the campaign file.
    pub probe: String,
    /// Name of the load in the campaign file.
    pub load: String,
    /// Name of the placement in the campaign file.
    pub placement: String,
    /// Name of the settings in the campaign file.
    pub settings: String,
    /// Number of the repeat, from 1.
    pub repeat: u32,
    /// Measured CPUs, as the kernel writes a list; empty for all allowed CPUs.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cpus: String,
    /// Shielded CPUs; all other work is moved away from them. Empty without a shield.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub shield: String,
    /// Scheduling policy of the measuring threads: `fifo:90`; empty if the plan names none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub policy: String,
    /// Loads that run at the same time, as on the command line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loads: Vec<String>,
    /// Planned duration, ns.
    pub planned_ns: u64,
    /// File name of the run record, in the folder of this document.
    pub record: String,
    /// Results; absent until the scenario has run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<ScenarioResult>,
    /// Why its run is invalid, or ended early by itself; absent for any other run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Why the scenario could not run; absent if it ran or was not tried yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The figures of a scenario for the campaign's table. The run record contains all figures.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ScenarioResult {
    /// When the scenario ran, RFC 3339.
    pub started_at: String,
    /// Duration, ns.
    pub took_ns: u64,
    /// True if the run matches the request.
    pub valid: bool,
    /// Why the figures cannot be compared with those of other scenarios; absent if they can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// Verdict on the profiles; absent if the scenario has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// Why the verdict is FAIL or INCONCLUSIVE; absent for any other, and in older documents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Name of the cause in the first line of the ledger; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub culprit: Option<String>,
    /// One entry per role: `timer`, `base`, `servo`, `noise`, `round-trip`, `talker`.
    pub roles: Vec<RoleResult>,
}

impl Campaign {
    /// True if each scenario has run.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.scenarios.iter().all(|scenario| scenario.result.is_some())
    }

    /// The exit status: 1 after an error, else that of the worst scenario; at least inconclusive if a scenario has not run.
    #[must_use]
    pub fn exit_status(&self) -> u8 {
        if self.scenarios.iter().any(|scenario| scenario.error.is_some()) {
            return 1;
        }
        let results = || self.scenarios.iter().filter_map(|scenario| scenario.result.as_ref());
        let any = |wanted: Outcome| results().any(|result| result.outcome == Some(wanted));
        let outcome = if any(Outcome::Invalid) || results().any(|result| !result.valid) {
            Outcome::Invalid
        } else if any(Outcome::Fail) {
            Outcome::Fail
        } else if any(Outcome::Inconclusive) || !self.is_complete() {
            Outcome::Inconclusive
        } else {
            Outcome::Pass
        };
        outcome.exit_status()
    }

    /// Returns the JSON Schema of this document, generated from the types.
    #[must_use]
    pub fn json_schema() -> serde_json::Value {
        let mut schema = schemars::schema_for!(Self);
        schema.insert("$id".into(), format!("https://punctual.invalid/schema/{CAMPAIGN_SCHEMA}").into());
        schema.insert("title".into(), CAMPAIGN_SCHEMA.into());
        schema.to_value()
    }
}

impl ScenarioResult {
    /// Summarizes a run.
    #[must_use]
    pub fn of(record: &Record, took_ns: u64, culprit: Option<String>) -> Self {
        let mut roles: Vec<&str> = record.series.iter().map(|series| series.role.as_str()).collect();
        let mut seen = std::collections::BTreeSet::new();
        roles.retain(|role| seen.insert(*role));
        let has_reason = |verdict: &&Verdict| matches!(verdict.outcome, Outcome::Fail | Outcome::Inconclusive);
        Self {
            started_at: record.started_at.clone(),
            took_ns,
            valid: record.validity.valid,
            problem: record.obstacle().map(|obstacle| obstacle.to_string()),
            outcome: record.verdict.as_ref().map(|verdict| verdict.outcome),
            reason: record.verdict.as_ref().filter(has_reason).map(|verdict| verdict.reason.clone()),
            culprit,
            roles: roles.into_iter().map(|role| RoleResult::of(role, record)).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_complete_once_each_scenario_has_run() {
        let done = ScenarioEntry { result: Some(ScenarioResult::default()), ..ScenarioEntry::default() };
        let mut campaign = Campaign { scenarios: vec![done.clone(), ScenarioEntry::default()], ..Campaign::default() };
        assert!(!campaign.is_complete());
        campaign.scenarios[1] = done;
        assert!(campaign.is_complete());
    }
}
