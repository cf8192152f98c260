//! How the interface is set for the run that datagrams or frames go over.

use std::net::IpAddr;

use machine::{
    IrqPriorityHold, NicHold, Root,
    nic::{Answers, NicSettings, can_stamp, outgoing_interface},
};
use record::Record;
use sys::udp::Stamps;

use crate::{
    changes::{Change, Changes},
    error::RunError,
    plan::{NicPlan, Plan},
    probe::{PlanError, Probe},
    validity,
};

const NO_RIGHT: &str = "run as root, or leave out --nic";

/// An interface, what is to be set there, and what to do where that is refused.
pub(crate) struct Wanted {
    interface: String,
    nic: NicPlan,
    remedy: &'static str,
}

/// What the plan asks for, if anything.
///
/// # Errors
/// No interface, no way to the peer, or a network card that cannot stamp.
pub(crate) fn wanted(plan: &Plan, root: &Root) -> Result<Option<Wanted>, RunError> {
    let mut nic = plan.nic.clone();
    let stamps = matches!(&plan.probe, Probe::Udp(udp) if udp.stamps == Stamps::Card);
    if nic.is_empty() && !stamps {
        return Ok(None);
    }
    let interface = plan.probe.definition().interface_name()?.ok_or(PlanError::NoInterface)?;
    let remedy = if nic.values.is_empty() { "run as root, or use --stamps all" } else { NO_RIGHT };
    if stamps {
        can_stamp(&mut Answers::of(root), &interface)?;
        nic.values.add(NicSettings::stamps());
    }
    Ok(Some(Wanted { interface, nic, remedy }))
}

/// What is asked for of the interface that leads to `address`, if anything.
///
/// # Errors
/// No way leads there.
pub(crate) fn wanted_towards(nic: &NicPlan, address: IpAddr) -> Result<Option<Wanted>, RunError> {
    if nic.is_empty() {
        return Ok(None);
    }
    Ok(Some(Wanted { interface: outgoing_interface(address)?, nic: nic.clone(), remedy: NO_RIGHT }))
}

/// Sets what is asked for. A refusal makes the run invalid, and it goes on with the interface as it is.
pub(crate) fn hold(record: &mut Record, changes: &mut Changes, wanted: Option<Wanted>, root: &Root) {
    let Some(Wanted { interface, nic, remedy }) = wanted else { return };
    if !nic.values.is_empty() {
        match NicHold::take(root, &interface, &nic.values) {
            Ok(hold) => changes.push(Change::Nic(hold)),
            Err(error) => {
                validity::add(record, "nic.refused", format!("the interface was not set as asked: {error}"), remedy);
            }
        }
    }
    // After the values, because a driver may request its interrupts again when its values are set, with new threads.
    if let Some(priority) = nic.irq_priority {
        match IrqPriorityHold::take(root, &interface, priority) {
            Ok(hold) => changes.push(Change::IrqPriority(hold)),
            Err(error) => {
                let text = format!("interrupts are not served at the priority asked for: {error}");
                validity::add(record, "irq_priority.refused", text, "see there, or leave out --irq-priority");
            }
        }
    }
}
