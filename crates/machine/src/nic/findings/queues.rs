//! Places where frames wait: rings, queues and queueing disciplines.

use record::{Finding, grouped};

use super::{Check, CheckContext, judged, on_off};
use crate::{
    findings::{Explain, not_applicable, ok, unknown, warn},
    nic::{Qdisc, Shaper},
};

const RINGS: &str = "ethtool -g";
const CHANNELS: &str = "ethtool -l";
const QDISC: &str = "tc -s qdisc show dev";

/// Longest stall that the receive ring must bridge: the fair server (Linux 6.12) takes the CPU from a real-time thread
/// that never sleeps for so long.
const STALL_NS: u64 = 50_000_000;
/// A longer send ring delays urgent frames.
const LONGEST_TX_RING: u32 = 1024;

pub(super) const CHECKS: &[Check] = &[rx_ring, tx_ring, channels, qdisc, cbs, etf, taprio, preemption];

fn rx_ring(context: &CheckContext) -> Finding {
    const ID: &str = "nic.rings.rx";
    judged(|| {
        let rings = context.known(ID, "rings", &context.nic.rings, RINGS)?;
        let Some(rx) = rings.rx else {
            return Ok(unknown(ID, "length of the receive ring not reported", context.evidence(RINGS, "RX n/a")));
        };
        let frames = STALL_NS.div_ceil(context.period_ns.max(1));
        let read = context.evidence(RINGS, &format!("RX = {rx}"));
        let [held, arriving] = [rx.into(), frames].map(grouped);
        let title = format!("the receive ring holds {held} frames; {arriving} arrive during a stall of 50 ms");
        if u64::from(rx) >= frames {
            return Ok(ok(ID, title, read));
        }
        let wanted =
            u32::try_from(frames.next_power_of_two()).unwrap_or(u32::MAX).min(rings.rx_max.unwrap_or(u32::MAX));
        if wanted <= rx {
            let remedy = "receive more often: busy polling, or a separate CPU for the listener";
            return Ok(warn(ID, format!("{title}; the NIC allows no more"), read)
                .because("Frames that do not fit are lost.", remedy));
        }
        let remedy = context.remedy("ethtool -G", &format!("rx {wanted}"));
        Ok(warn(ID, title, read).because("Frames that do not fit are lost.", remedy))
    })
}

fn tx_ring(context: &CheckContext) -> Finding {
    const ID: &str = "nic.rings.tx";
    judged(|| {
        let rings = context.known(ID, "rings", &context.nic.rings, RINGS)?;
        let Some(tx) = rings.tx else {
            return Ok(unknown(ID, "length of the send ring not reported", context.evidence(RINGS, "TX n/a")));
        };
        let read = context.evidence(RINGS, &format!("TX = {tx}"));
        let title = format!("the send ring holds {} frames", grouped(tx.into()));
        if tx <= LONGEST_TX_RING {
            return Ok(ok(ID, title, read));
        }
        Ok(warn(ID, title, read).because(
            "A frame that is due waits behind all frames that other programs queued before.",
            context.remedy("ethtool -G", "tx 256"),
        ))
    })
}

fn channels(context: &CheckContext) -> Finding {
    const ID: &str = "nic.queues";
    judged(|| {
        context.hardware(ID, "no queues shared with other frames")?;
        let queues = context.known(ID, "queues", &context.nic.channels, CHANNELS)?;
        let (rx, tx, combined) = (queues.rx.unwrap_or(0), queues.tx.unwrap_or(0), queues.combined.unwrap_or(0));
        let read = context.evidence(CHANNELS, &format!("RX = {rx}, TX = {tx}, Combined = {combined}"));
        let to_send = tx.saturating_add(combined);
        let title = format!("{to_send} queues for sending, {} for receiving", rx.saturating_add(combined));
        Ok(match (to_send, queues.combined_max) {
            (0, _) => unknown(ID, "number of queues not reported", read),
            (1, Some(max)) if max > 1 => warn(ID, "a single queue for all frames", read).because(
                "Urgent frames wait behind all others.",
                context.remedy("ethtool -L", &format!("combined {max}")),
            ),
            (1, _) => warn(ID, "a single queue for all frames", read).because(
                "Urgent frames wait behind all others.",
                "keep other traffic off this interface: the NIC has no more queues",
            ),
            _ => ok(ID, title, read),
        })
    })
}

