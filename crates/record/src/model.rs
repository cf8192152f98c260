//! The document itself. Field names are the JSON keys; times are in nanoseconds, as their names say.
//!
//! Fields that this version does not know are kept in `extra` and written back.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    AskedThread, Blame, BufferSearch, CAPTURE, Capture, Caveat, Cell, Comparison, CpuFacts, Far, Finding, Machine,
    Program, ProgramLimits, Published, Recommendation, Series, SeriesKind, Setting, Shielding, SoundLoop, Tail,
    UseVerdict, Validity, Verdict, kind::MeasuredBy,
};

/// Fields that a newer version wrote.
pub type Extra = Map<String, Value>;

/// One run: the document `*.punctual.json`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Record {
    /// Name and version of the format: `punctual.run/1`.
    pub schema: String,
    /// The program that wrote the document.
    pub tool: Tool,
    /// Progress of the run.
    pub state: State,
    /// The reason why the run was interrupted; absent if it was not, or if the reason is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_by: Option<EndedBy>,
    /// Name of the signal that ended the run, such as `SIGHUP`; absent if none did, or in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ending_signal: Option<String>,
    /// When the run began, RFC 3339.
    pub started_at: String,
    /// When this document was last written, RFC 3339.
    pub written_at: String,
    /// The command line that repeats the run.
    pub command: Vec<String>,
    /// The requested measurement.
    pub scenario: Scenario,
    /// The machine of the run.
    pub machine: Machine,
    /// Findings about the machine before the run.
    #[serde(default)]
    pub findings: Vec<Finding>,
    /// The machine at the far end; absent for runs on one machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub far: Option<Box<Far>>,
    /// Settings of the machine that the run changed.
    #[serde(default)]
    pub settings: Vec<Setting>,
    /// CPUs shielded from other work; absent without a shield.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shielding: Option<Shielding>,
    /// The phases of the run in order.
    #[serde(default)]
    pub phases: Vec<Phase>,
    /// The measurements, one entry per phase, CPU and thread.
    #[serde(default)]
    pub series: Vec<Series>,
    /// The cells of a matrix; empty for other runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cells: Vec<Cell>,
    /// Facts about the CPUs of a matrix; empty for other runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpu_facts: Vec<CpuFacts>,
    /// The recommended pair of CPUs; absent if a matrix cannot recommend one, and for other runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recommendation: Option<Recommendation>,
    /// The search for the smallest buffer; absent for other runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffer: Option<BufferSearch>,
    /// The measured round trip of a sound card; absent for other runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sound_loop: Option<SoundLoop>,
    /// The watched program; absent if the probe was one of punctual's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<Program>,
    /// The analysed stream of a packet capture; absent for runs without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capture: Option<Capture>,
    /// Causes of the spikes; absent if the run did not search for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blame: Option<Blame>,
    /// Validity: did the run match the request?
    pub validity: Validity,
    /// The verdict on the requested profiles; absent if none was requested and the run is valid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// The verdict on each use, from the least to the most demanding one.
    #[serde(default)]
    pub uses: Vec<UseVerdict>,
    /// Extreme-value statistics of larger values than the run measured, for the threads of each role in each phase.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tails: Vec<Tail>,
    /// Limitations of this record.
    #[serde(default)]
    pub caveats: Vec<Caveat>,
    /// Source and figures of a publication, for a record that punctual did not measure; absent for measurements.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<Published>,
    /// Comparisons with other records and published references.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub against: Vec<Comparison>,
    /// Fields that a newer version wrote.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The program that wrote a record.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Tool {
    /// Name: `punctual`, or the tool whose file was imported.
    pub name: String,
    /// Version.
    pub version: String,
}

/// Progress of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Still running, or ended without writing its end (power cut, SIGKILL): at most the last 5 s are missing.
    #[default]
    Partial,
    /// Ended as planned.
    Complete,
    /// Ended early by a signal, by a guard, by a spike that should end it, or because a thread left its CPU; all samples
    /// until then are included.
    Interrupted,
}

/// The reason why a run was interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EndedBy {
    /// A signal: SIGINT (Ctrl-C), SIGTERM, SIGHUP (a lost terminal) or another one that asks a process to end.
    Signal,
    /// A key of the user in the live view.
    Key,
    /// A spike that should end the run (`--on-spike stop`, `--stop-on`).
    Spike,
    /// The guard, because ordinary threads could not run.
    Guard,
    /// A thread left its CPU, its clock or sound card failed, or the other end or the interface is gone.
    Failure,
}

