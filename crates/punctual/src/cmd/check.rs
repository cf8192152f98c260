//! `punctual check`: checks one part of the machine in detail.

use machine::nic::{self, Answers};
use record::{Finding, FindingState};

use crate::{
    cli::{Check, CheckNic, NIC_PERIOD},
    output,
};

/// Findings about the whole machine that also affect its network interfaces.
const MACHINE_FINDINGS: [&str; 2] = ["kernel.preempt", "irq.balance"];

pub fn run(check: &Check) -> anyhow::Result<u8> {
    match check {
        Check::Nic(options) => check_nic(options),
    }
}

fn check_nic(options: &CheckNic) -> anyhow::Result<u8> {
    let root = output::root(options.root.as_ref())?;
    let mut answers = Answers::of(&root);
    if let Some(folder) = &options.keep_answers {
        answers = answers.keep_in(folder.clone());
    }
    let interface = nic::Nic::read(&root, &mut answers, &options.interface)?;
    let machine = machine::facts(&root);
    let mut findings = nic::findings(&interface, options.period);
    let machine_findings = machine::findings(&root, &machine).into_iter();
    findings.extend(machine_findings.filter(|finding| MACHINE_FINDINGS.contains(&finding.id.as_str())));
    if options.output.json {
        let json = serde_json::json!({ "machine": machine, "interface": interface, "findings": findings });
        output::stdout(|out| writeln!(out, "{}", output::json(&json)))?;
    } else if options.output.quiet && !options.extent.full {
        output::print(options.output, |style, width| report::terminal::machine_headline(&findings, style, width))?;
    } else if !options.extent.full {
        let full = full_command(options);
        output::print(options.output, |style, width| {
            report::terminal::check_answer(&interface.in_words(), &findings, &full, style, width)
        })?;
    } else {
        let title = format!("Interface {}", interface.interface);
        output::print(options.output, |style, width| {
            report::terminal::check(&title, &interface.in_words(), &findings, style, width)
        })?;
    }
    Ok(status(&findings))
}

/// The command that prints everything.
fn full_command(options: &CheckNic) -> String {
    let root = options.root.as_ref().map(|root| root.to_string_lossy());
    let period = analysis::format_exact(options.period);
    let period = (period != NIC_PERIOD).then_some(&*period);
    let named = [("--period", period), ("--root", root.as_deref())];
    let named = named.into_iter().filter_map(|(name, value)| Some([name, value?])).flatten();
    let words: Vec<&str> =
        ["punctual", "check", "nic", &options.interface, "--full"].into_iter().chain(named).collect();
    record::shell::command(&words)
}

/// The exit status: 2 if a check failed.
fn status(findings: &[Finding]) -> u8 {
    if findings.iter().any(|finding| finding.state == FindingState::Fail) { 2 } else { 0 }
}
