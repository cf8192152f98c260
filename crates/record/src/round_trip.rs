//! Round trips of datagrams: answered, lost or late, and where their time went.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Extra, Histogram};

/// Role of a series of round trips. Its `raw` contains the time of each from when the datagram should have been sent to
/// its answer.
pub const ROUND_TRIP: &str = "round-trip";

/// Name of the part [`Parts::peer_wake`].
pub const PEER_WAKE: &str = "peer wake-up";
/// Name of the part [`Parts::stack_in`].
pub const STACK_IN: &str = "stack in, wake-up";

/// The protocol of round trips.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Carrier {
    /// UDP datagrams, answered by a program.
    #[default]
    Udp,
    /// ICMP echo requests, answered by the network stack of the peer.
    Icmp,
    /// Ethernet frames, sent back by a mirror.
    Ethernet,
}

/// EtherType and VLAN tag of Ethernet frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Framing {
    /// EtherType of the payload.
    pub ethertype: u16,
    /// VLAN ID; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vlan_id: Option<u16>,
    /// Priority (PCP), 0 to 7.
    pub priority: u8,
}

/// The figures of round trips. Each slot, which is a deadline of the sending thread, is counted once: answered
/// (`samples` of the series), `lost`, or not sent (`missed` of the series).
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct RoundTrip {
    /// Address of the peer that answers: IP address, for UDP with its port, or Ethernet address.
    pub peer: String,
    /// The protocol.
    #[serde(default)]
    pub carrier: Carrier,
    /// The frames; absent unless they are Ethernet frames of our own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frames: Option<Framing>,
    /// True if the peer was a thread of the same process, at the other end of a virtual Ethernet pair.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own_peer: bool,
    /// The bypass of our network stack: `xdp`, the copy mode and the hook, e.g. `xdp copy native`; absent for sockets.
    /// The kernel has no timestamps of such frames.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transport: Option<String>,
    /// True if the peer bypassed its network stack by AF_XDP, so that it cannot report when its kernel received a datagram.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub peer_xdp: bool,
    /// Payload of each datagram and of its answer, bytes.
    pub payload_bytes: u64,
    /// Time after sending at which a datagram without an answer is lost, ns.
    pub timeout_ns: u64,
    /// Slots, including those that passed before the sending thread woke.
    pub slots: u64,
    /// Datagrams sent.
    pub sent: u64,
    /// Slots whose datagram the kernel refused to send.
    pub send_failed: u64,
    /// Error of the last refused datagram; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_error: Option<String>,
    /// Datagrams without an answer within the timeout. During a run, those that may still be answered are not counted.
    pub lost: u64,
    /// The largest number of consecutive lost datagrams.
    pub lost_in_a_row: u64,
    /// Lost datagrams whose answer arrived after the timeout.
    pub late: u64,
    /// Answers that arrived again.
    pub duplicates: u64,
    /// Answers in time that arrived after the answer of a later slot.
    pub reordered: u64,
    /// Datagrams from the peer that answer nothing sent in this run.
    pub foreign: u64,
    /// Reports of the peer's machine that the port is closed.
    pub refused: u64,
    /// ICMP errors that arrived for sent datagrams, e.g. host unreachable. They are counted for ICMP only.
    #[serde(default)]
    pub icmp_errors: u64,
    /// The last ICMP error; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub icmp_error: Option<String>,
    /// Restarts of the peer: answers came from another program than before.
    pub peer_restarts: u64,
    /// True if the answering thread had a real-time policy; absent without an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer_realtime: Option<bool>,
    /// True if the memory of the answering program was locked; absent without an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer_memory_locked: Option<bool>,
    /// Waiting method of the receiving thread: `block`, `spin` or `busy-poll:50us`.
    #[serde(alias = "receive")]
    pub wait: String,
    /// Largest error in converting kernel timestamps to our clock, ns: half of the time between the readings of both
    /// clocks; absent without timestamps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stamp_error_ns: Option<u64>,
    /// Steps of the wall clock, to which kernel timestamps refer. The timestamps of datagrams in flight at a step are
    /// discarded.
    #[serde(default)]
    pub clock_steps: u64,
    /// Round trips measured from the actual sending, which hides delays of the sender; absent without answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_sent: Option<Times>,
    /// The times of each part of a round trip.
    pub parts: Parts,
    /// Delay variation in each direction; absent unless the peer is another program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ways: Option<Ways>,
    /// Timestamps that the network card did not deliver; absent if none were requested from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card_stamps_missing: Option<StampsMissing>,
    /// Fields that a newer version wrote.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Delay variation of datagrams in each direction: how much longer each took than the fastest one around the same time.
/// It needs no common clock. A constant delay, and one longer than a window, cannot be seen.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Ways {
    /// From our sending to the peer's reception, ns.
    pub out: Histogram,
    /// From the peer's answer to our reception, ns.
    pub back: Histogram,
    /// How much faster the peer's clock ran than ours, parts per billion; it is subtracted from the times.
    pub drift_ppb: i64,
    /// Longest time for which that rate was assumed to be constant, ns.
    pub window_ns: u64,
    /// Answers that came too fast to be evaluated.
    pub left_out: u64,
}

