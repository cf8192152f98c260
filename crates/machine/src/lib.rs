//! What the machine is and how it is set, everything read under a [`Root`]: `/`, or the folder of a recorded machine.
//!
//! | module | answers |
//! |---|---|
//! | [`facts()`] | what the machine is |
//! | [`findings()`] | what about it may cost punctuality, and what to do |
//! | [`usable_cpus`] | which CPUs may be measured |
//! | [`cpulist`] | sets of CPUs, as the kernel writes them |
//! | [`hold`] | keeps CPUs out of their idle states during a run |
//! | [`shield`] | keeps CPUs free of other work during a run |
//! | [`journal`] | what has to be put back, also after a crash |
//! | [`conditions`] | what changed around a run: time stolen by the host, throttling, the clock |
//! | [`topology`] | caches and cores |
//! | [`clocks`] | what the clocks follow, and how closely |
//! | [`nic`] | how a network interface is set, and what about it may cost punctuality |
//! | [`sound`] | sound cards, their names, and who holds them |
//! | [`ends`] | makes two ends of a cable within this machine, to measure between |
//! | [`evl_cpus`] | which CPUs the EVL core has |
//! | [`cpu_facts()`] | what may explain why threads are late on a CPU |

pub mod clocks;
pub mod conditions;
pub mod cpulist;
pub mod ends;
pub mod hold;
pub mod journal;
pub mod nic;
pub mod shield;
pub mod sound;
pub mod topology;

mod cgroup;
mod cpu_facts;
mod cpus;
mod evl;
mod facts;
mod findings;
mod hands;
mod interrupts;
mod kernel;
mod netns;
mod root;
mod tasks;
mod virt;

pub use conditions::{Change, Conditions};
pub use cpu_facts::cpu_facts;
pub use cpulist::CpuList;
pub use cpus::{CpuError, usable_cpus};
pub use evl::evl_cpus;
pub use facts::{facts, isolated_cpus};
pub use findings::findings;
pub use hold::{AwakeHold, HoldError};
pub use interrupts::Interrupts;
pub use journal::{JournalError, Restored};
pub use root::{Root, Unreadable};
pub use shield::{Shield, ShieldError};

/// How remedies name the punctual binary; who knows its path puts that in its place.
pub const PUNCTUAL: &str = "\"$(command -v punctual)\"";

/// Grants the rights to real-time policies and locked memory to the binary, whoever runs it.
pub const SETCAP: &str = "sudo setcap cap_sys_nice,cap_ipc_lock+ep \"$(command -v punctual)\"";
