//! The machine that we measure on: its facts, its settings, and changes of settings that are undone.
//!
//! Everything is read under a [`Root`]: `/`, or the folder of a recorded machine.
//!
//! | module | contents |
//! |---|---|
//! | [`facts()`] | hardware, kernel and configuration of the machine |
//! | [`findings()`] | settings that may cause latency, each with its remedy |
//! | [`usable_cpus`] | the CPUs that may be measured |
//! | [`cpulist`] | sets of CPUs in the kernel's syntax |
//! | [`hold`] | settings that are changed for a run: idle states, interfaces, priorities of interrupt threads |
//! | [`shield`] | CPUs that are kept free of other work during a run |
//! | [`journal`] | the changes to undo, also after a crash |
//! | [`conditions`] | changes during a run: stolen time, throttling, clock source |
//! | [`tune`] | settings that are changed on request, for a run or until they are reverted |
//! | [`topology`] | caches and cores |
//! | [`clocks`] | the time sources of the clocks, and their offsets |
//! | [`nic`] | the settings of a network interface, and their findings |
//! | [`snapshot`] | a copy of what the checks read, without what identifies the machine |
//! | [`sound`] | sound cards: names, devices, users |
//! | [`veth`] | two network namespaces joined by a veth pair, to measure within one machine |
//! | [`pid_namespace`] | the namespace of process ids, outside which an id means nothing |
//! | [`init`] | the program that starts the services |
//! | [`evl_cpus`] | the CPUs of the EVL core |
//! | [`cpu_facts()`] | facts about a CPU that may explain latency |

pub mod clocks;
pub mod conditions;
pub mod cpulist;
pub mod hold;
pub mod journal;
pub mod nic;
pub mod pid_namespace;
pub mod setup;
pub mod shield;
pub mod snapshot;
pub mod sound;
pub mod topology;
pub mod tune;
pub mod veth;

mod boot_arguments;
mod cgroup;
mod cpu_facts;
mod cpus;
mod device_irqs;
mod evl;
mod facts;
mod findings;
pub mod iio;
pub mod init;
mod interface_name;
mod interrupts;
mod irqbalance;
mod kernel;
mod netns;
mod own_rights;
mod program_limit;
mod root;
mod run_groups;
mod system_ops;
mod tasks;
mod virt;

pub use cgroup::{FreezerFiles, QuotaFiles, is_frozen};
pub use conditions::{Change, Conditions, clocksource, idle_ms};
pub use cpu_facts::cpu_facts;
pub use cpulist::CpuList;
pub use cpus::{CpuError, online_cpus, usable_cpus};
pub use device_irqs::Handlers;
pub use evl::{Gravity, InvalidGravity, evl_cpus};
pub use facts::{facts, isolated_cpus};
pub use findings::{Check, checks, findings};
pub use hold::{
    AwakeHold, GravityError, GravityHold, HoldError, IrqPriorityError, IrqPriorityHold, IrqSettings, MonitorHold,
    NicHold, NicHoldError, SamplesError, SamplesHold, SettingsWatch, SourceIrqError, SourceIrqHold, keep_gravity,
};
pub use interrupts::{InterruptWatch, Interrupts};
pub use journal::{JournalError, RestoreError, Restored};
pub use kernel::{
    FAIR_SERVERS_OFF, Isolation, has_fair_server, is_realtime_kernel, lacks_kernel_option, limits_realtime_threads,
    ordinary_percent, version as kernel_version,
};
pub use root::{Root, Seen, Unreadable};
pub use shield::{Shield, ShieldError};
pub use tasks::start_ticks;
pub use virt::pinning;

/// Placeholder for the path of the punctual binary in remedies; the command replaces it if it knows the path.
pub const PUNCTUAL: &str = "\"$(command -v punctual)\"";

/// Both ways to the rights for real-time policies and locked memory: limits of the user, or capabilities of the binary.
pub const RIGHTS: &str = "sudo \"$(command -v punctual)\" setup   # by limits.d; or at once: sudo setcap \
     cap_sys_nice,cap_ipc_lock+ep \"$(command -v punctual)\"";
