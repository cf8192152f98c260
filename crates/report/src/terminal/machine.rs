//! Facts about the machine in a few lines, and findings.

use record::{Finding, FindingState, Lasts, Machine, Record};

use super::page::Page;
use crate::remedy::is_command;
use crate::style::Ink;
use crate::{clocks, evl, shielding, words::cpus};

/// The number of findings shown; `punctual check` shows the rest.
const FINDINGS_SHOWN: usize = 5;
/// Width of the column of states if there are only bad ones.
const STATES: usize = 4;
/// Width of a title that is readable beside an id.
const TITLES_MIN: usize = 40;
/// Width of the column of fact names.
pub(super) const NAMES: usize = 7;

/// The facts that are most important for lateness.
pub(super) fn facts(page: &mut Page, record: &Record) {
    let machine = &record.machine;
    let [model, kernel, configuration] = of_machine(machine);
    let facts = [
        model,
        kernel,
        configuration,
        // The rights of a watched program are shown with each of its threads.
        ("shield", shielding::how(record.shielding.as_ref())),
        ("stayed", shielding::remaining(record.shielding.as_ref()).join("; ")),
        ("rights", if record.program.is_some() { String::new() } else { rights(record) }),
    ];
    if machine.hostname.is_none() && facts.iter().all(|(_, text)| text.is_empty()) {
        return;
    }
    page.heading(&format!("Machine {}", machine.hostname.as_deref().unwrap_or("without a name")));
    list(page, &facts);
}

/// The hardware, kernel and configuration of a machine.
pub(super) fn of_machine(machine: &Machine) -> [(&'static str, String); 3] {
    [
        ("model", join([&machine.model, &machine.cpu_model, &prefixed("CPUs ", &machine.cpus_online), &machine.arch])),
        ("kernel", join([&machine.kernel, &machine.preempt.as_deref().map(preemption), &machine.os])),
        (
            "config",
            join([
                &prefixed("governor ", &machine.governor),
                &machine.cpus_isolated.as_deref().map(isolation),
                &machine.hypervisor.as_deref().map(hypervisor),
                &machine.container.as_deref().filter(|kind| *kind != "none").map(|kind| format!("{kind} container")),
            ]),
        ),
    ]
}

/// The other facts.
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
        ("Cobalt", machine.cobalt.as_deref().map_or_else(String::new, evl::cobalt)),
        ("build", join([&machine.kernel_build])),
        ("kconfig", join([&machine.config_digest])),
        ("command", join([&machine.cmdline])),
        ("ucode", join([&machine.microcode])),
        ("bugs", machine.mitigations.join("; ")),
    ];
    list(page, &facts);
}

pub(super) fn list(page: &mut Page, facts: &[(&str, String)]) {
    for (name, text) in facts.iter().filter(|(_, text)| !text.is_empty()) {
        page.fact(name, NAMES, text);
    }
}

/// Findings that may cause lateness, worst first, each with its remedy.
pub(super) fn findings(page: &mut Page, findings: &[Finding]) {
    let worst: Vec<&Finding> = [FindingState::Fail, FindingState::Warn].iter().flat_map(of(findings)).collect();
    if worst.is_empty() {
        return;
    }
    page.heading("Possible causes of lateness");
    list_worst(page, &worst);
}

/// The first few findings, each with its remedy.
fn list_worst(page: &mut Page, worst: &[&Finding]) {
    for finding in worst.iter().take(FINDINGS_SHOWN) {
        let column = title(page, finding, 4);
        page.remedy(column, &finding.remedy);
    }
    if worst.len() > FINDINGS_SHOWN {
        page.text(Ink::Quiet, &format!("{} more: `punctual check` lists all", worst.len() - FINDINGS_SHOWN));
    }
}

/// Findings on the far end that may cause lateness, without a heading.
pub(super) fn worst_findings(page: &mut Page, findings: &[Finding]) {
    list_worst(page, &[FindingState::Fail, FindingState::Warn].iter().flat_map(of(findings)).collect::<Vec<_>>());
}

/// All findings, worst first, each with its evidence and the reason why it matters.
pub(super) fn all_findings(page: &mut Page, findings: &[Finding]) {
    use FindingState::{Fail, NotApplicable, Ok, Unknown, Warn};
    page.heading("Findings");
    let findings = joined(findings);
    for finding in [Fail, Warn, Unknown, Ok, NotApplicable].iter().flat_map(of(&findings)) {
        let column = item(page, finding, 7, &format!("{}: {}", finding.id, finding.title));
        page.below(column, Ink::Quiet, &finding.evidence);
        page.below(column, Ink::Plain, &finding.why);
        if page.has_remedies(&finding.remedy) {
            page.below(column, Ink::Accent, "remedy: as above");
        }
        page.remedy(column, &finding.remedy);
        if let Some(lasts) = finding.lasts {
            page.below(column, Ink::Quiet, &format!("lasts {}", lasts_in_words(lasts)));
        }
    }
}

/// The findings without those that read as another one: several checks can fail to read one and the same setting.
pub(crate) fn distinct(findings: &[Finding]) -> Vec<Finding> {
    let mut all: Vec<Finding> = Vec::new();
    for finding in findings {
        let reads_as = |other: &Finding| *other == Finding { id: other.id.clone(), ..finding.clone() };
        if !all.iter().any(reads_as) {
            all.push(finding.clone());
        }
    }
    all
}

/// The findings; those that read as another one are joined with it: `cpu.tick, cpu.workqueues`.
fn joined(findings: &[Finding]) -> Vec<Finding> {
    let mut all: Vec<Finding> = Vec::new();
    for finding in findings {
        let reads_as = |other: &&mut Finding| Finding { id: finding.id.clone(), ..(**other).clone() } == *finding;
        match all.iter_mut().find(reads_as) {
            Some(first) => first.id += &format!(", {}", finding.id),
            None => all.push(finding.clone()),
        }
    }
    all
}

