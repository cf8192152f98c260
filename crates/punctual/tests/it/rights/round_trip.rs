//! `measure round-trip`: with both ends in one process, with `punctual mirror`, and with a mirror of another program that
//! loses, doubles and swaps frames as requested.

use std::{
    process::Stdio,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    thread,
    time::Duration,
};

use machine::veth::{VethEnd, VethPair};
use probes::round_trip::packet::{GREETING, Packet};
use record::{Carrier, Framing, Outcome, Record, RoundTrip, Series};
use stalls::{Stall, repeat_if_stalled};
use sys::udp::{DatagramSocket, Sender, Stamps};

use crate::harness::{Run, Scratch, Start, Started, alone, signal, wait_until};

const ETHERTYPE: u16 = 0x88b5;

/// A stall after which a socket is full, so frames are lost.
const NO_RESPONSE: Stall = Stall::Ordinary(Duration::from_millis(200));

fn round_trips(record: &Record) -> (&Series, &RoundTrip) {
    let found = record.series.iter().find_map(|series| Some((series, series.kind.round_trip()?)));
    let (series, round_trip) = found.expect("a series of round trips");
    assert_eq!((round_trip.carrier, record.scenario.probe.as_str()), (Carrier::Ethernet, "round-trip"));
    assert_eq!(series.samples + round_trip.lost + series.missed, round_trip.slots, "{round_trip:?}");
    assert_eq!(series.samples + round_trip.lost, round_trip.sent, "{round_trip:?}");
    (series, round_trip)
}

pub fn address(end: &VethEnd) -> String {
    end.mac.map(|byte| format!("{byte:02x}")).join(":")
}

/// Measures from one end of a veth pair to the other.
fn measure(ends: &VethPair, status: i32, more: &str) -> (Scratch, Record) {
    let scratch = Scratch::new();
    let (interface, to) = (&ends.near.interface, address(&ends.far));
    let arguments = format!("measure round-trip {interface} --to {to} --quiet --record a --blame=off {more}");
    let output = ends.near.namespace.run(|| scratch.punctual(&arguments).output().unwrap()).unwrap();
    Run(output).expect_status(status);
    let record = scratch.record();
    (scratch, record)
}

#[test]
fn both_ends_here_have_every_part() {
    let _alone = alone();
    repeat_if_stalled(NO_RESPONSE, measure_both_ends);
}

fn measure_both_ends() {
    let scratch = Scratch::new();
    let options = "--samples 1000 --vlan 5 --priority 3 --size 200 --stamps all --timeout 10s --export a.html";
    scratch.run(&format!("measure round-trip --self --quiet --record a --blame=off {options}")).expect_status(0);
    let record = scratch.record();
    let (series, round_trip) = round_trips(&record);
    assert_eq!(round_trip.frames, Some(Framing { ethertype: ETHERTYPE, vlan_id: Some(5), priority: 3 }));
    assert_eq!((round_trip.own_peer, round_trip.peer_realtime, round_trip.payload_bytes), (true, Some(true), 200));
    let faults = [round_trip.lost, round_trip.duplicates, round_trip.reordered, round_trip.foreign, round_trip.late];
    assert_eq!(faults, [0; 5], "{round_trip:?}");
    let parts = &round_trip.parts;
    for part in [&parts.stack_out, &parts.peer_wake, &parts.peer, &parts.stack_in] {
        let stamped = part.as_ref().map_or(0, |times| times.histogram.total());
        assert!(stamped * 10 >= series.samples * 9, "{stamped} of {}", series.samples);
    }
    assert!(series.spikes.iter().all(|spike| spike.trip.unwrap().total_ns() == spike.lateness_ns));
    let shown = scratch.run("show --full a.punctual.json").expect_status(0).stdout();
    let title = "(EtherType 0x88b5, VLAN 5, priority 3, through a veth pair): 200 bytes every 1 ms";
    // The title takes two lines.
    let words: Vec<&str> = shown.split_whitespace().collect();
    assert!(words.join(" ").contains(title), "{shown}");
    assert!(std::fs::read_to_string(scratch.path().join("a.html")).unwrap().contains(title));
}

/// Starts `punctual mirror` at the far end, and waits until it answers.
fn start_mirror(ends: &VethPair, scratch: &Scratch, more: &str) -> Started {
    let mut mirror = scratch.punctual(&format!("mirror {} --json --ready ready {more}", ends.far.interface));
    let start = || mirror.stdout(Stdio::piped()).stderr(Stdio::piped()).start();
    let child = ends.far.namespace.run(start).unwrap();
    let ready = scratch.path().join("ready");
    wait_until("the mirror answers", || ready.exists());
    assert_eq!(std::fs::read_to_string(ready).unwrap().trim(), address(&ends.far));
    child
}

