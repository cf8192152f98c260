//! What measures together with the timers of a phase, as the plan's probe needs it.

use machine::{Root, Shield};
use probes::companion::Companion;

use crate::{PhasePlan, Plan, Probe, RunError, audio, udp};

/// Makes it, with its threads waiting; `None` for a probe whose timers are all there is.
pub fn prepare(
    plan: &Plan,
    phase: &PhasePlan,
    root: &Root,
    shield: Option<&Shield>,
) -> Result<Option<Box<dyn Companion>>, RunError> {
    match &plan.probe {
        Probe::Timer | Probe::Noise { .. } => Ok(None),
        Probe::Audio(plays) => Ok(Some(Box::new(audio::prepare(plan, phase, plays)?))),
        Probe::Stream(stream) => Ok(Some(Box::new(stream.prepare(plan, phase, root, shield)?))),
        Probe::Udp(udp) => Ok(Some(Box::new(udp::prepare(plan, phase, udp, shield)?))),
    }
}
