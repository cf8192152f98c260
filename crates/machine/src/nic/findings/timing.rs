//! Delays by the NIC: interrupt coalescing and power saving.

use record::Finding;

use super::{Check, CheckContext, judged, micros, on_off};
use crate::{
    findings::{Explain, fail, not_applicable, ok, unknown, warn},
    nic::Power,
};

const COALESCE: &str = "ethtool -c";
const SET_COALESCE: &str = "ethtool -C";
const EEE: &str = "ethtool --show-eee";
const PAUSE: &str = "ethtool -a";

pub(super) const CHECKS: &[Check] = &[rx_usecs, tx_usecs, adaptive, eee, pause, runtime_power, link_power];

fn rx_usecs(context: &CheckContext) -> Finding {
    const ID: &str = "nic.coalesce.rx_usecs";
    judged(|| {
        let values = context.known(ID, "interrupt coalescing", &context.nic.coalescing, COALESCE)?;
        let Some(usecs) = values.rx_usecs else {
            return Ok(not_applicable(
                ID,
                "no delay of receive interrupts",
                context.evidence(COALESCE, "rx-usecs n/a"),
            ));
        };
        let read = context.evidence(COALESCE, &format!("rx-usecs = {usecs}"));
        let limit = micros(context.tenth_ns());
        let title = match usecs {
            0 => "a received frame raises its interrupt at once".to_owned(),
            _ => format!("a received frame waits up to {usecs} us for its interrupt (limit {limit})"),
        };
        if u64::from(usecs) * 1000 <= context.tenth_ns() {
            return Ok(ok(ID, title, read));
        }
        Ok(fail(ID, title, read).because(
            "The NIC waits for more frames before it interrupts, which adds to the latency of every received frame.",
            context.remedy(SET_COALESCE, "rx-usecs 0"),
        ))
    })
}

fn tx_usecs(context: &CheckContext) -> Finding {
    const ID: &str = "nic.coalesce.tx_usecs";
    judged(|| {
        let values = context.known(ID, "interrupt coalescing", &context.nic.coalescing, COALESCE)?;
        let Some(usecs) = values.tx_usecs else {
            return Ok(not_applicable(ID, "no delay of send interrupts", context.evidence(COALESCE, "tx-usecs n/a")));
        };
        let read = context.evidence(COALESCE, &format!("tx-usecs = {usecs}"));
        let title = match usecs {
            0 => "a sent frame raises its interrupt at once".to_owned(),
            _ => format!("the interrupt of a sent frame waits up to {usecs} us (limit {})", micros(context.tenth_ns())),
        };
        if u64::from(usecs) * 1000 <= context.tenth_ns() {
            return Ok(ok(ID, title, read));
        }
        Ok(warn(ID, title, read).because(
            "Timestamps of sent frames and free ring entries are late by this time; the frames are not.",
            context.remedy(SET_COALESCE, "tx-usecs 0"),
        ))
    })
}

fn adaptive(context: &CheckContext) -> Finding {
    const ID: &str = "nic.coalesce.adaptive";
    judged(|| {
        let values = context.known(ID, "interrupt coalescing", &context.nic.coalescing, COALESCE)?;
        let (rx, tx) = (values.adaptive_rx, values.adaptive_tx);
        let read = context.evidence(COALESCE, &format!("adaptive-rx = {}, adaptive-tx = {}", on_off(rx), on_off(tx)));
        Ok(match (rx, tx) {
            (None, None) => not_applicable(ID, "the driver does not change the delays", read),
            (Some(true), _) => warn(ID, "the driver changes the delay of receive interrupts dynamically", read)
                .because(
                    "It increases the delay with the frame rate, so the latency depends on other traffic.",
                    context.remedy(
                        SET_COALESCE,
                        if tx == Some(true) { "adaptive-rx off adaptive-tx off" } else { "adaptive-rx off" },
                    ),
                ),
            (_, Some(true)) => warn(ID, "the driver changes the delay of send interrupts dynamically", read).because(
                "Timestamps of sent frames and free ring entries are later if more frames are sent.",
                context.remedy(SET_COALESCE, "adaptive-tx off"),
            ),
            _ => ok(ID, "the driver does not change the delays", read),
        })
    })
}

