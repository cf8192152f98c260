//! Round trips by AF_XDP: with both ends in one process, and with sockets at the other end. Frames of other programs keep
//! their way, faults are counted, and the program is removed.

use std::{
    fs,
    net::{IpAddr, UdpSocket},
    os::unix::{fs::PermissionsExt, process::CommandExt},
    process::{Command, Stdio},
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    thread,
    time::Duration,
};

use machine::veth::{VethEnd, VethPair};
use record::{Record, RoundTrip, Series};
use stalls::{Stall, repeat_if_stalled};
use sys::{
    netlink::{CREATE, EXCLUSIVE, Request, Socket},
    packet::{FrameReceiver, FrameSender, Poll},
    udp::{DatagramSocket, Sender},
};

use super::{
    round_trip::{address, of_class},
    xdp::has_program,
};
use crate::harness::{PUNCTUAL, Run, Scratch, Start, Started, alone, signal, wait_until};

/// A stall after which a socket is full, so frames are lost.
const NO_RESPONSE: Stall = Stall::Ordinary(Duration::from_millis(200));

fn round_trips(record: &Record) -> (&Series, &RoundTrip) {
    let found = record.series.iter().find_map(|series| Some((series, series.kind.round_trip()?)));
    let (series, round_trip) = found.expect("a series of round trips");
    assert_eq!(series.samples + round_trip.lost + series.missed, round_trip.slots, "{round_trip:?}");
    assert_eq!(series.samples + round_trip.lost, round_trip.sent, "{round_trip:?}");
    (series, round_trip)
}

#[track_caller]
fn assert_no_faults(round_trip: &RoundTrip) {
    let faults = [round_trip.lost, round_trip.duplicates, round_trip.reordered, round_trip.foreign, round_trip.late];
    assert_eq!((faults, round_trip.send_failed), ([0; 5], 0), "{round_trip:?}");
}

#[test]
fn both_ends_here_lose_nothing_and_have_no_times_of_the_kernel() {
    let _alone = alone();
    for (options, transport) in [
        ("round-trip --self --transport xdp --vlan 5 --priority 3", "xdp copy native"),
        ("round-trip --self --transport xdp-generic --size 1500", "xdp copy generic"),
        ("udp --self --transport xdp --size 1472", "xdp copy native"),
        ("udp --self --transport xdp-generic --spin --receive-policy other", "xdp copy generic"),
    ] {
        repeat_if_stalled(NO_RESPONSE, || {
            let scratch = Scratch::new();
            let run = format!("measure {options} --samples 500 --timeout 10s --quiet --record a --blame=off");
            scratch.run(&run).expect_status(0);
            let record = scratch.record();
            let (series, round_trip) = round_trips(&record);
            assert_no_faults(round_trip);
            assert_eq!((round_trip.transport.as_deref(), round_trip.peer_xdp), (Some(transport), true), "{options}");
            let parts = &round_trip.parts;
            let absent = [&parts.stack_out, &parts.stack_in, &parts.peer_wake, &parts.card];
            assert_eq!((absent, round_trip.stamp_error_ns), ([&None; 4], None), "{options}");
            let present = [&parts.wake, &parts.peer, &parts.wire, &round_trip.from_sent];
            let counts = present.map(|times| times.as_ref().map(|times| times.histogram.total()));
            assert_eq!(counts, [Some(series.samples); 4], "{options}");
            let validator = jsonschema::validator_for(&record::json_schema()).unwrap();
            assert!(validator.is_valid(&serde_json::to_value(&record).unwrap()), "{options}");
            let shown = scratch.run("show --full a.punctual.json").expect_status(0).stdout();
            let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(words.contains(&format!("every 1 ms, by {transport}")), "{shown}");
            for row in ["peer wake-up", "stack in, wake-up"] {
                assert!(words.contains(&format!("{row} - - - - - -")), "{row}: {shown}");
            }
        });
    }
}

/// Starts an answering end at the far end, and waits until it answers.
fn start(ends: &VethPair, scratch: &Scratch, arguments: &str) -> Started {
    let mut command = scratch.punctual(&format!("{arguments} --json --ready ready"));
    let start = || command.stdout(Stdio::piped()).stderr(Stdio::piped()).start();
    let child = ends.far.namespace.run(start).unwrap();
    let ready = scratch.path().join("ready");
    wait_until("the far end answers", || ready.exists());
    child
}

