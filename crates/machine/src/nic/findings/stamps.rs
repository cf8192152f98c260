//! The timestamps that the NIC supports.

use record::Finding;

use super::{Check, CheckContext, judged};
use crate::findings::{Explain, not_applicable, ok, warn};

const STAMPS: &str = "ethtool -T";

pub(super) const CHECKS: &[Check] = &[hardware, receive_filter];

fn hardware(context: &CheckContext) -> Finding {
    const ID: &str = "nic.timestamps";
    judged(|| {
        let stamping = context.known(ID, "timestamps", &context.nic.stamping, STAMPS)?;
        let has = |name: &str| stamping.capabilities.iter().any(|capability| capability == name);
        let read = context.evidence(STAMPS, &stamping.capabilities.join(", "));
        if has("hardware-transmit") && has("hardware-receive") && has("hardware-raw-clock") {
            return Ok(ok(ID, "the NIC stamps sent and received frames", read));
        }
        let title = if has("software-transmit") { "software stamps only" } else { "no stamps of sent frames" };
        Ok(warn(ID, title, read).because(
            "Time in the driver and on the wire cannot be distinguished.",
            "measure the wire with a NIC that stamps (igb, igc, stmmac, ...), or with a tap",
        ))
    })
}

fn receive_filter(context: &CheckContext) -> Finding {
    const ID: &str = "nic.timestamps.receive";
    judged(|| {
        let stamping = context.known(ID, "timestamps", &context.nic.stamping, STAMPS)?;
        let filters = &stamping.rx_filters;
        let read = context.evidence(STAMPS, &format!("receive filters {}", filters.join(", ")));
        Ok(if filters.iter().any(|filter| filter == "all") {
            ok(ID, "any received frame can be stamped", read)
        } else if filters.iter().any(|filter| filter.starts_with("ptp")) {
            warn(ID, "only received PTP frames can be stamped", read).because(
                "The NIC cannot measure one-way times of other frames.",
                "measure round trips, or measure with a NIC that stamps all frames (igb, igc, ...)",
            )
        } else {
            not_applicable(ID, "the NIC stamps no received frames", context.evidence(STAMPS, "no receive filters"))
        })
    })
}
