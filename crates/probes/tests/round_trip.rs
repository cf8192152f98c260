//! Round trips over loopback and by AF_XDP, with both ends in this process. An allocation in one of the three loops aborts
//! this test binary. tools/test skips `rights::` without root.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::time::Duration;

use probes::{
    ReceiveWait,
    guard::Heartbeat,
    probe_threads::ProbeThreads,
    round_trip::{Carrier, Class, Clients, Echo, EchoCounts, EchoSettings, Port, Requests, Settings},
    timer::{self, Fraction, Timer},
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
    let (sender, round_trips) = measure(classes).pop().unwrap();
    (sender, round_trips, echo.stop())
}

/// Measures 1000 round trips of each traffic class. Returns for each the series of the sender and of the round trips.
fn measure(classes: Vec<(Port, Settings)>) -> Vec<(Series, Series)> {
    let count = classes.len();
    let mut clients = Clients::prepare(classes, None).unwrap();
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
    let mut prepare =
        |class| Timer::prepare_with(clients.work(class), &timer_settings, Heartbeat::start().unwrap()).unwrap();
    let mut timers: Vec<Timer> = (0..count).map(&mut prepare).collect();
    let first_deadline_ns = Clock::Monotonic.now_ns() + 1_000_000;
    timers.iter_mut().for_each(|timer| timer.start(first_deadline_ns, i64::MAX / 2));
    while !timers.iter().all(Timer::has_ended) {
        std::thread::sleep(Duration::from_millis(5));
        timers.iter_mut().for_each(Timer::collect);
        clients.collect();
    }
    clients.finish();
    timers.iter_mut().for_each(Timer::collect);
    clients.collect();
    assert!(clients.reasons().is_empty());
    timers.iter().map(|timer| timer.series("test")).zip(clients.series("test")).collect()
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

mod rights {
    use std::net::SocketAddr;

    use machine::veth::{VethEnd, VethPair};
    use probes::round_trip::{Frames, UdpPath, XdpPort, carrier::returned_filter, headers::requests_filter};
    use sys::xdp::{Copying, XdpFilter, exchange};

    use super::*;

    const ETHERTYPE: u16 = 0x88b5;

    /// Opens this number of ports on an end of a veth pair.
    fn open(end: &VethEnd, filter: &XdpFilter, number: usize) -> Vec<Port> {
        let pairs = || exchange(&end.interface, filter, 0, None, Copying::AsOffered, number).unwrap();
        let port = |(sender, receiver)| XdpPort {
            sender,
            receiver,
            mode: "xdp copy native".to_owned(),
            notes: Vec::new(),
            reserved: None,
        };
        end.namespace.run(pairs).unwrap().into_iter().map(|pair| Port::Xdp(Box::new(port(pair)))).collect()
    }

    fn start(far: Vec<Port>, requests: Requests) -> Echo {
        let far = far.into_iter().next().unwrap();
        Echo::start(far, requests, EchoSettings { cpu: None, policy: Policy::Other }).unwrap()
    }

    fn assert_complete(measured: &[(Series, Series)], counts: &EchoCounts) {
        for (sender, series) in measured {
            let round_trip = series.kind.round_trip().unwrap();
            assert_eq!((series.samples, round_trip.sent, round_trip.lost), (1000, 1000, 0), "{round_trip:?}");
            assert_eq!((round_trip.slots, round_trip.foreign), (sender.samples + sender.missed, 0));
        }
        assert_eq!(counts.answered, 1001 * measured.len() as u64, "one of each a greeting");
    }

    #[test]
    fn no_loop_of_traffic_classes_by_af_xdp_allocates() {
        for wait in [ReceiveWait::Block, ReceiveWait::Spin] {
            repeat_if_stalled(OVERFLOW, || {
                let ends = VethPair::create().unwrap();
                let mirrored = XdpFilter::of(&[ETHERTYPE]).with(0, &ends.far.mac);
                let requests = Requests::Frames { own: ends.far.mac, ethertypes: vec![ETHERTYPE] };
                let mut mirror = start(open(&ends.far, &mirrored, 1), requests);
                let classes: Vec<Frames> =
                    [0, 3, 6].map(|priority| Frames { ethertype: ETHERTYPE, vlan_id: Some(5), priority }).to_vec();
                let ports = open(&ends.near, &returned_filter(ends.near.mac, ends.far.mac, &classes), classes.len());
                let settings = |(number, frames): (u8, Frames)| Settings {
                    class: Class { number, role: format!("class {number}"), shares_ethertype: true },
                    carrier: Carrier::Ethernet { peer: ends.far.mac, own: ends.near.mac, frames },
                    stamps: Stamps::None,
                    wait,
                    ..settings(([0; 4], 0).into())
                };
                let classes = ports.into_iter().zip((0..).zip(classes).map(settings)).collect();
                assert_complete(&measure(classes), &mirror.stop());
            });
        }
    }

    #[test]
    fn no_loop_of_datagrams_by_af_xdp_allocates() {
        repeat_if_stalled(OVERFLOW, || {
            let ends = VethPair::create().unwrap();
            let own = SocketAddr::from((ends.near.address, 40_000));
            let peer = SocketAddr::from((ends.far.address, 7125));
            let far = open(&ends.far, &requests_filter(peer, ends.far.mac), 1);
            let mut echo = start(far, Requests::Datagrams);
            let path = UdpPath { own_mac: ends.near.mac, next_hop_mac: ends.far.mac, own, peer };
            let carrier = Carrier::UdpFrames(path);
            let settings = Settings { carrier, stamps: Stamps::None, ..settings(peer) };
            let classes =
                open(&ends.near, &path.filter(), 1).into_iter().map(|port| (port, settings.clone())).collect();
            assert_complete(&measure(classes), &echo.stop());
        });
    }
}
