//! NAPI instances and support for AF_XDP, from the generic family `netdev` (since Linux 6.3 and 6.8). Numbers are those
//! of `netdev.h`.

use serde::Serialize;
use sys::{link::Link, netlink::Message};

use super::answers::{Answers, Query, Reading, Target};

/// Support for AF_XDP and XDP.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Xdp {
    /// True if the driver runs XDP programs itself.
    pub has_native: bool,
    /// True if frames reach the memory of a program without a copy.
    pub has_zero_copy: bool,
    /// True if a program can read the hardware timestamp of a received frame.
    pub stamps_received: bool,
    /// True if a program can read the hardware timestamp of a sent frame.
    pub stamps_sent: bool,
    /// True if the NIC sends a frame at a time that a program sets.
    pub has_launch_time: bool,
}

/// A NAPI instance, which polls a queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Napi {
    /// NAPI id.
    pub id: u32,
    /// Number of the interrupt that starts it.
    pub interrupt: Option<u32>,
    /// Id of its thread, if it has one.
    pub thread: Option<u32>,
    /// Number of empty polls before the interrupt is enabled again.
    pub defer_hard_irqs: Option<u32>,
    /// Time that frames wait to be joined and interrupts are deferred, ns.
    pub gro_flush_timeout_ns: Option<u64>,
}

pub(super) fn xdp(answers: &mut Answers, link: &Link) -> Reading<Xdp> {
    let read = |messages: &[Message]| {
        let device = messages.first()?.generic().ok()?.1;
        let bit = |kind, bit: u64| device.uint(kind).unwrap_or(0) & bit != 0;
        device.uint(3)?;
        Some(Xdp {
            has_native: bit(3, 1),
            has_zero_copy: bit(3, 8),
            stamps_received: bit(5, 1),
            stamps_sent: bit(6, 1),
            has_launch_time: bit(6, 4),
        })
    };
    answers.query(Query { name: "netdev", target: Target::Device }, link, read)
}

pub(super) fn napis(answers: &mut Answers, link: &Link) -> Reading<Vec<Napi>> {
    let read = |messages: &[Message]| {
        let napi = |message: &Message| {
            let napi = message.generic().ok()?.1;
            Some(Napi {
                id: napi.u32(2)?,
                interrupt: napi.u32(3),
                thread: napi.u32(4),
                defer_hard_irqs: napi.u32(5),
                gro_flush_timeout_ns: napi.uint(6),
            })
        };
        messages.iter().map(napi).collect()
    };
    answers.query(Query { name: "napi", target: Target::Napis }, link, read)
}
