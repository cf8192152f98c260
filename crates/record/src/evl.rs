//! Threads that the EVL core (Xenomai 4) schedules instead of Linux.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What [`Scenario::core`](crate::Scenario) says of a run whose measuring threads were the EVL core's.
pub const EVL: &str = "evl";

/// The core itself, as part of what a machine is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct EvlCore {
    /// The newest level of its interface that it knows.
    pub abi: Option<String>,
    /// CPUs that it schedules threads on, as the kernel writes a list.
    pub cpus: Option<String>,
    /// Whether it runs: `running`, `stopped`, `disabled`.
    pub state: Option<String>,
}

/// The rest of what was seen of a measuring thread of the core.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct EvlThread {
    /// The level of the interface that was spoken.
    pub abi: u32,
    /// Times that the thread fell back to Linux while it measured; unless 0, the run is invalid.
    pub in_band: u64,
}
