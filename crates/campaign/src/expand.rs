//! From a campaign file to scenarios for the CPUs of a machine: a pure function of both.

mod places;

use std::{
    collections::{BTreeSet, HashSet},
    fmt::{self, Write},
    path::PathBuf,
    time::Duration,
};

use loads::LoadSpec;

pub use self::places::Cpus;
use self::places::{Places, Spot};
use crate::{
    file::{CampaignFile, CampaignProbe, Chosen, FileMistakes, Load, Mistake, Placement, SCENARIOS_MAX},
    plan::{Length, PhasePlan, Plan},
    probe::{Probe, stream::WakeupOffset},
    scenario::{Scenario, Scenarios},
};

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
    let mut once = Vec::new();
    for chosen in &file.scenarios {
        let probe = &file.probes[chosen.probe];
        let spots = places.of(&file.placements[chosen.placement], &probe.probe);
        for (spot, offset) in spots.iter().flat_map(|spot| offsets(probe).map(move |offset| (spot, offset))) {
            let scenario = scenario(file, chosen, (spot, offset), &mut places, asked);
            if let Err(error) = scenario.plan.check() {
                places.wrong(probe.place, format!("probe `{}`: {error}", scenario.probe));
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

/// The wake-up offsets of a probe; `None` for a probe that has none.
fn offsets(probe: &CampaignProbe) -> impl Iterator<Item = Option<WakeupOffset>> + use<> {
    let offsets: Vec<Option<WakeupOffset>> = probe.offsets.iter().copied().map(Some).collect();
    let offsets = if offsets.is_empty() { vec![None] } else { offsets };
    offsets.into_iter()
}

/// One scenario, without its name and repeat.
fn scenario(
    file: &CampaignFile,
    chosen: &Chosen,
    (spot, offset): (&Spot, Option<WakeupOffset>),
    places: &mut Places<'_>,
    asked: &Asked,
) -> Scenario {
    let (probe, load) = (&file.probes[chosen.probe], &file.loads[chosen.load]);
    let (placement, settings) = (&file.placements[chosen.placement], &file.settings[chosen.settings]);
    let mut placed = probe.probe.clone();
    placed.definition_mut().place(spot.in_turn.clone(), &places.machine(placement.policy));
    if let (Probe::Stream(stream), Some(offset)) = (&mut placed, offset) {
        stream.offset = offset;
    }
    let definition = placed.definition();
    let policy = definition.policy(placement.policy);
    let phase = PhasePlan {
        name: if load.run.is_empty() { "rest" } else { "load" }.to_owned(),
        period_ns: definition.period_ns(),
        length: asked.duration_ns.map_or(probe.length, Length::Duration),
        loads: loads(load, spot, places),
        threads: definition.threads(policy),
    };
    let plan = Plan {
        cpus: Some(spot.cpus.clone()),
        policy,
        clock: probe.clock,
        wait: probe.wait,
        core: probe.core,
        offset_ns: probe.offset_ns,
        threshold_ns: probe.threshold_ns,
        shield: spot.scene.shield.clone(),
        hold_cpu_awake: settings.hold_cpu_awake,
        nic: settings.nic.clone(),
        blame: probe.blame,
        // Scenarios are many and may be short. A single run tells what the trace costs.
        blame_cost: false,
        profiles: file.profiles.clone(),
        ..Plan::new(placed, vec![phase])
    };
    Scenario {
        name: String::new(),
        probe: probe.name.clone(),
        load: load.name.clone(),
        placement: placement_name(file, placement, probe, spot, offset),
        settings: settings.name.clone(),
        repeat: 1,
        planned_ns: plan.total_ns().unwrap_or(0),
        plan,
    }
}

/// The name of a placement; with several wake-up offsets, which are a choice like a CPU, that of the scenario is added.
fn placement_name(
    file: &CampaignFile,
    placement: &Placement,
    probe: &CampaignProbe,
    spot: &Spot,
    offset: Option<WakeupOffset>,
) -> String {
    let several = file.placements.len() > 1;
    let name = spot.name(placement, several, &probe.probe);
    match offset {
        Some(offset) if probe.offsets.len() > 1 && (several || spot.one_of_many) => format!("{name}, offset {offset}"),
        Some(offset) if probe.offsets.len() > 1 => format!("offset {offset}"),
        Some(_) | None => name,
    }
}

/// The loads with their CPUs.
fn loads(load: &Load, spot: &Spot, places: &mut Places<'_>) -> Vec<LoadSpec> {
    let mut specs = Vec::new();
    for piece in &load.run {
        let mut spec = piece.spec.clone();
        match (&spec.cpus, &piece.cpus) {
            (Some(cpus), _) => places.check(load.place, cpus),
            (None, Some(words)) => spec.cpus = places.resolve(words, &spot.scene, &load.name),
            (None, None) => {}
        }
        let Some(threads) = piece.threads else {
            specs.push(spec);
            continue;
        };
        // One child a round over the CPUs; the last one takes what is left.
        let cpus = spec.cpus.clone().unwrap_or_else(|| spot.cpus.clone());
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