/// Measures from one end of a veth pair to the other.
fn measure(ends: &VethPair, status: i32, arguments: &str) -> Record {
    let scratch = Scratch::new();
    let arguments = format!("measure {arguments} --quiet --record a --blame=off");
    let output = ends.near.namespace.run(|| scratch.punctual(&arguments).output().unwrap()).unwrap();
    Run(output).expect_status(status);
    scratch.record()
}

#[test]
fn each_end_works_with_sockets_at_the_other() {
    let _alone = alone();
    for near_is_xdp in [true, false] {
        let (near, far) = if near_is_xdp { ("--transport xdp", "") } else { ("", "--transport xdp") };
        let interface = if near_is_xdp { "" } else { "--interface far" };
        for (asking, answering) in [
            ("round-trip near --to MAC --vlan 7 --priority 5", "mirror far".to_owned()),
            (
                "round-trip near --to MAC --ethertype 0x8892",
                "mirror far --ethertype 0x88b5 --ethertype 0x8892".to_owned(),
            ),
            ("udp 192.0.2.2 --size 100", format!("echo {interface}")),
            ("udp 192.0.2.2 --size 101", format!("echo --bind 192.0.2.2 {interface}")),
        ] {
            repeat_if_stalled(NO_RESPONSE, || {
                let (ends, scratch) = (VethPair::create().unwrap(), Scratch::new());
                let child = start(&ends, &scratch, &format!("{answering} {far}"));
                assert_eq!(has_program(&ends.far), !near_is_xdp);
                let asking = asking.replace("MAC", &address(&ends.far));
                let record = measure(&ends, 0, &format!("{asking} --samples 300 --timeout 10s {near}"));
                signal(&child, "INT");
                let output = child.wait_with_output().unwrap();
                assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
                let counts: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
                let (series, round_trip) = round_trips(&record);
                assert_no_faults(round_trip);
                let greeting = 1;
                assert_eq!(
                    (&counts["answered"], &counts["strangers"]),
                    (&(series.samples + greeting).into(), &0.into())
                );
                assert_eq!(round_trip.transport.is_some(), near_is_xdp, "{asking}");
                assert_eq!((round_trip.peer_xdp, round_trip.peer_realtime), (!near_is_xdp, Some(true)), "{asking}");
                // Each end that has a network stack has its times.
                let parts = &round_trip.parts;
                assert_eq!(
                    (parts.stack_in.is_some(), parts.peer_wake.is_some()),
                    (!near_is_xdp, near_is_xdp),
                    "{asking}"
                );
                assert!(!has_program(&ends.near) && !has_program(&ends.far), "{asking}");
            });
        }
    }
}

const CLASSES: &str = "--traffic-class control=1ms,priority=6,vlan=5,size=128 --traffic-class alarm=2ms,priority=3,vlan=5 \
    --traffic-class bulk=4ms,ethertype=0x8892,priority=0,vlan=9,size=1400";

/// Counts the arriving requests of each traffic class while `stop` is false, and checks their VLAN tags and lengths.
fn count_requests(ends: &VethPair, stop: &AtomicBool) -> [u64; 3] {
    let open = |ethertype| ends.far.namespace.run(|| FrameReceiver::open("far", ethertype, None)).unwrap().unwrap();
    let (mut counts, mut frame) = ([0; 3], [0; 2000]);
    let receivers = [open(0x88b5), open(0x8892)];
    while !stop.load(Relaxed) {
        for receiver in &receivers {
            while let Some(received) = receiver.receive(&mut frame, Poll::Spin).unwrap() {
                // The number of the class follows magic, version, kind and properties.
                let class = usize::from(frame[21]);
                let expected = [(0xc005, 128), (0x6005, 64), (0x0009, 1400)][class];
                assert_eq!((received.tci, received.length - 14), (Some(expected.0), expected.1), "class {class}");
                counts[class] += 1;
            }
        }
        thread::sleep(Duration::from_millis(2));
    }
    counts
}

