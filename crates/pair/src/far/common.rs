//! What both measuring parts of the far end use.

use std::time::Duration;

use campaign::NicPlan;
use record::FarAsked;

/// Why something cannot be done, in words.
pub(super) type Failure = Box<dyn std::error::Error>;

/// How often it is looked whether anything is to be done.
pub(super) const TICK: Duration = Duration::from_millis(100);

/// How the interface is to be set.
pub(super) fn nic(asked: &FarAsked) -> Result<NicPlan, String> {
    let values = asked.nic.as_deref().map(str::parse).transpose()?.unwrap_or_default();
    Ok(NicPlan { values, irq_priority: asked.irq_priority })
}
