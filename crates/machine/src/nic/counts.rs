//! Frames that passed an interface and frames that were lost there, as rtnetlink counts them.

use serde::Serialize;
use sys::{native::u64_at, netlink::Message};

const IFLA_STATS64: u16 = 23;

/// Frames since the interface was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Counts {
    /// Received.
    pub received: u64,
    /// Sent.
    pub sent: u64,
    /// Damaged ones received, of every kind.
    pub receive_errors: u64,
    /// Received and dropped by the kernel, as those of a protocol that nobody speaks.
    pub receive_dropped: u64,
    /// Lost for want of room in the receive ring.
    pub receive_overrun: u64,
    /// Lost in the NIC.
    pub receive_missed: u64,
    /// Not sent, for every kind of error.
    pub send_errors: u64,
    /// Dropped by the kernel on the way out.
    pub send_dropped: u64,
}

impl Counts {
    /// From the answer about a link: `rtnl_link_stats64`, numbers of eight bytes each.
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
            // rx_over_errors and rx_fifo_errors: drivers fill in one or the other.
            receive_overrun: at(11)?.saturating_add(at(14)?),
            receive_missed: at(15)?,
        })
    }
}
