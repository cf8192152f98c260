//! The document itself. Field names are the JSON's; times are nanoseconds and say so in their names.
//!
//! Fields that this version does not know are kept in `extra` and written back.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Blame, Culprit, Evidence, Histogram, Maxima, Stretch};

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
    /// Settings of the machine that the run changed.
    #[serde(default)]
    pub settings: Vec<Setting>,
    /// The parts of the run in their order.
    #[serde(default)]
    pub phases: Vec<Phase>,
    /// What was seen: one entry a phase, CPU and thread.
    #[serde(default)]
    pub series: Vec<Series>,
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
    /// What measures: `timer`.
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

/// What one thread saw in one phase.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Series {
    /// The phase it belongs to.
    pub phase: String,
    /// What the thread is: `timer`, or the name it was given, as `base` and `servo`; [`TIMERLAT_IRQ`] and [`TIMERLAT_THREAD`] for the kernel's own.
    pub role: String,
    /// CPU it was pinned to; absent when it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<u32>,
    /// What the kernel granted, read back.
    pub granted: Granted,
    /// Time between two deadlines, ns.
    pub period_ns: u64,
    /// The first deadline, ns on the series' clock.
    pub first_deadline_ns: i64,
    /// Wake-ups counted.
    pub samples: u64,
    /// Deadlines that passed before the thread looked at the clock again.
    pub missed: u64,
    /// Wake-ups before their deadline; they stand in `raw` as negative values.
    pub early: u64,
    /// Smallest lateness, ns; absent with no samples, as the next three.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_ns: Option<i64>,
    /// Mean lateness, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_ns: Option<f64>,
    /// Largest lateness, exactly, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_ns: Option<i64>,
    /// When the largest lateness was seen, ns after the first deadline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_at_ns: Option<u64>,
    /// Machine-tool jitter: largest |interval - period|, ns. It cannot see constant lateness.
    pub jitter_ns: u64,
    /// One entry a wake-up.
    pub raw: Histogram,
    /// As `raw`, but a late wake-up also stands for the deadlines it ran over. Percentiles are read from this one.
    pub corrected: Histogram,
    /// Largest lateness in each stretch of the run.
    pub maxima: Maxima,
    /// Wake-ups later than the threshold, all of them counted.
    pub spikes_total: u64,
    /// The worst of them, in order of time; at most [`SPIKES_KEPT`].
    #[serde(default)]
    pub spikes: Vec<Spike>,
    /// What the probe itself costs between waking and its stamp, ns: the median of reading the clock twice in a row.
    pub floor_ns: u64,
    /// How often the thread was found on the CPU that it was pinned to: once in 1000 wake-ups and once a second. A series
    /// ends where it is found elsewhere, and says so in `notes`.
    #[serde(default)]
    pub cpu_checks: u64,
    /// Remarks: a CPU that went away, a guard that stepped in.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Fields that a newer version wrote.
    #[serde(flatten)]
    pub extra: Extra,
}

/// How many spikes a series keeps.
pub const SPIKES_KEPT: usize = 1000;

/// Role of a series of the kernel's timerlat tracer: how late its timer's interrupt came. The spikes that it counts
/// stand in the series of the thread.
pub const TIMERLAT_IRQ: &str = "timerlat/irq";
/// Role of a series of the kernel's timerlat tracer: how late its thread ran.
pub const TIMERLAT_THREAD: &str = "timerlat/thread";

/// What the kernel granted a measuring thread, read back after it was set.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Granted {
    /// Policy in the form it is asked for: `fifo:90`, `other`.
    pub policy: String,
    /// CPUs the thread may run on, as the kernel writes a list.
    pub cpus: String,
    /// Whether all memory of the process is locked.
    pub memory_locked: bool,
    /// Timer slack, ns; 0 for real-time policies.
    pub timer_slack_ns: u64,
    /// How the CPU is held out of its idle states: `pm_qos`, `cpu_dma_latency`; absent when it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_awake: Option<String>,
    /// Fields that a newer version wrote.
    #[serde(flatten)]
    pub extra: Extra,
}

