//! The link: hardware, speed, duplex, and lost frames.

use record::Finding;

use super::{Check, CheckContext, judged};
use crate::{
    findings::{Explain, fail, ok, unknown, warn},
    nic::Hardware,
};

const LINK: &str = "ip -s link show";

/// Bytes on the wire of a frame of maximum length: 1522 with VLAN tag, preamble 8, gap 12 (IEEE 802.3).
const LONGEST_FRAME: u64 = 1542;

pub(super) const CHECKS: &[Check] = &[hardware, carrier, speed, duplex, mtu, losses];

fn hardware(context: &CheckContext) -> Finding {
    const ID: &str = "nic.hardware";
    let driver = context.nic.driver.as_deref();
    let read = context.evidence("ethtool -i", &format!("driver = {}", driver.unwrap_or("not readable")));
    match (context.nic.hardware, driver) {
        (Some(Hardware::Nic), Some(driver)) => ok(ID, format!("an Ethernet NIC, driver {driver}"), read),
        (Some(Hardware::OfHost), Some(driver)) => warn(ID, format!("a virtual NIC of the host ({driver})"), read)
            .because(
                "The host delays its frames, and this guest cannot measure for how long.",
                "measure on the host, or assign a physical NIC to this guest",
            ),
        (Some(Hardware::Software), Some(driver)) => warn(ID, format!("a software interface ({driver})"), read).because(
            "The settings that delay frames belong to the NIC below, if there is one.",
            format!("find the NIC below: ip -d link show {}", context.nic.interface),
        ),
        _ => unknown(ID, "driver not readable", read),
    }
}

fn carrier(context: &CheckContext) -> Finding {
    const ID: &str = "nic.link.carrier";
    let name = &context.nic.interface;
    match (context.nic.is_up, context.nic.has_carrier) {
        (false, _) => fail(ID, format!("{name} is down"), context.evidence(LINK, "not UP"))
            .because("No frame is sent or received.", format!("sudo ip link set {name} up")),
        (true, Some(false)) => fail(ID, "no carrier", context.evidence(LINK, "UP, NO-CARRIER"))
            .because("No frame is sent or received.", "plug in the cable, and switch on the link partner"),
        (true, Some(true)) => ok(ID, "up, with a carrier", context.evidence(LINK, "UP, LOWER_UP")),
        (true, None) => unknown(ID, "carrier state not reported", context.evidence(LINK, "UP")),
    }
}

fn speed(context: &CheckContext) -> Finding {
    const ID: &str = "nic.link.speed";
    judged(|| {
        context.hardware(ID, "no link of its own")?;
        let mode = context.known(ID, "speed", &context.nic.mode, "ethtool")?;
        let Some(mbit) = mode.speed_mbit else {
            return Ok(unknown(ID, "speed not known to the driver", context.evidence("ethtool", "Speed: Unknown!")));
        };
        let read = context.evidence("ethtool", &format!("Speed: {mbit}Mb/s"));
        let frame_ns = LONGEST_FRAME * 8 * 1000 / u64::from(mbit);
        let title = format!("{mbit} Mbit/s: a frame of maximum length takes {}", super::micros(frame_ns));
        if frame_ns <= context.tenth_ns() {
            return Ok(ok(ID, title, read));
        }
        let why = "A frame that is due waits until the frame in transmission, perhaps of another program, has left.";
        let remedy = "use a faster port and cable, or keep other traffic off this interface";
        let too_slow = frame_ns >= context.period_ns;
        let finding = if too_slow { fail(ID, title, read) } else { warn(ID, title, read) };
        Ok(finding.because(why, remedy))
    })
}

fn duplex(context: &CheckContext) -> Finding {
    const ID: &str = "nic.link.duplex";
    judged(|| {
        context.hardware(ID, "no link of its own")?;
        let mode = context.known(ID, "duplex", &context.nic.mode, "ethtool")?;
        Ok(match mode.is_full_duplex {
            Some(true) => ok(ID, "full duplex", context.evidence("ethtool", "Duplex: Full")),
            Some(false) => fail(ID, "half duplex", context.evidence("ethtool", "Duplex: Half")).because(
                "Frames collide and are sent again after a random delay.",
                context.remedy("ethtool -s", "autoneg on"),
            ),
            None => unknown(ID, "duplex not known to the driver", context.evidence("ethtool", "Duplex: Unknown!")),
        })
    })
}

fn mtu(context: &CheckContext) -> Finding {
    const ID: &str = "nic.link.mtu";
    const STANDARD: u32 = 1500;
    let Some(mtu) = context.nic.mtu else {
        return unknown(ID, "MTU not reported", context.evidence(LINK, "no mtu"));
    };
    let read = context.evidence(LINK, &format!("mtu {mtu}"));
    let title = format!("frames carry up to {mtu} bytes");
    let remedy = || format!("sudo ip link set {} mtu {STANDARD}", context.nic.interface);
    match mtu {
        ..STANDARD => warn(ID, title, read).because("Streams with longer frames cannot be sent.", remedy()),
        STANDARD => ok(ID, title, read),
        _ => warn(ID, title, read).because("A frame that is due waits longer behind such a long frame.", remedy()),
    }
}

fn losses(context: &CheckContext) -> Finding {
    const ID: &str = "nic.losses";
    let Some(counts) = context.nic.counts else {
        return unknown(ID, "counters not reported", context.evidence(LINK, "no statistics"));
    };
    let named = [
        ("received damaged", counts.receive_errors),
        ("lost in the receive ring", counts.receive_overrun),
        ("missed by the NIC", counts.receive_missed),
        ("not sent", counts.send_errors),
        ("dropped before sending", counts.send_dropped),
    ];
    let lost: Vec<String> =
        named.iter().filter(|(_, count)| *count > 0).map(|(name, count)| format!("{count} {name}")).collect();
    let all = format!("{} frames received, {} sent", counts.received, counts.sent);
    if lost.is_empty() && counts.receive_dropped == 0 {
        return ok(ID, format!("nothing lost among {all}"), context.evidence(LINK, &all));
    }
    // Without enough memory, the kernel counts a frame here, but also if its protocol, VLAN or address has no receiver (Linux,
    // include/uapi/linux/if_link.h, `rx_dropped`).
    let dropped = format!("{} dropped on receipt", counts.receive_dropped);
    if lost.is_empty() {
        let title = format!("{dropped}: lost, or for a protocol, VLAN or address without a receiver");
        return unknown(ID, title, context.evidence(LINK, &format!("{all}; {dropped}")));
    }
    let lost = lost.join(", ");
    warn(
        ID,
        format!("frames lost since the interface was made: {lost}"),
        context.evidence(LINK, &format!("{all}; {lost}")),
    )
    .because(
        "Lost frames are gaps in a stream; if the counts still grow, the ring, the link or the CPU is the cause.",
        format!("see which counter grows: ethtool -S {}", context.nic.interface),
    )
}
