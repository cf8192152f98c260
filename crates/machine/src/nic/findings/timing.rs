//! What holds frames back: waiting for more of them, and saving energy.

use record::Finding;

use super::{Check, judged, micros, on_off};
use crate::{
    findings::{Explain, fail, not_applicable, ok, unknown, warn},
    nic::Power,
};

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
        let title = match usecs {
            0 => "a received frame raises its interrupt at once".to_owned(),
            _ => format!("a received frame waits up to {usecs} us for its interrupt (limit {limit})"),
        };
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
        let title = match usecs {
            0 => "a sent frame raises its interrupt at once".to_owned(),
            _ => format!("the interrupt of a sent frame waits up to {usecs} us (limit {})", micros(check.tenth_ns())),
        };
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
    judged(|| {
        check.hardware(ID, "no device that could be suspended")?;
        let Power { device, runtime, .. } = &check.nic.power;
        let path = format!("/{device}/power/control");
        Ok(match runtime.as_deref() {
            Some("on") => ok(ID, "the device is never suspended", format!("{path} = on")),
            Some("auto") => warn(ID, "the kernel may suspend the device", format!("{path} = auto")).because(
                "A device that is suspended must wake before it can work.",
                format!("echo on | sudo tee {path}"),
            ),
            Some(other) => unknown(ID, "power control not understood", format!("{path} = {other}")),
            None => unknown(ID, "power control not readable", format!("{path} cannot be read")),
        })
    })
}

pub(super) fn link_power(check: &Check) -> Finding {
    const ID: &str = "nic.power.aspm";
    const POLICY: &str = "/sys/module/pcie_aspm/parameters/policy";
    const WHY: &str =
        "The PCIe link sleeps between accesses and takes microseconds to wake, on every interrupt and every frame.";
    judged(|| {
        check.hardware(ID, "no PCIe device")?;
        let Power { device, is_pci, link_sleeps, link_policy, .. } = &check.nic.power;
        let folder = format!("/{device}/link");
        let finding = match (is_pci, link_sleeps, link_policy.as_deref()) {
            (Some(false), _, _) => not_applicable(ID, "no PCIe device", format!("{folder} does not exist")),
            (_, Some(sleeps), _) if sleeps.is_empty() => {
                ok(ID, "the PCIe link stays awake", format!("{folder}/*_aspm = 0"))
            }
            (_, Some(sleeps), _) => {
                let files: Vec<String> = sleeps.iter().map(|state| format!("{folder}/{state}_aspm")).collect();
                let title = format!("the PCIe link sleeps between accesses ({})", sleeps.join(", "));
                let remedy = format!("echo 0 | sudo tee {}", files.join(" "));
                warn(ID, title, format!("{} = 1", files.join(", "))).because(WHY, remedy)
            }
            (Some(true), None, Some("performance")) => {
                ok(ID, "PCIe links stay awake", format!("{POLICY} = performance"))
            }
            (Some(true), None, Some(policy @ ("powersave" | "powersupersave"))) => {
                warn(ID, format!("PCIe links may sleep (policy {policy})"), format!("{POLICY} = {policy}"))
                    .because(WHY, format!("echo performance | sudo tee {POLICY}"))
            }
            (Some(true), None, Some(policy)) => {
                unknown(ID, "whether the PCIe link sleeps is the firmware's choice", format!("{POLICY} = {policy}"))
            }
            (_, None, _) => {
                unknown(ID, "whether a PCIe link sleeps is not readable", format!("{folder} cannot be read"))
            }
        };
        Ok(finding)
    })
}
