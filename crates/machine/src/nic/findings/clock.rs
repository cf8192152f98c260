//! The NIC's clock (PHC), whom it follows, and how far the system clock is from it.

use record::{Clocks, Finding, Ptp};

use super::{Check, judged, micros};
use crate::findings::{Explain, not_applicable, ok, unknown, warn};

const STAMPS: &str = "ethtool -T";
/// What IEEE 802.1AS wants to hold between any two ends that are seven hops apart, ns.
const MAX_NS: u64 = 1000;
/// How far TAI is ahead of UTC since 2017, s.
const TAI_AHEAD_S: i64 = 37;
/// Programs that may set this clock.
const SYNCHRONISERS: [&str; 4] = ["ptp4l", "phc2sys", "ts2phc", "chronyd"];

pub(super) fn there(check: &Check) -> Finding {
    const ID: &str = "nic.clock";
    judged(|| {
        let stamping = check.known(ID, "time stamps", &check.nic.stamping, STAMPS)?;
        let Some(number) = stamping.phc else {
            return Ok(not_applicable(ID, "the NIC has no clock of its own", check.evidence(STAMPS, "no PHC")));
        };
        let name = check.nic.clock().and_then(|clock| clock.name.as_deref()).unwrap_or("name not readable");
        let read = check.evidence(STAMPS, &format!("PTP Hardware Clock: {number}"));
        Ok(ok(ID, format!("the NIC has a clock, /dev/ptp{number} ({name})"), read))
    })
}

pub(super) fn synchronised(check: &Check) -> Finding {
    const ID: &str = "nic.clock.sync";
    judged(|| {
        let number = number(check, ID, "no clock to be synchronised")?;
        if let Some(ptp) = check.nic.clocks.as_ref().and_then(|clocks| clocks.ptp.as_ref()) {
            return Ok(by_ptp4l(check, ID, &format!("ptp{number}"), ptp));
        }
        let clocks = check.nic.clocks.as_ref();
        let running = clocks.map_or(&[][..], |clocks| &clocks.programs);
        let programs: Vec<&str> =
            running.iter().map(String::as_str).filter(|name| SYNCHRONISERS.contains(name)).collect();
        let programs = programs.join(", ");
        let reason = clocks.and_then(|clocks| clocks.unknown.iter().find(|reason| reason.contains("ptp4l")));
        Ok(if let Some(reason) = reason {
            unknown(ID, reason.clone(), format!("/proc/*/comm: {programs}"))
        } else if !programs.is_empty() {
            // That a program runs does not tell how well it does its work, so this is never fine.
            unknown(ID, format!("{programs} runs, and does not tell us how well"), format!("/proc/*/comm: {programs}"))
        } else if !check.nic.sees_all_tasks {
            unknown(ID, "not all programs of this machine are visible", "/proc/2/comm is not kthreadd")
        } else {
            let read = "/proc/*/comm: no ptp4l, phc2sys, ts2phc or chronyd";
            warn(ID, "nobody synchronises the NIC's clock", read).because(
                "Times on two machines cannot be compared, and launch times come at the wrong moment.",
                format!("sudo ptp4l -i {} -m, and beside it: sudo phc2sys -a -r -m", check.nic.interface),
            )
        })
    })
}

fn by_ptp4l(check: &Check, id: &str, clock: &str, ptp: &Ptp) -> Finding {
    const WHY: &str = "Times on two machines cannot be compared.";
    let interface = &check.nic.interface;
    let read = format!("/var/run/ptp4l: {}, offset {} ns", ptp.ports_in_words(), ptp.offset_ns);
    let port = ptp.ports.iter().find(|port| {
        port.interface.as_ref().is_none_or(|name| name == interface) || port.clock.as_deref() == Some(clock)
    });
    let restart = |options: &str| format!("sudo ptp4l -i {interface} -m{options}");
    match port {
        None => warn(id, format!("ptp4l runs, but not on {interface}"), read).because(WHY, restart("")),
        Some(port) if port.stamps_in_hardware == Some(false) => {
            warn(id, "ptp4l takes the kernel's stamps and leaves the NIC's clock alone", read)
                .because("Stamps of the kernel hold what interrupts and wake-ups cost.", restart(" -H"))
        }
        Some(_) if !ptp.is_synchronised() => warn(id, format!("ptp4l follows nobody: {}", ptp.ports_in_words()), read)
            .because(WHY, "look for a grandmaster: sudo pmc -u -b 1 'GET PARENT_DATA_SET'"),
        Some(_) if ptp.is_grandmaster => ok(id, "this machine is the grandmaster", read),
        Some(_) if ptp.offset_ns > MAX_NS => {
            let away = micros(ptp.offset_ns);
            warn(id, format!("{away} from grandmaster {}", ptp.grandmaster), read).because(
                "IEEE 802.1AS wants any two ends within 1 us.",
                "wait until it has settled, and see that all switches on the way take part in PTP: sudo pmc -u -b 0 'GET CURRENT_DATA_SET'",
            )
        }
        Some(_) => ok(id, format!("within {} ns of grandmaster {}", ptp.offset_ns, ptp.grandmaster), read),
    }
}

pub(super) fn system(check: &Check) -> Finding {
    const ID: &str = "nic.clock.system";
    judged(|| {
        let number = number(check, ID, "no clock beside the system clock")?;
        let path = format!("/dev/ptp{number}");
        let Some(ahead) = check.nic.clock().and_then(|clock| clock.ahead.as_ref()) else {
            let unknowns = check.nic.clocks.iter().flat_map(|clocks| &clocks.unknown);
            let reason = unknowns.into_iter().find(|reason| reason.contains(&path));
            return Ok(unknown(
                ID,
                "how far the system clock is from the NIC's is not known",
                reason.cloned().unwrap_or(path),
            ));
        };
        let read = format!(
            "{path}: {} s and {} ns from CLOCK_REALTIME, read within {} ns",
            ahead.seconds, ahead.apart_ns, ahead.window_ns
        );
        let follows = [0, tai_ahead_s(check.nic.clocks.as_ref())].contains(&ahead.seconds);
        Ok(if follows && ahead.error_ns() <= check.tenth_ns() {
            ok(ID, format!("the system clock follows the NIC's within {} ns", ahead.error_ns()), read)
        } else {
            warn(ID, "the system clock does not follow the NIC's", read).because(
                "Stamps of the kernel cannot be compared with those of the NIC, nor times on two machines.",
                "sudo phc2sys -a -r -m",
            )
        })
    })
}

/// How far the clock is ahead of one at UTC, if it is at TAI, s.
fn tai_ahead_s(clocks: Option<&Clocks>) -> i64 {
    let by_ptp = clocks.and_then(|clocks| Some(i64::from(clocks.ptp.as_ref()?.utc_offset_s)));
    by_ptp.filter(|&seconds| seconds != 0).unwrap_or(TAI_AHEAD_S)
}

/// The number of the clock, or the finding that there is none.
fn number(check: &Check, id: &str, lack: &str) -> Result<u32, Box<Finding>> {
    let stamping = check.known(id, "time stamps", &check.nic.stamping, STAMPS)?;
    stamping.phc.ok_or_else(|| Box::new(not_applicable(id, lack, check.evidence(STAMPS, "no PHC"))))
}
