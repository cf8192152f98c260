//! The record before the first measurement.

use std::path::Path;

use machine::Root;
use record::{Record, SCHEMA, Scenario, Tool, Validity};

use super::now;

/// Path of the running binary, which works even if its file was deleted. It is used to start loads and never shown.
pub const SELF_EXE: &str = "/proc/self/exe";

/// The record before the first measurement: the plan, the command that repeats the run, and the state of the machine.
#[must_use]
pub fn begin(command: &[String], executable: &Path, scenario: Scenario, root: &Root) -> Record {
    let root = root.at_once();
    let machine = machine::facts(&root);
    let mut findings = machine::findings(&root, &machine, None, None);
    let name = if executable == Path::new(SELF_EXE) { "punctual".into() } else { executable.to_string_lossy() };
    let this_binary = record::shell::command(&[name]);
    for finding in &mut findings {
        finding.remedy = finding.remedy.replace(machine::PUNCTUAL, &this_binary);
    }
    Record {
        schema: SCHEMA.to_owned(),
        tool: Tool { name: "punctual".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() },
        started_at: now(),
        written_at: now(),
        command: command.to_vec(),
        scenario,
        machine,
        findings,
        validity: Validity { valid: true, reasons: Vec::new() },
        ..Record::default()
    }
}
