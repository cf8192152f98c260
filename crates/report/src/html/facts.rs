//! The tables after the charts: figures of each series, loads, machine, settings and findings.

use analysis::{Summary, float::to_u64, format_duration, format_ns, rounded_ns, when};
use record::{Finding, FindingState, LoadProof, Machine, MeasuredBy, Phase, Record, Scenario, Shielding, grouped};

use super::{
    figure::Table,
    lines::Line,
    noise,
    text::{self, percent_of},
};
use crate::{
    blame::unsigned,
    clocks, evl,
    remedy::advice_and_command,
    shielding,
    words::{Words, capitalized, cpus},
};

/// All figures, one row per series.
pub fn summary(record: &Record, lines: &[Line]) -> Table {
    if lines.first().is_some_and(|line| line.series.kind.noise().is_some()) {
        return noise::summary(lines);
    }
    let head = [
        "series", "policy", "period", "wake-ups", "missed", "early", "min", "mean", "p50", "p99", "p99.9", "max", "at",
        "jitter",
    ];
    let caption = "Lateness of each series. Percentiles are corrected, min, mean and max are raw; pN: percentile N.";
    Table::of_series(caption, &head, lines, |line| {
        let (series, figures) = (line.series, Summary::of(line.series));
        vec![
            known(&series.granted.policy).to_owned(),
            unsigned(series.period_ns),
            grouped(series.samples),
            record.absent(series).map_or_else(|| "-".to_owned(), grouped),
            grouped(series.early),
            time(figures.min_ns),
            time(figures.mean_ns.map(rounded_ns)),
            time(figures.p50_ns),
            time(figures.p99_ns),
            time(figures.p99_9_ns),
            time(figures.max_ns),
            series.max_at_ns.map_or_else(|| "-".to_owned(), |ns| format!("{:.1} s", ns as f64 / 1e9)),
            series.jitter().map_or_else(|| "-".to_owned(), unsigned),
        ]
    })
}

fn time(ns: Option<i64>) -> String {
    ns.map_or_else(|| "-".to_owned(), format_ns)
}

/// A phase with its loads.
pub struct PhaseView<'a> {
    /// The phase.
    pub of: &'a Phase,
    /// Its name in the words of the answer.
    pub name: String,
    /// The duration, and the planned one if it differs.
    pub took: String,
    /// Its loads.
    pub loads: Vec<LoadView<'a>>,
}

/// A load with the proof that it ran.
pub struct LoadView<'a> {
    /// The load.
    pub of: &'a LoadProof,
    /// The number of operations.
    pub operations: String,
    /// Operations per second.
    pub rate: String,
    /// CPU time used.
    pub cpu_time: String,
    /// CPU time as a share of the run time; above 100 % on several CPUs.
    pub share: String,
}

/// The phases with their loads.
pub fn phases(record: &Record) -> Vec<PhaseView<'_>> {
    record
        .phases
        .iter()
        .map(|of| {
            let series = record.series.iter().find(|series| series.phase == of.name);
            let name = series.map_or_else(|| of.name.clone(), when);
            PhaseView { of, name, took: took(of), loads: of.loads.iter().map(load).collect() }
        })
        .collect()
}

fn took(phase: &Phase) -> String {
    let took = format_duration(phase.duration_ns);
    match phase.planned_ns {
        Some(planned) if planned.abs_diff(phase.duration_ns) > planned / 20 => {
            format!("{took} of {} planned", format_duration(planned))
        }
        _ => took,
    }
}

fn load(of: &LoadProof) -> LoadView<'_> {
    let per_second = of.operations as f64 / (of.wall_ns as f64 / 1e9);
    LoadView {
        of,
        operations: grouped(of.operations),
        rate: if of.wall_ns == 0 { "-".to_owned() } else { grouped(to_u64(per_second.round())) },
        cpu_time: format_duration(of.cpu_time_ns),
        share: percent_of(of.cpu_time_ns, of.wall_ns),
    }
}