fn of<'a>(findings: &'a [Finding]) -> impl Fn(&FindingState) -> Vec<&'a Finding> {
    |state| findings.iter().filter(|finding| finding.state == *state).collect()
}

/// The answer of `punctual check`: how many settings cause lateness.
pub(crate) fn sentence(findings: &[Finding]) -> (Ink, String) {
    let count = |state: FindingState| findings.iter().filter(|finding| finding.state == state).count();
    let (fail, warn, good) = (count(FindingState::Fail), count(FindingState::Warn), count(FindingState::Ok));
    let (ink, text) = match (fail, warn) {
        (0, 0) if good == 0 => (Ink::Doubt, "No setting could be read".to_owned()),
        (0, 0) => (Ink::Good, "No setting is known to cause lateness".to_owned()),
        (0, warn) => (Ink::Alarm, format!("Settings that may cause lateness: {warn}")),
        (fail, 0) => (Ink::Bad, format!("Settings that cause lateness: {fail}")),
        (fail, warn) => (Ink::Bad, format!("Settings that cause lateness: {fail}; that may cause it: {warn}")),
    };
    (ink, format!("{text}."))
}

/// Writes that sentence, and how many settings are good. Findings that read as another one are counted once, as they are
/// listed.
pub(super) fn headline(page: &mut Page, findings: &[Finding]) {
    let findings = distinct(findings);
    let (ink, text) = sentence(&findings);
    let count = |state: FindingState| of(&findings)(&state).len();
    let (good, unknown) = (count(FindingState::Ok), count(FindingState::Unknown));
    page.answer(ink, &format!("{text} Good: {good}; unknown: {unknown}."));
}

/// Each finding that is not good, with its remedy, worst first.
pub(super) fn to_change(findings: &[Finding]) -> impl Iterator<Item = &Finding> {
    [FindingState::Fail, FindingState::Warn].into_iter().flat_map(move |state| of(findings)(&state))
}

/// A finding in one line: its state, its id in a column of `ids`, its title.
pub(super) fn line(page: &mut Page, finding: &Finding, ids: usize) {
    let wide = page.inner_width() >= TITLES_MIN + ids + STATES;
    let text = if wide {
        format!("{:ids$}  {}", finding.id, finding.title)
    } else {
        format!("{}: {}", finding.id, finding.title)
    };
    item(page, finding, STATES, &text);
}

/// Everything about one finding.
pub(super) fn explained(page: &mut Page, finding: &Finding, subject: &str, source: &str) {
    item(page, finding, STATES, &format!("{}: {}", finding.id, finding.title));
    page.fact("checked", NAMES + 1, subject);
    page.fact("found", NAMES + 1, &finding.evidence);
    if !finding.why.is_empty() {
        page.fact("why", NAMES + 1, &finding.why);
    }
    for (n, remedy) in finding.remedy.lines().enumerate() {
        let name = if n == 0 { "do" } else { "" };
        if is_command(remedy) { page.command(name, NAMES + 1, remedy) } else { page.fact(name, NAMES + 1, remedy) }
    }
    if let Some(lasts) = finding.lasts {
        page.fact("lasts", NAMES + 1, lasts_in_words(lasts));
    }
    page.fact("source", NAMES + 1, source);
}

/// The duration of a remedy in words.
pub(crate) fn lasts_in_words(lasts: Lasts) -> &'static str {
    match lasts {
        Lasts::UntilExit => "until the process ends",
        Lasts::UntilBoot => "until the next boot",
        Lasts::Permanent => "until you undo it",
    }
}

/// A finding with its remedy.
pub(super) fn finding(page: &mut Page, finding: &Finding) {
    let column = title(page, finding, NAMES);
    page.remedy(column, &finding.remedy);
}

/// Writes the state of a finding, `states` columns wide, and its title. Returns the column where the title starts.
fn title(page: &mut Page, finding: &Finding, states: usize) -> usize {
    item(page, finding, states, &finding.title)
}

/// Writes the state of a finding, `states` columns wide, and a text. Returns the column where the text starts.
fn item(page: &mut Page, finding: &Finding, states: usize, text: &str) -> usize {
    let (ink, word) = match finding.state {
        FindingState::Ok => (Ink::Good, "ok"),
        FindingState::Warn => (Ink::Alarm, "warn"),
        FindingState::Fail => (Ink::Bad, "fail"),
        FindingState::Unknown => (Ink::Doubt, "unknown"),
        FindingState::NotApplicable => (Ink::Quiet, "none"),
    };
    page.item(ink, word, states, text)
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

fn isolation(list: &str) -> String {
    if list.is_empty() { "no CPU isolated".to_owned() } else { format!("{} isolated", cpus(list)) }
}

fn hypervisor(name: &str) -> String {
    if name == "none" { "bare metal".to_owned() } else { format!("virtual machine ({name})") }
}

/// The rights that the kernel granted to all measuring threads together.
fn rights(record: &Record) -> String {
    let asked = &record.scenario.policy;
    let here = || record.probe_series().filter(|series| series.host.is_none());
    let granted = || here().map(|series| &series.granted);
    // If threads have different policies, `asked` contains all of them.
    let policy = match granted().find(|granted| !asked.contains(&granted.policy)) {
        None if record.series.is_empty() => return String::new(),
        None => format!("{asked} granted"),
        Some(other) => format!("{asked} requested, {} granted", other.policy),
    };
    let locked = if granted().all(|granted| granted.memory_locked) { "memory locked" } else { "memory not locked" };
    format!("{policy}, {locked}")
}
