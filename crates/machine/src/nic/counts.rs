//! Counts of received, sent and lost frames, from rtnetlink.

use serde::Serialize;
use sys::{native::u64_at, netlink::Message};

const IFLA_STATS64: u16 = 23;

/// Counts of frames since the interface was created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Counts {
    /// Frames received.
    pub received: u64,
    /// Frames sent.
    pub sent: u64,
    /// Invalid frames received, all kinds together.
    pub receive_errors: u64,
    /// Received frames that the kernel dropped, e.g. frames of an unknown protocol.
    pub receive_dropped: u64,
    /// Frames lost because the receive ring was full.
    pub receive_overrun: u64,
    /// Frames lost in the NIC.
    pub receive_missed: u64,
    /// Frames not sent because of an error, all kinds together.
    pub send_errors: u64,
    /// Frames that the kernel dropped before sending.
    pub send_dropped: u64,
}

impl Counts {
    /// Reads `rtnl_link_stats64` from the answer about a link: numbers of eight bytes each.
    pub(super) fn read(link: &Message) -> Option<Self> {
        let bytes = link.with_header::<16>().ok()?.1.bytes(IFLA_STATS64)?;
        let at = |index: usize| u64_at(bytes, 8 * index);
        Some(Self {
            received: at(0)?,
            sent: at(1)?,
            receive_errors: at(4)?,
            send_errors: at(5)?,
            receive_dropped: at(6)?,
            send_dropped: at(7)?,
            // rx_over_errors and rx_fifo_errors: drivers count in one of the two.
            receive_overrun: at(11)?.saturating_add(at(14)?),
            receive_missed: at(15)?,
        })
    }
}