#[test]
fn a_mirror_returns_every_frame_with_its_times() {
    let _alone = alone();
    repeat_if_stalled(NO_RESPONSE, || {
        let (ends, scratch) = (VethPair::create().unwrap(), Scratch::new());
        let mirror = start_mirror(&ends, &scratch, "");
        let (_scratch, record) = measure(&ends, 0, "--samples 500 --priority 6 --timeout 10s");
        // A frame of another program is not returned.
        let stranger = || {
            let socket = DatagramSocket::ethernet(&ends.near.interface, &[ETHERTYPE], 0).unwrap();
            let frame = [&ends.far.mac[..], &ends.near.mac, &ETHERTYPE.to_be_bytes(), &[7; 60]].concat();
            socket.set_receive_timeout(Duration::from_millis(100)).unwrap();
            socket.send(&frame).unwrap();
            socket.receive(&mut [0; 100], &mut Sender::default(), true).unwrap()
        };
        assert_eq!(ends.near.namespace.run(stranger).unwrap(), None);
        signal(&mirror, "INT");
        let output = mirror.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let counts: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let (series, round_trip) = round_trips(&record);
        assert_eq!((round_trip.lost, round_trip.own_peer, round_trip.peer_realtime), (0, false, Some(true)));
        let greeting = 1;
        assert_eq!(counts["answered"], series.samples + greeting);
        assert_eq!(counts["strangers"], 1);
        assert!(round_trip.parts.peer_wake.is_some() && round_trip.ways.is_some(), "{round_trip:?}");
    });
}

/// The round trips of a traffic class.
pub fn of_class<'a>(record: &'a Record, name: &str) -> (&'a Series, &'a RoundTrip) {
    let series = record.series.iter().find(|series| series.role == name);
    let series = series.unwrap_or_else(|| panic!("a class {name}"));
    let round_trip = series.kind.round_trip().expect("round trips");
    assert_eq!(series.samples + round_trip.lost + series.missed, round_trip.slots, "{name}: {round_trip:?}");
    (series, round_trip)
}

#[test]
fn traffic_classes_have_their_own_schedules_frames_and_figures() {
    let _alone = alone();
    repeat_if_stalled(NO_RESPONSE, || {
        // The first two differ only in name, period and size.
        let scratch = Scratch::new();
        let classes = "--traffic-class control=1ms,size=128 --traffic-class alarm=2ms --traffic-class bulk=4ms,ethertype=0x8892,vlan=9,priority=0,size=1400";
        let options = "--priority 5 --vlan 5 --stamps all --timeout 10s --duration 1s --profile udp-control-1ms";
        let run = scratch.run(&format!("measure round-trip --self --quiet --record a --blame=off {classes} {options}"));
        assert!([0, 2, 3].contains(&run.0.status.code().unwrap()), "{}", run.stderr());
        let record = scratch.record();
        let frames = |ethertype, vlan_id, priority| Framing { ethertype, vlan_id: Some(vlan_id), priority };
        let mut slots = Vec::new();
        for (name, period_ns, bytes, framing) in [
            ("control", 1_000_000, 128, frames(ETHERTYPE, 5, 5)),
            ("alarm", 2_000_000, 64, frames(ETHERTYPE, 5, 5)),
            ("bulk", 4_000_000, 1400, frames(0x8892, 9, 0)),
        ] {
            let (series, trip) = of_class(&record, name);
            assert_eq!((series.period_ns, trip.payload_bytes, trip.frames), (period_ns, bytes, Some(framing)));
            let faults = [trip.lost, trip.duplicates, trip.reordered, trip.foreign, trip.late, trip.send_failed];
            assert_eq!(faults, [0; 6], "{name}: {trip:?}");
            let stamped = |times: &Option<record::Times>| times.as_ref().map_or(0, |times| times.histogram.total());
            let parts = &trip.parts;
            for part in [&parts.stack_out, &parts.peer_wake, &parts.stack_in] {
                assert!(stamped(part) * 10 >= series.samples * 9, "{name}: {} of {}", stamped(part), series.samples);
            }
            let sender = record.series.iter().find(|series| series.role == format!("{name}-sender")).unwrap();
            assert_eq!((sender.period_ns, sender.samples + sender.missed), (period_ns, trip.slots));
            slots.push(trip.slots);
        }
        assert!(slots[0].abs_diff(2 * slots[1]) <= 2 && slots[0].abs_diff(4 * slots[2]) <= 4, "{slots:?}");
        assert_eq!(record.uses.len(), 1, "one verdict");
        let shown = scratch.run("show a.punctual.json").stdout();
        for row in ["control-sender on CPU", "alarm on CPU", "bulk on CPU"] {
            assert!(shown.contains(row), "{shown}");
        }
        assert!(!shown.contains("--period"), "classes have their own periods: {shown}");
    });
}