#[test]
fn traffic_classes_share_a_queue_and_keep_their_schedules_frames_and_figures() {
    let _alone = alone();
    for (near, far) in [("xdp", "socket"), ("xdp-generic", "socket"), ("xdp", "xdp")] {
        repeat_if_stalled(NO_RESPONSE, || {
            let (ends, scratch) = (VethPair::create().unwrap(), Scratch::new());
            let mirror = format!("mirror far --ethertype 0x88b5 --ethertype 0x8892 --transport {far}");
            let child = start(&ends, &scratch, &mirror);
            let stop = AtomicBool::new(false);
            let stopper = Stopper(&stop);
            let (record, requests) = thread::scope(|scope| {
                let stopper = stopper;
                let requests = scope.spawn(|| count_requests(&ends, &stop));
                let asking = format!("round-trip near --to {} {CLASSES}", address(&ends.far));
                let record = measure(&ends, 0, &format!("{asking} --timeout 10s --duration 1s --transport {near}"));
                drop(stopper);
                (record, requests.join().unwrap())
            });
            signal(&child, "INT");
            let counts: serde_json::Value = serde_json::from_slice(&child.wait_with_output().unwrap().stdout).unwrap();
            let mut sent = Vec::new();
            for (name, period_ns) in [("control", 1_000_000), ("alarm", 2_000_000), ("bulk", 4_000_000)] {
                let (series, trip) = of_class(&record, name);
                assert_no_faults(trip);
                assert_eq!((series.period_ns, trip.peer_xdp), (period_ns, far == "xdp"), "{name}");
                assert_eq!(trip.transport.as_deref().map(|used| used.ends_with("generic")), Some(near != "xdp"));
                let sender = record.series.iter().find(|series| series.role == format!("{name}-sender")).unwrap();
                assert_eq!(sender.samples, trip.sent, "{name}");
                sent.push(trip.sent);
            }
            assert!(sent[0] > sent[1] && sent[1] > sent[2] && sent[2] >= 100, "{sent:?}");
            let greetings = 3;
            assert_eq!(
                (&counts["answered"], &counts["strangers"]),
                (&(sent.iter().sum::<u64>() + greetings).into(), &0.into())
            );
            // The other program takes the frames from the interface before its socket can see them.
            let expected = if far == "xdp" { vec![0; 3] } else { sent.iter().map(|sent| sent + 1).collect() };
            assert_eq!(requests[..], expected, "and one greeting each");
            assert!(!has_program(&ends.near) && !has_program(&ends.far), "{near}");
        });
    }
}

#[test]
fn a_traffic_class_that_the_mirror_does_not_answer_makes_the_run_invalid() {
    let _alone = alone();
    let (ends, scratch) = (VethPair::create().unwrap(), Scratch::new());
    let child = start(&ends, &scratch, "mirror far --transport xdp");
    let asking = format!("round-trip near --to {} {CLASSES}", address(&ends.far));
    let record = measure(&ends, 4, &format!("{asking} --timeout 200ms --duration 600ms --transport xdp"));
    signal(&child, "INT");
    assert!(child.wait_with_output().unwrap().status.success());
    let silent = record.validity.reasons.iter().find(|reason| reason.id == "round-trip.silent").unwrap();
    assert!(silent.text.starts_with("no frame of bulk came back"), "{}", silent.text);
    let answered = ["control", "alarm", "bulk"].map(|name| of_class(&record, name).0.samples > 0);
    assert_eq!(answered, [true, true, false]);
    let bulk = of_class(&record, "bulk").1;
    assert_eq!((bulk.lost, bulk.send_failed), (bulk.sent, 0), "unanswered frames use up no memory: {bulk:?}");
}

