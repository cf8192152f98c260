//! The keys of udp probes in a campaign file.

use probes::ReceiveWait;
use sys::{
    sched::Policy,
    udp::{ONE_FRAME, Stamps},
};

use super::{
    fields::Fields,
    values::{duration_in, one_of},
};
use crate::probe::{
    UdpProbe,
    udp::{Address, PAYLOAD_BYTES, TIMEOUT_MAX_NS},
};

const STAMPS: [(&str, Stamps); 4] =
    [("none", Stamps::None), ("receive", Stamps::Receive), ("all", Stamps::All), ("hardware", Stamps::Card)];
/// Longest busy polling, ns.
const BUSY_POLL_MAX_NS: u64 = 1_000_000_000;

/// Reads the keys of this kind only.
pub(super) fn udp(fields: &mut Fields<'_>, period_ns: Option<u64>, wait: ReceiveWait) -> UdpProbe {
    let peer = fields.parsed("peer", |text| match text {
        "self" => Ok(None),
        text => text.parse::<Address>().map(Some),
    });
    let default = UdpProbe::default();
    let size = fields.integer("size", *PAYLOAD_BYTES.start() as u64..=ONE_FRAME as u64);
    let max_rate = fields.integer("max_rate", 1..=u64::MAX);
    let timeout_ns =
        fields.parsed("timeout", |text| duration_in(text, 1, TIMEOUT_MAX_NS, "longer than 0 and at most 1m, e.g. 1s"));
    let send_policy = fields.parsed("send_policy", str::parse::<Policy>);
    let receive_policy = fields.parsed("receive_policy", str::parse::<Policy>);
    let echo_policy = fields.parsed("echo_policy", str::parse::<Policy>);
    let stamps = fields.parsed("stamps", |text| one_of(text, &STAMPS));
    if fields.has("echo_policy") && peer.as_ref().is_some_and(Option::is_some) {
        fields.report(
            "echo_policy",
            "echo_policy is only for peer = \"self\": on another machine use `punctual echo --policy`",
        );
    }
    UdpProbe {
        period_ns: period_ns.unwrap_or(default.period_ns),
        peer: peer.flatten(),
        payload_bytes: size.and_then(|size| usize::try_from(size).ok()).unwrap_or(default.payload_bytes),
        max_rate: max_rate.unwrap_or(default.max_rate),
        timeout_ns,
        send_policy,
        receive_policy: receive_policy.unwrap_or(default.receive_policy),
        echo_policy: echo_policy.unwrap_or(default.echo_policy),
        wait,
        stamps: stamps.unwrap_or(default.stamps),
        ..default
    }
}

/// Reads how the receiving thread waits, from `spin` or `busy_poll`.
pub(super) fn wait(fields: &mut Fields<'_>) -> ReceiveWait {
    let spin = fields.flag("spin");
    let busy_poll_ns = fields
        .parsed("busy_poll", |text| duration_in(text, 1, BUSY_POLL_MAX_NS, "longer than 0 and at most 1s, e.g. 50us"));
    if spin && fields.has("busy_poll") {
        fields.report("busy_poll", "spin and busy_poll exclude each other: leave one of them out");
    }
    ReceiveWait::of(spin, busy_poll_ns)
}
