//! The machine in a few lines, and what was noticed about it.

use record::{Finding, FindingState, Machine, Record};

use super::page::Page;
use crate::style::Ink;
use crate::{clocks, evl, shielding};

/// Findings that are shown before the rest is left to `punctual machine`.
const FINDINGS_SHOWN: usize = 5;
/// Columns of the facts' names.
const NAMES: usize = 7;

/// The facts that say most about a machine's punctuality.
pub(super) fn facts(page: &mut Page, record: &Record) {
    let machine = &record.machine;
    let [model, kernel, set_up] = of_machine(machine);
    let facts = [
        model,
        kernel,
        set_up,
        // What a user's own program was granted stands with each of its threads.
        ("shield", shielding::how(record.shielding.as_ref())),
        ("stayed", shielding::left(record.shielding.as_ref()).join("; ")),
        ("rights", if record.program.is_some() { String::new() } else { rights(record) }),
    ];
    if machine.hostname.is_none() && facts.iter().all(|(_, text)| text.is_empty()) {
        return;
    }
    page.heading(&format!("Machine {}", machine.hostname.as_deref().unwrap_or("without a name")));
    list(page, &facts);
}

/// What a machine is, in three facts.
pub(super) fn of_machine(machine: &Machine) -> [(&'static str, String); 3] {
    [
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
    ]
}

/// The other facts, for those who want all of them.
pub(super) fn more_facts(page: &mut Page, machine: &Machine) {
    let memory = machine.memory_bytes.map(|bytes| format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30)));
    let facts = [
        ("memory", memory.unwrap_or_default()),
        ("clock", join([&machine.clocksource, &machine.clocks.as_ref().map(clocks::in_words)])),
        ("idle", join([&machine.idle_states])),
        ("SMT", join([&machine.smt])),
        ("no tick", join([&prefixed("CPUs ", &machine.cpus_nohz_full)])),
        ("allowed", join([&prefixed("CPUs ", &machine.cpus_allowed)])),
        ("rt time", join([&machine.rt_throttling])),
        ("EVL", machine.evl.as_ref().map_or_else(String::new, evl::core)),
        ("gravity", join([&machine.evl_gravity])),
        ("build", join([&machine.kernel_build])),
        ("config", join([&machine.config_digest])),
        ("command", join([&machine.cmdline])),
        ("ucode", join([&machine.microcode])),
        ("flaws", machine.mitigations.join("; ")),
    ];
    list(page, &facts);
}

pub(super) fn list(page: &mut Page, facts: &[(&str, String)]) {
    for (name, text) in facts.iter().filter(|(_, text)| !text.is_empty()) {
        page.fact(name, NAMES, text);
    }
}

/// What may cost punctuality, worst first, each with its remedy.
pub(super) fn findings(page: &mut Page, findings: &[Finding]) {
    let worst: Vec<&Finding> = [FindingState::Fail, FindingState::Warn].iter().flat_map(of(findings)).collect();
    if worst.is_empty() {
        return;
    }
    page.heading("What may cost punctuality");
    list_worst(page, &worst);
}

/// The first of them, each with its remedy.
fn list_worst(page: &mut Page, worst: &[&Finding]) {
    for finding in worst.iter().take(FINDINGS_SHOWN) {
        let column = title(page, finding, 4);
        page.remedy(column, &finding.remedy);
    }
    if worst.len() > FINDINGS_SHOWN {
        page.text(Ink::Quiet, &format!("{} more: punctual machine shows all", worst.len() - FINDINGS_SHOWN));
    }
}

/// What may cost the punctuality of the far end; it stands below what that is.
pub(super) fn findings_there(page: &mut Page, findings: &[Finding]) {
    list_worst(page, &[FindingState::Fail, FindingState::Warn].iter().flat_map(of(findings)).collect::<Vec<_>>());
}

/// Everything that was looked at, worst first, each with where it was read and why it matters.
pub(super) fn all_findings(page: &mut Page, findings: &[Finding]) {
    use FindingState::{Fail, NotApplicable, Ok, Unknown, Warn};
    page.heading("What was looked at");
    for finding in [Fail, Warn, Unknown, Ok, NotApplicable].iter().flat_map(of(findings)) {
        let column = title(page, finding, 7);
        page.below(column, Ink::Quiet, &finding.evidence);
        page.below(column, Ink::Plain, &finding.why);
        page.remedy(column, &finding.remedy);
    }
}

fn of<'a>(findings: &'a [Finding]) -> impl Fn(&FindingState) -> Vec<&'a Finding> {
    |state| findings.iter().filter(|finding| finding.state == *state).collect()
}

/// The finding's title behind its state, states taking `states` columns; returns the column where it begins.
fn title(page: &mut Page, finding: &Finding, states: usize) -> usize {
    let (ink, word) = match finding.state {
        FindingState::Ok => (Ink::Good, "ok"),
        FindingState::Warn => (Ink::Alarm, "warn"),
        FindingState::Fail => (Ink::Bad, "fail"),
        FindingState::Unknown => (Ink::Doubt, "unknown"),
        FindingState::NotApplicable => (Ink::Quiet, "none"),
    };
    page.item(ink, word, states, &finding.title)
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
    let here = || record.of_the_probe().filter(|series| series.host.is_none());
    let granted = || here().map(|series| &series.granted);
    // Where threads were asked to differ, the policies of all are named.
    let policy = match granted().find(|granted| !asked.contains(&granted.policy)) {
        None if record.series.is_empty() => return String::new(),
        None => format!("{asked} granted"),
        Some(other) => format!("{asked} asked for, {} granted", other.policy),
    };
    let locked = if granted().all(|granted| granted.memory_locked) { "memory locked" } else { "memory not locked" };
    format!("{policy}, {locked}")
}
