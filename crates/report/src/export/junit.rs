//! JUnit XML, as Jenkins, GitLab and other servers read it: one test suite a record, one test case a use.
//!
//! FAIL is a failure, INVALID an error. INCONCLUSIVE and cases that were not judged are skipped, never passed. The
//! elements are those of the schema `junit-10.xsd` of Jenkins' xUnit plugin.

use std::fmt::Write;

use analysis::format_ns;
use record::{Campaign, Outcome, Record, ScenarioEntry, visible::one_line};

use super::case::{self, Case, cases};
use crate::{
    campaign::{named, summarize},
    caveats,
    terminal::time,
    words::sentence,
};

/// A test suite.
struct Suite {
    name: String,
    host: String,
    /// RFC 3339.
    started_at: String,
    duration_ns: u64,
    properties: Vec<(String, String)>,
    cases: Vec<TestCase>,
    /// Text about the suite as a whole.
    remarks: Vec<String>,
}

/// A test case of a suite.
struct TestCase {
    class: String,
    name: String,
    duration_ns: u64,
    result: TestResult,
    reason: String,
    /// Figures and statements, one a line.
    details: Vec<String>,
}

/// The result of a test case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TestResult {
    Passed,
    Failed,
    Error,
    /// Inconclusive or not judged.
    Skipped,
}

impl TestResult {
    fn of(outcome: Option<Outcome>) -> Self {
        match outcome {
            Some(Outcome::Pass) => Self::Passed,
            Some(Outcome::Fail) => Self::Failed,
            Some(Outcome::Invalid) => Self::Error,
            Some(Outcome::Inconclusive) | None => Self::Skipped,
        }
    }
}

/// Writes a record.
pub(super) fn record(record: &Record) -> String {
    let probe = &record.scenario.probe;
    let suite = Suite {
        name: format!("punctual {probe}"),
        host: case::host(record).to_owned(),
        started_at: record.started_at.clone(),
        duration_ns: case::duration_ns(record).unwrap_or_default(),
        properties: properties(record),
        cases: cases(record).iter().map(|case| of_case(record, case)).collect(),
        remarks: caveats::of_run(record).iter().map(|doubt| format!("{}: {}", doubt.kind, doubt.in_full())).collect(),
    };
    document(&suite)
}

fn of_case(record: &Record, case: &Case) -> TestCase {
    let mut details = vec![case.title.to_owned()];
    if let Some(a_use) = case.a_use {
        let worst = format!("worst {} {}", time(a_use.worst_ns), a_use.worst_where);
        details.extend([format!("limit {}", format_ns(a_use.limit_ns)), worst, a_use.statement.clone()]);
    }
    if case.outcome == Some(Outcome::Invalid) {
        details.extend(record.validity.reasons.iter().flat_map(|reason| [reason.text.clone(), reason.remedy.clone()]));
    }
    details.retain(|text| !text.is_empty());
    TestCase {
        class: format!("punctual.{}", record.scenario.probe),
        name: case.id.to_owned(),
        duration_ns: case::duration_ns(record).unwrap_or_default(),
        result: TestResult::of(case.outcome),
        reason: case.reason.clone(),
        details,
    }
}

/// Machine, settings, verdict, and the figures of each use.
fn properties(record: &Record) -> Vec<(String, String)> {
    let machine = &record.machine;
    let fact = |fact: &Option<String>| fact.clone().unwrap_or_default();
    let run = case::run(record);
    let is_valid = match run.outcome {
        // Nobody knows this about a run of another tool.
        _ if record.published.is_some() => "unknown",
        Some(Outcome::Invalid) => "false",
        _ => "true",
    };
    // The version of another tool.
    let version = if record.published.is_some() { "tool.version" } else { "punctual.version" }.to_owned();
    let mut properties = vec![
        (version, record.tool.version.clone()),
        ("tool".to_owned(), record.tool.name.clone()),
        ("command".to_owned(), record.command.join(" ")),
        ("host".to_owned(), fact(&machine.hostname)),
        ("machine".to_owned(), fact(&machine.model)),
        ("cpu".to_owned(), fact(&machine.cpu_model)),
        ("arch".to_owned(), fact(&machine.arch)),
        ("os".to_owned(), fact(&machine.os)),
        ("kernel".to_owned(), fact(&machine.kernel)),
        ("preemption".to_owned(), fact(&machine.preempt)),
        ("policy".to_owned(), record.scenario.policy.clone()),
        ("verdict".to_owned(), case::name(run.outcome).to_owned()),
        ("valid".to_owned(), is_valid.to_owned()),
    ];
    let worst_ns = record.probe_series().filter_map(|series| series.max_ns).max();
    properties.push(("worst_ns".to_owned(), worst_ns.map(|ns| ns.to_string()).unwrap_or_default()));
    for a_use in &record.uses {
        let named = |figure: &str| format!("{}.{figure}", a_use.profile);
        properties.extend([
            (named("limit_ns"), a_use.limit_ns.to_string()),
            (named("worst_ns"), a_use.worst_ns.map(|ns| ns.to_string()).unwrap_or_default()),
            (named("missed"), a_use.missed_known().map(|missed| missed.to_string()).unwrap_or_default()),
            (named("bound"), a_use.statement.clone()),
        ]);
    }
    properties.retain(|(_, value)| !value.is_empty());
    properties
}

