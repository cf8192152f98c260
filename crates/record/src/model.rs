//! The document itself. Field names are the JSON's; times are nanoseconds and say so in their names.
//!
//! Fields that this version does not know are kept in `extra` and written back.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    Against, AskedThread, Blame, BufferSearch, CAPTURE, Capture, Caveat, Cell, CpuFacts, Far, Finding, Machine,
    Program, Published, Recommendation, Series, SeriesKind, Setting, Shielding, SoundLoop, UseVerdict, Validity,
    Verdict,
};

/// Fields that a newer version wrote.
pub type Extra = Map<String, Value>;

/// One run: the document `*.punctual.json`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Record {
    /// Name and version of this form: [`SCHEMA`](crate::SCHEMA).
    pub schema: String,
    /// What wrote it.
    pub tool: Tool,
    /// How far the run got.
    pub state: State,
    /// When the run began, RFC 3339.
    pub started_at: String,
    /// When this document was last written, RFC 3339.
    pub written_at: String,
    /// The command line that repeats the run.
    pub command: Vec<String>,
    /// What was asked for.
    pub scenario: Scenario,
    /// The machine it ran on.
    pub machine: Machine,
    /// What was noticed about the machine before the run.
    #[serde(default)]
    pub findings: Vec<Finding>,
    /// The machine at the other end; absent for a run on one machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub far: Option<Box<Far>>,
    /// Settings of the machine that the run changed.
    #[serde(default)]
    pub settings: Vec<Setting>,
    /// CPUs that were kept free of other work; absent when that was not asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shielding: Option<Shielding>,
    /// The parts of the run in their order.
    #[serde(default)]
    pub phases: Vec<Phase>,
    /// What was seen: one entry a phase, CPU and thread.
    #[serde(default)]
    pub series: Vec<Series>,
    /// The cells of a matrix; empty for other runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cells: Vec<Cell>,
    /// What is known of the CPUs of a matrix.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpu_facts: Vec<CpuFacts>,
    /// Which pair of CPUs a matrix recommends; absent when it cannot, and for other runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recommendation: Option<Recommendation>,
    /// The smallest buffer that holds, of a run that looked for it; absent for others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffer: Option<BufferSearch>,
    /// The true round trip of a sound card, of a run that looked for it; absent for others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sound_loop: Option<SoundLoop>,
    /// The program that was watched; absent when the probe was our own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<Program>,
    /// What a capture of the wire tells of a stream; absent for runs without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capture: Option<Capture>,
    /// Who made the spikes; absent when the run did not look.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blame: Option<Blame>,
    /// Whether what was asked for is what ran.
    pub validity: Validity,
    /// The verdict on the profiles that were asked for; absent when none was and the run is valid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// The verdict on each use, from the least to the most demanding.
    #[serde(default)]
    pub uses: Vec<UseVerdict>,
    /// What this record cannot tell, or tells with less precision.
    #[serde(default)]
    pub caveats: Vec<Caveat>,
    /// The source, and the figures, of a record that was published elsewhere: punctual did not measure it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<Published>,
    /// Other records that were laid beside this one, each with its figures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub against: Vec<Against>,
    /// Fields that a newer version wrote.
    #[serde(flatten)]
    pub extra: Extra,
}

/// What wrote a record.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Tool {
    /// Its name: `punctual`, or that of the tool whose file was imported.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// How far a run got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Under way, or ended without the chance to say so (power cut, SIGKILL): lacks at most the last 5 s.
    #[default]
    Partial,
    /// Ended as planned.
    Complete,
    /// Ended early by a signal, by a guard or by a spike that was to end it; all samples up to then are in it.
    Interrupted,
}

