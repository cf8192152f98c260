//! Settings, for a phase, of the interrupts of the source that an interrupt probe waits for.

use machine::{Handlers, IrqSettings, Root, SourceIrqHold};
use record::Record;

use crate::{plan::Plan, probe::Probe, validity};

/// Applies the settings of the plan; the source is open, and `before` was read before that. If they are refused, the run
/// becomes invalid and goes on without them.
pub(crate) fn hold(record: &mut Record, plan: &Plan, root: &Root, before: &Handlers) -> Option<SourceIrqHold> {
    let Probe::Interrupt(probe) = &plan.probe else { return None };
    let settings = IrqSettings { priority: plan.nic.irq_priority, cpu: probe.irq_cpu };
    if settings.is_empty() {
        return None;
    }
    match probe.set_interrupts(root, before, settings) {
        Ok(hold) => Some(hold),
        Err(error) => {
            let options = match settings {
                IrqSettings { priority: Some(_), cpu: Some(_) } => "--irq-priority and --irq-cpu",
                IrqSettings { cpu: Some(_), .. } => "--irq-cpu",
                _ => "--irq-priority",
            };
            let text = format!("the interrupt of the source does not have the requested settings: {error}");
            validity::add(record, "irq.refused", text, format!("follow that advice, or leave out {options}"));
            None
        }
    }
}

/// Undoes the settings, and adds them to the record, once for all phases with the same.
pub(crate) fn release(record: &mut Record, hold: Option<SourceIrqHold>) {
    for setting in hold.into_iter().flat_map(SourceIrqHold::release) {
        if !record.settings.contains(&setting) {
            record.settings.push(setting);
        }
    }
}
