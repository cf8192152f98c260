//! Values of the interface that frames go over, set for the run.

use machine::{
    Root,
    nic::{Answers, NicHold, NicSettings, can_stamp},
};
use record::Record;
use sys::udp::Stamps;

use crate::{Plan, Probe, RunError, validity};

/// An interface, what is to be set there, and the option to leave out otherwise.
pub(crate) struct Wanted {
    interface: String,
    settings: NicSettings,
    remedy: &'static str,
}

/// What the plan asks for, if anything.
///
/// # Errors
/// No way to the peer, or a network card that cannot stamp.
pub(crate) fn wanted(plan: &Plan, root: &Root) -> Result<Option<Wanted>, RunError> {
    match &plan.probe {
        Probe::Stream(stream) => {
            let interface = stream.interface.clone().filter(|_| !stream.nic.is_empty());
            let remedy = "run as root, or leave out --nic";
            Ok(interface.map(|interface| Wanted { interface, settings: stream.nic.clone(), remedy }))
        }
        Probe::Udp(udp) if udp.stamps == Stamps::Card => {
            let interface = udp.interface()?;
            can_stamp(&mut Answers::of(root), &interface)?;
            let remedy = "run as root, or use --stamps all";
            Ok(Some(Wanted { interface, settings: NicSettings::stamps(), remedy }))
        }
        _ => Ok(None),
    }
}

/// Sets it; a refusal makes the run invalid, and it goes on with the interface as it is.
pub(crate) fn hold(record: &mut Record, wanted: Option<Wanted>, root: &Root) -> Option<NicHold> {
    let Wanted { interface, settings, remedy } = wanted?;
    match NicHold::take(root, &interface, &settings) {
        Ok(hold) => Some(hold),
        Err(error) => {
            validity::add(record, "nic.refused", format!("the interface was not set as asked: {error}"), remedy);
            None
        }
    }
}
