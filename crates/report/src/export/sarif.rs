//! SARIF 2.1.0, the format of code scanners: each finding about the machine is a result, and its id is that of a rule.
//!
//! A good setting is a result of the kind `pass`, an unknown one `open`. Only settings that may cause lateness have a
//! level. An invalid run is an unsuccessful invocation with its reasons as notifications.

use record::{Finding, FindingState, Machine, Outcome, Record, State, visible};
use serde_json::{Value, json};

use super::case;
use crate::caveats;

/// Writes the findings and the validity of a record.
pub(super) fn record(record: &Record) -> String {
    let run = case::run(record);
    let notification = |level: &str, id: &str, text: String| json!({ "level": level, "descriptor": { "id": id }, "message": { "text": text } });
    let invalid = record.validity.reasons.iter().map(|reason| {
        let remedy = if reason.remedy.is_empty() { String::new() } else { format!("\n{}", reason.remedy) };
        notification("error", &reason.id, format!("{}{remedy}", reason.text))
    });
    let caveats =
        caveats::of_run(record).into_iter().map(|doubt| notification("warning", &doubt.kind, doubt.in_full()));
    let is_successful = record.state == State::Complete && run.outcome != Some(Outcome::Invalid);
    let mut invocation = json!({
        "executionSuccessful": is_successful,
        "commandLine": record.command.join(" "),
        "toolExecutionNotifications": invalid.chain(caveats).collect::<Vec<_>>(),
    });
    if case::unix_seconds(&record.started_at).is_some() {
        invocation["startTimeUtc"] = json!(record.started_at);
    }
    let properties = json!({ "verdict": case::name(run.outcome), "reason": run.reason });
    let far = record.far.iter().flat_map(|far| far.findings.iter().map(|finding| (far.host.as_str(), finding)));
    let all: Vec<(&str, &Finding)> =
        record.findings.iter().map(|finding| (case::host(record), finding)).chain(far).collect();
    // The findings are punctual's, also about an imported record.
    let version = if record.published.is_some() { env!("CARGO_PKG_VERSION") } else { &record.tool.version };
    document(version, &all, &invocation, &properties)
}

/// Writes the findings about a machine.
pub(super) fn findings(machine: &Machine, findings: &[Finding]) -> String {
    let host = machine.hostname.as_deref().unwrap_or("unknown");
    let all: Vec<(&str, &Finding)> = findings.iter().map(|finding| (host, finding)).collect();
    let properties = json!({ "kernel": machine.kernel });
    document(env!("CARGO_PKG_VERSION"), &all, &json!({ "executionSuccessful": true }), &properties)
}

/// The document with one run. Each finding has the name of its machine.
fn document(version: &str, findings: &[(&str, &Finding)], invocation: &Value, properties: &Value) -> String {
    let mut rules: Vec<&Finding> = Vec::new();
    for (_, finding) in findings {
        if !rules.iter().any(|rule| rule.id == finding.id) {
            rules.push(finding);
        }
    }
    let index = |finding: &Finding| rules.iter().position(|rule| rule.id == finding.id);
    let results: Vec<Value> = findings.iter().map(|(host, finding)| result(host, finding, index(finding))).collect();
    let driver = json!({
        "name": "punctual",
        "version": version,
        "rules": rules.iter().map(|finding| rule(finding)).collect::<Vec<_>>(),
    });
    let document = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": driver },
            "invocations": [invocation],
            "originalUriBaseIds": { "ROOT": { "uri": "file:///" } },
            "results": results,
            "properties": properties,
        }],
    });
    visible::escape_json(format!("{document:#}\n"))
}

/// The rule of a finding, with the explanation and the remedy of this machine.
fn rule(finding: &Finding) -> Value {
    let help = [finding.why.as_str(), &finding.remedy].into_iter().filter(|text| !text.is_empty());
    let help = help.collect::<Vec<_>>().join("\n");
    let help = if help.is_empty() { "Nothing needs to be changed.".to_owned() } else { help };
    json!({
        "id": finding.id,
        "shortDescription": { "text": finding.title },
        "help": { "text": help },
        "defaultConfiguration": { "level": kind_and_level(finding.state).1 },
    })
}

fn result(host: &str, finding: &Finding, rule_index: Option<usize>) -> Value {
    let (kind, level) = kind_and_level(finding.state);
    let texts = [&finding.title, &finding.evidence, &finding.remedy].into_iter().filter(|text| !text.is_empty());
    let message = texts.map(String::as_str).collect::<Vec<_>>().join("\n");
    let mut location = json!({ "logicalLocations": [{ "name": host, "kind": "machine" }] });
    if let Some(uri) = file_of(&finding.evidence) {
        location["physicalLocation"] = json!({
            "artifactLocation": { "uri": uri, "uriBaseId": "ROOT" },
            "region": { "startLine": 1 },
        });
    }
    json!({
        "ruleId": finding.id,
        "ruleIndex": rule_index,
        "kind": kind,
        "level": level,
        "message": { "text": message },
        "locations": [location],
        "partialFingerprints": { "machineAndFinding/v1": format!("{host}/{}", finding.id) },
    })
}

/// The kind and the level of a result. The level of kinds other than `fail` must be `none`.
fn kind_and_level(state: FindingState) -> (&'static str, &'static str) {
    match state {
        FindingState::Fail => ("fail", "error"),
        FindingState::Warn => ("fail", "warning"),
        FindingState::Ok => ("pass", "none"),
        FindingState::Unknown => ("open", "none"),
        FindingState::NotApplicable => ("notApplicable", "none"),
    }
}

/// The first file of an evidence, such as `/proc/swaps = ...`, as a URI relative to `/`; `None` if it names none.
fn file_of(evidence: &str) -> Option<String> {
    let path = evidence.strip_prefix('/')?;
    let path = path.split([' ', ':', ',', '=']).next().filter(|path| !path.is_empty())?;
    let mut uri = String::new();
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => uri.push(char::from(byte)),
            other => uri.push_str(&format!("%{other:02X}")),
        }
    }
    Some(uri)
}
