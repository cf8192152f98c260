//! The keys of udp, ping and round-trip probes in a campaign file.

use probes::{ReceiveWait, round_trip::Frames};
use sys::{
    sched::Policy,
    udp::{ONE_FRAME, Stamps},
};

use super::{
    fields::Fields,
    parts::part_name,
    stream::RECEIVE,
    values::{duration_in, one_of},
};
use crate::probe::{
    PERIOD_MAX_NS, PERIOD_MIN_NS, RoundTripProbe,
    round_trip::{
        Address, ETHERNET_PAYLOAD, ETHERTYPE, Host, MacAddress, PAYLOAD_BYTES, PRIORITIES, Peer, TIMEOUT_MAX_NS,
        TrafficClass, VLAN_IDS, Xdp, parse_machine, parse_own_ethertype,
    },
    xdp::QUEUE_MAX,
};

const STAMPS: [(&str, Stamps); 4] =
    [("none", Stamps::None), ("receive", Stamps::Receive), ("all", Stamps::All), ("hardware", Stamps::Card)];
/// Longest busy polling, ns.
const BUSY_POLL_MAX_NS: u64 = 1_000_000_000;

/// Reads the keys of udp probes only.
pub(super) fn udp(fields: &mut Fields<'_>, period_ns: Option<u64>, wait: ReceiveWait) -> RoundTripProbe {
    let peer = fields.parsed("peer", |text| match text {
        "self" => Ok(Peer::Own),
        text => text.parse::<Address>().map(Peer::Echo),
    });
    let echo_policy = fields.parsed("echo_policy", str::parse::<Policy>);
    if fields.has("echo_policy") && matches!(peer, Some(Peer::Echo(_))) {
        fields.report(
            "echo_policy",
            "echo_policy is only for peer = \"self\": on another machine use `punctual echo --policy`",
        );
    }
    let (default, xdp) = (RoundTripProbe::default(), xdp(fields));
    RoundTripProbe {
        peer: peer.unwrap_or(default.peer),
        echo_policy: echo_policy.unwrap_or(default.echo_policy),
        ..round_trips(fields, period_ns, wait, xdp)
    }
}

/// Reads the keys of ping probes only.
pub(super) fn ping(fields: &mut Fields<'_>, period_ns: Option<u64>, wait: ReceiveWait) -> RoundTripProbe {
    if !fields.has("peer") {
        fields.report(
            "kind",
            "a ping probe needs a peer: add the name or address of a device, e.g. peer = \"192.0.2.1\"",
        );
    }
    let peer = fields.parsed("peer", |text| text.parse::<Host>().map(Peer::Device));
    RoundTripProbe { peer: peer.unwrap_or(Peer::Own), ..round_trips(fields, period_ns, wait, None) }
}

/// Reads the keys of round-trip probes only.
pub(super) fn mirror(fields: &mut Fields<'_>, period_ns: Option<u64>, wait: ReceiveWait) -> RoundTripProbe {
    let interface = fields.text("interface");
    let to = fields.parsed("to", parse_machine);
    if fields.has("interface") != fields.has("to") {
        let (has, lacks) = if fields.has("to") { ("to", "interface") } else { ("interface", "to") };
        fields.report(
            has,
            format!("`{has}` needs `{lacks}`: name both for a mirror elsewhere, or none for both ends here"),
        );
    }
    let ethertype = fields.parsed("ethertype", parse_own_ethertype).unwrap_or(ETHERTYPE);
    let vlan_id = fields.integer("vlan", VLAN_IDS).and_then(|id| u16::try_from(id).ok());
    let priority = fields.integer("priority", PRIORITIES).and_then(|pcp| u8::try_from(pcp).ok()).unwrap_or(0);
    let frames = Frames { ethertype, vlan_id, priority };
    let echo_policy = fields.parsed("echo_policy", str::parse::<Policy>);
    if fields.has("echo_policy") && fields.has("to") {
        fields.report(
            "echo_policy",
            "echo_policy is only for both ends here: on another machine use `punctual mirror --policy`",
        );
    }
    let classes = fields.tables("classes", "a traffic class").into_iter().map(|table| class(table, frames)).collect();
    if fields.has("classes") {
        for key in ["period", "size", "samples"].into_iter().filter(|key| fields.has(key)) {
            let how = if key == "samples" { "write a duration" } else { "each of the `classes` has its own" };
            fields.report(key, format!("{key} and classes exclude each other: leave {key} out; {how}"));
        }
    }
    let peer = match (interface, to) {
        (Some(interface), Some(MacAddress(to))) => Peer::Mirror { interface, to, frames },
        _ => Peer::OwnMirror(frames),
    };
    let (default, xdp) = (RoundTripProbe::default(), xdp(fields));
    let echo_policy = echo_policy.unwrap_or(default.echo_policy);
    RoundTripProbe { peer, echo_policy, classes, ..round_trips(fields, period_ns, wait, xdp) }
}

