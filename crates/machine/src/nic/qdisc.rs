//! Queueing disciplines of the interface: in which order frames leave. Numbers are those of `pkt_sched.h`.

use serde::Serialize;
use sys::{
    link::Link,
    netlink::{Attributes, Message},
};

use super::answers::{Answers, Question, To, Told};

const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
const TCA_STATS2: u16 = 7;
const TCA_STATS_QUEUE: u16 = 3;
/// The parent of the one that the interface hands its frames to.
const ROOT: u32 = u32::MAX;

/// A queueing discipline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Qdisc {
    /// `fq_codel`, `mq`, `etf`, …
    pub kind: String,
    /// Whether it is the first that a frame meets.
    pub is_root: bool,
    /// Its parameters, where it is one that shapes.
    pub shaper: Option<Shaper>,
    /// Frames that it has dropped.
    pub dropped: Option<u32>,
}

/// What a discipline made for streams was told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Shaper {
    /// Credit-based (IEEE 802.1Qav).
    Cbs {
        /// Whether the NIC does it.
        is_offloaded: bool,
        /// Bytes.
        hi_credit: i32,
        /// Bytes.
        lo_credit: i32,
        /// kbit/s.
        idle_slope: i32,
        /// kbit/s.
        send_slope: i32,
    },
    /// Launch times (SO_TXTIME).
    Etf {
        /// Whether the NIC does it.
        is_offloaded: bool,
        /// How long before its time a frame is handed on, ns.
        delta_ns: i32,
        /// The clock, as 11 for CLOCK_TAI.
        clock: i32,
        /// Whether a time is the latest one, not the exact one.
        is_deadline: bool,
    },
    /// Time-aware (IEEE 802.1Qbv).
    Taprio {
        /// Whether the NIC does it.
        is_offloaded: bool,
    },
}

pub(super) fn all(answers: &mut Answers, link: &Link) -> Told<Vec<Qdisc>> {
    let read = |messages: &[Message]| {
        let mut all: Vec<Qdisc> = Vec::new();
        for message in messages {
            // tcmsg: family and padding; index; handle; parent; info.
            let (header, attributes) = message.with_header::<20>().ok()?;
            let u32_at = |at: usize| u32::from_ne_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
            if u32_at(4) == link.index {
                all.push(qdisc(u32_at(12) == ROOT, &attributes)?);
            }
        }
        all.sort_by_key(|qdisc| !qdisc.is_root);
        Some(all)
    };
    answers.told(Question { name: "qdiscs", to: To::Qdiscs }, link, read)
}

fn qdisc(is_root: bool, attributes: &Attributes) -> Option<Qdisc> {
    let kind = attributes.text(TCA_KIND)?;
    let queue = attributes.nested(TCA_STATS2).and_then(|stats| stats.bytes(TCA_STATS_QUEUE));
    // gnet_stats_queue: length, backlog, drops, …
    let dropped = queue.and_then(|queue| Some(u32::from_ne_bytes(*queue.get(8..)?.first_chunk()?)));
    let shaper = attributes.nested(TCA_OPTIONS).and_then(|options| shaper(&kind, &options));
    Some(Qdisc { kind, is_root, shaper, dropped })
}

fn shaper(kind: &str, options: &Attributes) -> Option<Shaper> {
    const PARMS: u16 = 1;
    const TAPRIO_FLAGS: u16 = 10;
    const TAPRIO_FULL_OFFLOAD: u32 = 2;
    let parms = options.bytes(PARMS).unwrap_or_default();
    let i32_at = |at: usize| Some(i32::from_ne_bytes(*parms.get(at..)?.first_chunk()?));
    match kind {
        // tc_cbs_qopt: offload u8 and padding, then hicredit, locredit, idleslope, sendslope.
        "cbs" => Some(Shaper::Cbs {
            is_offloaded: *parms.first()? != 0,
            hi_credit: i32_at(4)?,
            lo_credit: i32_at(8)?,
            idle_slope: i32_at(12)?,
            send_slope: i32_at(16)?,
        }),
        // tc_etf_qopt: delta, clockid, flags.
        "etf" => Some(Shaper::Etf {
            delta_ns: i32_at(0)?,
            clock: i32_at(4)?,
            is_deadline: i32_at(8)? & 1 != 0,
            is_offloaded: i32_at(8)? & 2 != 0,
        }),
        "taprio" => {
            let flags = options.u32(TAPRIO_FLAGS).unwrap_or(0);
            Some(Shaper::Taprio { is_offloaded: flags & TAPRIO_FULL_OFFLOAD != 0 })
        }
        _ => None,
    }
}