fn qdisc(context: &CheckContext) -> Finding {
    const ID: &str = "nic.qdisc";
    judged(|| {
        let all = context.known(ID, "queueing disciplines", &context.nic.qdiscs, QDISC)?;
        let kinds: Vec<&str> = all.iter().map(|qdisc| qdisc.kind.as_str()).collect();
        let dropped: u64 = all.iter().filter_map(|qdisc| qdisc.dropped).map(u64::from).sum();
        let is_counted = all.iter().all(|qdisc| qdisc.dropped.is_some());
        let count = if is_counted { dropped.to_string() } else { "not reported".to_owned() };
        let read = context.evidence(QDISC, &format!("{}, dropped {count}", kinds.join(", ")));
        let Some(root) = all.first().filter(|qdisc| qdisc.is_root) else {
            return Ok(unknown(ID, "no queueing discipline reported", context.evidence(QDISC, "none")));
        };
        let title = format!("frames leave through {}", root.kind);
        if dropped == 0 && !is_counted {
            return Ok(unknown(ID, format!("{title}; its dropped frames are not reported"), read));
        }
        if dropped == 0 {
            return Ok(ok(ID, title, read));
        }
        Ok(warn(ID, format!("{title}, which has dropped {}", grouped(dropped)), read).because(
            "Dropped frames never reach the wire; the discipline for launch times (etf) drops frames that are late.",
            format!("see which one drops: {}", context.command(QDISC)),
        ))
    })
}

fn cbs(context: &CheckContext) -> Finding {
    let cbs = |shaper: &Shaper| match shaper {
        Shaper::Cbs { is_offloaded, hi_credit, lo_credit, idle_slope, send_slope } => Some((
            *is_offloaded,
            format!("idleslope {idle_slope} sendslope {send_slope} hicredit {hi_credit} locredit {lo_credit}"),
        )),
        _ => None,
    };
    let why = "The kernel shapes with its own timers, so gaps between frames vary with its wake-up latency.";
    shaper(context, "nic.qdisc.cbs", ("cbs", "credit-based shaper"), cbs, why, "offload 1")
}

fn etf(context: &CheckContext) -> Finding {
    let etf = |shaper: &Shaper| match shaper {
        Shaper::Etf { is_offloaded, delta_ns, clock, is_deadline } => Some((
            *is_offloaded,
            format!("clockid {clock} delta {delta_ns} deadline_mode {}", on_off(Some(*is_deadline))),
        )),
        _ => None,
    };
    let why = "The kernel passes frames to the NIC with its own timers, so frames leave late by its wake-up latency.";
    shaper(context, "nic.qdisc.etf", ("etf", "discipline for launch times"), etf, why, "offload")
}

fn taprio(context: &CheckContext) -> Finding {
    let taprio = |shaper: &Shaper| match shaper {
        Shaper::Taprio { is_offloaded } => Some((*is_offloaded, "schedule".to_owned())),
        _ => None,
    };
    let why = "The kernel opens and closes the gates with its own timers, late by its wake-up latency.";
    shaper(context, "nic.qdisc.taprio", ("taprio", "time-aware shaper"), taprio, why, "flags 0x2")
}

fn shaper(
    context: &CheckContext,
    id: &str,
    (kind, name): (&str, &str),
    parameters: impl Fn(&Shaper) -> Option<(bool, String)>,
    why: &str,
    option: &str,
) -> Finding {
    judged(|| {
        let all = context.known(id, "queueing disciplines", &context.nic.qdiscs, QDISC)?;
        let of_kind: Vec<&Qdisc> = all.iter().filter(|qdisc| qdisc.kind == kind).collect();
        let values: Vec<(bool, String)> =
            of_kind.iter().filter_map(|qdisc| parameters(qdisc.shaper.as_ref()?)).collect();
        let in_words = values.iter().map(|(_, words)| words.as_str()).collect::<Vec<_>>().join("; ");
        let read = context.evidence(QDISC, &format!("{kind} {in_words}"));
        Ok(if of_kind.is_empty() {
            not_applicable(id, format!("no {name} here"), context.evidence(QDISC, &format!("no {kind}")))
        } else if values.len() < of_kind.len() {
            unknown(id, format!("parameters of the {name} not reported"), read)
        } else if values.iter().all(|(is_offloaded, _)| *is_offloaded) {
            ok(id, format!("{name} in the NIC"), read)
        } else {
            let remedy =
                format!("add `{option}` to your `tc qdisc replace dev {} ... {kind} ...`", context.nic.interface);
            warn(id, format!("{name} in software"), read).because(why, remedy)
        })
    })
}

fn preemption(context: &CheckContext) -> Finding {
    const ID: &str = "nic.preemption";
    const COMMAND: &str = "ethtool --show-mm";
    judged(|| {
        let mac = context.known(ID, "frame preemption", &context.nic.preemption, COMMAND)?;
        let (enabled, active) = (mac.is_enabled, mac.is_active);
        let read =
            context.evidence(COMMAND, &format!("tx-enabled = {}, tx-active = {}", on_off(enabled), on_off(active)));
        Ok(match (enabled, active) {
            (_, Some(true)) => ok(ID, "urgent frames preempt long ones", read),
            (Some(true), _) => warn(ID, "frame preemption is on, but the link partner does not use it", read).because(
                "Urgent frames wait behind long ones as without preemption.",
                "enable frame preemption with verification at the link partner",
            ),
            (Some(false), _) => not_applicable(ID, "frame preemption is not used", read),
            (None, _) => unknown(ID, "state of frame preemption not reported", read),
        })
    })
}
