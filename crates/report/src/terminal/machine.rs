//! The machine in a few lines, and what was noticed about it.

use record::{Finding, FindingState, Record};

use super::page::Page;
use crate::style::Ink;

/// Findings that are shown before the rest is left to `punctual machine`.
const FINDINGS_SHOWN: usize = 5;

/// The facts that say most about a machine's punctuality.
pub(super) fn facts(page: &mut Page, record: &Record) {
    let machine = &record.machine;
    let facts = [
        ("model", join([&machine.model, &machine.cpu_model, &prefixed("CPUs ", &machine.cpus_online), &machine.arch])),
        ("kernel", join([&machine.kernel, &machine.preempt.as_deref().map(preemption), &machine.os])),
        (
            "set up",
            join([
                &prefixed("governor ", &machine.governor),
                &machine.cpus_isolated.as_deref().map(isolation),
                &machine.hypervisor.as_deref().map(hypervisor),
                &machine.container.as_deref().filter(|kind| *kind != "none").map(|kind| format!("{kind} container")),
            ]),
        ),
        ("rights", rights(record)),
    ];
    page.heading(&format!("Machine {}", machine.hostname.as_deref().unwrap_or("without a name")));
    for (name, text) in facts.iter().filter(|(_, text)| !text.is_empty()) {
        page.fact(name, 6, text);
    }
}

/// What may cost punctuality, worst first, each with its remedy.
pub(super) fn findings(page: &mut Page, findings: &[Finding]) {
    let of = |state| findings.iter().filter(move |finding| finding.state == state);
    let worst: Vec<&Finding> = of(FindingState::Fail).chain(of(FindingState::Warn)).collect();
    if worst.is_empty() {
        return;
    }
    page.heading("What may cost punctuality");
    for finding in worst.iter().take(FINDINGS_SHOWN) {
        let (ink, word) = if finding.state == FindingState::Fail { (Ink::Bad, "fail") } else { (Ink::Alarm, "warn") };
        let column = page.item(ink, word, 4, &finding.title);
        page.command(column, &finding.remedy);
    }
    if worst.len() > FINDINGS_SHOWN {
        page.text(Ink::Quiet, &format!("{} more: punctual machine shows all", worst.len() - FINDINGS_SHOWN));
    }
}

fn join<const N: usize>(parts: [&Option<String>; N]) -> String {
    let known: Vec<&str> = parts.into_iter().flatten().map(String::as_str).filter(|part| !part.is_empty()).collect();
    known.join(", ")
}

fn prefixed(prefix: &str, fact: &Option<String>) -> Option<String> {
    fact.as_deref().filter(|fact| !fact.is_empty()).map(|fact| format!("{prefix}{fact}"))
}

fn preemption(model: &str) -> String {
    if model == "PREEMPT_RT" { model.to_owned() } else { format!("preemption {model} (not PREEMPT_RT)") }
}

fn isolation(cpus: &str) -> String {
    if cpus.is_empty() { "no CPU isolated".to_owned() } else { format!("CPUs {cpus} isolated") }
}

fn hypervisor(name: &str) -> String {
    if name == "none" { "bare metal".to_owned() } else { format!("virtual machine ({name})") }
}

/// What the kernel allowed the measuring threads, all of them taken together.
fn rights(record: &Record) -> String {
    let asked = &record.scenario.policy;
    let granted = || record.series.iter().map(|series| &series.granted);
    let policy = match granted().find(|granted| granted.policy != *asked) {
        None if record.series.is_empty() => return String::new(),
        None => format!("{asked} granted"),
        Some(other) => format!("{asked} asked for, {} granted", other.policy),
    };
    let locked = if granted().all(|granted| granted.memory_locked) { "memory locked" } else { "memory not locked" };
    format!("{policy}, {locked}")
}
