//! The machine of a run: what it is, what was noticed about it, what was changed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Clocks, EvlCore, Extra};

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
    /// The EVL core, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evl: Option<EvlCore>,
    /// Gravity of the EVL core's clock, where there is one.
    pub evl_gravity: Option<String>,
    /// Share of time that real-time threads may use, `runtime/period` in us; `-1/…` for no limit.
    pub rt_throttling: Option<String>,
    /// What its clocks follow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clocks: Option<Clocks>,
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
