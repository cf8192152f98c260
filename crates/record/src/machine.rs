//! The machine of a run: facts about it, findings, and changed settings.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Clocks, EvlCore, Extra};

/// The kind of emulation of a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Emulation {
    /// CPUs in software, and time counted in instructions.
    VirtualTime,
    /// CPUs in software, with the clock of the host.
    Software,
}

/// The machine of a run. A fact that could not be read is absent, never guessed.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Machine {
    /// Host name.
    pub hostname: Option<String>,
    /// Hardware architecture: `x86_64`, `aarch64`.
    pub arch: Option<String>,
    /// Board or system model.
    pub model: Option<String>,
    /// Name and version of the distribution.
    pub os: Option<String>,
    /// Kernel release, as printed by `uname -r`.
    pub kernel: Option<String>,
    /// Kernel build, as printed by `uname -v`.
    pub kernel_build: Option<String>,
    /// Active preemption model: `PREEMPT_RT`, `full`, `lazy`, `voluntary`, `none`.
    pub preempt: Option<String>,
    /// Kernel command line.
    pub cmdline: Option<String>,
    /// FNV-1a digest of the kernel configuration, 16 hexadecimal digits.
    pub config_digest: Option<String>,
    /// CPU model.
    pub cpu_model: Option<String>,
    /// Microcode revision.
    pub microcode: Option<String>,
    /// Online CPUs, as the kernel writes a list.
    pub cpus_online: Option<String>,
    /// CPUs isolated from the scheduler, as the kernel writes a list.
    pub cpus_isolated: Option<String>,
    /// CPUs without a periodic tick, as the kernel writes a list.
    pub cpus_nohz_full: Option<String>,
    /// CPUs that this process may use, as the kernel writes a list.
    pub cpus_allowed: Option<String>,
    /// Simultaneous multithreading: `on`, `off`, `notsupported`, …
    pub smt: Option<String>,
    /// Main memory, bytes.
    pub memory_bytes: Option<u64>,
    /// Clock source of the kernel.
    pub clocksource: Option<String>,
    /// CPU frequency governor; `CPU=governor` pairs if CPUs differ.
    pub governor: Option<String>,
    /// Idle states with their exit latencies: `C1 2us, C6 133us`.
    pub idle_states: Option<String>,
    /// Active mitigations, as `vulnerability: mitigation`.
    pub mitigations: Vec<String>,
    /// Hypervisor of this machine; `none` on bare metal.
    pub hypervisor: Option<String>,
    /// The kind of emulation, in a guest that punctual started; absent on hardware and with KVM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emulation: Option<Emulation>,
    /// Kind of container of this process; `none` outside of one.
    pub container: Option<String>,
    /// Random identifier of this boot.
    pub boot_id: Option<String>,
    /// The EVL core; absent without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evl: Option<EvlCore>,
    /// Gravity values of the EVL core's clock; absent without one.
    pub evl_gravity: Option<String>,
    /// Version of the Cobalt core (Xenomai 3), whose threads punctual does not measure; absent without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cobalt: Option<String>,
    /// CPU time that real-time threads may use, `runtime/period` in us; `-1/…` for no limit.
    pub rt_throttling: Option<String>,
    /// The machine's clocks and their sources; absent if they were not examined.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clocks: Option<Clocks>,
    /// Fields that a newer version wrote.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The id of the finding that a measurement of this machine supports, or does not, a use of it.
pub const USE_MEASURED: &str = "use.measured";

/// A finding about the machine.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// Stable identifier: `kernel.preempt`.
    pub id: String,
    /// State of the finding.
    pub state: FindingState,
    /// Summary in one line: `kernel without real-time preemption (voluntary)`.
    pub title: String,
    /// The evidence: `path = value`.
    pub evidence: String,
    /// Why it matters; empty if nothing is wrong.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// A command to paste, or a kernel argument to set; empty if nothing is wrong.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub remedy: String,
    /// How long the effect of the remedy lasts; absent if nothing is wrong, or if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lasts: Option<Lasts>,
}

/// How long the effect of a remedy lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Lasts {
    /// Until the process that it changes ends.
    UntilExit,
    /// Until the next boot.
    UntilBoot,
    /// Until somebody undoes it.
    Permanent,
}

/// State of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FindingState {
    /// The setting is good.
    Ok,
    /// May cause lateness.
    Warn,
    /// Causes lateness.
    Fail,
    /// The value could not be read.
    #[default]
    Unknown,
    /// The setting does not exist on this machine.
    NotApplicable,
}

/// A setting of the machine that the run changed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Setting {
    /// The setting, usually a path.
    pub name: String,
    /// Value before the run.
    pub before: String,
    /// Value during the run.
    pub during: String,
    /// Value after the run; absent until it was read back, or if it ended with the run, like an interrupt's thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}
