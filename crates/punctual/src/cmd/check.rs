//! `punctual check`: the settings of the machine that cause lateness. Each part with a check of its own has a file.

mod machine;
mod nic;

use record::{Finding, FindingState};

use crate::cli::{Check, CheckPart, FailOn};

pub fn run(check: &Check) -> anyhow::Result<u8> {
    match &check.part {
        None => machine::run(&check.machine),
        Some(CheckPart::Nic(options)) => nic::run(options),
    }
}

/// The exit status: 2 if a finding is as bad as `fail_on`.
fn status(findings: &[Finding], fail_on: FailOn) -> u8 {
    let is_bad = |state: FindingState| match fail_on {
        FailOn::Warn => matches!(state, FindingState::Warn | FindingState::Fail),
        FailOn::Fail => state == FindingState::Fail,
        FailOn::Never => false,
    };
    if findings.iter().any(|finding| is_bad(finding.state)) { 2 } else { 0 }
}
