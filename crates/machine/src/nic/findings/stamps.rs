//! Time: the stamps that the NIC can take, its clock, and who keeps that right.

use record::Finding;

use super::{Check, judged};
use crate::findings::{Explain, not_applicable, ok, unknown, warn};

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

pub(super) fn clock(check: &Check) -> Finding {
    const ID: &str = "nic.clock";
    judged(|| {
        let stamping = check.known(ID, "time stamps", &check.nic.stamping, STAMPS)?;
        let Some(number) = stamping.phc else {
            return Ok(not_applicable(ID, "the NIC has no clock of its own", check.evidence(STAMPS, "no PHC")));
        };
        let name = check.nic.clock.name.as_deref().unwrap_or("name not readable");
        let read = check.evidence(STAMPS, &format!("PTP Hardware Clock: {number}"));
        Ok(ok(ID, format!("the NIC has a clock, /dev/ptp{number} ({name})"), read))
    })
}

/// That such a program runs does not tell how well it does its work, so this is never fine.
pub(super) fn synchronised(check: &Check) -> Finding {
    const ID: &str = "nic.clock.sync";
    judged(|| {
        let stamping = check.known(ID, "time stamps", &check.nic.stamping, STAMPS)?;
        let clock = &check.nic.clock;
        Ok(match stamping.phc {
            None => not_applicable(ID, "no clock to be synchronised", check.evidence(STAMPS, "no PHC")),
            Some(_) if !clock.programs.is_empty() => {
                let programs = clock.programs.join(", ");
                let title = format!(
                    "{programs} runs; how far off the clock is was not asked: see `pmc -u -b 0 'GET CURRENT_DATA_SET'`"
                );
                unknown(ID, title, format!("/proc/*/comm: {programs}"))
            }
            Some(_) if !check.nic.sees_all_tasks => {
                unknown(ID, "not all programs of this machine are visible", "/proc/2/comm is not kthreadd")
            }
            Some(_) => {
                warn(ID, "nobody synchronises the NIC's clock", "/proc/*/comm: no ptp4l, phc2sys, ts2phc or chronyd")
                    .because(
                        "Times on two machines cannot be compared, and launch times come at the wrong moment.",
                        format!("sudo ptp4l -i {} -m, and beside it: sudo phc2sys -a -r -m", check.nic.interface),
                    )
            }
        })
    })
}
