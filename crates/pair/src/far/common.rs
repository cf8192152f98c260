//! Helpers of both kinds of far end measurements.

use std::time::Duration;

use campaign::NicPlan;
use record::FarAsked;

/// An error message for the near end.
pub(super) type Failure = Box<dyn std::error::Error>;

/// Interval at which messages and signals are checked.
pub(super) const TICK: Duration = Duration::from_millis(100);

/// The requested interface settings.
pub(super) fn nic(asked: &FarAsked) -> Result<NicPlan, String> {
    let values = asked.nic.as_deref().map(str::parse).transpose()?.unwrap_or_default();
    Ok(NicPlan { values, irq_priority: asked.irq_priority })
}
