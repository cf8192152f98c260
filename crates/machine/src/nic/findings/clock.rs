//! The NIC's clock (PHC), its time source, and its offset from the system clock.

use record::{Clocks, Finding, Ptp};

use super::{Check, CheckContext, judged, micros};
use crate::{
    findings::{Explain, not_applicable, ok, unknown, warn, without},
    root::Unread,
};

const STAMPS: &str = "ethtool -T";
/// The limit of IEEE 802.1AS for any two clocks that are seven hops apart, ns.
const MAX_NS: u64 = 1000;
/// Offset of TAI from UTC since 2017, s.
const TAI_AHEAD_S: i64 = 37;
/// Programs that may set this clock.
const SYNCHRONISERS: [&str; 4] = ["ptp4l", "phc2sys", "ts2phc", "chronyd"];

pub(super) const CHECKS: &[Check] = &[has_clock, synchronised, system];

fn has_clock(context: &CheckContext) -> Finding {
    const ID: &str = "nic.clock";
    judged(|| {
        let stamping = context.known(ID, "timestamps", &context.nic.stamping, STAMPS)?;
        let Some(number) = stamping.phc else {
            return Ok(not_applicable(ID, "the NIC has no clock of its own", context.evidence(STAMPS, "no PHC")));
        };
        let name = context.nic.clock().and_then(|clock| clock.name.as_deref()).unwrap_or("name not readable");
        let read = context.evidence(STAMPS, &format!("PTP Hardware Clock: {number}"));
        Ok(ok(ID, format!("the NIC has a clock, /dev/ptp{number} ({name})"), read))
    })
}

fn synchronised(context: &CheckContext) -> Finding {
    const ID: &str = "nic.clock.sync";
    judged(|| {
        let number = number(context, ID, "no clock that could be synchronised")?;
        if let Some(ptp) = context.nic.clocks.as_ref().and_then(|clocks| clocks.ptp.as_ref()) {
            return Ok(by_ptp4l(context, ID, &format!("ptp{number}"), ptp));
        }
        let clocks = context.nic.clocks.as_ref();
        let running = clocks.map_or(&[][..], |clocks| &clocks.programs);
        let programs: Vec<&str> =
            running.iter().map(String::as_str).filter(|name| SYNCHRONISERS.contains(name)).collect();
        let programs = programs.join(", ");
        let reason = clocks.and_then(|clocks| clocks.unknown.iter().find(|reason| reason.contains("ptp4l")));
        Ok(if let Some(reason) = reason {
            unknown(ID, reason.clone(), format!("/proc/*/comm: {programs}"))
        } else if !programs.is_empty() {
            // A running program does not prove that the clock is synchronised, so this is never `ok`.
            unknown(
                ID,
                format!("{programs} runs, but its accuracy cannot be read"),
                format!("/proc/*/comm: {programs}"),
            )
        } else if let Some(Unread { path, why }) = context.nic.unread.programs.first() {
            unknown(ID, "not all programs of this machine are readable", without(path, *why))
        } else if !context.nic.sees_all_tasks {
            unknown(ID, "not all programs of this machine are visible", "/proc/2/comm is not kthreadd")
        } else {
            let read = "/proc/*/comm: no ptp4l, phc2sys, ts2phc or chronyd";
            warn(ID, "the NIC's clock is not synchronised", read).because(
                "Times on two machines cannot be compared, and launch times are wrong.",
                format!("sudo ptp4l -i {} -m, and in another terminal: sudo phc2sys -a -r -m", context.nic.interface),
            )
        })
    })
}

fn by_ptp4l(context: &CheckContext, id: &str, clock: &str, ptp: &Ptp) -> Finding {
    const WHY: &str = "Times on two machines cannot be compared.";
    let interface = &context.nic.interface;
    let read = format!("/var/run/ptp4l: {}, offset {} ns", ptp.ports_in_words(), ptp.offset_ns);
    let port = ptp.ports.iter().find(|port| {
        port.interface.as_ref().is_none_or(|name| name == interface) || port.clock.as_deref() == Some(clock)
    });
    let restart = |options: &str| format!("sudo ptp4l -i {interface} -m{options}");
    match port {
        None => warn(id, format!("ptp4l runs, but not on {interface}"), read).because(WHY, restart("")),
        Some(port) if port.stamps_in_hardware == Some(false) => {
            warn(id, "ptp4l uses the kernel's timestamps and does not set the NIC's clock", read)
                .because("The kernel's timestamps include the latency of interrupts and wake-ups.", restart(" -H"))
        }
        Some(_) if !ptp.is_synchronised() => warn(id, format!("ptp4l has no master: {}", ptp.ports_in_words()), read)
            .because(WHY, "find the grandmaster: sudo pmc -u -b 1 'GET PARENT_DATA_SET'"),
        Some(_) if ptp.is_grandmaster => ok(id, "this machine is the grandmaster", read),
        Some(_) if ptp.offset_ns > MAX_NS => {
            let away = micros(ptp.offset_ns);
            warn(id, format!("{away} from grandmaster {}", ptp.grandmaster), read).because(
                "IEEE 802.1AS requires any two clocks to be within 1 us.",
                "wait until it has settled, and check that all switches on the path support PTP: sudo pmc -u -b 0 'GET CURRENT_DATA_SET'",
            )
        }
        Some(_) => ok(id, format!("within {} ns of grandmaster {}", ptp.offset_ns, ptp.grandmaster), read),
    }
}

fn system(context: &CheckContext) -> Finding {
    const ID: &str = "nic.clock.system";
    judged(|| {
        let number = number(context, ID, "no clock except the system clock")?;
        let path = format!("/dev/ptp{number}");
        let Some(ahead) = context.nic.clock().and_then(|clock| clock.ahead.as_ref()) else {
            let unknowns = context.nic.clocks.iter().flat_map(|clocks| &clocks.unknown);
            let reason = unknowns.into_iter().find(|reason| reason.contains(&path));
            return Ok(unknown(
                ID,
                "offset of the system clock from the NIC's clock not readable",
                reason.cloned().unwrap_or(path),
            ));
        };
        let read = format!(
            "{path}: {} s and {} ns from CLOCK_REALTIME, read within {} ns",
            ahead.seconds, ahead.apart_ns, ahead.window_ns
        );
        let follows = [0, tai_ahead_s(context.nic.clocks.as_ref())].contains(&ahead.seconds);
        Ok(if follows && ahead.error_ns() <= context.tenth_ns() {
            ok(ID, format!("the system clock follows the NIC's within {} ns", ahead.error_ns()), read)
        } else {
            warn(ID, "the system clock does not follow the NIC's", read).because(
                "Timestamps of the kernel and of the NIC cannot be compared, nor times on two machines.",
                "sudo phc2sys -a -r -m",
            )
        })
    })
}

/// The offset of a TAI clock from a UTC clock, s.
fn tai_ahead_s(clocks: Option<&Clocks>) -> i64 {
    let by_ptp = clocks.and_then(|clocks| Some(i64::from(clocks.ptp.as_ref()?.utc_offset_s)));
    by_ptp.filter(|&seconds| seconds != 0).unwrap_or(TAI_AHEAD_S)
}

/// The number of the clock, or the finding that there is none.
fn number(context: &CheckContext, id: &str, lack: &str) -> Result<u32, Box<Finding>> {
    let stamping = context.known(id, "timestamps", &context.nic.stamping, STAMPS)?;
    stamping.phc.ok_or_else(|| Box::new(not_applicable(id, lack, context.evidence(STAMPS, "no PHC"))))
}
