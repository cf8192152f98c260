//! Expands a campaign file to scenarios for the CPUs of a machine; a pure function of both.

mod resolve;

use std::{
    collections::{BTreeSet, HashSet},
    fmt::{self, Write},
    path::PathBuf,
    time::Duration,
};

use analysis::format_unsigned_ns;
use loads::LoadSpec;

pub use self::resolve::Cpus;
use self::resolve::{CpuAssignment, Resolver};
use crate::{
    file::{CampaignFile, CampaignProbe, Combination, FileMistakes, Load, Mistake, Placement, SCENARIOS_MAX},
    plan::{Length, PhasePlan, Plan},
    probe::{Probe, stream::WakeupOffset},
    scenario::{Scenario, Scenarios},
};

/// Longer campaigns get a note, ns: 30 days.
const LONG_NS: u64 = 30 * 86_400_000_000_000;

/// Settings that the command adds to a campaign file.
#[derive(Debug, Clone, Default)]
pub struct ExpandOptions {
    /// Length of every scenario, ns, above 0; `None` for that of the file.
    pub duration_ns: Option<u64>,
    /// The command line that repeats the run.
    pub command: Vec<String>,
    /// The punctual binary, which runs itself for each load.
    pub executable: PathBuf,
    /// Time between two progress reports; `None` for no reports.
    pub watch_every: Option<Duration>,
}

/// Returns the scenarios of a campaign on a machine with these CPUs, in the order in which they run.
///
/// # Errors
/// Everything that the file needs and the machine does not have.
pub fn expand(file: &CampaignFile, cpus: &Cpus, options: &ExpandOptions) -> Result<Scenarios, FileMistakes> {
    let mut resolver = Resolver::new(cpus);
    let mut once = Vec::new();
    for parts in &file.scenarios {
        let probe = &file.probes[parts.probe];
        let assignments = resolver.of(&file.placements[parts.placement], &probe.probe);
        for (assignment, offset) in
            assignments.iter().flat_map(|assignment| offsets(probe).map(move |offset| (assignment, offset)))
        {
            let scenario = scenario(file, parts, (assignment, offset), &mut resolver, options);
            if let Err(error) = scenario.plan.check() {
                resolver.report(probe.position, format!("probe `{}`: {error}", scenario.probe));
            }
            if let Some(text) = scenario.plan.phases.iter().find_map(shorter_than_a_period) {
                resolver.report(probe.position, format!("probe `{}`: {text}", scenario.probe));
            }
            once.push(scenario);
            if once.len() * file.repeats as usize > SCENARIOS_MAX {
                let text = format!(
                    "on {} this makes more than {SCENARIOS_MAX} scenarios: use fewer repeats or parts, e.g. \"pairs \
                     0-3\"",
                    cpus.usable.in_words()
                );
                return Err(FileMistakes {
                    path: file.path.clone(),
                    list: vec![Mistake { position: parts.position, text }],
                });
            }
        }
    }
    name(&file.name, &mut once);
    check_names(file, &once, &mut resolver);
    let (mut notes, list) = resolver.finish();
    if !list.is_empty() {
        return Err(FileMistakes { path: file.path.clone(), list });
    }
    let digest = digest(file, &once);
    for scenario in &mut once {
        scenario.plan.command.clone_from(&options.command);
        scenario.plan.executable.clone_from(&options.executable);
        scenario.plan.watch_every = options.watch_every;
    }
    let repeat = |repeat| {
        let order = file.order.of_repeat(repeat, once.len()).into_iter();
        order.map(|index| Scenario { repeat, ..once[index].clone() }).collect::<Vec<_>>()
    };
    let mut scenarios = Scenarios {
        name: file.name.clone(),
        title: file.title.clone(),
        source: file.source.clone(),
        profiles: file.profiles.clone(),
        against: file.against.clone(),
        rest_ns: file.rest_ns,
        digest,
        notes: Vec::new(),
        list: (1..=file.repeats).flat_map(repeat).collect(),
    };
    if scenarios.planned_ns() > LONG_NS {
        notes.push(
            "this takes more than 30 days: shorten it, e.g. with --duration 10s, fewer repeats or fewer parts"
                .to_owned(),
        );
    }
    scenarios.notes = notes;
    Ok(scenarios)
}

/// The mistake of a phase that ends before its first cycle.
fn shorter_than_a_period(phase: &PhasePlan) -> Option<String> {
    let duration_ns = phase.duration_ns().filter(|&duration_ns| duration_ns < phase.period_ns)?;
    let (duration, period) = (format_unsigned_ns(duration_ns), format_unsigned_ns(phase.period_ns));
    Some(format!("its duration of {duration} is shorter than its period of {period}: measure longer"))
}

/// The wake-up offsets of a probe; one `None` for a probe without offsets.
fn offsets(probe: &CampaignProbe) -> impl Iterator<Item = Option<WakeupOffset>> + use<> {
    let offsets: Vec<Option<WakeupOffset>> = probe.offsets.iter().copied().map(Some).collect();
    let offsets = if offsets.is_empty() { vec![None] } else { offsets };
    offsets.into_iter()
}

