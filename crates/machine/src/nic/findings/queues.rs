//! Where frames wait: rings, queues, and the disciplines in front of them.

use record::Finding;

use super::{Check, judged, on_off};
use crate::{
    findings::{Explain, not_applicable, ok, unknown, warn},
    nic::{Qdisc, Shaper},
};

const RINGS: &str = "ethtool -g";
const CHANNELS: &str = "ethtool -l";
const QDISC: &str = "tc -s qdisc show dev";

/// The kernel takes the CPU from a real-time thread that never sleeps for so long (its fair server, since Linux 6.12), so
/// that much must find room.
const STALL_NS: u64 = 50_000_000;
/// A longer ring than this holds frames that could have been sent later, or not at all.
const LONGEST_TX_RING: u32 = 1024;

pub(super) fn rx_ring(check: &Check) -> Finding {
    const ID: &str = "nic.rings.rx";
    judged(|| {
        let rings = check.known(ID, "rings", &check.nic.rings, RINGS)?;
        let Some(rx) = rings.rx else {
            return Ok(unknown(ID, "length of the receive ring not told", check.evidence(RINGS, "RX n/a")));
        };
        let frames = STALL_NS.div_ceil(check.period_ns.max(1));
        let read = check.evidence(RINGS, &format!("RX = {rx}"));
        let title = format!("the receive ring holds {rx} frames; a stall of 50 ms brings {frames}");
        if u64::from(rx) >= frames {
            return Ok(ok(ID, title, read));
        }
        let wanted =
            u32::try_from(frames.next_power_of_two()).unwrap_or(u32::MAX).min(rings.rx_max.unwrap_or(u32::MAX));
        if wanted <= rx {
            let remedy = "receive more often: busy polling, or a CPU of its own for the listener";
            return Ok(warn(ID, format!("{title}; the NIC allows no more"), read)
                .because("Frames for which there is no room are lost.", remedy));
        }
        let remedy = check.remedy("ethtool -G", &format!("rx {wanted}"));
        Ok(warn(ID, title, read).because("Frames for which there is no room are lost.", remedy))
    })
}

pub(super) fn tx_ring(check: &Check) -> Finding {
    const ID: &str = "nic.rings.tx";
    judged(|| {
        let rings = check.known(ID, "rings", &check.nic.rings, RINGS)?;
        let Some(tx) = rings.tx else {
            return Ok(unknown(ID, "length of the send ring not told", check.evidence(RINGS, "TX n/a")));
        };
        let read = check.evidence(RINGS, &format!("TX = {tx}"));
        let title = format!("the send ring holds {tx} frames");
        if tx <= LONGEST_TX_RING {
            return Ok(ok(ID, title, read));
        }
        Ok(warn(ID, title, read).because(
            "A frame that is due waits behind all that other programs have put there before.",
            check.remedy("ethtool -G", "tx 256"),
        ))
    })
}

pub(super) fn channels(check: &Check) -> Finding {
    const ID: &str = "nic.queues";
    judged(|| {
        check.hardware(ID, "no queues that other frames share")?;
        let queues = check.known(ID, "queues", &check.nic.channels, CHANNELS)?;
        let (rx, tx, combined) = (queues.rx.unwrap_or(0), queues.tx.unwrap_or(0), queues.combined.unwrap_or(0));
        let read = check.evidence(CHANNELS, &format!("RX = {rx}, TX = {tx}, Combined = {combined}"));
        let to_send = tx.saturating_add(combined);
        let title = format!("{to_send} queues for sending, {} for receiving", rx.saturating_add(combined));
        Ok(match (to_send, queues.combined_max) {
            (0, _) => unknown(ID, "number of queues not told", read),
            (1, Some(max)) if max > 1 => warn(ID, "one queue for everything", read).because(
                "Urgent frames wait behind all others.",
                check.remedy("ethtool -L", &format!("combined {max}")),
            ),
            (1, _) => warn(ID, "one queue for everything", read).because(
                "Urgent frames wait behind all others.",
                "keep other traffic off this interface: the NIC has no more queues",
            ),
            _ => ok(ID, title, read),
        })
    })
}

pub(super) fn qdisc(check: &Check) -> Finding {
    const ID: &str = "nic.qdisc";
    judged(|| {
        let all = check.known(ID, "queueing disciplines", &check.nic.qdiscs, QDISC)?;
        let kinds: Vec<&str> = all.iter().map(|qdisc| qdisc.kind.as_str()).collect();
        let dropped: u64 = all.iter().filter_map(|qdisc| qdisc.dropped).map(u64::from).sum();
        let read = check.evidence(QDISC, &format!("{}, dropped {dropped}", kinds.join(", ")));
        let Some(root) = all.first().filter(|qdisc| qdisc.is_root) else {
            return Ok(unknown(ID, "no queueing discipline told", check.evidence(QDISC, "none")));
        };
        let title = format!("frames leave through {}", root.kind);
        if dropped == 0 {
            return Ok(ok(ID, title, read));
        }
        Ok(warn(ID, format!("{title}, which has dropped {dropped}"), read).because(
            "Frames that a discipline drops never reach the wire; one for launch times (etf) does so with those that come too late.",
            format!("see which one drops: {}", check.command(QDISC)),
        ))
    })
}

