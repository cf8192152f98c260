//! What holds frames back: waiting for more of them, and saving energy.

use record::Finding;

use super::{Check, judged, micros, on_off};
use crate::findings::{Explain, fail, not_applicable, ok, unknown, warn};

const COALESCE: &str = "ethtool -c";
const SET_COALESCE: &str = "ethtool -C";
const EEE: &str = "ethtool --show-eee";
const PAUSE: &str = "ethtool -a";

pub(super) fn rx_usecs(check: &Check) -> Finding {
    const ID: &str = "nic.coalesce.rx_usecs";
    judged(|| {
        let values = check.known(ID, "interrupt coalescing", &check.nic.coalescing, COALESCE)?;
        let Some(usecs) = values.rx_usecs else {
            return Ok(not_applicable(ID, "no delay of receive interrupts", check.evidence(COALESCE, "rx-usecs n/a")));
        };
        let read = check.evidence(COALESCE, &format!("rx-usecs = {usecs}"));
        let limit = micros(check.tenth_ns());
        let title = format!("a received frame waits up to {usecs} us for its interrupt (limit {limit})");
        if u64::from(usecs) * 1000 <= check.tenth_ns() {
            return Ok(ok(ID, title, read));
        }
        Ok(fail(ID, title, read).because(
            "The NIC waits for more frames before it interrupts: that time is part of every reception.",
            check.remedy(SET_COALESCE, "rx-usecs 0"),
        ))
    })
}

pub(super) fn tx_usecs(check: &Check) -> Finding {
    const ID: &str = "nic.coalesce.tx_usecs";
    judged(|| {
        let values = check.known(ID, "interrupt coalescing", &check.nic.coalescing, COALESCE)?;
        let Some(usecs) = values.tx_usecs else {
            return Ok(not_applicable(ID, "no delay of send interrupts", check.evidence(COALESCE, "tx-usecs n/a")));
        };
        let read = check.evidence(COALESCE, &format!("tx-usecs = {usecs}"));
        let title = format!("a sent frame is told up to {usecs} us later");
        if u64::from(usecs) * 1000 <= check.tenth_ns() {
            return Ok(ok(ID, title, read));
        }
        Ok(warn(ID, title, read).because(
            "Time stamps of sent frames and free places in the ring come that much later; the frames themselves do not.",
            check.remedy(SET_COALESCE, "tx-usecs 0"),
        ))
    })
}

pub(super) fn adaptive(check: &Check) -> Finding {
    const ID: &str = "nic.coalesce.adaptive";
    judged(|| {
        let values = check.known(ID, "interrupt coalescing", &check.nic.coalescing, COALESCE)?;
        let (rx, tx) = (values.adaptive_rx, values.adaptive_tx);
        let read = check.evidence(COALESCE, &format!("adaptive-rx = {}, adaptive-tx = {}", on_off(rx), on_off(tx)));
        Ok(match (rx, tx) {
            (None, None) => not_applicable(ID, "the driver keeps to the delays that it is given", read),
            (Some(true), _) => warn(ID, "the driver changes the delay of receive interrupts by itself", read).because(
                "It waits longer the more frames come, so that latency depends on other traffic.",
                check.remedy(
                    SET_COALESCE,
                    if tx == Some(true) { "adaptive-rx off adaptive-tx off" } else { "adaptive-rx off" },
                ),
            ),
            (_, Some(true)) => warn(ID, "the driver changes the delay of send interrupts by itself", read).because(
                "Time stamps of sent frames and free places in the ring come later the more is sent.",
                check.remedy(SET_COALESCE, "adaptive-tx off"),
            ),
            _ => ok(ID, "the driver keeps to the delays that it is given", read),
        })
    })
}

pub(super) fn eee(check: &Check) -> Finding {
    const ID: &str = "nic.eee";
    judged(|| {
        let eee = check.known(ID, "energy-efficient Ethernet (EEE)", &check.nic.eee, EEE)?;
        let (enabled, active) = (eee.is_enabled, eee.is_active);
        let read = check.evidence(EEE, &format!("enabled = {}, active = {}", on_off(enabled), on_off(active)));
        Ok(match (enabled, active) {
            (_, Some(true)) => fail(ID, "the line sleeps between frames (EEE)", read).because(
                "A line that sleeps takes time to wake before it carries a frame: 16.5 us at 1 Gbit/s, 30 us at 100 Mbit/s (IEEE 802.3az).",
                check.remedy("ethtool --set-eee", "eee off"),
            ),
            (Some(false), _) => ok(ID, "the line stays awake (EEE off)", read),
            (Some(true), Some(false)) => ok(ID, "the line stays awake (the other side has no EEE)", read),
            _ => unknown(ID, "whether the line sleeps between frames is not told", read),
        })
    })
}

