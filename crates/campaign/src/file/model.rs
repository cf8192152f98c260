//! The content of a campaign file.

use crate::Cores;
use loads::LoadSpec;
use machine::tune::Choice;
use sys::{
    clock::{Clock, Wait},
    sched::Policy,
};

use super::{mistake::Position, words::CpuWords};
use crate::{
    order::Order,
    plan::{Length, NicPlan},
    probe::{Probe, stream::WakeupOffset},
};

/// A campaign file without mistakes that can be found without a machine.
#[derive(Debug, Clone)]
pub struct CampaignFile {
    /// The path shown in mistakes.
    pub path: String,
    /// Name in lower case with hyphens; also the name of the folder of the records.
    pub name: String,
    /// Title in words.
    pub title: String,
    /// Source of the table; empty if the file names none.
    pub source: String,
    /// Profiles that judge each record: names, or paths of TOML files.
    pub profiles: Vec<String>,
    /// Published references to compare with.
    pub against: Vec<String>,
    /// The order of the scenarios.
    pub order: Order,
    /// Number of runs of each scenario; 1 to `REPEATS_MAX`.
    pub repeats: u32,
    /// Rest between two scenarios, ns.
    pub rest_ns: u64,
    /// The probes; at least one, and their names are unique. The same holds for the other parts.
    pub probes: Vec<CampaignProbe>,
    /// The loads that run while the probe measures.
    pub loads: Vec<Load>,
    /// CPUs and policies of the probe.
    pub placements: Vec<Placement>,
    /// Settings of the machine during the run.
    pub settings: Vec<Settings>,
    /// The scenarios before repeats, in the order of the file.
    pub scenarios: Vec<Combination>,
}

impl CampaignFile {
    /// Replaces the number of runs of each scenario.
    ///
    /// # Errors
    /// A sentence if the order does not allow this number.
    pub fn set_repeats(&mut self, repeats: u32) -> Result<(), String> {
        if !self.order.allows(repeats) {
            return Err(format!("--repeats must be even for the order abba of this campaign (got {repeats})"));
        }
        self.repeats = repeats;
        Ok(())
    }
}

/// A probe with its settings in the campaign.
#[derive(Debug, Clone, PartialEq)]
pub struct CampaignProbe {
    /// Its name.
    pub name: String,
    /// The probe with its options, not placed yet.
    pub probe: Probe,
    /// Wake-up offsets of a talker, with one scenario for each; empty for other probes.
    pub offsets: Vec<WakeupOffset>,
    /// When it ends.
    pub length: Length,
    /// Clock of the deadlines.
    pub clock: Clock,
    /// Method by which the threads wait for their deadlines.
    pub wait: Wait,
    /// The core that schedules the threads.
    pub core: Cores,
    /// Shift between the grids of neighbouring CPUs, ns.
    pub offset_ns: u64,
    /// Lateness above which a wake-up is a spike, ns; `None` for the default of the probe.
    pub threshold_ns: Option<u64>,
    /// Method of finding the culprits of spikes.
    pub blame: blame::BlameMode,
    /// Positions of the keys that name files or a sound card, which a machine may not have.
    pub keys: Vec<(&'static str, Position)>,
    /// Position in the file.
    pub position: Position,
}

/// The loads that run at the same time while the probe measures.
#[derive(Debug, Clone, PartialEq)]
pub struct Load {
    /// Its name.
    pub name: String,
    /// The single loads; empty for an idle machine.
    pub run: Vec<LoadPiece>,
    /// Position in the file.
    pub position: Position,
}

/// One load, with its CPUs as words.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadPiece {
    /// The load; without CPUs if `cpus` has them.
    pub spec: LoadSpec,
    /// Its CPUs; if neither this nor `spec` names any, the measured CPUs.
    pub cpus: Option<CpuWords>,
    /// Total number of threads, spread over its CPUs; `None` for one on each CPU.
    pub threads: Option<u32>,
}

/// CPUs and policy of the probe.
#[derive(Debug, Clone, PartialEq)]
pub struct Placement {
    /// Its name; empty if it is named by its CPUs.
    pub name: String,
    /// Its CPUs.
    pub on: PlacedOn,
    /// Policy of the measuring threads; `None` for fifo:90, or for other with the noise probe.
    pub policy: Option<Policy>,
    /// CPUs that other work is moved off.
    pub shield: Option<CpuWords>,
    /// Position in the file.
    pub position: Position,
}

/// The CPUs of a placement.
#[derive(Debug, Clone, PartialEq)]
pub enum PlacedOn {
    /// All of these CPUs at once; several threads take them in turn.
    Set(CpuWords),
    /// One scenario for each CPU.
    Each(CpuWords),
    /// One scenario for each pair of CPUs of two threads.
    Pairs(CpuWords),
    /// One CPU for each thread.
    ByThread(Vec<CpuWords>),
}

/// Settings of the machine during the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Their name.
    pub name: String,
    /// True to keep the measured CPUs out of their idle states.
    pub hold_cpu_awake: bool,
    /// Settings of the machine, with their values.
    pub set: Vec<Choice>,
    /// Settings of the network interface that the probe uses.
    pub nic: NicPlan,
    /// Position in the file.
    pub position: Position,
}

/// The parts of a scenario, by index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Combination {
    /// Index of the probe.
    pub probe: usize,
    /// Index of the load.
    pub load: usize,
    /// Index of the placement.
    pub placement: usize,
    /// Index of the settings.
    pub settings: usize,
    /// Position in the file; that of its placement if the file lists no scenarios.
    pub position: Position,
}
