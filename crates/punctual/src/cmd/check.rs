//! `punctual check`: one part of the machine, looked at closely.

use machine::{
    Root,
    nic::{self, Answers},
};
use record::{Finding, FindingState};

use crate::{
    cli::{Check, CheckNic},
    output,
};

/// Findings about the whole machine that decide about its network, too.
const OF_THE_MACHINE: [&str; 2] = ["kernel.preempt", "irq.balance"];

pub fn run(what: &Check) -> anyhow::Result<u8> {
    match what {
        Check::Nic(options) => check_nic(options),
    }
}

fn check_nic(options: &CheckNic) -> anyhow::Result<u8> {
    let root = options.root.as_ref().map_or_else(Root::system, Root::at);
    let mut answers = Answers::of(&root);
    if let Some(folder) = &options.keep_answers {
        answers = answers.keep_in(folder.clone());
    }
    let interface = nic::Nic::read(&root, &mut answers, &options.interface)?;
    let machine = machine::facts(&root);
    let mut findings = nic::findings(&interface, options.period);
    let of_machine = machine::findings(&root, &machine).into_iter();
    findings.extend(of_machine.filter(|finding| OF_THE_MACHINE.contains(&finding.id.as_str())));
    if options.talk.json {
        let json = serde_json::json!({ "machine": machine, "interface": interface, "findings": findings });
        output::stdout(|out| writeln!(out, "{json:#}"))?;
    } else {
        let title = format!("Interface {}", interface.interface);
        output::print(options.talk, |style, width| {
            report::terminal::check(&title, &interface.in_words(), &findings, style, width)
        })?;
    }
    Ok(status(&findings))
}

/// 2 when something costs punctuality for certain.
fn status(findings: &[Finding]) -> u8 {
    if findings.iter().any(|finding| finding.state == FindingState::Fail) { 2 } else { 0 }
}
