//! What a campaign file says.

use loads::LoadSpec;
use probes::timer::Core;
use sys::{
    clock::{Clock, Wait},
    sched::Policy,
};

use super::{mistake::Place, words::CpuWords};
use crate::{
    order::Order,
    plan::{Length, NicPlan},
    probe::{Probe, stream::WakeupOffset},
};

/// A campaign as its file says it, free of mistakes that can be seen without a machine.
#[derive(Debug, Clone)]
pub struct CampaignFile {
    /// The file as mistakes name it.
    pub path: String,
    /// Its name in lower case with hyphens, which names the folder of the records.
    pub name: String,
    /// What it is, in words.
    pub title: String,
    /// Where the table comes from; empty where the file does not say.
    pub source: String,
    /// Profiles that judge each record: names, or paths of TOML files.
    pub profiles: Vec<String>,
    /// Published references to be laid beside.
    pub against: Vec<String>,
    /// The order of the scenarios.
    pub order: Order,
    /// How often each scenario runs; 1 to `REPEATS_MAX`.
    pub repeats: u32,
    /// Rest between two scenarios, ns.
    pub rest_ns: u64,
    /// What measures; at least one, as of each part, and no two of the same name.
    pub probes: Vec<CampaignProbe>,
    /// What runs beside it.
    pub loads: Vec<Load>,
    /// Where, and with which policy.
    pub placements: Vec<Placement>,
    /// How the machine is set meanwhile.
    pub settings: Vec<Settings>,
    /// The scenarios before repeats, in the order of the file.
    pub scenarios: Vec<Chosen>,
}

/// A probe with what a campaign says about it.
#[derive(Debug, Clone, PartialEq)]
pub struct CampaignProbe {
    /// Its name.
    pub name: String,
    /// The probe with its options, not placed yet.
    pub probe: Probe,
    /// Wake-up offsets of a talker, one scenario each; empty for other probes.
    pub offsets: Vec<WakeupOffset>,
    /// When it ends.
    pub length: Length,
    /// Clock of the deadlines.
    pub clock: Clock,
    /// How the threads wait.
    pub wait: Wait,
    /// The core that schedules the threads.
    pub core: Core,
    /// Shift between the grids of neighbouring CPUs, ns.
    pub offset_ns: u64,
    /// Lateness above which a wake-up is a spike, ns; `None` for the default of the probe.
    pub threshold_ns: Option<u64>,
    /// How to look for culprits.
    pub blame: blame::BlameMode,
    /// Position of the keys whose values a machine may lack.
    pub keys: Vec<(&'static str, Place)>,
    /// Position in the file.
    pub place: Place,
}

/// What runs beside the probe.
#[derive(Debug, Clone, PartialEq)]
pub struct Load {
    /// Its name.
    pub name: String,
    /// Its pieces; none for an idle machine.
    pub run: Vec<LoadPiece>,
    /// Where it stands.
    pub place: Place,
}

/// One load, with its CPUs in words.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadPiece {
    /// The load; without CPUs where `cpus` says them.
    pub spec: LoadSpec,
    /// Its CPUs; the measured ones where neither this nor the load says otherwise.
    pub cpus: Option<CpuWords>,
    /// Threads in all, spread over its CPUs; one a CPU where absent.
    pub threads: Option<u32>,
}

/// Where the probe runs, and with which policy.
#[derive(Debug, Clone, PartialEq)]
pub struct Placement {
    /// Its name; empty for one whose CPUs name it.
    pub name: String,
    /// Its CPUs.
    pub on: PlacedOn,
    /// Policy of the measuring threads; where absent fifo:90, or other for the noise probe.
    pub policy: Option<Policy>,
    /// CPUs that all else is moved off.
    pub shield: Option<CpuWords>,
    /// Where it stands.
    pub place: Place,
}

/// The CPUs of a placement.
#[derive(Debug, Clone, PartialEq)]
pub enum PlacedOn {
    /// All of these at once; several threads go onto them in turn.
    Set(CpuWords),
    /// One placement a CPU.
    Each(CpuWords),
    /// One placement for each pair of CPUs, of two threads.
    Pairs(CpuWords),
    /// One CPU a thread.
    ByThread(Vec<CpuWords>),
}

/// How the machine is set during the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Their name.
    pub name: String,
    /// Whether to hold the measured CPUs out of their idle states.
    pub hold_cpu_awake: bool,
    /// How the interface is set that frames go over.
    pub nic: NicPlan,
    /// Where they stand.
    pub place: Place,
}

/// A scenario by the indices of its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Chosen {
    /// Index of the probe.
    pub probe: usize,
    /// Index of the load.
    pub load: usize,
    /// Index of the placement.
    pub placement: usize,
    /// Index of the settings.
    pub settings: usize,
    /// Where it is listed; the place of its placement where the file lists none.
    pub place: Place,
}
