//! Round trips over loopback, with both ends in this process. An allocation in one of the three loops aborts this test
//! binary.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::time::Duration;

use probes::{
    ReceiveWait,
    guard::Heartbeat,
    probe_threads::ProbeThreads,
    timer::{self, Fraction, Timer},
    udp::{Carrier, Class, Clients, Echo, EchoCounts, EchoSettings, Port, Requests, Settings},
};
use record::Series;
use stalls::{Stall, repeat_if_stalled};
use sys::{
    alloc_guard::AllocGuard,
    clock::{Clock, Wait},
    sched::Policy,
    udp::{DatagramSocket, Stamps},
};

#[global_allocator]
static GUARD: AllocGuard = AllocGuard;

const PERIOD_NS: u64 = 500_000;

/// A stall after which a socket has no space for datagrams of 1472 bytes, with a third of it in reserve.
const OVERFLOW: Stall = Stall::Ordinary(Duration::from_millis(30));

fn settings(peer: std::net::SocketAddr) -> Settings {
    Settings {
        carrier: Carrier::Udp(peer),
        transport: None,
        notes: Vec::new(),
        own_peer: false,
        class: Class { number: 0, role: "round-trip".to_owned(), shares_ethertype: false },
        payload_bytes: 64,
        // Long enough for any stall of this machine, so that no datagram counts as lost.
        timeout_ns: 10_000_000_000,
        period_ns: PERIOD_NS,
        clock: Clock::Monotonic,
        cpu: None,
        policy: Policy::Other,
        wait: ReceiveWait::Block,
        stamps: Stamps::All,
        allow_fragments: false,
        // Every round trip is a spike, so spikes are checked as well.
        threshold_ns: 0,
        spikes_kept: 100,
    }
}

/// The series of the sender, the series of the round trips, and the counts of the answering end.
fn run(change: impl FnOnce(&mut Settings)) -> (Series, Series, EchoCounts) {
    let socket = DatagramSocket::bind(([127, 0, 0, 1], 0).into()).unwrap();
    let peer = socket.local_address().unwrap();
    let mut echo =
        Echo::start(Port::Socket(socket), Requests::Datagrams, EchoSettings { cpu: None, policy: Policy::Other })
            .unwrap();
    let mut settings = settings(peer);
    change(&mut settings);
    let classes = vec![(Port::Socket(DatagramSocket::connect(peer).unwrap()), settings)];
    let mut client = Clients::prepare(classes, None).unwrap();
    let timer_settings = timer::Settings {
        role: "sender".to_owned(),
        has_own_role: true,
        cpu: None,
        policy: Policy::Other,
        clock: Clock::Monotonic,
        wait: Wait::Nanosleep,
        core: timer::Core::Linux,
        period_ns: PERIOD_NS,
        fraction: Fraction::default(),
        samples: Some(1000),
        threshold_ns: 1_000_000,
        spikes_kept: 100,
        stop_on: None,
        spin: None,
    };
    let mut timer = Timer::prepare_with(client.work(0), &timer_settings, Heartbeat::start().unwrap()).unwrap();
    timer.start(Clock::Monotonic.now_ns() + 1_000_000, i64::MAX / 2);
    while !timer.has_ended() {
        std::thread::sleep(Duration::from_millis(5));
        timer.collect();
        client.collect();
    }
    client.finish();
    timer.collect();
    client.collect();
    assert!(client.reasons().is_empty());
    let round_trips = client.series("test").pop().unwrap();
    (timer.series("test"), round_trips, echo.stop())
}

#[test]
fn no_loop_allocates_and_every_slot_is_counted() {
    for stamps in [Stamps::None, Stamps::Receive, Stamps::All] {
        repeat_if_stalled(OVERFLOW, || count_slots(stamps));
    }
}

fn count_slots(stamps: Stamps) {
    let (sender, series, counts) = run(|settings| settings.stamps = stamps);
    let round_trip = series.kind.round_trip().unwrap();
    assert_eq!((series.samples, round_trip.sent, round_trip.lost), (1000, 1000, 0), "{round_trip:?}");
    assert_eq!(round_trip.slots, sender.samples + sender.missed);
    assert_eq!(series.missed, sender.missed);
    assert_eq!(counts.answered, 1000 + 1, "one of them a greeting");
    assert_eq!((series.raw.total(), series.spikes_total, series.spikes.len()), (1000, 1000, 100));
    assert_eq!(series.spikes.iter().map(|spike| spike.lateness_ns).max(), series.max_ns);
    assert!(series.spikes.iter().all(|spike| spike.trip.unwrap().total_ns() == spike.lateness_ns));
    // The round trip of a late sender also counts for the slots that it missed.
    assert_eq!(series.corrected.total(), 1000 + sender.missed, "{:?}", series.notes);
    let parts = &round_trip.parts;
    assert_eq!((parts.stack_out.is_some(), parts.stack_in.is_some()), (stamps == Stamps::All, stamps != Stamps::None));
    assert_eq!(series.maxima.max_ns.iter().flatten().max().copied(), series.max_ns);
    assert_eq!(series.first_deadline_ns, sender.first_deadline_ns);
}

#[test]
fn a_spinning_receiver_of_long_datagrams_loses_none() {
    repeat_if_stalled(OVERFLOW, || {
        let (_, series, _) = run(|settings| {
            settings.wait = ReceiveWait::Spin;
            settings.payload_bytes = 1472;
        });
        let round_trip = series.kind.round_trip().unwrap();
        assert_eq!((series.samples, round_trip.lost, round_trip.payload_bytes), (1000, 0, 1472));
    });
}
