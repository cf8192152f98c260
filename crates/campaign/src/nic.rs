//! How the interface is set for the run that datagrams or frames go over.

use std::net::IpAddr;

use machine::{
    Root,
    nic::{Answers, IrqPriorityHold, NicHold, NicSettings, can_stamp, way_to},
};
use record::{Record, Setting};
use sys::udp::Stamps;

use crate::{Plan, PlanError, Probe, RunError, validity};

/// How an interface is to be set.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NicPlan {
    /// Its values.
    pub values: NicSettings,
    /// Priority of the threads that serve it, 1 to 99 under SCHED_FIFO; `None` leaves them as they are.
    pub irq_priority: Option<u8>,
}

impl NicPlan {
    /// Whether there is nothing to be set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty() && self.irq_priority.is_none()
    }
}

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
    let interface = interface(&plan.probe)?;
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
    Ok(Some(Wanted { interface: way_to(address)?, nic: nic.clone(), remedy: NO_RIGHT }))
}

/// The interface that a probe goes over.
fn interface(probe: &Probe) -> Result<String, RunError> {
    match probe {
        Probe::Stream(stream) => Ok(stream.interface.clone().ok_or(PlanError::NoInterface)?),
        Probe::Udp(udp) => udp.interface(),
        Probe::Timer | Probe::Noise { .. } | Probe::Audio(_) => Err(PlanError::NoInterface.into()),
    }
}

/// An interface that is set.
#[derive(Debug, Default)]
pub(crate) struct Held {
    // Put back first: a driver whose values are set may ask for its interrupts anew, and they have new threads then.
    priority: Option<IrqPriorityHold>,
    values: Option<NicHold>,
}

/// Sets what is asked for; a refusal makes the run invalid, and it goes on with the interface as it is.
pub(crate) fn hold(record: &mut Record, wanted: Option<Wanted>, root: &Root) -> Held {
    let Some(Wanted { interface, nic, remedy }) = wanted else { return Held::default() };
    let mut held = Held::default();
    if !nic.values.is_empty() {
        match NicHold::take(root, &interface, &nic.values) {
            Ok(hold) => held.values = Some(hold),
            Err(error) => {
                validity::add(record, "nic.refused", format!("the interface was not set as asked: {error}"), remedy);
            }
        }
    }
    if let Some(priority) = nic.irq_priority {
        match IrqPriorityHold::take(root, &interface, priority) {
            Ok(hold) => held.priority = Some(hold),
            Err(error) => {
                let text = format!("interrupts are not served at the priority asked for: {error}");
                validity::add(record, "irq_priority.refused", text, "see there, or leave out --irq-priority");
            }
        }
    }
    held
}

impl Held {
    /// Puts everything back, and tells what was set.
    pub(crate) fn release(self) -> Vec<Setting> {
        let priority = self.priority.map(IrqPriorityHold::release);
        let values = self.values.map(NicHold::release);
        values.into_iter().chain(priority).flatten().collect()
    }
}