/// Answered round trips without timestamps of the network card. The measurement does not wait for such timestamps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct StampsMissing {
    /// Without the timestamp of the sent datagram when its answer was read.
    pub sent: u64,
    /// Without the timestamp of the received answer.
    pub received: u64,
}

/// The parts of round trips in order. The parts of one round trip add up to it; a part without timestamps is included
/// in `wire`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Parts {
    /// From the time at which the datagram should have been sent to its sending: our wake-up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wake: Option<Times>,
    /// From its sending to the driver; absent without timestamps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack_out: Option<Times>,
    /// From the reception by the peer's kernel to the peer's thread, by the peer's clock: the peer's wake-up; absent if
    /// the peer does not report it, as before version 0.3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer_wake: Option<Times>,
    /// From the peer's thread to its answer, by the peer's clock; absent if the peer does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<Times>,
    /// Wire, devices, the peer's network stack, and all parts without timestamps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wire: Option<Times>,
    /// Our driver and network card, in both directions; absent unless the card stamped both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card: Option<Times>,
    /// From the kernel's reception of the answer to the receiving thread: network stack and wake-up; absent without
    /// timestamps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack_in: Option<Times>,
}

impl Parts {
    /// Returns the parts in order, each with its name.
    #[must_use]
    pub fn named(&self) -> [(&'static str, Option<&Times>); 7] {
        [
            ("our wake-up", self.wake.as_ref()),
            ("stack out", self.stack_out.as_ref()),
            ("wire and stacks", self.wire.as_ref()),
            (PEER_WAKE, self.peer_wake.as_ref()),
            ("peer", self.peer.as_ref()),
            ("our driver and card", self.card.as_ref()),
            (STACK_IN, self.stack_in.as_ref()),
        ]
    }
}

/// Statistics of one kind of time.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Times {
    /// Exact smallest time, ns.
    pub min_ns: i64,
    /// Mean, ns.
    pub mean_ns: f64,
    /// Exact largest time, ns.
    pub max_ns: i64,
    /// Histogram of all times.
    pub histogram: Histogram,
}

/// The parts of one round trip. They add up to it exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Trip {
    /// From the time at which the datagram should have been sent to its sending, ns.
    pub wake_ns: i64,
    /// From its sending to the driver, ns; absent without a timestamp.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack_out_ns: Option<i64>,
    /// From the reception by the peer's kernel to the peer's thread, ns by the peer's clock; absent if the peer reported
    /// none or an impossible one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer_wake_ns: Option<i64>,
    /// From the peer's thread to its answer, ns by the peer's clock; absent if the peer reported none or an impossible
    /// one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer_ns: Option<i64>,
    /// The remaining time, ns.
    pub wire_ns: i64,
    /// Our driver and network card, in both directions, ns; absent without timestamps of the card.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card_ns: Option<i64>,
    /// From the kernel's reception of the answer to the receiving thread, ns; absent without a timestamp.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack_in_ns: Option<i64>,
}

impl Trip {
    /// Sum of all parts, ns.
    #[must_use]
    pub fn total_ns(&self) -> i64 {
        let known = [self.stack_out_ns, self.peer_wake_ns, self.peer_ns, self.card_ns, self.stack_in_ns];
        self.wake_ns + self.wire_ns + known.into_iter().flatten().sum::<i64>()
    }
}

impl RoundTrip {
    /// Number of slots without a sent datagram.
    #[must_use]
    pub fn not_sent(&self) -> u64 {
        self.slots.saturating_sub(self.sent)
    }
}
