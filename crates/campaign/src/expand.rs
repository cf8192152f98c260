//! From a campaign file to scenarios for the CPUs of a machine: a pure function of both.

mod places;

use std::{
    collections::{BTreeSet, HashSet},
    fmt::{self, Write},
    path::PathBuf,
    time::Duration,
};

use loads::LoadSpec;
use sys::sched::Policy;

pub use self::places::Cpus;
use self::places::{Places, Spot};
use crate::{
    Length, PhasePlan, Plan, Scenario, Scenarios, ThreadAsk, ThreadPlan,
    file::{CampaignFile, Chosen, FileMistakes, Load, Mistake, Placement, Probe, ProbeKind, Thread},
    plan,
    threads::place,
};

/// Most scenarios of a campaign, repeats and all.
pub const SCENARIOS_MAX: usize = 10_000;
/// A campaign above this is said to be long, ns: 30 days.
const LONG_NS: u64 = 30 * 86_400_000_000_000;

/// What the command adds to a campaign file.
#[derive(Debug, Clone, Default)]
pub struct Asked {
    /// Length of every scenario instead of the file's, ns, above 0.
    pub duration_ns: Option<u64>,
    /// The command line that repeats the run.
    pub command: Vec<String>,
    /// The punctual binary, which runs itself for each load.
    pub executable: PathBuf,
    /// How often to report progress; `None` for never.
    pub watch_every: Option<Duration>,
}

/// The scenarios of a campaign on a machine with these CPUs, in the order in which they run.
///
/// # Errors
/// What the file asks for and this machine does not have, all of it.
pub fn expand(file: &CampaignFile, cpus: &Cpus, asked: &Asked) -> Result<Scenarios, FileMistakes> {
    let mut places = Places::new(cpus);
    let spots: Vec<Vec<Spot>> = file.placements.iter().map(|placement| places.of(placement)).collect();
    let mut once = Vec::new();
    for chosen in &file.scenarios {
        for spot in &spots[chosen.placement] {
            let scenario = scenario(file, chosen, spot, &mut places, asked);
            if let Err(error) = scenario.plan.check() {
                places.wrong(file.probes[chosen.probe].place, format!("probe `{}`: {error}", scenario.probe));
            }
            once.push(scenario);
            if once.len() * file.repeats as usize > SCENARIOS_MAX {
                let text = format!(
                    "on {} this makes more than {SCENARIOS_MAX} scenarios: ask for fewer repeats or parts, as \"pairs 0-3\"",
                    cpus.usable.in_words()
                );
                return Err(FileMistakes {
                    path: file.path.clone(),
                    list: vec![Mistake { place: chosen.place, text }],
                });
            }
        }
    }
    name(&file.name, &mut once);
    check_names(file, &once, &mut places);
    let (mut notes, list) = places.finish();
    if !list.is_empty() {
        return Err(FileMistakes { path: file.path.clone(), list });
    }
    let digest = digest(file, &once);
    for scenario in &mut once {
        scenario.plan.command.clone_from(&asked.command);
        scenario.plan.executable.clone_from(&asked.executable);
        scenario.plan.watch_every = asked.watch_every;
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
            "this takes more than 30 days: shorten it with --duration 10s, fewer repeats or fewer parts".to_owned(),
        );
    }
    scenarios.notes = notes;
    Ok(scenarios)
}