fn eee(context: &CheckContext) -> Finding {
    const ID: &str = "nic.eee";
    judged(|| {
        let eee = context.known(ID, "energy-efficient Ethernet (EEE)", &context.nic.eee, EEE)?;
        let (enabled, active) = (eee.is_enabled, eee.is_active);
        let read = context.evidence(EEE, &format!("enabled = {}, active = {}", on_off(enabled), on_off(active)));
        Ok(match (enabled, active) {
            (_, Some(true)) => fail(ID, "the link sleeps between frames (EEE)", read).because(
                "A sleeping link needs time to wake before it carries a frame: 16.5 us at 1 Gbit/s, 30 us at 100 Mbit/s (IEEE 802.3az).",
                context.remedy("ethtool --set-eee", "eee off"),
            ),
            (Some(false), _) => ok(ID, "the link stays awake (EEE off)", read),
            (Some(true), Some(false)) => ok(ID, "the link stays awake (the link partner has no EEE)", read),
            _ => unknown(ID, "state of EEE not reported", read),
        })
    })
}

fn pause(context: &CheckContext) -> Finding {
    const ID: &str = "nic.pause";
    judged(|| {
        let pause = context.known(ID, "pause frames", &context.nic.pause, PAUSE)?;
        let (rx, tx) = (pause.rx, pause.tx);
        let read = context.evidence(PAUSE, &format!("RX = {}, TX = {}", on_off(rx), on_off(tx)));
        Ok(match (rx, tx) {
            (Some(false), Some(false)) => ok(ID, "no pause frames", read),
            (Some(true), _) | (_, Some(true)) => {
                warn(ID, "a full receiver may stop the sender (pause frames on)", read).because(
                    "One slow receiver stops all traffic on the link, including streams, for up to 33 ms at 1 Gbit/s.",
                    context.remedy("ethtool -A", "autoneg off rx off tx off"),
                )
            }
            _ => unknown(ID, "state of pause frames not reported", read),
        })
    })
}

fn runtime_power(context: &CheckContext) -> Finding {
    const ID: &str = "nic.power.runtime";
    judged(|| {
        context.hardware(ID, "no device that could be suspended")?;
        let Power { device, runtime, .. } = &context.nic.power;
        let path = format!("/{device}/power/control");
        Ok(match runtime.as_deref() {
            Some("on") => ok(ID, "the device is never suspended", format!("{path} = on")),
            Some("auto") => warn(ID, "the kernel may suspend the device", format!("{path} = auto"))
                .because("A suspended device must resume before it can work.", format!("echo on | sudo tee {path}")),
            Some(other) => unknown(ID, "unknown state of power control", format!("{path} = {other}")),
            None => unknown(ID, "power control not readable", format!("{path} cannot be read")),
        })
    })
}

fn link_power(context: &CheckContext) -> Finding {
    const ID: &str = "nic.power.aspm";
    const POLICY: &str = "/sys/module/pcie_aspm/parameters/policy";
    const WHY: &str =
        "The PCIe link sleeps between accesses and needs microseconds to wake, on every interrupt and every frame.";
    judged(|| {
        context.hardware(ID, "no PCIe device")?;
        let Power { device, is_pci, link_sleeps, link_policy, .. } = &context.nic.power;
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
                unknown(ID, "the firmware decides if the PCIe link sleeps", format!("{POLICY} = {policy}"))
            }
            (_, None, _) => unknown(ID, "state of the PCIe link not readable", format!("{folder} cannot be read")),
        };
        Ok(finding)
    })
}
