//! Threads that the EVL core (Xenomai 4) schedules instead of Linux.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Value of [`Scenario::core`](crate::Scenario) for a run whose measuring threads the EVL core scheduled.
pub const EVL: &str = "evl";
/// Value of [`Scenario::core`](crate::Scenario) for a run in which Linux and the EVL core scheduled one thread each on
/// every measured CPU.
pub const BOTH_CORES: &str = "both";
/// Role of the threads of Linux in a run with both cores.
pub const IN_BAND: &str = "in-band";
/// Role of the threads of the EVL core in a run with both cores.
pub const OUT_OF_BAND: &str = "out-of-band";

/// Facts about the EVL core of a machine.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct EvlCore {
    /// Newest supported ABI level; absent if unknown.
    pub abi: Option<String>,
    /// CPUs on which it can schedule threads, as the kernel writes a list; absent if unknown.
    pub cpus: Option<String>,
    /// Its state: `running`, `stopped` or `disabled`; absent if unknown.
    pub state: Option<String>,
}

/// Figures of a measuring thread that only the EVL core has.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct EvlThread {
    /// The ABI level in use.
    pub abi: u32,
    /// Switches of the thread to in-band (Linux) scheduling while it measured; the run is invalid unless this is 0.
    pub in_band: u64,
}