/// Reads a traffic class. `common` are the frames of the probe, which a class has unless it says otherwise.
fn class(mut fields: Fields<'_>, common: Frames) -> TrafficClass {
    let default = RoundTripProbe::default();
    let name = fields.parsed("name", part_name);
    let period_ns =
        fields.parsed("period", |text| duration_in(text, PERIOD_MIN_NS, PERIOD_MAX_NS, "1us to 1h, e.g. 1ms"));
    for key in ["name", "period"].into_iter().filter(|key| !fields.has(key)) {
        let example = "{ name = \"control\", period = \"1ms\" }";
        fields.report(key, format!("a traffic class needs a {key}: write e.g. {example}"));
    }
    let ethertype = fields.parsed("ethertype", parse_own_ethertype).unwrap_or(common.ethertype);
    let vlan_id = fields.integer("vlan", VLAN_IDS).and_then(|id| u16::try_from(id).ok()).or(common.vlan_id);
    let priority = fields.integer("priority", PRIORITIES).and_then(|pcp| u8::try_from(pcp).ok());
    let size = fields.integer("size", *PAYLOAD_BYTES.start() as u64..=ETHERNET_PAYLOAD as u64);
    let send_policy = fields.parsed("send_policy", str::parse::<Policy>);
    fields.finish();
    TrafficClass {
        name: name.unwrap_or_default(),
        period_ns: period_ns.unwrap_or(default.period_ns),
        frames: Frames { ethertype, vlan_id, priority: priority.unwrap_or(common.priority) },
        payload_bytes: size.and_then(|size| usize::try_from(size).ok()).unwrap_or(default.payload_bytes),
        send_policy,
        cpu: None,
    }
}

/// Reads the keys that all kinds have.
fn round_trips(fields: &mut Fields<'_>, period_ns: Option<u64>, wait: ReceiveWait, xdp: Option<Xdp>) -> RoundTripProbe {
    let default = RoundTripProbe::default();
    let size = fields.integer("size", *PAYLOAD_BYTES.start() as u64..=ONE_FRAME as u64);
    let max_rate = fields.integer("max_rate", 1..=u64::MAX);
    let timeout_ns =
        fields.parsed("timeout", |text| duration_in(text, 1, TIMEOUT_MAX_NS, "longer than 0 and at most 1m, e.g. 1s"));
    let send_policy = fields.parsed("send_policy", str::parse::<Policy>);
    let receive_policy = fields.parsed("receive_policy", str::parse::<Policy>);
    let stamps = fields.parsed("stamps", |text| one_of(text, &STAMPS));
    RoundTripProbe {
        period_ns: period_ns.unwrap_or(default.period_ns),
        payload_bytes: size.and_then(|size| usize::try_from(size).ok()).unwrap_or(default.payload_bytes),
        max_rate,
        timeout_ns,
        send_policy,
        receive_policy: receive_policy.unwrap_or(default.receive_policy),
        wait,
        // AF_XDP has none.
        stamps: stamps.unwrap_or(if xdp.is_some() { Stamps::None } else { default.stamps }),
        xdp,
        ..default
    }
}

/// Reads the way through this machine: AF_XDP, or `None` for sockets.
fn xdp(fields: &mut Fields<'_>) -> Option<Xdp> {
    let mode = fields.parsed("transport", |text| one_of(text, &RECEIVE)).flatten();
    let queue = fields.integer("queue", 0..=u64::from(QUEUE_MAX)).and_then(|queue| u32::try_from(queue).ok());
    if fields.has("queue") && mode.is_none() {
        fields.report("queue", "queue is only for xdp: leave it out, or write transport = \"xdp\"");
    }
    mode.map(|mode| Xdp { mode, queue: queue.unwrap_or(0) })
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