/// A fact with its name.
pub type Fact = (&'static str, String);

/// The known facts about a machine.
pub fn machine(machine: &Machine) -> Vec<Fact> {
    let memory = machine.memory_bytes.map(|bytes| format!("{:.1} GiB", bytes as f64 / (1u64 << 30) as f64));
    let clocks = machine.clocks.as_ref().map(clocks::in_words);
    let core = machine.evl.as_ref().map(evl::core);
    let cobalt = machine.cobalt.as_deref().map(evl::cobalt);
    let known = [
        ("host", &machine.hostname),
        ("model", &machine.model),
        ("CPU", &machine.cpu_model),
        ("architecture", &machine.arch),
        ("microcode", &machine.microcode),
        ("memory", &memory),
        ("distribution", &machine.os),
        ("kernel", &machine.kernel),
        ("kernel build", &machine.kernel_build),
        ("preemption", &machine.preempt),
        ("kernel command line", &machine.cmdline),
        ("kernel config digest", &machine.config_digest),
        ("CPUs online", &machine.cpus_online),
        ("CPUs isolated", &machine.cpus_isolated),
        ("CPUs without a tick", &machine.cpus_nohz_full),
        ("CPUs allowed", &machine.cpus_allowed),
        ("multithreading (SMT)", &machine.smt),
        ("clock source", &machine.clocksource),
        ("clocks", &clocks),
        ("frequency governor", &machine.governor),
        ("idle states", &machine.idle_states),
        ("real-time share (us)", &machine.rt_throttling),
        ("EVL core", &core),
        ("EVL gravity", &machine.evl_gravity),
        ("Cobalt core", &cobalt),
        ("hypervisor", &machine.hypervisor),
        ("container", &machine.container),
        ("boot id", &machine.boot_id),
    ];
    let value = |(name, value): (&'static str, &Option<String>)| Some((name, value.clone()?));
    known
        .into_iter()
        .filter_map(value)
        .map(|(name, v)| (name, if v.is_empty() { "none".to_owned() } else { v }))
        .collect()
}

/// The requested measurement.
pub fn scenario(scenario: &Scenario, words: &Words) -> Vec<Fact> {
    let due = |value: String| if words.is_periodic { value } else { String::new() };
    let yes_no = |yes| if yes { "yes" } else { "no" }.to_owned();
    let mut facts = vec![
        ("probe", scenario.probe.clone()),
        ("CPUs", scenario.cpus.clone().unwrap_or_else(|| "every online CPU".to_owned())),
        ("policy", scenario.policy.clone()),
        ("clock", due(scenario.clock.clone())),
        ("wait", due(scenario.wait.clone())),
        ("offset between CPUs", due(unsigned(scenario.offset_ns))),
        ("threshold", format!("{}s above {}", words.spike, format_ns(scenario.threshold_ns))),
        ("CPUs held awake", yes_no(scenario.hold_cpu_awake)),
    ];
    if !scenario.profiles.is_empty() {
        facts.push(("profiles", scenario.profiles.join(", ")));
    }
    facts.retain(|(_, value)| !value.is_empty());
    facts
}

/// The means that kept other work off the measured CPUs, and work that stayed there.
pub fn shielding(shielding: Option<&Shielding>) -> Vec<Fact> {
    let stayed = shielding::remaining(shielding).join("; ");
    let facts = [("shielded", shielding::how(shielding)), ("stayed on them", stayed)];
    facts.into_iter().filter(|(_, text)| !text.is_empty()).collect()
}

/// The rights granted by the kernel: each different grant once, with the names of its series.
pub fn granted(lines: &[Line]) -> Vec<(String, String)> {
    let mut grants: Vec<(String, Vec<&str>)> = Vec::new();
    // An outside judge is a board, which has no rights.
    for line in lines.iter().filter(|line| line.series.kind.properties().by != MeasuredBy::Judge) {
        let granted = &line.series.granted;
        let is_own = line.series.cpu.is_some_and(|cpu| granted.cpus == cpu.to_string());
        let place = if is_own { "its CPU".to_owned() } else { cpus(known(&granted.cpus)) };
        let grant = format!(
            "policy {}, on {place}, memory {}, timer slack {}, {}{}; the probe's own cost is {}",
            known(&granted.policy),
            if granted.memory_locked { "locked" } else { "not locked" },
            unsigned(granted.timer_slack_ns),
            granted
                .cpu_awake
                .as_ref()
                .map_or_else(|| "idle states as found".to_owned(), |by| format!("held awake by {by}")),
            evl::granted(line.series),
            unsigned(line.series.floor_ns),
        );
        match grants.iter_mut().find(|(known, _)| *known == grant) {
            Some((_, names)) => names.push(&line.name),
            None => grants.push((grant, vec![&line.name])),
        }
    }
    let names = |names: Vec<&str>| match names[..] {
        [] | [_] | [_, _] | [_, _, _] => names.join("; "),
        [first, .., last] => format!("{first} to {last} ({})", names.len()),
    };
    grants.into_iter().map(|(grant, of)| (names(of), grant)).collect()
}

fn known(text: &str) -> &str {
    if text.is_empty() { "unknown" } else { text }
}

/// A finding with its state in words.
pub struct FindingView<'a> {
    /// The finding.
    pub of: &'a Finding,
    /// CSS class, which includes a mark.
    pub class: &'static str,
    /// The state in words.
    pub word: &'static str,
    /// What to change: trusted HTML; empty if the command says it.
    pub advice: String,
    /// The command at the end of the remedy; can be empty.
    pub command: &'a str,
}

/// The findings that need action, and the others; both with the worst first.
pub fn findings(all: &[Finding]) -> (Vec<FindingView<'_>>, Vec<FindingView<'_>>) {
    let mut all: Vec<FindingView> = all
        .iter()
        .map(|of| {
            let (class, word) = match of.state {
                FindingState::Fail => ("fail", "causes lateness"),
                FindingState::Warn => ("warn", "may cause lateness"),
                FindingState::Unknown => ("unknown", "could not be read"),
                FindingState::Ok => ("pass", "as recommended"),
                FindingState::NotApplicable => ("absent", "not applicable"),
            };
            let (advice, command) = advice_and_command(&of.remedy);
            FindingView { of, class, word, advice: text::with_code(&capitalized(advice)), command }
        })
        .collect();
    let rank = |class: &str| ["fail", "warn", "unknown", "pass", "absent"].iter().position(|c| *c == class);
    all.sort_by_key(|finding| rank(finding.class));
    all.into_iter().partition(|finding| matches!(finding.of.state, FindingState::Fail | FindingState::Warn))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html::lines::lines;
    use record::{Granted, Series, SeriesKind};

    #[test]
    fn lists_equal_grants_once() {
        let series = |cpu: u32, policy: &str| Series {
            phase: "rest".into(),
            cpu: Some(cpu),
            granted: Granted { policy: policy.into(), cpus: cpu.to_string(), ..Granted::default() },
            ..Series::default()
        };
        let judge = Series { kind: SeriesKind::Responses(Box::default()), ..series(0, "") };
        let series = (0..5).map(|cpu| series(cpu, "fifo:90")).chain([series(5, "other"), judge]).collect();
        let record = Record { series, ..Record::default() };
        let granted = granted(&lines(&record));
        assert_eq!(
            granted.iter().map(|g| g.0.as_str()).collect::<Vec<_>>(),
            ["CPU 0, at rest to CPU 4, at rest (5)", "CPU 5, at rest"]
        );
        assert!(granted[1].1.starts_with("policy other,"), "{}", granted[1].1);
    }

    #[test]
    fn omits_the_rate_of_a_load_without_run_time() {
        let phase = Phase { loads: vec![LoadProof { operations: 5, ..LoadProof::default() }], ..Phase::default() };
        let record = Record { phases: vec![phase], ..Record::default() };
        let load = &phases(&record)[0].loads[0];
        assert_eq!((load.rate.as_str(), load.share.as_str()), ("-", "-"));
    }

    #[test]
    fn lists_findings_that_need_action_first() {
        let finding = |state| Finding { state, ..Finding::default() };
        use FindingState::{Fail, NotApplicable, Ok, Unknown, Warn};
        let record =
            Record { findings: [Ok, Warn, NotApplicable, Fail, Unknown].map(finding).into(), ..Record::default() };
        let (open, rest) = findings(&record.findings);
        assert_eq!(open.iter().map(|f| f.class).collect::<Vec<_>>(), ["fail", "warn"]);
        assert_eq!(rest.iter().map(|f| f.class).collect::<Vec<_>>(), ["unknown", "pass", "absent"]);
    }
}
