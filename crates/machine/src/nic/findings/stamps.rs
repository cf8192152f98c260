//! The stamps that the NIC can take.

use record::Finding;

use super::{Check, judged};
use crate::findings::{Explain, not_applicable, ok, warn};

const STAMPS: &str = "ethtool -T";

pub(super) fn hardware(check: &Check) -> Finding {
    const ID: &str = "nic.timestamps";
    judged(|| {
        let stamping = check.known(ID, "time stamps", &check.nic.stamping, STAMPS)?;
        let has = |name: &str| stamping.capabilities.iter().any(|capability| capability == name);
        let read = check.evidence(STAMPS, &stamping.capabilities.join(", "));
        if has("hardware-transmit") && has("hardware-receive") && has("hardware-raw-clock") {
            return Ok(ok(ID, "the NIC stamps what it sends and receives", read));
        }
        let title = if has("software-transmit") { "software stamps only" } else { "no stamps of sent frames" };
        Ok(warn(ID, title, read).because(
            "The time in the driver and on the wire cannot be told apart.",
            "measure what happens on the wire with a NIC that stamps (igb, igc, stmmac, ...), or with a tap",
        ))
    })
}

pub(super) fn receive_filter(check: &Check) -> Finding {
    const ID: &str = "nic.timestamps.receive";
    judged(|| {
        let stamping = check.known(ID, "time stamps", &check.nic.stamping, STAMPS)?;
        let filters = &stamping.rx_filters;
        let read = check.evidence(STAMPS, &format!("receive filters {}", filters.join(", ")));
        Ok(if filters.iter().any(|filter| filter == "all") {
            ok(ID, "any received frame can be stamped", read)
        } else if filters.iter().any(|filter| filter.starts_with("ptp")) {
            warn(ID, "only received PTP frames can be stamped", read).because(
                "One-way times of other frames cannot be taken by the NIC.",
                "take round trips, or measure with a NIC that stamps all frames (igb, igc, ...)",
            )
        } else {
            not_applicable(ID, "the NIC stamps no received frames", check.evidence(STAMPS, "no receive filters"))
        })
    })
}