/// What was asked for.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Scenario {
    /// What measures: `timer`, `threads`, `process`.
    pub probe: String,
    /// CPUs asked for, as the kernel writes a list (`0,2-3`); absent for every online CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<String>,
    /// Scheduling policy as asked: `fifo:90`, `rr:50`, `deadline:RUNTIME/DEADLINE/PERIOD`, `other`.
    pub policy: String,
    /// Clock of the deadlines: `monotonic`, `realtime`, `tai` or `boottime`.
    pub clock: String,
    /// How the thread waits: `nanosleep` or `timerfd`.
    pub wait: String,
    /// Who schedules the measuring threads where it is not Linux: [`EVL`](crate::EVL).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core: Option<String>,
    /// Shift between the grids of neighbouring CPUs, ns.
    pub offset_ns: u64,
    /// Lateness above which a wake-up is a spike, ns.
    pub threshold_ns: i64,
    /// Whether the measured CPUs are held out of their idle states.
    pub hold_cpu_awake: bool,
    /// Whether the kernel's timerlat tracer ran beside the probe.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub timerlat: bool,
    /// Profiles whose limits decide the verdict.
    #[serde(default)]
    pub profiles: Vec<String>,
    /// Fields that a newer version wrote.
    #[serde(flatten)]
    pub extra: Extra,
}

/// One part of a run: a period and what ran beside the probe.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Phase {
    /// Name, unique in the run: `rest`, `load`.
    pub name: String,
    /// Time between two deadlines, ns.
    pub period_ns: u64,
    /// When it began, ns after the run began.
    pub start_ns: u64,
    /// How long it was to take, ns; absent when ended by a number of samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned_ns: Option<u64>,
    /// How long it took, ns.
    pub duration_ns: u64,
    /// The measuring threads as asked for; empty for one alike on every measured CPU.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<AskedThread>,
    /// The loads asked for, as written on the command line; empty for none.
    #[serde(default)]
    pub asked_loads: Vec<String>,
    /// The loads that ran, with proof.
    #[serde(default)]
    pub loads: Vec<LoadProof>,
    /// Fields that a newer version wrote.
    #[serde(flatten)]
    pub extra: Extra,
}

/// What a load did: the proof that it ran.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct LoadProof {
    /// Kind of load: `cpu`, `cache`, …
    pub name: String,
    /// The load as asked for, with its options.
    pub spec: String,
    /// CPUs it was allowed on, as the kernel writes a list.
    pub cpus: String,
    /// Threads or processes that did the work.
    pub threads: u32,
    /// Operations done.
    pub operations: u64,
    /// What one operation is: `64 KiB streamed`, `switches`, …
    pub unit: String,
    /// CPU time that the kernel counted for it, ns.
    pub cpu_time_ns: u64,
    /// How long it ran, ns.
    pub wall_ns: u64,
    /// Whether it did what it was there for, to the end of its phase.
    pub ran: bool,
    /// What kept it from running, or from running fully.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Fields that a newer version wrote.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Record {
    /// The phase called `name`.
    #[must_use]
    pub fn phase(&self, name: &str) -> Option<&Phase> {
        self.phases.iter().find(|phase| phase.name == name)
    }

    /// The series of the probe, without those of the kernel's timerlat tracer and of a capture that ran with the probe.
    pub fn of_the_probe(&self) -> impl Iterator<Item = &Series> {
        self.series.iter().filter(move |series| match series.kind {
            SeriesKind::TimerlatIrq | SeriesKind::TimerlatThread => false,
            SeriesKind::Capture => self.scenario.probe == CAPTURE,
            SeriesKind::WakeUps
            | SeriesKind::Gaps(_)
            | SeriesKind::RoundTrips(_)
            | SeriesKind::Stream(_)
            | SeriesKind::Audio(_)
            | SeriesKind::Process(_) => true,
        })
    }

    /// Spikes that were counted, kept or not. A late interrupt of timerlat and its thread count once. Long round trips
    /// are not counted, because this machine alone does not cause them.
    #[must_use]
    pub fn spikes_total(&self) -> u64 {
        let counted = self.series.iter().filter(|series| match series.kind {
            SeriesKind::TimerlatIrq | SeriesKind::RoundTrips(_) => false,
            SeriesKind::WakeUps
            | SeriesKind::Gaps(_)
            | SeriesKind::Stream(_)
            | SeriesKind::Audio(_)
            | SeriesKind::Process(_)
            | SeriesKind::Capture
            | SeriesKind::TimerlatThread => true,
        });
        counted.fold(0, |sum, series| series.spikes_total.saturating_add(sum))
    }
}
