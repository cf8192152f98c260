//! Settings, for the run, of the network interface that the probe uses.

use std::net::IpAddr;

use machine::{
    IrqPriorityHold, NicHold, Root,
    nic::{Answers, NicSettings, can_stamp, clock_of_sent_stamps, outgoing_interface},
};
use record::Record;
use sys::{packet::SentStamps, udp::Stamps};

use crate::{
    changes::Changes,
    error::RunError,
    plan::{NicPlan, Plan},
    probe::{PlanError, Probe},
    validity,
};

const NO_RIGHT: &str = "run as root, or leave out --nic";

/// An interface, the settings that it gets, and the remedy if they are refused.
pub(crate) struct Wanted {
    interface: String,
    nic: NicPlan,
    remedy: &'static str,
}

/// Returns the settings that the plan needs; `None` if it needs none.
///
/// # Errors
/// There is no interface or no route to the peer, or the network card has no hardware timestamps.
pub(crate) fn wanted(plan: &Plan, root: &Root) -> Result<Option<Wanted>, RunError> {
    let mut nic = plan.nic.clone();
    if matches!(plan.probe, Probe::Interrupt(_)) {
        // The priority is that of the source's interrupts.
        nic.irq_priority = None;
    }
    let of_trips = matches!(&plan.probe, Probe::RoundTrip(probe) if probe.stamps == Stamps::Card);
    let of_sent = matches!(&plan.probe, Probe::Stream(probe) if probe.stamps == Some(SentStamps::Card));
    if nic.is_empty() && !of_trips && !of_sent {
        return Ok(None);
    }
    let interface = plan.probe.definition().interface_name()?.ok_or(PlanError::NoInterface)?;
    let remedy = if nic.values.is_empty() { "run as root, or use --stamps all" } else { NO_RIGHT };
    if of_trips {
        can_stamp(&mut Answers::of(root), &interface)?;
        nic.values.add(NicSettings::stamps());
    }
    if of_sent {
        clock_of_sent_stamps(root, &interface)?;
        nic.values.add(NicSettings::sent_stamps());
    }
    Ok(Some(Wanted { interface, nic, remedy }))
}

/// Returns the settings of the interface on the route to `address`; `None` if there are none.
///
/// # Errors
/// There is no route to the address.
pub(crate) fn wanted_towards(nic: &NicPlan, address: IpAddr) -> Result<Option<Wanted>, RunError> {
    if nic.is_empty() {
        return Ok(None);
    }
    Ok(Some(Wanted { interface: outgoing_interface(address)?, nic: nic.clone(), remedy: NO_RIGHT }))
}

/// Applies the settings. If one is refused, the run becomes invalid and goes on without it.
pub(crate) fn hold(record: &mut Record, changes: &mut Changes, wanted: Option<Wanted>, root: &Root) {
    let Some(Wanted { interface, nic, remedy }) = wanted else { return };
    if !nic.values.is_empty() {
        match NicHold::take(root, &interface, &nic.values) {
            Ok(hold) => changes.nic = Some(hold),
            Err(error) => {
                validity::add(
                    record,
                    "nic.refused",
                    format!("the settings of the interface were not applied: {error}"),
                    remedy,
                );
            }
        }
    }
    // Set after the values: a driver may then request its interrupts again, which creates new threads.
    if let Some(priority) = nic.irq_priority {
        match IrqPriorityHold::take(root, &interface, priority) {
            Ok(hold) => changes.irq_priority = Some(hold),
            Err(error) => {
                let text = format!("interrupts are not served at the requested priority: {error}");
                validity::add(record, "irq_priority.refused", text, "follow that advice, or leave out --irq-priority");
            }
        }
    }
}