/// One wake-up above the threshold.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Spike {
    /// How late, exactly, ns.
    pub lateness_ns: i64,
    /// Which deadline was missed, ns after the first.
    pub at_ns: u64,
    /// What ran, or kept the CPU from us, the largest share first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub culprits: Vec<Culprit>,
    /// What the culprits were found from.
    #[serde(default, skip_serializing_if = "Evidence::is_none")]
    pub evidence: Evidence,
    /// What had the CPU, in order of time, from a little before the deadline to the wake-up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub timeline: Vec<Stretch>,
    /// Where the kernel itself saw the time go; only in a series of its timerlat tracer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split: Option<Split>,
}

/// One cycle of the kernel's timerlat tracer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Split {
    /// When the timer's interrupt ran, ns after the deadline.
    pub irq_ns: u64,
    /// When the thread ran, ns after the deadline.
    pub thread_ns: u64,
}

/// The machine a run was made on. What could not be read is absent, never guessed.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Machine {
    /// Host name.
    pub hostname: Option<String>,
    /// Hardware architecture: `x86_64`, `aarch64`.
    pub arch: Option<String>,
    /// Board or system model.
    pub model: Option<String>,
    /// Name of the distribution.
    pub os: Option<String>,
    /// Kernel release, as `uname -r`.
    pub kernel: Option<String>,
    /// Kernel build, as `uname -v`.
    pub kernel_build: Option<String>,
    /// Preemption model in force: `PREEMPT_RT`, `full`, `lazy`, `voluntary`, `none`.
    pub preempt: Option<String>,
    /// Kernel command line.
    pub cmdline: Option<String>,
    /// FNV-1a digest of the kernel configuration, 16 hexadecimal digits.
    pub config_digest: Option<String>,
    /// CPU model.
    pub cpu_model: Option<String>,
    /// Microcode revision.
    pub microcode: Option<String>,
    /// Online CPUs, as the kernel writes a list; as the next two.
    pub cpus_online: Option<String>,
    /// CPUs isolated from the scheduler.
    pub cpus_isolated: Option<String>,
    /// CPUs without a periodic tick.
    pub cpus_nohz_full: Option<String>,
    /// CPUs that this process may use.
    pub cpus_allowed: Option<String>,
    /// Simultaneous multithreading: `on`, `off`, `notsupported`, …
    pub smt: Option<String>,
    /// Main memory, bytes.
    pub memory_bytes: Option<u64>,
    /// Time source of the kernel.
    pub clocksource: Option<String>,
    /// Frequency governor, one if all CPUs agree, else `CPU=governor` pairs.
    pub governor: Option<String>,
    /// Idle states with their exit latency: `C1 2us, C6 133us`.
    pub idle_states: Option<String>,
    /// Mitigations in force, as `vulnerability: mitigation`.
    pub mitigations: Vec<String>,
    /// The hypervisor that this machine is a guest of; `none` on bare metal.
    pub hypervisor: Option<String>,
    /// The kind of container that the process is in; `none` outside.
    pub container: Option<String>,
    /// Identity of this boot.
    pub boot_id: Option<String>,
    /// Gravity of the EVL core's clock, where there is one.
    pub evl_gravity: Option<String>,
    /// Share of time that real-time threads may use, `runtime/period` in us; `-1/…` for no limit.
    pub rt_throttling: Option<String>,
    /// Fields that a newer version wrote.
    #[serde(flatten)]
    pub extra: Extra,
}

/// One thing noticed about the machine.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// Stable name: `kernel.preempt`.
    pub id: String,
    /// What was found.
    pub state: FindingState,
    /// In one line: `kernel without real-time preemption (voluntary)`.
    pub title: String,
    /// Where it was read: `path = value`.
    pub evidence: String,
    /// Why it matters; empty when nothing is wrong.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// A command to paste, or a kernel argument to set; empty when nothing is wrong.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub remedy: String,
}

/// State of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FindingState {
    /// As it should be.
    Ok,
    /// May cost punctuality.
    Warn,
    /// Costs punctuality.
    Fail,
    /// Could not be read.
    #[default]
    Unknown,
    /// Does not exist on this machine.
    NotApplicable,
}

/// A setting of the machine that the run changed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Setting {
    /// What was set, usually a path.
    pub name: String,
    /// Value before the run.
    pub before: String,
    /// Value during the run.
    pub during: String,
    /// Value after the run; absent until it was read back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