#[test]
fn a_mirror_answers_the_classes_of_its_ethertypes() {
    let _alone = alone();
    repeat_if_stalled(NO_RESPONSE, || {
        let classes = "--traffic-class control=2ms,priority=6 --traffic-class bulk=4ms,ethertype=0x8892 --duration 600ms --timeout 200ms";
        for (ethertypes, status) in [("", 4), ("--ethertype 0x88b5 --ethertype 0x8892", 0)] {
            let (ends, scratch) = (VethPair::create().unwrap(), Scratch::new());
            let mirror = start_mirror(&ends, &scratch, ethertypes);
            let (_scratch, record) = measure(&ends, status, classes);
            signal(&mirror, "INT");
            let counts: serde_json::Value = serde_json::from_slice(&mirror.wait_with_output().unwrap().stdout).unwrap();
            let [control, bulk] = ["control", "bulk"].map(|name| of_class(&record, name).0.samples);
            let greetings = if status == 0 { 2 } else { 1 };
            assert_eq!((&counts["answered"], &counts["runs"]), (&(control + bulk + greetings).into(), &1.into()));
            assert_eq!((control > 200, bulk > 100), (true, status == 0), "{control} {bulk}");
            let reasons = &record.validity.reasons;
            let silent = reasons.iter().find(|reason| reason.id == "round-trip.silent");
            assert_eq!(silent.is_some(), status == 4, "{reasons:?}");
            if let Some(reason) = silent {
                assert!(reason.text.starts_with("no frame of bulk came back"), "{}", reason.text);
                assert!(reason.remedy.starts_with("punctual mirror IF --ethertype 0x8892 --ethertype 0x88b5"));
            }
        }
    });
}

/// Stops a mirror when dropped.
struct Stopper<'a>(&'a AtomicBool);

impl Drop for Stopper<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// Returns frames unchanged except for their addresses, as mirrors of other programs do. Every 50 frames it loses 3,
/// doubles 1 and swaps 1 with the next. Returns the numbers of lost, doubled and swapped frames, and those with a tag.
fn disturb(socket: &DatagramSocket, stop: &AtomicBool) -> [u64; 4] {
    let (mut buffer, mut held, mut counts) = ([0; 2000], None, [0; 4]);
    while !stop.load(Relaxed) {
        let Some(received) = socket.receive(&mut buffer, &mut Sender::default(), true).unwrap() else { continue };
        let frame = &buffer[..received.len];
        let answer = [&frame[6..12], &frame[..6], &frame[12..]].concat();
        let sequence = Packet::read(&frame[14..]).unwrap().sequence;
        counts[3] += u64::from(received.tci == Some(0x6005));
        match sequence % 50 {
            _ if sequence == GREETING => socket.send(&answer).unwrap(),
            1..4 => counts[0] += 1,
            20 => {
                (0..2).for_each(|_| socket.send(&answer).unwrap());
                counts[1] += 1;
            }
            30 if sequence < 500 && held.is_none() => held = Some(answer),
            _ => {
                socket.send(&answer).unwrap();
                if let Some(held) = held.take() {
                    socket.send(&held).unwrap();
                    counts[2] += 1;
                }
            }
        }
    }
    counts
}

#[test]
fn faults_of_another_mirror_are_counted_exactly() {
    let _alone = alone();
    for transport in ["socket", "xdp", "xdp-generic"] {
        repeat_if_stalled(NO_RESPONSE, || count_faults_of_another_mirror(transport));
    }
}

fn count_faults_of_another_mirror(transport: &str) {
    let ends = VethPair::create().unwrap();
    let open = || DatagramSocket::ethernet(&ends.far.interface, &[ETHERTYPE], 0).unwrap();
    let socket = ends.far.namespace.run(open).unwrap();
    socket.set_receive_timeout(Duration::from_millis(20)).unwrap();
    socket.set_stamps(Stamps::None).unwrap();
    let stop = AtomicBool::new(false);
    // Also if the measurement panics.
    let stopper = Stopper(&stop);
    let (record, [lost, doubled, swapped, tagged]) = thread::scope(|scope| {
        let stopper = stopper;
        let mirror = scope.spawn(|| disturb(&socket, &stop));
        let options = "--samples 600 --period 2ms --timeout 1s --vlan 5 --priority 3 --transport";
        let (_scratch, record) = measure(&ends, 0, &format!("{options} {transport}"));
        drop(stopper);
        (record, mirror.join().unwrap())
    });
    let (_, round_trip) = round_trips(&record);
    assert!(lost > 0 && doubled > 0 && swapped > 0, "{lost} {doubled} {swapped}");
    assert_eq!((round_trip.lost, round_trip.duplicates, round_trip.reordered), (lost, doubled, swapped));
    assert_eq!((round_trip.late, round_trip.foreign), (0, 0), "{round_trip:?}");
    let greetings = tagged - round_trip.sent;
    assert!((1..=5).contains(&greetings), "every frame has the tag: {tagged} of {}", round_trip.sent);
    // Such a mirror has no times of its own.
    assert_eq!((&round_trip.parts.peer, &round_trip.parts.peer_wake, round_trip.peer_realtime), (&None, &None, None));
}

