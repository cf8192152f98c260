//! Values of the interface that a stream goes over, set for the run.

use machine::{Root, nic::NicHold};
use record::Record;

use crate::{Plan, Probe, validity};

/// Sets what the plan asks for; a refusal makes the run invalid, and it goes on with the interface as it is.
pub(crate) fn hold(record: &mut Record, plan: &Plan, root: &Root) -> Option<NicHold> {
    let Probe::Stream(stream) = &plan.probe else { return None };
    let interface = stream.interface.as_deref().filter(|_| !stream.nic.is_empty())?;
    match NicHold::take(root, interface, &stream.nic) {
        Ok(hold) => Some(hold),
        Err(error) => {
            let text = format!("the interface was not set as asked: {error}");
            validity::add(record, "nic.refused", text, "run as root, or leave out --nic");
            None
        }
    }
}