/// Whether what was asked for is what ran.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Validity {
    /// Whether the figures may support a real-time verdict.
    pub valid: bool,
    /// Why not; empty when valid.
    #[serde(default)]
    pub reasons: Vec<Reason>,
}

/// One reason why a run is invalid.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Reason {
    /// Stable name: `policy.refused`.
    pub id: String,
    /// What was asked for, what ran instead, and what that means for the figures.
    pub text: String,
    /// A command to paste.
    pub remedy: String,
}

/// What a record can support.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Outcome {
    /// The limits were held, and there are samples enough to say so.
    Pass,
    /// A limit was exceeded.
    Fail,
    /// Too few samples for the limit.
    #[default]
    Inconclusive,
    /// What was asked for is not what ran.
    Invalid,
}

/// The verdict on a run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// The outcome.
    pub outcome: Outcome,
    /// Why, in one sentence.
    pub reason: String,
}

/// The verdict on one use.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct UseVerdict {
    /// The profile's name: `avb-class-a`.
    pub profile: String,
    /// What the use is, in plain words.
    pub title: String,
    /// The outcome.
    pub outcome: Outcome,
    /// Why, in one sentence.
    pub reason: String,
    /// Time between two cycles of the use, ns.
    pub period_ns: u64,
    /// Lateness that the use can bear, ns.
    pub limit_ns: i64,
    /// Largest lateness seen, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worst_ns: Option<i64>,
    /// Where the largest lateness was seen: `CPU 1, load`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub worst_where: String,
    /// Wake-ups that were considered.
    pub samples: u64,
    /// Those later than the limit.
    pub over_limit: u64,
    /// Deadlines of the use that the considered wake-ups would have run over, at the use's own period.
    pub missed: u64,
    /// What this many samples allow to be said, with how long to run for more.
    pub statement: String,
    /// Fields that a newer version wrote.
    #[serde(flatten)]
    pub extra: Extra,
}

/// What a record cannot tell, or tells with less precision.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Caveat {
    /// Kind of loss: `overflow`, `omission`, `folded`, `clamped`, `mixed`, `units`, `lost`, `virtual`, …
    pub kind: String,
    /// What it means for the figures.
    pub text: String,
}

impl Record {
    /// The phase called `name`.
    #[must_use]
    pub fn phase(&self, name: &str) -> Option<&Phase> {
        self.phases.iter().find(|phase| phase.name == name)
    }

    /// The series of the probe, without those of the kernel's timerlat tracer.
    pub fn of_the_probe(&self) -> impl Iterator<Item = &Series> {
        self.series.iter().filter(|series| !series.is_timerlat())
    }

    /// Spikes that were counted, kept or not. A late interrupt of timerlat's and its thread are one.
    #[must_use]
    pub fn spikes_total(&self) -> u64 {
        let told = self.series.iter().filter(|series| series.role != TIMERLAT_IRQ);
        told.fold(0, |sum, series| series.spikes_total.saturating_add(sum))
    }
}

impl Series {
    /// The series in words: `CPU 1`, or `unpinned` for a thread that may wander; `CPU 1 timerlat/irq`.
    #[must_use]
    pub fn place(&self) -> String {
        let place = self.cpu.map_or_else(|| "unpinned".to_owned(), |cpu| format!("CPU {cpu}"));
        if self.is_timerlat() { format!("{place} {}", self.role) } else { place }
    }

    /// Whether the kernel's timerlat tracer told it: its threads are not the probe's.
    #[must_use]
    pub fn is_timerlat(&self) -> bool {
        [TIMERLAT_IRQ, TIMERLAT_THREAD].contains(&self.role.as_str())
    }
}

impl Outcome {
    /// The process exit status that says the same: 0 pass, 2 fail, 3 inconclusive, 4 invalid.
    #[must_use]
    pub fn exit_status(self) -> u8 {
        match self {
            Self::Pass => 0,
            Self::Fail => 2,
            Self::Inconclusive => 3,
            Self::Invalid => 4,
        }
    }

    /// The outcome in capitals, as in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Pass => "PASS",
            Self::Fail => "FAIL",
            Self::Inconclusive => "INCONCLUSIVE",
            Self::Invalid => "INVALID",
        }
    }
}