#[test]
fn a_missing_mirror_makes_the_run_invalid_with_a_remedy() {
    let (scratch, record) = measure(&VethPair::create().unwrap(), 4, "--duration 300ms --timeout 200ms");
    let (series, round_trip) = round_trips(&record);
    assert_eq!((series.samples, round_trip.lost), (0, round_trip.sent));
    let reason = &record.validity.reasons[0];
    assert_eq!(reason.id, "round-trip.silent");
    assert!(reason.remedy.starts_with("punctual mirror IF --ethertype 0x88b5"), "{}", reason.remedy);
    assert_eq!(record.verdict.as_ref().unwrap().outcome, Outcome::Invalid);
    let shown = scratch.run("show a.punctual.json").stdout();
    assert!(shown.contains("start `punctual mirror` there"), "{shown}");
}

#[test]
fn wrong_frames_and_interfaces_are_refused() {
    let scratch = Scratch::new();
    let refused = |arguments: &str, status: i32, error: &str| {
        let run = scratch.run(arguments);
        run.expect_status(status);
        assert!(run.stderr().contains(error), "{arguments}: {}", run.stderr());
    };
    let to = "--to 02:00:00:00:00:02 --quiet --no-record";
    refused(&format!("measure round-trip nosuch0 {to}"), 1, "cannot open a socket for frames on nosuch0");
    refused(&format!("measure round-trip lo {to}"), 1, "lo is not an Ethernet interface: choose a wired one");
    refused(&format!("measure round-trip lo {to} --vlan 4095"), 64, "--vlan");
    refused(&format!("measure round-trip lo {to} --ethertype 0x100"), 64, "must be 0x0600 to 0xffff");
    refused(&format!("measure round-trip lo {to} --ethertype 0x8808"), 64, "PAUSE");
    refused(&format!("measure round-trip lo {to} --size 1501"), 64, "use a size of 1500 or less");
    refused("measure round-trip lo --to 01:80:c2:00:00:01 --quiet", 64, "a group address: name one machine");
    refused("measure ping 224.0.0.1 --quiet --no-record", 1, "224.0.0.1 is a group address");
    refused("measure ping 127.255.255.255 --quiet --no-record", 1, "127.255.255.255 is a group address");
    refused("measure round-trip lo --to 02:00:00:00:00 --quiet", 64, "must be six bytes");
    refused("measure round-trip lo --quiet", 64, "--to");
    refused("measure round-trip --self --stamps hardware --quiet", 64, "has no hardware timestamps");
    refused("mirror nosuch0", 1, "`ip link` lists the interfaces");
    let classes = |classes: &str| format!("measure round-trip --self --quiet --no-record {classes}");
    refused(&classes("--traffic-class a=1ms --traffic-class a=2ms"), 64, "two traffic classes are named `a`");
    refused(
        &classes("--traffic-class a=1ms --traffic-class a-sender=2ms"),
        64,
        "two traffic classes are named `a-sender`",
    );
    refused(&classes("--traffic-class a=1ms --period 2ms"), 64, "--period");
    refused(&classes("--traffic-class a=1ms --samples 9"), 64, "--samples");
    refused(&classes("--traffic-class a=20us --traffic-class b=19us"), 64, "100");
    refused(&classes("--traffic-class a=1ms,size=1501"), 64, "use a size of 1500 or less");
    let many: String = (0..65).map(|n| format!(" --traffic-class c{n}=100ms")).collect();
    refused(&classes(&many), 64, "at most 64 traffic classes");
    let ends = VethPair::create().expect("the right to make namespaces: run as root");
    let to_itself = format!("measure round-trip {} --to {}", ends.near.interface, address(&ends.near));
    ends.near
        .namespace
        .run(|| refused(&format!("{to_itself} --quiet --no-record"), 1, "is the address of near itself"))
        .unwrap();
}