/// One scenario, without its name and repeat.
fn scenario(
    file: &CampaignFile,
    parts: &Combination,
    (assignment, offset): (&CpuAssignment, Option<WakeupOffset>),
    resolver: &mut Resolver<'_>,
    options: &ExpandOptions,
) -> Scenario {
    let (probe, load) = (&file.probes[parts.probe], &file.loads[parts.load]);
    let (placement, settings) = (&file.placements[parts.placement], &file.settings[parts.settings]);
    let mut placed = probe.probe.clone();
    placed.definition_mut().place(assignment.in_turn.clone(), &resolver.machine(placement.policy));
    if let (Probe::Stream(stream), Some(offset)) = (&mut placed, offset) {
        stream.offset = offset;
    }
    let definition = placed.definition();
    let policy = definition.policy(placement.policy);
    let phase = PhasePlan {
        name: if load.run.is_empty() { "rest" } else { "load" }.to_owned(),
        period_ns: definition.period_ns(),
        length: options.duration_ns.map_or(probe.length, Length::Duration),
        loads: loads(load, assignment, resolver),
        threads: definition.threads(policy),
    };
    let plan = Plan {
        cpus: Some(assignment.cpus.clone()),
        policy,
        clock: probe.clock,
        wait: probe.wait,
        core: probe.core,
        offset_ns: probe.offset_ns,
        threshold_ns: probe.threshold_ns,
        shield: assignment.context.shield.clone(),
        hold_cpu_awake: settings.hold_cpu_awake,
        settings: settings.set.clone(),
        nic: settings.nic.clone(),
        blame: probe.blame,
        // A campaign has many scenarios, which may be short. A single run measures the cost of the trace.
        blame_cost: false,
        profiles: file.profiles.clone(),
        ..Plan::new(placed, vec![phase])
    };
    Scenario {
        name: String::new(),
        probe: probe.name.clone(),
        load: load.name.clone(),
        placement: placement_name(file, placement, probe, assignment, offset),
        settings: settings.name.clone(),
        repeat: 1,
        planned_ns: plan.total_ns().unwrap_or(0),
        plan,
    }
}

/// The name of a placement, with the wake-up offset if the probe has several.
fn placement_name(
    file: &CampaignFile,
    placement: &Placement,
    probe: &CampaignProbe,
    assignment: &CpuAssignment,
    offset: Option<WakeupOffset>,
) -> String {
    let several = file.placements.len() > 1;
    let name = assignment.name(placement, several, &probe.probe);
    match offset {
        Some(offset) if probe.offsets.len() > 1 && (several || assignment.one_of_many) => {
            format!("{name}, offset {offset}")
        }
        Some(offset) if probe.offsets.len() > 1 => format!("offset {offset}"),
        Some(_) | None => name,
    }
}

/// Returns the loads with their CPUs.
fn loads(load: &Load, assignment: &CpuAssignment, resolver: &mut Resolver<'_>) -> Vec<LoadSpec> {
    let mut specs = Vec::new();
    for piece in &load.run {
        let mut spec = piece.spec.clone();
        match (&spec.cpus, &piece.cpus) {
            (Some(cpus), _) => resolver.check(load.position, cpus),
            (None, Some(words)) => spec.cpus = resolver.resolve(words, &assignment.context, &load.name),
            (None, None) => {}
        }
        let Some(threads) = piece.threads else {
            specs.push(spec);
            continue;
        };
        // Each child process runs one thread on each CPU; the last one runs the remaining threads.
        let cpus = spec.cpus.clone().unwrap_or_else(|| assignment.cpus.clone());
        for begin in (0..threads as usize).step_by(cpus.len().max(1)) {
            let left = threads as usize - begin;
            specs.push(LoadSpec { load: spec.load.clone(), cpus: Some(cpus.iter().take(left).collect()) });
        }
    }
    specs
}

/// Names each scenario after the parts that vary.
fn name(campaign: &str, list: &mut [Scenario]) {
    let axes: [fn(&Scenario) -> &String; 4] = [|s| &s.probe, |s| &s.load, |s| &s.placement, |s| &s.settings];
    let varies = axes.map(|axis| list.iter().map(axis).collect::<BTreeSet<_>>().len() > 1);
    for scenario in list {
        let parts: Vec<&str> =
            axes.iter().zip(varies).filter(|(_, varies)| *varies).map(|(axis, _)| &**axis(scenario)).collect();
        scenario.name = if parts.is_empty() { campaign.to_owned() } else { parts.join(", ") };
    }
}

/// Reports joined names that are equal.
fn check_names(file: &CampaignFile, list: &[Scenario], resolver: &mut Resolver<'_>) {
    let mut seen = HashSet::new();
    if let Some(twice) = list.iter().find(|scenario| !seen.insert(&scenario.name)) {
        let position = file.scenarios.first().map_or_else(Default::default, |parts| parts.position);
        resolver.report(position, format!("two scenarios get the name `{}`: give their parts other names", twice.name));
    }
}

/// Returns a digest of everything that affects the runs.
fn digest(file: &CampaignFile, once: &[Scenario]) -> String {
    digest_of(format_args!("{} {:?} {} {} {once:?}", file.name, file.order, file.repeats, file.rest_ns))
}

/// The digest of a text, 16 hexadecimal digits.
pub(crate) fn digest_of(text: fmt::Arguments) -> String {
    let mut digest = Fnv(0xcbf2_9ce4_8422_2325);
    // Writing to a digest cannot fail.
    let _ = digest.write_fmt(text);
    format!("{:016x}", digest.0)
}

/// FNV-1a, 64 bits.
struct Fnv(u64);

impl Write for Fnv {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 = text.bytes().fold(self.0, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        Ok(())
    }
}
