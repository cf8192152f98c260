//! Round trips of datagrams: what became of each, and where the time went.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Extra, Histogram};

/// Role of a series of round trips: its `raw` holds the time of each from when it was to be sent to its answer.
pub const ROUND_TRIP: &str = "round-trip";

/// The rest of a series of round trips. Each slot, a deadline of the sending thread, is in exactly one of three: answered
/// (the series' `samples`), `lost`, or not sent (the series' `missed`).
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct RoundTrip {
    /// Who answers, address and port.
    pub peer: String,
    /// Whether the peer was a thread of the same process, behind a virtual cable.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own_peer: bool,
    /// Payload of each datagram, and of its answer, bytes.
    pub payload_bytes: u64,
    /// An answer later than this is none, ns after sending.
    pub timeout_ns: u64,
    /// Deadlines of the sending thread, those that passed before it woke among them.
    pub slots: u64,
    /// Datagrams sent.
    pub sent: u64,
    /// Of the slots not sent, those that the kernel refused.
    pub send_failed: u64,
    /// Why it refused the last of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_error: Option<String>,
    /// Sent, and not answered within the timeout. While a run goes on, those that are waited for are not counted yet.
    pub lost: u64,
    /// The largest number of them in a row.
    pub lost_in_a_row: u64,
    /// Of the lost, those whose answer came too late.
    pub late: u64,
    /// Answers that came again.
    pub duplicates: u64,
    /// Answers in time that came after that of a later slot.
    pub reordered: u64,
    /// Datagrams from the peer that answer nothing that was sent in this run.
    pub foreign: u64,
    /// How often the peer's machine said that nobody listens there.
    pub refused: u64,
    /// How often another program answered than before: the peer was started anew.
    pub peer_restarts: u64,
    /// Whether the thread that answered had a real-time policy; absent without an answer, as the next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer_realtime: Option<bool>,
    /// Whether its memory was locked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer_memory_locked: Option<bool>,
    /// How the receiving thread waits: `block`, `spin` or `busy-poll:50us`.
    #[serde(alias = "receive")]
    pub wait: String,
    /// The largest error of the kernel's stamps on our clock, ns: half the time in which both clocks were read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stamp_error_ns: Option<u64>,
    /// Steps of the wall clock, which the kernel's stamps are of: those of what was under way then are left out.
    #[serde(default)]
    pub clock_steps: u64,
    /// Round trips from when each was sent in fact: blind to a sender that is late itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_sent: Option<Times>,
    /// Where the time went.
    pub parts: Parts,
    /// How delays vary on each way, where the peer is another program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ways: Option<Ways>,
    /// What the network card was to stamp and did not; absent where it was not asked to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card_stamps_missing: Option<StampsMissing>,
    /// Fields that a newer version wrote.
    #[serde(flatten)]
    pub extra: Extra,
}

/// How much longer datagrams were under way than the quickest of their time, on each way, whatever the two clocks say. A time that
/// all of them were under way, or longer than a window, cannot be seen.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Ways {
    /// From sending to when the peer had it.
    pub out: Histogram,
    /// From when the peer answered to when we had it.
    pub back: Histogram,
    /// How much faster the peer's clock ran than ours, parts per billion; it is taken out of the times.
    pub drift_ppb: i64,
    /// The longest time over which that was taken to be constant, ns.
    pub window_ns: u64,
    /// Answers that came too fast to be taken in.
    pub left_out: u64,
}

/// Of round trips that were answered, those without a stamp of the network card. Nothing waits for one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct StampsMissing {
    /// Of the datagram that went out, by the time that its answer was there.
    pub sent: u64,
    /// Of the answer.
    pub received: u64,
}

/// The parts of round trips in their order; those of one round trip add up to it. A part that no stamp told apart stands in
/// `wire`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Parts {
    /// From when it was to be sent to when it was sent: our wake-up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wake: Option<Times>,
    /// From there to when the driver took it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack_out: Option<Times>,
    /// What the peer had it for, on the peer's own clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<Times>,
    /// Wire, devices, the peer's network stack and its wake-up, and what was not told apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wire: Option<Times>,
    /// Our driver and network card, in both directions; only where the card stamped both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card: Option<Times>,
    /// From when the kernel had the answer to when the receiving thread had it: network stack and wake-up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack_in: Option<Times>,
}

impl Parts {
    /// The parts in their order, each with its name in words.
    #[must_use]
    pub fn named(&self) -> [(&'static str, Option<&Times>); 6] {
        [
            ("our wake-up", self.wake.as_ref()),
            ("stack out", self.stack_out.as_ref()),
            ("wire and stacks", self.wire.as_ref()),
            ("peer", self.peer.as_ref()),
            ("our driver and card", self.card.as_ref()),
            ("stack in, wake-up", self.stack_in.as_ref()),
        ]
    }
}

/// Times of one kind.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Times {
    /// The smallest, exactly, ns.
    pub min_ns: i64,
    /// The mean, ns.
    pub mean_ns: f64,
    /// The largest, exactly, ns.
    pub max_ns: i64,
    /// All of them.
    pub histogram: Histogram,
}

/// Where the time of one round trip went. The parts add up to it exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Trip {
    /// From when it was to be sent to when it was sent, ns.
    pub wake_ns: i64,
    /// From there to when the driver took it, ns; absent without a stamp.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack_out_ns: Option<i64>,
    /// What the peer had it for, ns on the peer's clock; absent where it told nothing that can be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer_ns: Option<i64>,
    /// The rest, ns.
    pub wire_ns: i64,
    /// Our driver and network card, in both directions, ns; absent without the card's stamps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card_ns: Option<i64>,
    /// From when the kernel had the answer to when the receiving thread had it, ns; absent without a stamp.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack_in_ns: Option<i64>,
}

impl Trip {
    /// All parts together, ns.
    #[must_use]
    pub fn total_ns(&self) -> i64 {
        let told = [self.stack_out_ns, self.peer_ns, self.card_ns, self.stack_in_ns].into_iter().flatten().sum::<i64>();
        self.wake_ns + self.wire_ns + told
    }
}

impl RoundTrip {
    /// Slots that nothing was sent in.
    #[must_use]
    pub fn not_sent(&self) -> u64 {
        self.slots.saturating_sub(self.sent)
    }
}
