//! The far end of a measurement between two machines.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ClockRelation, Extra, Finding, Granted, LoadProof, Machine, Setting, Shielding};

/// The machine at the far end. Its series are in the record's list and carry its name.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Far {
    /// Host name as given on the command line, without the user.
    pub host: String,
    /// Facts about the machine.
    pub machine: Machine,
    /// Findings about the machine before the run.
    #[serde(default)]
    pub findings: Vec<Finding>,
    /// Relation of its clock to that of the near end.
    pub clock: ClockRelation,
    /// The requested settings and loads of the far end.
    #[serde(default)]
    pub asked: FarAsked,
    /// Its settings that the run changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<Setting>,
    /// Its shielded CPUs; absent without a shield.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shielding: Option<Shielding>,
    /// The loads that ran on it, with proof.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loads: Vec<LoadProof>,
    /// Counts of the answering thread; absent if it did not answer datagrams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered: Option<Answered>,
    /// Why its results are missing; absent if they arrived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<String>,
    /// Fields that a newer version wrote.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The requested settings and loads of a far end, as on the command line.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct FarAsked {
    /// Scheduling policy of its thread: `fifo:97`.
    pub policy: String,
    /// CPU of its thread; absent if the far end chose it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<u32>,
    /// Loads to run on it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loads: Vec<String>,
    /// CPUs that the loads may use; absent if the far end chose them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_cpus: Option<String>,
    /// CPUs to shield from other work; absent without a shield.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shield: Option<String>,
    /// True if the CPU of its thread had to stay out of its idle states.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hold_cpu_awake: bool,
    /// Settings of its network interface: `coalesce=0,eee=off`; absent for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nic: Option<String>,
    /// Priority of the threads that serve its network interface, 1 to 99; absent if it was not changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub irq_priority: Option<u8>,
    /// Source of a listener's frames: `xdp`; absent for a socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive: Option<String>,
    /// Transport of an answering end: `xdp`; absent for a socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transport: Option<String>,
    /// Queue of the interface for `xdp`; absent for the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<u32>,
    /// Fields that a newer version wrote.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Counts of the end that answers datagrams.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Answered {
    /// Address and port that it answered on.
    pub address: String,
    /// Copy mode and hook of AF_XDP: `xdp copy native`; absent if it answered by a socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transport: Option<String>,
    /// Datagrams that were received and answered; duplicates count each time.
    pub answered: u64,
    /// Greetings answered before the first slot.
    pub greetings: u64,
    /// Datagrams of other programs, which were not answered.
    pub strangers: u64,
    /// Answers that the kernel refused to send.
    pub failed: u64,
    /// Number of times that the guard throttled the thread.
    pub rests: u64,
    /// Settings that the kernel granted the thread.
    pub granted: Granted,
    /// Fields that a newer version wrote.
    #[serde(flatten)]
    pub extra: Extra,
}