/// Counts the messages that other programs exchange with the far end while `stop` is false: datagrams of another port both ways, and
/// frames of the same EtherType from another address.
fn exchange_others(ends: &VethPair, stop: &AtomicBool) -> [u64; 2] {
    const ETHERTYPE: u16 = 0x88b5;
    let udp = |end: &VethEnd| end.namespace.run(|| UdpSocket::bind((end.address, 4711))).unwrap().unwrap();
    let (near, far) = (udp(&ends.near), udp(&ends.far));
    for socket in [&near, &far] {
        socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    }
    let others = ends.near.namespace.run(|| FrameReceiver::open("near", ETHERTYPE, None)).unwrap().unwrap();
    let stranger = ends.far.namespace.run(|| FrameSender::open("far", ETHERTYPE, [0xff; 6])).unwrap().unwrap();
    let (mut buffer, mut counts) = ([0; 2000], [0; 2]);
    while !stop.load(Relaxed) {
        near.send_to(b"on time", ("192.0.2.2", 4711)).unwrap();
        let (bytes, from) = far.recv_from(&mut buffer).unwrap();
        far.send_to(&buffer[..bytes], from).unwrap();
        assert_eq!(near.recv(&mut buffer).unwrap(), 7);
        counts[0] += 1;
        stranger.send(&[7; 60]).unwrap();
        let came = loop {
            if let Some(came) = others.receive(&mut buffer, Poll::Sleep).unwrap() {
                break came;
            }
        };
        assert_eq!((came.length, &buffer[14..74]), (74, &[7; 60][..]), "only this frame, and none that is measured");
        counts[1] += 1;
        thread::sleep(Duration::from_millis(5));
    }
    counts
}

/// Stops a thread when dropped, also if a measurement panics.
struct Stopper<'a>(&'a AtomicBool);

impl Drop for Stopper<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

#[test]
fn other_datagrams_and_frames_keep_their_way() {
    let _alone = alone();
    for transport in ["xdp", "xdp-generic"] {
        for (asking, answering) in
            [("round-trip near --to MAC", "mirror far"), ("udp 192.0.2.2", "echo --interface far")]
        {
            repeat_if_stalled(NO_RESPONSE, || {
                let (ends, scratch) = (VethPair::create().unwrap(), Scratch::new());
                let child = start(&ends, &scratch, &format!("{answering} --transport {transport}"));
                let stop = AtomicBool::new(false);
                let stopper = Stopper(&stop);
                let (record, others) = thread::scope(|scope| {
                    let stopper = stopper;
                    let others = scope.spawn(|| exchange_others(&ends, &stop));
                    let asking = asking.replace("MAC", &address(&ends.far));
                    let options = "--samples 500 --timeout 10s --transport";
                    let record = measure(&ends, 0, &format!("{asking} {options} {transport}"));
                    drop(stopper);
                    (record, others.join().unwrap())
                });
                signal(&child, "INT");
                assert!(child.wait_with_output().unwrap().status.success());
                assert_no_faults(round_trips(&record).1);
                assert!(others.iter().all(|&count| count >= 20), "{transport}, {asking}: {others:?}");
            });
        }
    }
}

/// Answers datagrams as `punctual echo` does, but loses every tenth, and doubles every hundredth.
fn disturb(socket: &DatagramSocket, stop: &AtomicBool) -> [u64; 2] {
    use probes::round_trip::packet::{GREETING, Packet};
    let (mut buffer, mut counts) = ([0; 2000], [0; 2]);
    while !stop.load(Relaxed) {
        let mut from = Sender::default();
        let Some(received) = socket.receive(&mut buffer, &mut from, true).unwrap() else { continue };
        let request = Packet::read(&buffer[..received.len]).unwrap();
        Packet { is_answer: true, echo: 1, ..request }.write(&mut buffer);
        let answers = match request.sequence {
            GREETING => 1,
            sequence if sequence % 10 == 3 => {
                counts[0] += 1;
                0
            }
            sequence if sequence % 100 == 50 => {
                counts[1] += 1;
                2
            }
            _ => 1,
        };
        (0..answers).for_each(|_| socket.answer(&buffer[..received.len], &from).unwrap());
    }
    counts
}