/// One scenario, without its name and repeat.
fn scenario(file: &CampaignFile, chosen: &Chosen, spot: &Spot, places: &mut Places<'_>, asked: &Asked) -> Scenario {
    let (probe, load) = (&file.probes[chosen.probe], &file.loads[chosen.load]);
    let (placement, settings) = (&file.placements[chosen.placement], &file.settings[chosen.settings]);
    let phase = PhasePlan {
        name: if load.run.is_empty() { "rest" } else { "load" }.to_owned(),
        period_ns: match &probe.kind {
            ProbeKind::Timer { period_ns } | ProbeKind::Noise { period_ns, .. } => *period_ns,
            ProbeKind::Threads(list) => list.iter().map(|thread| thread.period_ns).min().unwrap_or(1),
        },
        length: asked.duration_ns.map_or(probe.length, Length::Duration),
        loads: loads(load, spot, places),
        threads: threads(probe, placement, spot),
    };
    let plan = Plan {
        command: Vec::new(),
        probe: match probe.kind {
            ProbeKind::Noise { runtime_ns, .. } => plan::Probe::Noise { runtime_ns },
            ProbeKind::Timer { .. } | ProbeKind::Threads(_) => plan::Probe::Timer,
        },
        cpus: Some(spot.measured.clone()),
        load_cpus: None,
        policy: placement.policy.unwrap_or(default_policy(&probe.kind)),
        clock: probe.clock,
        wait: probe.wait,
        offset_ns: probe.offset_ns,
        threshold_ns: probe.threshold_ns,
        shield: spot.shield.clone(),
        hold_cpu_awake: settings.hold_cpu_awake,
        blame: probe.blame,
        // Scenarios are many and may be short; a single run tells what it costs.
        blame_cost: false,
        timerlat: false,
        stop_on: None,
        phases: vec![phase],
        profiles: file.profiles.clone(),
        record_path: None,
        executable: PathBuf::new(),
        watch_every: None,
    };
    Scenario {
        name: String::new(),
        probe: probe.name.clone(),
        load: load.name.clone(),
        placement: spot.name(placement, file.placements.len() > 1, &probe.kind),
        settings: settings.name.clone(),
        repeat: 1,
        planned_ns: plan.total_ns().unwrap_or(0),
        plan,
    }
}

/// What `punctual measure` does unless asked otherwise.
fn default_policy(kind: &ProbeKind) -> Policy {
    match kind {
        ProbeKind::Timer { .. } | ProbeKind::Threads(_) => Policy::Fifo(90),
        ProbeKind::Noise { .. } => Policy::Other,
    }
}

/// The threads of a probe that has several, each on its CPU.
fn threads(probe: &Probe, placement: &Placement, spot: &Spot) -> Vec<ThreadPlan> {
    let ProbeKind::Threads(threads) = &probe.kind else { return Vec::new() };
    let policy = |thread: &Thread| match (thread.priority, placement.policy) {
        (Some(priority), Some(Policy::RoundRobin(_))) => Some(Policy::RoundRobin(priority)),
        (Some(priority), _) => Some(Policy::Fifo(priority)),
        (None, policy) => policy,
    };
    let ask = |(thread, &cpu): (&Thread, &u32)| ThreadAsk {
        role: thread.role.clone(),
        period_ns: thread.period_ns,
        cpu: Some(cpu),
        policy: policy(thread),
    };
    let asks: Vec<ThreadAsk> = threads.iter().zip(spot.in_turn.iter().cycle()).map(ask).collect();
    place(&asks, 0)
}

/// The loads with their CPUs.
fn loads(load: &Load, spot: &Spot, places: &mut Places<'_>) -> Vec<LoadSpec> {
    let mut specs = Vec::new();
    for piece in &load.run {
        let mut spec = piece.spec.clone();
        match (&spec.cpus, &piece.cpus) {
            (Some(cpus), _) => places.check(load.place, cpus),
            (None, Some(words)) => spec.cpus = places.resolve(words, &spot.measured, &load.name),
            (None, None) => {}
        }
        let Some(threads) = piece.threads else {
            specs.push(spec);
            continue;
        };
        // One child a round over the CPUs; the last one takes what is left.
        let cpus = spec.cpus.clone().unwrap_or_else(|| spot.measured.clone());
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

/// Names that are joined may happen to be the same.
fn check_names(file: &CampaignFile, list: &[Scenario], places: &mut Places<'_>) {
    let mut seen = HashSet::new();
    if let Some(twice) = list.iter().find(|scenario| !seen.insert(&scenario.name)) {
        let place = file.scenarios.first().map_or_else(Default::default, |chosen| chosen.place);
        places.wrong(
            place,
            format!("two scenarios would be called `{}`: give their parts names that differ more", twice.name),
        );
    }
}

/// A digest of everything that decides what runs.
fn digest(file: &CampaignFile, once: &[Scenario]) -> String {
    let mut digest = Fnv(0xcbf2_9ce4_8422_2325);
    // Writing into a digest cannot fail.
    let _ = write!(digest, "{} {:?} {} {} {once:?}", file.name, file.order, file.repeats, file.rest_ns);
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
