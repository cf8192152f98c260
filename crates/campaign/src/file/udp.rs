//! Round trips in a campaign file.

use probes::{ReceiveWait, udp::packet::HEADER};
use sys::{
    sched::Policy,
    udp::{ONE_FRAME, Stamps},
};

use super::{Fields, duration_in, one_of};
use crate::udp::{Address, TIMEOUT_MAX_NS};

/// Shortest time between two datagrams, ns: more than 100 000 a second are no campaign's.
const PERIOD_MIN_NS: u64 = 10_000;
const DEFAULT_POLICY: Policy = Policy::Fifo(97);

const STAMPS: [(&str, Stamps); 4] =
    [("none", Stamps::None), ("receive", Stamps::Receive), ("all", Stamps::All), ("hardware", Stamps::Card)];
/// Longest busy polling that the kernel is asked for, ns.
const BUSY_POLL_MAX_NS: u64 = 1_000_000_000;

/// Datagrams that come back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UdpProbe {
    /// Time between two datagrams, ns.
    pub period_ns: u64,
    /// Who answers; `None` for a thread of our own, behind a virtual cable.
    pub peer: Option<Address>,
    /// Payload of each datagram, bytes.
    pub payload_bytes: usize,
    /// An answer later than this is none, ns; `None` for the default of the probe.
    pub timeout_ns: Option<u64>,
    /// Policy of the sending thread; where absent the placement's, or else fifo:98.
    pub send_policy: Option<Policy>,
    /// Policy of the receiving thread.
    pub receive_policy: Policy,
    /// Policy of the answering thread, where it is ours.
    pub echo_policy: Policy,
    /// How the receiving thread waits.
    pub wait: ReceiveWait,
    /// Which of the kernel's stamps to ask for.
    pub stamps: Stamps,
}

/// Reads what this kind alone has.
pub(super) fn udp(fields: &mut Fields<'_>, period_ns: u64, wait: ReceiveWait) -> UdpProbe {
    let peer = fields.parsed("peer", |text| match text {
        "self" => Ok(None),
        text => text.parse::<Address>().map(Some),
    });
    let most = ONE_FRAME as u64;
    let size = fields.integer("size", HEADER as u64..=most);
    let timeout_ns =
        fields.parsed("timeout", |text| duration_in(text, 1, TIMEOUT_MAX_NS, "longer than 0 and at most 1m, as 1s"));
    let send_policy = fields.parsed("send_policy", str::parse::<Policy>);
    let receive_policy = fields.parsed("receive_policy", str::parse::<Policy>).unwrap_or(DEFAULT_POLICY);
    let echo_policy = fields.parsed("echo_policy", str::parse::<Policy>);
    let stamps = fields.parsed("stamps", |text| one_of(text, &STAMPS));
    if fields.has("echo_policy") && peer.as_ref().is_some_and(Option::is_some) {
        fields.wrong(
            "echo_policy",
            "echo_policy is for a peer of our own: say it to `punctual echo --policy` over there",
        );
    }
    UdpProbe {
        period_ns,
        peer: peer.flatten(),
        payload_bytes: size.map_or(64, |size| size as usize),
        timeout_ns,
        send_policy,
        receive_policy,
        echo_policy: echo_policy.unwrap_or(DEFAULT_POLICY),
        wait,
        stamps: stamps.unwrap_or_default(),
    }
}

/// What is wrong with it as a whole.
pub(super) fn check(fields: &Fields<'_>, udp: &UdpProbe) {
    if udp.period_ns < PERIOD_MIN_NS {
        fields.wrong("period", "period: this is more than 100000 datagrams a second: write 10us or more");
    }
    if udp.wait == ReceiveWait::Spin && udp.receive_policy.is_realtime() {
        let text = "a real-time thread that never sleeps hangs its CPU: write receive_policy = \"other\" beside it";
        fields.wrong("spin", text);
    }
}

/// How a thread waits for what comes over the network: one of two keys.
pub(super) fn wait(fields: &mut Fields<'_>) -> ReceiveWait {
    let spin = fields.flag("spin");
    let busy_poll_ns = fields
        .parsed("busy_poll", |text| duration_in(text, 1, BUSY_POLL_MAX_NS, "longer than 0 and at most 1s, as 50us"));
    if spin && fields.has("busy_poll") {
        fields.wrong("busy_poll", "spin and busy_poll both say how the thread waits: leave one of them out");
    }
    ReceiveWait::of(spin, busy_poll_ns)
}
