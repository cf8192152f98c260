//! From the probe of a campaign file to what its threads do, and where.

use probes::udp::EchoSettings;
use sys::sched::Policy;

use super::places::Spot;
use crate::{
    CaptureTo, ListenPlan, Peer, StreamPlan, TalkPlan, ThreadAsk, ThreadPlan, UdpPlan, WakeupOffset,
    file::{Placement, ProbeKind, StreamEnds, StreamProbe, Thread, UdpProbe},
    plan,
    threads::place,
};

/// What the measuring threads do. `offset` is one of those of a stream.
pub(super) fn probe(kind: &ProbeKind, spot: &Spot, offset: WakeupOffset) -> plan::Probe {
    match kind {
        ProbeKind::Timer { .. } | ProbeKind::Threads(_) => plan::Probe::Timer,
        ProbeKind::Noise { runtime_ns, .. } => plan::Probe::Noise { runtime_ns: *runtime_ns },
        ProbeKind::Udp(udp) => plan::Probe::Udp(Box::new(round_trips(udp, spot))),
        ProbeKind::Audio(audio) => plan::Probe::Audio(Box::new(audio.plan.clone())),
        ProbeKind::Stream(stream) => plan::Probe::Stream(Box::new(frames(stream, spot, offset))),
    }
}

fn round_trips(udp: &UdpProbe, spot: &Spot) -> UdpPlan {
    let cpu = |thread: usize| spot.in_turn.get(thread).copied();
    let own = || Peer::Own(EchoSettings { cpu: cpu(2), policy: udp.echo_policy });
    UdpPlan {
        peer: udp.peer.clone().map_or_else(own, Peer::At),
        payload_bytes: udp.payload_bytes,
        timeout_ns: udp.timeout_ns,
        cpu: cpu(1).unwrap_or_default(),
        policy: udp.receive_policy,
        wait: udp.wait,
        stamps: udp.stamps,
        allow_fragments: false,
    }
}

fn frames(stream: &StreamProbe, spot: &Spot, offset: WakeupOffset) -> StreamPlan {
    let cpu = |role: &str| {
        let thread = stream.roles().iter().position(|known| *known == role)?;
        spot.in_turn.get(thread).copied()
    };
    let talk = |cpu| TalkPlan { cpu, offset, mode: stream.mode, unique_id: stream.unique_id };
    let listen =
        |cpu| ListenPlan { cpu, stream_id: stream.stream_id, wait: stream.wait, xdp: stream.xdp, talker: None };
    StreamPlan {
        interface: match &stream.ends {
            StreamEnds::Both => None,
            StreamEnds::Talk(interface) | StreamEnds::Listen(interface) => Some(interface.clone()),
        },
        class: stream.class,
        format: stream.format,
        talk: cpu("talker").map(talk),
        listen: cpu("listener").map(listen),
        queue: stream.queue,
        capture: stream.capture.then_some(CaptureTo::BesideRecord),
    }
}

/// The policy of the measuring threads: what `punctual measure` takes unless asked otherwise.
pub(super) fn policy(kind: &ProbeKind, placement: &Placement) -> Policy {
    let (own, default) = match kind {
        ProbeKind::Timer { .. } | ProbeKind::Threads(_) | ProbeKind::Stream(_) | ProbeKind::Audio(_) => {
            (None, Policy::Fifo(90))
        }
        ProbeKind::Noise { .. } => (None, Policy::Other),
        ProbeKind::Udp(udp) => (udp.send_policy, Policy::Fifo(98)),
    };
    own.or(placement.policy).unwrap_or(default)
}

/// Time between two deadlines, ns; the shortest of several threads'.
pub(super) fn period_ns(kind: &ProbeKind) -> u64 {
    match kind {
        ProbeKind::Timer { period_ns } | ProbeKind::Noise { period_ns, .. } => *period_ns,
        ProbeKind::Threads(list) => list.iter().map(|thread| thread.period_ns).min().unwrap_or(1),
        ProbeKind::Udp(udp) => udp.period_ns,
        ProbeKind::Stream(stream) => stream.period_ns,
        ProbeKind::Audio(audio) => audio.period_ns(),
    }
}

/// The threads with deadlines of a probe that has not just one on each CPU.
pub(super) fn threads(kind: &ProbeKind, placement: &Placement, spot: &Spot) -> Vec<ThreadPlan> {
    let first = |role: &str| {
        let cpu = spot.in_turn.first().copied().unwrap_or_default();
        ThreadPlan { role: role.to_owned(), cpu, policy: policy(kind, placement), period_ns: period_ns(kind) }
    };
    match kind {
        ProbeKind::Timer { .. } | ProbeKind::Noise { .. } => Vec::new(),
        ProbeKind::Threads(threads) => several(threads, placement, spot),
        ProbeKind::Udp(_) => vec![first("sender")],
        ProbeKind::Stream(stream) if matches!(stream.ends, StreamEnds::Listen(_)) => Vec::new(),
        ProbeKind::Stream(_) => vec![first("talker")],
        ProbeKind::Audio(_) => vec![first(record::AUDIO)],
    }
}

/// Threads that the file names, each on its CPU.
fn several(threads: &[Thread], placement: &Placement, spot: &Spot) -> Vec<ThreadPlan> {
    let policy = |thread: &Thread| match (thread.priority, placement.policy) {
        (Some(priority), Some(Policy::RoundRobin(_))) => Some(Policy::RoundRobin(priority)),
        (Some(priority), _) => Some(Policy::Fifo(priority)),
        (None, policy) => policy,
    };
    let ask = |(thread, &cpu): (&Thread, &u32)| ThreadAsk {
        role: thread.role.clone(),
        period_ns: thread.period_ns,
        cpu: Some(cpu),
        policy: policy(thread),
    };
    let asks: Vec<ThreadAsk> = threads.iter().zip(spot.in_turn.iter().cycle()).map(ask).collect();
    place(&asks, 0)
}
