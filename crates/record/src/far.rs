//! The far end of a measurement between two machines.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ClockRelation, Extra, Finding, Granted, LoadProof, Machine, Setting, Shielding};

/// The machine at the other end. Its series stand among the others and carry its name.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Far {
    /// The name that it was called by, without a user.
    pub host: String,
    /// What it is.
    pub machine: Machine,
    /// What was noticed about it before the run.
    #[serde(default)]
    pub findings: Vec<Finding>,
    /// How its clock stands to that of the near end.
    pub clock: ClockRelation,
    /// What it was asked to be, and to do beside its own part.
    #[serde(default)]
    pub asked: FarAsked,
    /// Its settings that the run changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<Setting>,
    /// Its CPUs that were kept free of other work; absent when that was not asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shielding: Option<Shielding>,
    /// The loads that ran there, with proof.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loads: Vec<LoadProof>,
    /// What it answered; absent where it did not answer datagrams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered: Option<Answered>,
    /// Why what it saw is missing; absent when it told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<String>,
    /// Fields that a newer version wrote.
    #[serde(flatten)]
    pub extra: Extra,
}

/// What a far end was asked to be, and to do beside its own part; words are those of the command line.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct FarAsked {
    /// Policy of its thread: `fifo:97`.
    pub policy: String,
    /// The CPU of that; absent where it was left to the far end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<u32>,
    /// Loads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loads: Vec<String>,
    /// CPUs that they may use; absent where it was left to the far end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_cpus: Option<String>,
    /// CPUs to be kept free of other work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shield: Option<String>,
    /// Whether the CPU of its thread was to be held out of its idle states.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hold_cpu_awake: bool,
    /// Values of its interface: `coalesce=0,eee=off`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nic: Option<String>,
    /// Priority of the threads that serve the interface, 1 to 99.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub irq_priority: Option<u8>,
    /// What a listener was to take frames from: `xdp`; absent for a socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive: Option<String>,
    /// The queue of the interface that it was to have with `xdp`; absent for the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<u32>,
    /// Fields that a newer version wrote.
    #[serde(flatten)]
    pub extra: Extra,
}

/// What the answering end of round trips counted itself.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Answered {
    /// Address and port that it answered on.
    pub address: String,
    /// Datagrams of slots that came in and were answered, those that came twice counted twice.
    pub answered: u64,
    /// Greetings answered before the first slot.
    pub greetings: u64,
    /// Datagrams that are none of ours, and were not answered.
    pub strangers: u64,
    /// Answers that the kernel refused to send.
    pub failed: u64,
    /// Times that the guard made the thread rest.
    pub rests: u64,
    /// What the kernel granted it.
    pub granted: Granted,
    /// Fields that a newer version wrote.
    #[serde(flatten)]
    pub extra: Extra,
}
