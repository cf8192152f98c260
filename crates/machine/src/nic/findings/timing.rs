//! Delays by the NIC: interrupt coalescing and power saving.

use record::Finding;

use super::{Check, CheckContext, judged, micros, on_off};
use crate::{
    findings::{Explain, fail, not_applicable, ok, unknown, unless_unread, warn},
    nic::{Coalescing, Power},
};

const COALESCE: &str = "ethtool -c";
const SET_COALESCE: &str = "ethtool -C";
const EEE: &str = "ethtool --show-eee";
const PAUSE: &str = "ethtool -a";

pub(super) const CHECKS: &[Check] =
    &[rx_usecs, rx_frames, tx_usecs, tx_frames, adaptive, eee, pause, runtime_power, link_power];

/// A rule by which an interrupt waits for more frames: it comes after `usecs`, or after `frames`, whichever is first. 0 turns
/// a limit off. Source: the comment of `struct ethtool_coalesce` in the kernel's `ethtool.h`.
struct Rule {
    usecs: Option<u32>,
    frames: Option<u32>,
}

impl Rule {
    /// The longest time that an interrupt waits, ns; `None` if it waits for further frames without a limit.
    fn longest_ns(&self) -> Option<u64> {
        match (self.usecs, self.frames) {
            (_, Some(1)) => Some(0),
            (None | Some(0), Some(frames)) if frames > 1 => None,
            (usecs, _) => Some(u64::from(usecs.unwrap_or(0)) * 1000),
        }
    }
}

/// The texts about one direction.
struct Direction {
    usecs_id: &'static str,
    frames_id: &'static str,
    /// The first word of the names in ethtool.
    prefix: &'static str,
    /// The frames: `received` or `sent`.
    frames: &'static str,
    why: &'static str,
    /// The finding of a delay that is too long.
    alarm: fn(&'static str, String, String) -> Finding,
}

const RX: Direction = Direction {
    usecs_id: "nic.coalesce.rx_usecs",
    frames_id: "nic.coalesce.rx_frames",
    prefix: "rx",
    frames: "received",
    why: "The NIC waits for more frames before it interrupts, which adds to the latency of every received frame.",
    alarm: |id, title, read| fail(id, title, read),
};

const TX: Direction = Direction {
    usecs_id: "nic.coalesce.tx_usecs",
    frames_id: "nic.coalesce.tx_frames",
    prefix: "tx",
    frames: "sent",
    why: "Timestamps of sent frames and free ring entries are late by this time; the frames are not.",
    alarm: |id, title, read| warn(id, title, read),
};

impl Direction {
    /// Judges the longest wait for an interrupt.
    fn usecs(&self, context: &CheckContext, rule: impl Fn(&Coalescing) -> Rule) -> Finding {
        judged(|| {
            let id = self.usecs_id;
            let rule = rule(context.known(id, "interrupt coalescing", &context.nic.coalescing, COALESCE)?);
            let name = format!("{}-usecs", self.prefix);
            let Some(usecs) = rule.usecs else {
                let title = format!("no setting for the delay of interrupts of {} frames", self.frames);
                return Ok(not_applicable(id, title, context.evidence(COALESCE, &format!("{name} n/a"))));
            };
            let frames = rule.frames.map_or_else(String::new, |frames| format!(", {}-frames = {frames}", self.prefix));
            let read = context.evidence(COALESCE, &format!("{name} = {usecs}{frames}"));
            let title = match rule.longest_ns() {
                Some(1..) => {
                    format!(
                        "the interrupt of a {} frame waits up to {usecs} us (limit {})",
                        self.frames,
                        limit(context)
                    )
                }
                Some(0) => format!("a {} frame raises its interrupt at once", self.frames),
                // The number of frames is another finding.
                None => return Ok(ok(id, format!("no delay of interrupts of {} frames by time", self.frames), read)),
            };
            if u64::from(usecs) * 1000 <= context.tenth_ns() || rule.longest_ns() == Some(0) {
                return Ok(ok(id, title, read));
            }
            // Without a limit of time, an interrupt would wait for all of these frames.
            let also = match rule.frames {
                Some(2..) => format!(" {}-frames 1", self.prefix),
                None | Some(0 | 1) => String::new(),
            };
            let remedy = context.remedy(SET_COALESCE, &format!("{name} 0{also}"));
            Ok((self.alarm)(id, title, read).because(self.why, remedy))
        })
    }

    /// Judges the number of frames that an interrupt waits for.
    fn frames(&self, context: &CheckContext, rule: impl Fn(&Coalescing) -> Rule) -> Finding {
        judged(|| {
            let id = self.frames_id;
            let rule = rule(context.known(id, "interrupt coalescing", &context.nic.coalescing, COALESCE)?);
            let name = format!("{}-frames", self.prefix);
            let Some(frames) = rule.frames else {
                let title = format!("no setting for the number of {} frames in one interrupt", self.frames);
                return Ok(not_applicable(id, title, context.evidence(COALESCE, &format!("{name} n/a"))));
            };
            let usecs = rule.usecs.map_or_else(String::new, |usecs| format!(", {}-usecs = {usecs}", self.prefix));
            let read = context.evidence(COALESCE, &format!("{name} = {frames}{usecs}"));
            let longest_ns = rule.longest_ns();
            let title = match (frames, longest_ns) {
                (0, _) => format!("the number of {} frames does not delay interrupts", self.frames),
                (1, _) => format!("each {} frame raises its own interrupt", self.frames),
                (_, Some(_)) => format!("an interrupt waits for {frames} {} frames, or for its delay", self.frames),
                (_, None) => format!("an interrupt waits for {frames} {} frames, without a time limit", self.frames),
            };
            if frames < 2 || longest_ns.is_some_and(|ns| ns <= context.tenth_ns()) {
                return Ok(ok(id, title, read));
            }
            let remedy = context.remedy(SET_COALESCE, &format!("{name} 1"));
            // With a time limit, the delay is another finding.
            let finding = if longest_ns.is_some() { warn(id, title, read) } else { (self.alarm)(id, title, read) };
            Ok(finding.because(self.why, remedy))
        })
    }
}

fn limit(context: &CheckContext) -> String {
    micros(context.tenth_ns())
}

fn of_rx(values: &Coalescing) -> Rule {
    Rule { usecs: values.rx_usecs, frames: values.rx_frames }
}

fn of_tx(values: &Coalescing) -> Rule {
    Rule { usecs: values.tx_usecs, frames: values.tx_frames }
}

fn rx_usecs(context: &CheckContext) -> Finding {
    RX.usecs(context, of_rx)
}

fn rx_frames(context: &CheckContext) -> Finding {
    RX.frames(context, of_rx)
}

fn tx_usecs(context: &CheckContext) -> Finding {
    TX.usecs(context, of_tx)
}

fn tx_frames(context: &CheckContext) -> Finding {
    TX.frames(context, of_tx)
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
        Ok(unless_unread(finding, &context.nic.unread.power))
    })
}
