//! Queueing disciplines: the order in which frames leave. Numbers are those of `pkt_sched.h`.

use std::ops::Range;

use serde::Serialize;
use sys::{
    link::Link,
    native::{i32_at, u16_at, u32_at},
    netlink::{Attributes, Message},
    qdisc::{ROOT, TCA_KIND, TCA_OPTIONS},
};

use super::answers::{Answers, Query, Reading, Target};

const TCA_STATS2: u16 = 7;
const TCA_STATS_QUEUE: u16 = 3;

/// A queueing discipline. Handles and classes have the format of `tc`: 16 bits for the discipline, a colon, 16 bits for
/// its class.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Qdisc {
    /// `fq_codel`, `mq`, `etf`, …
    pub kind: String,
    /// True if this is the root discipline.
    pub is_root: bool,
    /// Its handle, with class 0.
    #[serde(skip)]
    pub handle: u32,
    /// The class of another discipline that it is attached to.
    #[serde(skip)]
    pub parent: u32,
    /// The class of frames of each priority, if it classifies by priority.
    #[serde(skip)]
    pub(super) priorities: Option<Priorities>,
    /// Its parameters, if it is a shaper.
    pub shaper: Option<Shaper>,
    /// Frames that it has dropped.
    pub dropped: Option<u32>,
}

/// The parameters of a discipline for streams.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Shaper {
    /// Credit-based shaper (IEEE 802.1Qav).
    Cbs {
        /// True if the NIC does it.
        is_offloaded: bool,
        /// High credit, bytes.
        hi_credit: i32,
        /// Low credit, bytes.
        lo_credit: i32,
        /// Idle slope, kbit/s.
        idle_slope: i32,
        /// Send slope, kbit/s.
        send_slope: i32,
    },
    /// Launch times (SO_TXTIME).
    Etf {
        /// True if the NIC does it.
        is_offloaded: bool,
        /// Time before the launch time when a frame is passed on, ns.
        delta_ns: i32,
        /// Clock id, e.g. 11 for CLOCK_TAI.
        clock: i32,
        /// True in deadline mode: frames may leave before their time.
        is_deadline: bool,
    },
    /// Time-aware shaper (IEEE 802.1Qbv).
    Taprio {
        /// True if the NIC does it.
        is_offloaded: bool,
    },
}

/// The classes for frames of priority 0 to 15: first class and number of classes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Priorities([(u16, u16); 16]);

impl Priorities {
    /// The classes for frames of this priority.
    pub(super) fn classes(&self, priority: u8) -> Range<u16> {
        let (first, count) = self.0[usize::from(priority & 15)];
        first..first.saturating_add(count)
    }

    /// Reads a `tc_prio_qopt`: number of bands i32; for each priority its band u8, whose class is one more.
    fn of_bands(bytes: &[u8]) -> Option<Self> {
        let bands: &[u8; 16] = bytes.get(4..)?.first_chunk()?;
        Some(Self(bands.map(|band| (u16::from(band) + 1, 1))))
    }

    /// Reads a `tc_mqprio_qopt`: number of traffic classes u8; for each priority its traffic class u8; offload u8; for
    /// each traffic class the number of its queues u16, then the first queue u16. The class of a queue is one more.
    fn of_traffic_classes(bytes: &[u8]) -> Option<Self> {
        let traffic_classes: &[u8; 16] = bytes.get(1..)?.first_chunk()?;
        let mut classes = [(0, 0); 16];
        for (classes, &traffic_class) in classes.iter_mut().zip(traffic_classes) {
            let at = 18 + 2 * usize::from(traffic_class & 15);
            *classes = (u16_at(bytes, at + 32)?.saturating_add(1), u16_at(bytes, at)?);
        }
        Some(Self(classes))
    }
}

pub(super) fn all(answers: &mut Answers, link: &Link) -> Reading<Vec<Qdisc>> {
    answers.query(Query { name: "qdiscs", target: Target::Qdiscs }, link, |messages| read(messages, link.index))
}

/// Reads the disciplines of the interface with this index, the root first.
pub(super) fn read(messages: &[Message], index: u32) -> Option<Vec<Qdisc>> {
    let mut all: Vec<Qdisc> = Vec::new();
    for message in messages {
        // tcmsg: family and padding; index; handle; parent; info.
        let (header, attributes) = message.with_header::<20>().ok()?;
        if u32_at(header, 4)? == index {
            all.push(qdisc(u32_at(header, 8)?, u32_at(header, 12)?, &attributes)?);
        }
    }
    all.sort_by_key(|qdisc| !qdisc.is_root);
    Some(all)
}

fn qdisc(handle: u32, parent: u32, attributes: &Attributes) -> Option<Qdisc> {
    let kind = attributes.text(TCA_KIND)?;
    let queue = attributes.nested(TCA_STATS2).and_then(|stats| stats.bytes(TCA_STATS_QUEUE));
    // gnet_stats_queue: length, backlog, drops, …
    let dropped = queue.and_then(|queue| u32_at(queue, 8));
    let shaper = attributes.nested(TCA_OPTIONS).and_then(|options| shaper(&kind, &options));
    let priorities = priorities(&kind, attributes);
    Some(Qdisc { kind, is_root: parent == ROOT, handle, parent, priorities, shaper, dropped })
}

fn priorities(kind: &str, attributes: &Attributes) -> Option<Priorities> {
    const TAPRIO_PRIORITIES: u16 = 1;
    match kind {
        "prio" => Priorities::of_bands(attributes.bytes(TCA_OPTIONS)?),
        "mqprio" => Priorities::of_traffic_classes(attributes.bytes(TCA_OPTIONS)?),
        "taprio" => Priorities::of_traffic_classes(attributes.nested(TCA_OPTIONS)?.bytes(TAPRIO_PRIORITIES)?),
        _ => None,
    }
}

fn shaper(kind: &str, options: &Attributes) -> Option<Shaper> {
    const PARMS: u16 = 1;
    const TAPRIO_FLAGS: u16 = 10;
    const TAPRIO_FULL_OFFLOAD: u32 = 2;
    let parms = options.bytes(PARMS).unwrap_or_default();
    match kind {
        // tc_cbs_qopt: offload u8 and padding, then hicredit, locredit, idleslope, sendslope.
        "cbs" => Some(Shaper::Cbs {
            is_offloaded: *parms.first()? != 0,
            hi_credit: i32_at(parms, 4)?,
            lo_credit: i32_at(parms, 8)?,
            idle_slope: i32_at(parms, 12)?,
            send_slope: i32_at(parms, 16)?,
        }),
        // tc_etf_qopt: delta, clockid, flags.
        "etf" => Some(Shaper::Etf {
            delta_ns: i32_at(parms, 0)?,
            clock: i32_at(parms, 4)?,
            is_deadline: i32_at(parms, 8)? & 1 != 0,
            is_offloaded: i32_at(parms, 8)? & 2 != 0,
        }),
        "taprio" => {
            let flags = options.u32(TAPRIO_FLAGS).unwrap_or(0);
            Some(Shaper::Taprio { is_offloaded: flags & TAPRIO_FULL_OFFLOAD != 0 })
        }
        _ => None,
    }
}