pub(super) fn pause(check: &Check) -> Finding {
    const ID: &str = "nic.pause";
    judged(|| {
        let pause = check.known(ID, "pause frames", &check.nic.pause, PAUSE)?;
        let (rx, tx) = (pause.rx, pause.tx);
        let read = check.evidence(PAUSE, &format!("RX = {}, TX = {}", on_off(rx), on_off(tx)));
        Ok(match (rx, tx) {
            (Some(false), Some(false)) => ok(ID, "nobody may stop the sender (pause frames off)", read),
            (Some(true), _) | (_, Some(true)) => {
                warn(ID, "a full receiver may stop the sender (pause frames on)", read).because(
                    "One slow receiver stops everything on the line, streams too, for up to 33 ms at 1 Gbit/s.",
                    check.remedy("ethtool -A", "autoneg off rx off tx off"),
                )
            }
            _ => unknown(ID, "whether pause frames are on is not told", read),
        })
    })
}

pub(super) fn runtime_power(check: &Check) -> Finding {
    const ID: &str = "nic.power.runtime";
    let name = &check.nic.interface;
    let path = format!("/sys/class/net/{name}/device/power/control");
    match (check.nic.power.runtime.as_deref(), check.nic.is_virtual) {
        (Some("on"), _) => ok(ID, "the device is never suspended", format!("{path} = on")),
        (Some("auto"), _) => warn(ID, "the kernel may suspend the device", format!("{path} = auto"))
            .because("A device that is suspended must wake before it can work.", format!("echo on | sudo tee {path}")),
        (Some(other), _) => unknown(ID, "power control not understood", format!("{path} = {other}")),
        (None, Some(true)) => not_applicable(ID, "no device that could be suspended", format!("{path} does not exist")),
        (None, _) => unknown(ID, "power control not readable", format!("{path} cannot be read")),
    }
}

pub(super) fn link_power(check: &Check) -> Finding {
    const ID: &str = "nic.power.aspm";
    const POLICY: &str = "/sys/module/pcie_aspm/parameters/policy";
    let power = &check.nic.power;
    let states = format!("/sys/class/net/{}/device/link", check.nic.interface);
    let why =
        "The PCIe link sleeps between accesses and takes microseconds to wake, on every interrupt and every frame.";
    match (&power.link_sleeps, power.is_pci, power.link_policy.as_deref()) {
        (_, Some(false), _) => not_applicable(ID, "no PCIe device", format!("{states} does not exist")),
        (_, None, _) if check.nic.is_virtual == Some(true) => {
            not_applicable(ID, "no PCIe device", format!("{states} does not exist"))
        }
        (Some(sleeps), _, _) if sleeps.is_empty() => {
            ok(ID, "the PCIe link stays awake", format!("{states}/*_aspm = 0"))
        }
        (Some(sleeps), _, _) => {
            let files: Vec<String> = sleeps.iter().map(|state| format!("{states}/{state}_aspm")).collect();
            let title = format!("the PCIe link sleeps between accesses ({})", sleeps.join(", "));
            warn(ID, title, format!("{} = 1", files.join(", ")))
                .because(why, format!("echo 0 | sudo tee {}", files.join(" ")))
        }
        (None, Some(true), Some("performance")) => ok(ID, "PCIe links stay awake", format!("{POLICY} = performance")),
        (None, Some(true), Some(policy)) if policy.starts_with("powersave") || policy == "powersupersave" => {
            warn(ID, format!("PCIe links may sleep (policy {policy})"), format!("{POLICY} = {policy}"))
                .because(why, format!("echo performance | sudo tee {POLICY}"))
        }
        (None, Some(true), Some(policy)) => {
            unknown(ID, "whether the PCIe link sleeps is the firmware's choice", format!("{POLICY} = {policy}"))
        }
        (None, _, None) | (None, None, _) => {
            unknown(ID, "whether the PCIe link sleeps is not readable", format!("{states} cannot be read"))
        }
    }
}