#[test]
fn losses_and_duplicates_of_datagrams_are_counted_exactly() {
    let _alone = alone();
    repeat_if_stalled(NO_RESPONSE, || {
        let ends = VethPair::create().unwrap();
        let bind = || DatagramSocket::bind((ends.far.address, 7125).into());
        let socket = ends.far.namespace.run(bind).unwrap().unwrap();
        socket.set_receive_timeout(Duration::from_millis(20)).unwrap();
        let stop = AtomicBool::new(false);
        let stopper = Stopper(&stop);
        let (record, [lost, doubled]) = thread::scope(|scope| {
            let stopper = stopper;
            let echo = scope.spawn(|| disturb(&socket, &stop));
            let record = measure(&ends, 0, "udp 192.0.2.2 --samples 600 --timeout 1s --transport xdp");
            drop(stopper);
            (record, echo.join().unwrap())
        });
        let (_, round_trip) = round_trips(&record);
        assert!(lost >= 50 && doubled >= 5, "{lost} {doubled}");
        assert_eq!((round_trip.lost, round_trip.duplicates), (lost, doubled), "{round_trip:?}");
        assert_eq!((round_trip.late, round_trip.reordered, round_trip.foreign), (0, 0, 0), "{round_trip:?}");
    });
}

#[test]
fn a_closed_port_makes_the_run_invalid_with_its_cause() {
    let ends = VethPair::create().unwrap();
    let record = measure(&ends, 4, "udp 192.0.2.2 --duration 300ms --timeout 200ms --transport xdp");
    let (series, round_trip) = round_trips(&record);
    assert_eq!((series.samples, round_trip.lost), (0, round_trip.sent));
    let reason = &record.validity.reasons[0];
    assert!(reason.id == "udp.silent" && reason.text.contains("no program listens on that port"), "{reason:?}");
    assert!(!has_program(&ends.near));
}

#[test]
fn the_program_is_detached_when_an_end_is_killed() {
    let _alone = alone();
    let ends = VethPair::create().unwrap();
    for how in ["INT", "KILL"] {
        let scratch = Scratch::new();
        let mut mirror = start(&ends, &scratch, "mirror far --transport xdp");
        let to = address(&ends.far);
        let run =
            format!("measure round-trip near --to {to} --transport xdp --duration 1m --quiet --record a --blame=off");
        let mut command = scratch.punctual(&run);
        let mut asking = ends.near.namespace.run(|| command.start()).unwrap();
        wait_until("the record exists", || scratch.record_path().exists());
        wait_until("both programs are attached", || has_program(&ends.near) && has_program(&ends.far));
        // Another measurement finds the program.
        let second = Scratch::new();
        let run = format!("measure round-trip near --to {to} --transport xdp --samples 9 --quiet --no-record");
        let output = ends.near.namespace.run(|| second.punctual(&run).output().unwrap()).unwrap();
        let run = Run(output);
        run.expect_status(1);
        assert!(run.stderr().contains("near has another XDP program"), "{}", run.stderr());
        for child in [&asking, &mirror] {
            signal(child, how);
        }
        asking.wait().unwrap();
        mirror.wait().unwrap();
        assert!(!has_program(&ends.near) && !has_program(&ends.far), "after SIG{how}");
    }
}

/// Adds an address with the prefix of its network (RFC 5737, RFC 3849), without a search for duplicates.
fn add_address(end: &VethEnd, address: &str) {
    const NO_DUPLICATES: u8 = 0x02;
    let (family, prefix, bytes) = match address.parse().unwrap() {
        IpAddr::V4(address) => (2, 24, address.octets().to_vec()),
        IpAddr::V6(address) => (10, 64, address.octets().to_vec()),
    };
    // ifaddrmsg: family, prefix, flags, scope, index. RTM_NEWADDR is 20, IFA_ADDRESS 1, IFA_LOCAL 2.
    let header = [&[family, prefix, NO_DUPLICATES, 0], &end.index.to_ne_bytes()[..]].concat();
    let request = Request::change(20, CREATE | EXCLUSIVE).header(&header).bytes_of(2, &bytes).bytes_of(1, &bytes);
    let add = || Socket::route().unwrap().ask(&request).unwrap().messages().map(drop);
    end.namespace.run(add).unwrap().unwrap();
}

