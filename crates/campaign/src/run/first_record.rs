//! The record before anything was measured.

use std::path::Path;

use machine::Root;
use record::{Record, SCHEMA, Scenario, Tool, Validity};

use super::now;

/// This program, also where its file is gone: for loads, not for people.
pub const SELF_EXE: &str = "/proc/self/exe";

/// The record before anything was measured: what was asked for, by the command that repeats it, and the machine as it is.
#[must_use]
pub fn begin(command: &[String], executable: &Path, scenario: Scenario, root: &Root) -> Record {
    let machine = machine::facts(root);
    let mut findings = machine::findings(root, &machine);
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
