//! The far end of a measurement between two machines.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ClockRelation, Extra, Finding, Granted, Machine};

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