#[test]
fn the_ethernet_address_of_the_peer_is_found_for_both_versions_of_ip() {
    let _alone = alone();
    for [near, far] in [["198.51.100.1", "198.51.100.2"], ["2001:db8::1", "2001:db8::2"]] {
        let bind = if far.contains(':') { format!("[{far}]:7125") } else { far.to_owned() };
        for transport in ["", "--transport xdp --interface far"] {
            repeat_if_stalled(NO_RESPONSE, || {
                let (ends, scratch) = (VethPair::create().unwrap(), Scratch::new());
                // The kernel asks for an IPv6 neighbour from a link-local address, which each usual interface has.
                for (end, address, local) in [(&ends.near, near, "fe80::1"), (&ends.far, far, "fe80::2")] {
                    add_address(end, address);
                    add_address(end, local);
                }
                let child = start(&ends, &scratch, &format!("echo --bind {bind} {transport}"));
                let record = measure(&ends, 0, &format!("udp {bind} --samples 300 --timeout 10s --transport xdp"));
                signal(&child, "INT");
                assert!(child.wait_with_output().unwrap().status.success());
                let (_, round_trip) = round_trips(&record);
                assert_no_faults(round_trip);
                let peer = if far.contains(':') { bind.clone() } else { format!("{far}:7125") };
                assert_eq!((&round_trip.peer, round_trip.peer_xdp), (&peer, !transport.is_empty()));
            });
        }
    }
}

/// A process without rights, in a namespace of its own.
#[test]
fn missing_rights_are_reported_with_the_remedy() {
    let ends = VethPair::create().unwrap();
    let scratch = Scratch::new();
    let binary = scratch.path().join("punctual");
    fs::copy(PUNCTUAL, &binary).unwrap();
    fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let to = "--to 02:00:00:00:00:02 --transport xdp --no-record --quiet";
    for arguments in [format!("measure round-trip near {to}"), "echo --interface near --transport xdp".to_owned()] {
        let mut command = Command::new(&binary);
        command.args(arguments.split(' ')).current_dir(scratch.path()).uid(65_534).gid(65_534);
        let output = ends.near.namespace.run(|| command.output().unwrap()).unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        assert!(stderr.contains("AF_XDP needs CAP_NET_RAW") && stderr.contains("start as root"), "{stderr}");
    }
}

#[test]
fn what_af_xdp_cannot_do_is_refused_with_a_remedy() {
    let ends = VethPair::create().unwrap();
    let refused = |arguments: &str, status: i32, error: &str| {
        let scratch = Scratch::new();
        let output = ends.near.namespace.run(|| scratch.punctual(arguments).output().unwrap()).unwrap();
        let run = Run(output);
        run.expect_status(status);
        let stderr = run.stderr();
        assert!(stderr.contains(error) && stderr.lines().count() == 1, "{arguments}: {stderr}");
    };
    let own = |more: &str| format!("measure round-trip --self --quiet --no-record --transport {more}");
    refused(&own("xdp-zerocopy"), 1, "use xdp instead of xdp-zerocopy");
    refused(&own("xdp --queue 3"), 1, "has no queue 3");
    refused(&own("socket --queue 3"), 64, "--queue needs xdp");
    refused(&own("xdp --stamps receive"), 64, "timestamps and xdp exclude each other");
    refused(&own("xdp --busy-poll 50us"), 64, "busy polling and xdp exclude each other");
    let to = |interface: &str| {
        format!("measure round-trip {interface} --to 02:00:00:00:00:02 --transport xdp --quiet --no-record")
    };
    refused(&to("nosuch0"), 1, "there is no interface nosuch0");
    refused(&to("lo"), 1, "lo is not an Ethernet interface");
    let udp = |address: &str| format!("measure udp {address} --transport xdp --quiet --no-record");
    refused(&udp("192.0.2.2 --allow-fragments"), 64, "fragments and xdp exclude each other");
    add_address(&ends.near, "198.51.100.1");
    refused(&udp("198.51.100.9"), 1, "no machine on near answers for the address 198.51.100.9");
    refused(&udp("198.51.100.1"), 1, "198.51.100.1 is an address of this machine");
    refused("echo --transport xdp", 64, "add --interface IF");
    refused("echo --interface near", 64, "--interface needs --irq-priority or --transport xdp");
    refused("mirror near --transport xdp --busy-poll 9us", 64, "--busy-poll needs --transport socket");
    refused("mirror lo --transport xdp", 1, "lo is not an Ethernet interface");
}
