//! `punctual check nic`: the settings of a network interface.

use machine::nic::{self, Answers};

use super::status;
use crate::{
    cli::{CheckNic, FailOn, NIC_PERIOD},
    output,
};

/// Findings about the whole machine that also affect its network interfaces.
const MACHINE_FINDINGS: [&str; 2] = ["kernel.preempt", "irq.balance"];

pub fn run(options: &CheckNic) -> anyhow::Result<u8> {
    let root = output::root(options.root.as_ref())?;
    let mut answers = Answers::of(&root);
    if let Some(folder) = &options.keep_answers {
        answers = answers.keep_in(folder.clone());
    }
    let interface = nic::Nic::read(&root, &mut answers, &options.interface)?;
    let machine = machine::facts(&root);
    let mut findings = nic::findings(&interface, options.period);
    let machine_findings = machine::findings(&root, &machine, None, None).into_iter();
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
    Ok(status(&findings, FailOn::Fail))
}

/// The command that prints everything.
fn full_command(options: &CheckNic) -> String {
    let root = options.root.as_ref().map(|root| root.to_string_lossy());
    let period = analysis::format_exact(options.period);
    let period = (period != NIC_PERIOD).then_some(&*period);
    let words = ["punctual", "check", "nic", &options.interface, "--full"];
    output::command_of(&words, &[("--period", period), ("--root", root.as_deref())])
}
