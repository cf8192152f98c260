//! How the kernel polls the interface, and what AF_XDP can do there, as the generic family `netdev` answers it (since
//! Linux 6.3 and 6.8). Numbers are those of `netdev.h`.

use serde::Serialize;
use sys::{link::Link, netlink::Message};

use super::answers::{Answers, Question, To, Told};

/// What AF_XDP and XDP can do there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Xdp {
    /// Whether the driver runs XDP programs itself.
    pub has_native: bool,
    /// Whether frames reach a program's memory without a copy.
    pub has_zero_copy: bool,
    /// Whether a program can have the NIC's time stamp of a frame received.
    pub stamps_received: bool,
    /// Whether a program can have the NIC's time stamp of a frame sent.
    pub stamps_sent: bool,
    /// Whether the NIC sends a frame at a time that a program tells.
    pub has_launch_time: bool,
}

/// One of those that poll.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Napi {
    /// Its number.
    pub id: u32,
    /// The interrupt that starts it.
    pub interrupt: Option<u32>,
    /// The thread that it runs in, where it has its own.
    pub thread: Option<u32>,
    /// How often it polls in vain before the interrupt is switched on again.
    pub defer_hard_irqs: Option<u32>,
    /// How long frames wait to be joined, and interrupts are held back, ns.
    pub gro_flush_timeout_ns: Option<u64>,
}

pub(super) fn xdp(answers: &mut Answers, link: &Link) -> Told<Xdp> {
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
    answers.told(Question { name: "netdev", to: To::Device }, link, read)
}

pub(super) fn napis(answers: &mut Answers, link: &Link) -> Told<Vec<Napi>> {
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
    answers.told(Question { name: "napi", to: To::Napis }, link, read)
}