/// The requested measurement.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Scenario {
    /// Name of the probe, e.g. `timer`, `noise` or `process`.
    pub probe: String,
    /// Requested CPUs, as the kernel writes a list (`0,2-3`); absent for all online CPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<String>,
    /// Requested scheduling policy: `fifo:90`, `rr:50`, `deadline:RUNTIME/DEADLINE/PERIOD`, `other`. If threads have
    /// several, the policy of each: `fifo:90 for base, fifo:89 for servo`.
    pub policy: String,
    /// Clock of the deadlines: `monotonic`, `realtime`, `tai` or `boottime`.
    pub clock: String,
    /// Method of waiting for deadlines: `nanosleep` or `timerfd`; `evl` for threads of the EVL core.
    pub wait: String,
    /// Scheduler of the measuring threads other than Linux: `evl`; `both` for one thread of each on every CPU, with the
    /// roles `in-band` and `out-of-band`; absent for Linux.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core: Option<String>,
    /// Phase shift between the deadlines of neighbouring CPUs, ns.
    pub offset_ns: u64,
    /// Lateness above which a wake-up is a spike, ns; for the noise probe the length of a gap, for audio the completion
    /// of a period.
    pub threshold_ns: i64,
    /// True if the measured CPUs were kept out of their idle states.
    pub hold_cpu_awake: bool,
    /// Settings of the machine that the run was asked to change, as ID or ID=VALUE: `cpu.governor=performance`. Their
    /// values are in `settings` of the record.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<String>,
    /// True if the kernel's timerlat tracer ran at the same time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub timerlat: bool,
    /// Profiles whose limits decide the verdict.
    #[serde(default)]
    pub profiles: Vec<String>,
    /// True if the run was to end as soon as the verdict on these profiles was decided.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub until_decided: bool,
    /// The latency that no wake-up or gap may reach (`punctual pod`), ns; absent without this limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_ns: Option<u64>,
    /// Limits of `measure process` that decide the verdict; absent without limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<ProgramLimits>,
    /// Fields that a newer version wrote.
    #[serde(flatten)]
    pub extra: Extra,
}

/// One phase of a run: a period and the loads during it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Phase {
    /// Name, unique within the run: `rest`, `load`.
    pub name: String,
    /// Time between two deadlines, ns.
    pub period_ns: u64,
    /// Start, ns after the start of the run.
    pub start_ns: u64,
    /// Planned duration, ns; absent if a number of samples ends it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned_ns: Option<u64>,
    /// Planned number of samples of each thread; absent if a duration or the user ends the phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned_samples: Option<u64>,
    /// Duration, ns.
    pub duration_ns: u64,
    /// The requested measuring threads; empty if every measured CPU has the same one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<AskedThread>,
    /// The requested loads, as on the command line; empty for none.
    #[serde(default)]
    pub asked_loads: Vec<String>,
    /// The loads that ran, with proof.
    #[serde(default)]
    pub loads: Vec<LoadProof>,
    /// Fields that a newer version wrote.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The work of a load, as proof that it ran.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct LoadProof {
    /// Kind of load: `cpu`, `cache`, …
    pub name: String,
    /// The requested load with its options.
    pub spec: String,
    /// CPUs it was allowed on, as the kernel writes a list.
    pub cpus: String,
    /// Its working threads or processes.
    pub threads: u32,
    /// Number of operations.
    pub operations: u64,
    /// One operation: `64 KiB streamed`, `switches`, …
    pub unit: String,
    /// CPU time according to the kernel, ns.
    pub cpu_time_ns: u64,
    /// Wall-clock time that it ran, ns.
    pub wall_ns: u64,
    /// True if it did its work until the end of its phase.
    pub ran: bool,
    /// Why it did not run, or not fully; absent if it ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Fields that a newer version wrote.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Record {
    /// Returns the phase with this name.
    #[must_use]
    pub fn phase(&self, name: &str) -> Option<&Phase> {
        self.phases.iter().find(|phase| phase.name == name)
    }

    /// Returns the series of the probe, without those of the kernel's timerlat tracer and of a capture during the run.
    pub fn probe_series(&self) -> impl Iterator<Item = &Series> {
        self.series.iter().filter(|series| match series.kind.properties().by {
            MeasuredBy::Probe | MeasuredBy::Judge => true,
            MeasuredBy::Observer => self.scenario.probe == CAPTURE,
            MeasuredBy::Kernel => false,
        })
    }

    /// Deadlines, answers, interrupts and frames of a series that never came, as [`Series::absent`], with the lost frames of
    /// a capture. `None` if its frames have numbers that do not show how many are lost.
    #[must_use]
    pub fn absent(&self, series: &Series) -> Option<u64> {
        let of_capture = match &self.capture {
            Some(capture) if series.kind == SeriesKind::Capture => capture.lost_frames()?,
            _ => 0,
        };
        Some(series.absent().saturating_add(of_capture))
    }

    /// Number of spikes, kept or not. A late interrupt of timerlat and its late thread count once. Long round trips are
    /// not counted, because other machines contribute to them.
    #[must_use]
    pub fn spikes_total(&self) -> u64 {
        let counted = self.series.iter().filter(|series| series.kind.properties().counts_spikes);
        counted.fold(0, |sum, series| series.spikes_total.saturating_add(sum))
    }
}
