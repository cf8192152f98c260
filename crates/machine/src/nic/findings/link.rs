//! The line: what carries it, how fast it is, and what was lost on it.

use record::Finding;

use super::{Check, judged};
use crate::{
    findings::{Explain, fail, ok, unknown, warn},
    nic::Hardware,
};

const LINK: &str = "ip -s link show";

/// Bytes that a frame of full length takes on the wire: 1518 with its VLAN tag 1522, preamble 8, gap 12 (IEEE 802.3).
const LONGEST_FRAME: u64 = 1542;

pub(super) fn hardware(check: &Check) -> Finding {
    const ID: &str = "nic.hardware";
    let driver = check.nic.driver.as_deref();
    let read = check.evidence("ethtool -i", &format!("driver = {}", driver.unwrap_or("not readable")));
    match (check.nic.hardware, driver) {
        (Some(Hardware::Nic), Some(driver)) => ok(ID, format!("an Ethernet NIC, driver {driver}"), read),
        (Some(Hardware::OfHost), Some(driver)) => warn(ID, format!("a NIC that the host makes up ({driver})"), read)
            .because(
                "Its frames wait for what the host does with them, and nothing here can tell for how long.",
                "measure on the host, or hand a NIC of its own to this guest",
            ),
        (Some(Hardware::Software), Some(driver)) => warn(ID, format!("software makes this interface ({driver})"), read)
            .because(
                "What delays frames on a line is set at the NIC below, if there is one.",
                format!("see what is below: ip -d link show {}", check.nic.interface),
            ),
        _ => unknown(ID, "the driver is not readable", read),
    }
}

pub(super) fn carrier(check: &Check) -> Finding {
    const ID: &str = "nic.link.carrier";
    let name = &check.nic.interface;
    match (check.nic.is_up, check.nic.has_carrier) {
        (false, _) => fail(ID, format!("{name} is down"), check.evidence(LINK, "not UP"))
            .because("Nothing is sent or received.", format!("sudo ip link set {name} up")),
        (true, Some(false)) => fail(ID, "no carrier", check.evidence(LINK, "UP, NO-CARRIER"))
            .because("Nothing is sent or received.", "plug in the cable, and switch on the other side"),
        (true, Some(true)) => ok(ID, "up, with a carrier", check.evidence(LINK, "UP, LOWER_UP")),
        (true, None) => unknown(ID, "whether there is a carrier is not told", check.evidence(LINK, "UP")),
    }
}

pub(super) fn speed(check: &Check) -> Finding {
    const ID: &str = "nic.link.speed";
    judged(|| {
        check.hardware(ID, "no line of its own")?;
        let mode = check.known(ID, "speed", &check.nic.mode, "ethtool")?;
        let Some(mbit) = mode.speed_mbit else {
            return Ok(unknown(ID, "speed not known to the driver", check.evidence("ethtool", "Speed: Unknown!")));
        };
        let read = check.evidence("ethtool", &format!("Speed: {mbit}Mb/s"));
        let frame_ns = LONGEST_FRAME * 8 * 1000 / u64::from(mbit);
        let title = format!("{mbit} Mbit/s: a frame of full length takes {}", super::micros(frame_ns));
        if frame_ns <= check.tenth_ns() {
            return Ok(ok(ID, title, read));
        }
        let why = "A frame that is due waits until the one that is being sent, perhaps somebody else's, has left.";
        let remedy = "use a faster port and cable, or keep other traffic off this interface";
        let too_slow = frame_ns >= check.period_ns;
        let finding = if too_slow { fail(ID, title, read) } else { warn(ID, title, read) };
        Ok(finding.because(why, remedy))
    })
}

pub(super) fn duplex(check: &Check) -> Finding {
    const ID: &str = "nic.link.duplex";
    judged(|| {
        check.hardware(ID, "no line of its own")?;
        let mode = check.known(ID, "duplex", &check.nic.mode, "ethtool")?;
        Ok(match mode.is_full_duplex {
            Some(true) => ok(ID, "both directions at once", check.evidence("ethtool", "Duplex: Full")),
            Some(false) => fail(ID, "one direction at a time", check.evidence("ethtool", "Duplex: Half")).because(
                "Frames collide and are sent again after a pause of random length.",
                check.remedy("ethtool -s", "autoneg on"),
            ),
            None => unknown(ID, "duplex not known to the driver", check.evidence("ethtool", "Duplex: Unknown!")),
        })
    })
}

pub(super) fn mtu(check: &Check) -> Finding {
    const ID: &str = "nic.link.mtu";
    const STANDARD: u32 = 1500;
    let Some(mtu) = check.nic.mtu else {
        return unknown(ID, "MTU not told", check.evidence(LINK, "no mtu"));
    };
    let read = check.evidence(LINK, &format!("mtu {mtu}"));
    let title = format!("frames hold up to {mtu} bytes");
    let remedy = || format!("sudo ip link set {} mtu {STANDARD}", check.nic.interface);
    match mtu {
        ..STANDARD => warn(ID, title, read).because("Streams whose frames are longer cannot be sent.", remedy()),
        STANDARD => ok(ID, title, read),
        _ => warn(ID, title, read).because(
            "While such a frame is being sent or received, the one that is due waits for longer than behind others.",
            remedy(),
        ),
    }
}

pub(super) fn losses(check: &Check) -> Finding {
    const ID: &str = "nic.losses";
    let Some(counts) = check.nic.counts else {
        return unknown(ID, "counters not told", check.evidence(LINK, "no statistics"));
    };
    let named = [
        ("received damaged", counts.receive_errors),
        ("lost in the receive ring", counts.receive_overrun),
        ("missed by the NIC", counts.receive_missed),
        ("dropped on receipt", counts.receive_dropped),
        ("not sent", counts.send_errors),
        ("dropped before sending", counts.send_dropped),
    ];
    let lost: Vec<String> =
        named.iter().filter(|(_, count)| *count > 0).map(|(name, count)| format!("{count} {name}")).collect();
    let all = format!("{} frames received, {} sent", counts.received, counts.sent);
    if lost.is_empty() {
        return ok(ID, format!("nothing lost among {all}"), check.evidence(LINK, &all));
    }
    let lost = lost.join(", ");
    warn(
        ID,
        format!("frames lost since the interface was made: {lost}"),
        check.evidence(LINK, &format!("{all}; {lost}")),
    )
    .because(
        "Lost frames are gaps in a stream; where they are still growing, the ring, the line or the CPU is to blame.",
        format!("see which counter grows: ethtool -S {}", check.nic.interface),
    )
}