/// Writes a campaign: one test case a scenario.
pub(super) fn campaign(campaign: &Campaign) -> String {
    let mut properties = vec![
        ("punctual.version".to_owned(), campaign.tool.version.clone()),
        ("command".to_owned(), campaign.command.join(" ")),
        ("host".to_owned(), campaign.hostname.clone().unwrap_or_default()),
        ("kernel".to_owned(), campaign.kernel.clone().unwrap_or_default()),
        ("title".to_owned(), campaign.title.clone()),
    ];
    properties.retain(|(_, value)| !value.is_empty());
    let suite = Suite {
        name: format!("punctual {}", campaign.name),
        host: campaign.hostname.clone().unwrap_or_else(|| "unknown".to_owned()),
        started_at: campaign.started_at.clone(),
        duration_ns: campaign.took_ns,
        properties,
        cases: campaign.scenarios.iter().map(|scenario| of_scenario(campaign, scenario)).collect(),
        remarks: campaign.notes.clone(),
    };
    document(&suite)
}

fn of_scenario(campaign: &Campaign, scenario: &ScenarioEntry) -> TestCase {
    let result = scenario.result.as_ref();
    let (outcome, reason) = case::of_scenario(scenario);
    let figures = result.map(|result| summarize(&result.roles)).unwrap_or_default();
    let reason = if reason.is_empty() { sentence(&figures) } else { reason };
    let details =
        [figures, format!("record {}", scenario.record)].into_iter().filter(|text| !text.is_empty()).collect();
    TestCase {
        class: format!("punctual.{}", campaign.name),
        name: named(scenario),
        duration_ns: result.map_or(0, |result| result.took_ns),
        result: TestResult::of(outcome),
        reason,
        details,
    }
}

/// The document with one suite.
fn document(suite: &Suite) -> String {
    let count = |result| suite.cases.iter().filter(|case| case.result == result).count();
    let counts = format!(
        "tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" time=\"{}\"",
        suite.cases.len(),
        count(TestResult::Failed),
        count(TestResult::Error),
        count(TestResult::Skipped),
        seconds(suite.duration_ns)
    );
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    // `skipped` is no attribute of `testsuites` in the schema.
    let all = counts.replace(&format!(" skipped=\"{}\"", count(TestResult::Skipped)), "");
    let _ = writeln!(out, "<testsuites name=\"punctual\" {all}>");
    let (name, host) = (attribute(&suite.name), attribute(&suite.host));
    let started = attribute(suite.started_at.trim_end_matches('Z'));
    let timestamp = if started.is_empty() { String::new() } else { format!(" timestamp=\"{started}\"") };
    let _ = writeln!(out, "  <testsuite name=\"{name}\" {counts}{timestamp} hostname=\"{host}\">");
    out.push_str("    <properties>\n");
    for (name, value) in &suite.properties {
        let _ = writeln!(out, "      <property name=\"{}\" value=\"{}\"/>", attribute(name), attribute(value));
    }
    out.push_str("    </properties>\n");
    suite.cases.iter().for_each(|case| out.push_str(&case.element()));
    if !suite.remarks.is_empty() {
        let _ = writeln!(out, "    <system-out>{}</system-out>", lines(&suite.remarks));
    }
    out.push_str("  </testsuite>\n</testsuites>\n");
    out
}

impl TestCase {
    fn element(&self) -> String {
        let (class, name) = (attribute(&self.class), attribute(&self.name));
        let mut out =
            format!("    <testcase classname=\"{class}\" name=\"{name}\" time=\"{}\">\n", seconds(self.duration_ns));
        let reason = attribute(&self.reason);
        let details = lines(&self.details);
        let _ = match self.result {
            TestResult::Passed => writeln!(out, "      <system-out>{}\n{details}</system-out>", content(&self.reason)),
            TestResult::Failed => {
                writeln!(out, "      <failure type=\"FAIL\" message=\"{reason}\">{details}</failure>")
            }
            TestResult::Error => writeln!(out, "      <error type=\"INVALID\" message=\"{reason}\">{details}</error>"),
            TestResult::Skipped => {
                writeln!(out, "      <skipped message=\"{reason}\"/>\n      <system-out>{details}</system-out>")
            }
        };
        out.push_str("    </testcase>\n");
        out
    }
}

/// A time in seconds with three decimals.
fn seconds(ns: u64) -> String {
    format!("{}.{:03}", ns / 1_000_000_000, ns / 1_000_000 % 1000)
}

/// Each text in a line of its own.
fn lines(texts: &[String]) -> String {
    texts.iter().map(|text| content(text)).collect::<Vec<_>>().join("\n")
}

/// The text as the value of an attribute.
fn attribute(text: &str) -> String {
    content(text).replace('"', "&quot;")
}

/// The text in one line as the content of an element. The two characters that are not hidden, but that XML does not
/// allow, are written as `\u{ffff}`.
fn content(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in one_line(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\u{fffe}' | '\u{ffff}' => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
    }
    out
}