pub(super) fn cbs(check: &Check) -> Finding {
    let cbs = |shaper: &Shaper| match shaper {
        Shaper::Cbs { is_offloaded, hi_credit, lo_credit, idle_slope, send_slope } => Some((
            *is_offloaded,
            format!("idleslope {idle_slope} sendslope {send_slope} hicredit {hi_credit} locredit {lo_credit}"),
        )),
        _ => None,
    };
    let why = "The kernel shapes with timers of its own, so that gaps between frames vary as wake-ups do.";
    shaper(check, "nic.qdisc.cbs", ("cbs", "credit-based shaper"), cbs, why, "offload 1")
}

pub(super) fn etf(check: &Check) -> Finding {
    let etf = |shaper: &Shaper| match shaper {
        Shaper::Etf { is_offloaded, delta_ns, clock, is_deadline } => Some((
            *is_offloaded,
            format!("clockid {clock} delta {delta_ns} deadline_mode {}", on_off(Some(*is_deadline))),
        )),
        _ => None,
    };
    let why = "The kernel hands frames to the NIC with timers of its own, so that they leave as late as those wake.";
    shaper(check, "nic.qdisc.etf", ("etf", "discipline for launch times"), etf, why, "offload")
}

pub(super) fn taprio(check: &Check) -> Finding {
    let taprio = |shaper: &Shaper| match shaper {
        Shaper::Taprio { is_offloaded } => Some((*is_offloaded, "schedule".to_owned())),
        _ => None,
    };
    let why = "The kernel opens and closes the gates with timers of its own, as late as those wake.";
    shaper(check, "nic.qdisc.taprio", ("taprio", "time-aware shaper"), taprio, why, "flags 0x2")
}

fn shaper(
    check: &Check,
    id: &str,
    (kind, name): (&str, &str),
    parameters: impl Fn(&Shaper) -> Option<(bool, String)>,
    why: &str,
    option: &str,
) -> Finding {
    judged(|| {
        let all = check.known(id, "queueing disciplines", &check.nic.qdiscs, QDISC)?;
        let of_kind: Vec<&Qdisc> = all.iter().filter(|qdisc| qdisc.kind == kind).collect();
        let told: Vec<(bool, String)> = of_kind.iter().filter_map(|qdisc| parameters(qdisc.shaper.as_ref()?)).collect();
        let in_words = told.iter().map(|(_, words)| words.as_str()).collect::<Vec<_>>().join("; ");
        let read = check.evidence(QDISC, &format!("{kind} {in_words}"));
        Ok(if of_kind.is_empty() {
            not_applicable(id, format!("no {name} here"), check.evidence(QDISC, &format!("no {kind}")))
        } else if told.len() < of_kind.len() {
            unknown(id, format!("parameters of the {name} not told"), read)
        } else if told.iter().all(|(is_offloaded, _)| *is_offloaded) {
            ok(id, format!("{name} in the NIC"), read)
        } else {
            let remedy =
                format!("add `{option}` to your `tc qdisc replace dev {} ... {kind} ...`", check.nic.interface);
            warn(id, format!("{name} in software"), read).because(why, remedy)
        })
    })
}

pub(super) fn preemption(check: &Check) -> Finding {
    const ID: &str = "nic.preemption";
    const COMMAND: &str = "ethtool --show-mm";
    judged(|| {
        let mac = check.known(ID, "frame preemption", &check.nic.preemption, COMMAND)?;
        let (enabled, active) = (mac.is_enabled, mac.is_active);
        let read =
            check.evidence(COMMAND, &format!("tx-enabled = {}, tx-active = {}", on_off(enabled), on_off(active)));
        Ok(match (enabled, active) {
            (_, Some(true)) => ok(ID, "long frames make way for urgent ones", read),
            (Some(true), _) => warn(ID, "frame preemption is on, but the other side takes no part", read).because(
                "Urgent frames wait behind long ones as if it were off.",
                "switch frame preemption on at the other side, with verification",
            ),
            (Some(false), _) => not_applicable(ID, "frame preemption is not used", read),
            (None, _) => unknown(ID, "whether frame preemption is on is not told", read),
        })
    })
}
