//! The campaign document: one entry per scenario in running order, each with the name of its run record.
//!
//! The document is rewritten after each scenario, so it always shows which scenarios have run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{EndedBy, Extra, GONE, OFFLINE, Outcome, Record, RoleResult, State, Tool, Verdict, role::absent_together};

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
        !self.scenarios.is_empty() && self.scenarios.iter().all(|scenario| scenario.result.is_some())
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
        } else if any(Outcome::Inconclusive) || self.state == State::Interrupted || !self.is_complete() {
            Outcome::Inconclusive
        } else {
            Outcome::Pass
        };
        outcome.exit_status()
    }

    /// Returns the JSON Schema of this document, generated from the types.
    #[must_use]
    pub fn json_schema() -> serde_json::Value {
        crate::schema_of::<Self>(CAMPAIGN_SCHEMA)
    }
}

impl ScenarioEntry {
    /// Stores the results of a run of this scenario, and why it is flawed. A run that its user ended has no result, so
    /// that a resumed campaign repeats it; an invalid run has one even if it ended itself early.
    pub fn set_run(&mut self, record: &Record, took_ns: u64, culprit: Option<String>) {
        let by_user = matches!(record.ended_by, Some(EndedBy::Signal | EndedBy::Key));
        let has_result = record.state == State::Complete || !record.validity.valid && !by_user;
        self.reason = why_flawed(record).filter(|_| has_result || !by_user);
        self.result = has_result.then(|| ScenarioResult::of(record, took_ns, culprit));
    }

    /// True if policy, CPUs and loads of the record are those of this scenario.
    #[must_use]
    pub fn is_of(&self, record: &Record) -> bool {
        let mut asked = record.phases.iter().flat_map(|phase| &phase.asked_loads);
        let had_all =
            || self.loads.iter().all(|load| record.phases.iter().any(|phase| phase.asked_loads.contains(load)));
        // Without CPUs in the plan, the run chooses them. A run that ended early may not have had all loads.
        record.scenario.policy == self.policy
            && (self.cpus.is_empty() || record.scenario.cpus.as_ref() == Some(&self.cpus))
            && asked.all(|load| self.loads.contains(load))
            && (record.state != State::Complete || had_all())
    }

    /// Marks the result as one that cannot be checked, because its record cannot be read: `why` is one line.
    pub fn set_unreadable(&mut self, why: &str) {
        let Some(result) = &mut self.result else { return };
        let text = format!("the stored result cannot be checked: {why}");
        if !matches!(result.outcome, Some(Outcome::Fail | Outcome::Invalid)) {
            (result.outcome, result.reason) = (Some(Outcome::Inconclusive), Some(text.clone()));
        }
        (result.roles, result.culprit, result.problem) = (Vec::new(), None, Some(text));
    }
}

/// The reason why a run is invalid, or ended itself early; `None` for any other run.
fn why_flawed(record: &Record) -> Option<String> {
    if let Some(reason) = record.validity.reasons.first() {
        return Some(reason.text.clone());
    }
    let cause = || record.caveats.iter().find(|caveat| matches!(caveat.kind.as_str(), GONE | OFFLINE));
    let cause = || cause().map_or_else(|| "it did not run to its end".to_owned(), |caveat| caveat.text.clone());
    (record.state != State::Complete).then(cause)
}

/// File name of the record of scenario number `index`, from 0: `003-switch-10us-2.punctual.json`.
#[must_use]
pub fn record_name(index: usize, name: &str, repeat: u32) -> String {
    let words = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let name: String = words.collect::<Vec<_>>().join("-").chars().take(60).collect();
    format!("{:03}-{name}-{repeat}.punctual.json", index + 1)
}

impl ScenarioResult {
    /// The roles of the kind of measurement that the run is about, see [`crate::Measured`].
    pub fn main_roles(&self) -> impl Iterator<Item = &RoleResult> {
        let main = self.roles.iter().map(|role| role.measured).min();
        self.roles.iter().filter(move |role| Some(role.measured) == main)
    }

    /// Deadlines, answers, interrupts and frames that never came, those of parts of the measurement not counted again.
    #[must_use]
    pub fn absent(&self) -> u64 {
        absent_together(&self.roles.iter().map(|role| (role.measured, role.absent())))
    }

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

    #[test]
    fn names_records_by_number_name_and_repeat() {
        assert_eq!(record_name(2, "switch:10us, CPU 3", 1), "003-switch-10us-CPU-3-1.punctual.json");
    }

    #[test]
    fn a_flawed_run_has_a_reason() {
        let record = Record { state: State::Complete, ..Record::default() };
        assert_eq!(why_flawed(&record), None);
        let ended = Record { state: State::Interrupted, ..record.clone() };
        assert_eq!(why_flawed(&ended).as_deref(), Some("it did not run to its end"));
        let caveat = crate::Caveat { kind: GONE.to_owned(), text: "no answer".to_owned() };
        assert_eq!(why_flawed(&Record { caveats: vec![caveat], ..ended }).as_deref(), Some("no answer"));
        let mut invalid = record;
        invalid.validity.reasons.push(crate::Reason { text: "moved".to_owned(), ..crate::Reason::default() });
        assert_eq!(why_flawed(&invalid).as_deref(), Some("moved"));
    }

    #[test]
    fn a_run_that_its_user_ended_has_no_result() {
        let run = |state, ended_by, valid| {
            let mut record = Record { state, ended_by, ..Record::default() };
            record.validity.valid = valid;
            let mut entry = ScenarioEntry::default();
            entry.set_run(&record, 1, None);
            (entry.result.is_some(), entry.reason.is_some())
        };
        assert_eq!(run(State::Complete, None, true), (true, false));
        assert_eq!(run(State::Interrupted, Some(EndedBy::Signal), false), (false, false));
        assert_eq!(run(State::Interrupted, Some(EndedBy::Key), true), (false, false));
        assert_eq!(run(State::Interrupted, Some(EndedBy::Failure), true), (false, true));
        assert_eq!(run(State::Interrupted, Some(EndedBy::Guard), false), (true, true));
        assert!(run(State::Complete, None, false).0);
    }

    #[test]
    fn a_result_without_its_record_does_not_pass() {
        for (stored, expected) in [
            (Some(Outcome::Pass), Outcome::Inconclusive),
            (None, Outcome::Inconclusive),
            (Some(Outcome::Fail), Outcome::Fail),
            (Some(Outcome::Invalid), Outcome::Invalid),
        ] {
            let result = ScenarioResult { outcome: stored, valid: true, ..ScenarioResult::default() };
            let mut entry = ScenarioEntry { result: Some(result), ..ScenarioEntry::default() };
            entry.set_unreadable("no such file");
            let result = entry.result.clone().unwrap();
            assert_eq!(result.outcome, Some(expected));
            assert_eq!(result.problem.as_deref(), Some("the stored result cannot be checked: no such file"));
            let campaign = Campaign { scenarios: vec![entry], ..Campaign::default() };
            assert_eq!(campaign.exit_status(), expected.exit_status());
        }
    }
}
