//! `measure ping`: the network stack of this machine, and a device with known faults at the other end of a veth pair.

mod device;

use std::{fs, os::unix::process::CommandExt, process::Stdio, time::Duration};

use machine::veth::VethPair;
use record::{Carrier, Outcome, Record, RoundTrip, Series};
use stalls::{Stall, repeat_if_stalled};

use crate::harness::{PUNCTUAL, Scratch, alone, skip};
use device::{Device, Fault, Faults};

/// A stall after which a socket is full, or after which an answer is lost.
const NO_RESPONSE: Stall = Stall::Ordinary(Duration::from_millis(200));

fn round_trips(record: &Record) -> (&Series, &RoundTrip) {
    let found = record.series.iter().find_map(|series| Some((series, series.kind.round_trip()?)));
    let (series, round_trip) = found.expect("a series of round trips");
    assert_eq!(round_trip.carrier, Carrier::Icmp);
    assert_eq!(series.samples + round_trip.lost + series.missed, round_trip.slots, "{round_trip:?}");
    assert_eq!(series.samples + round_trip.lost, round_trip.sent, "{round_trip:?}");
    (series, round_trip)
}

fn ping(scratch: &Scratch, status: i32, more: &str) -> Record {
    scratch.run(&format!("measure ping --quiet --record a --blame=off {more}")).expect_status(status);
    scratch.record()
}

/// Measures a device with these faults, by the kernel's ping socket or by a raw one.
fn ping_device(ping_socket: bool, status: i32, more: &str, fault: fn(u64) -> Fault) -> (Record, Faults) {
    let scratch = Scratch::new();
    let ends = VethPair::create().unwrap();
    let device = Device::at(&ends.far, fault);
    let mut command = scratch.punctual(&format!("measure ping 192.0.2.2 --quiet --record a --blame=off {more}"));
    let run = || {
        let groups = if ping_socket { "0 2147483647" } else { "1 0" };
        fs::write("/proc/sys/net/ipv4/ping_group_range", groups).unwrap();
        command.stdout(Stdio::null()).output().unwrap()
    };
    let output = ends.near.namespace.run(run).unwrap();
    assert_eq!(output.status.code(), Some(status), "{}", String::from_utf8_lossy(&output.stderr));
    (scratch.record(), device.end())
}

#[test]
fn faults_of_a_device_are_counted_exactly() {
    let _alone = alone();
    for ping_socket in [true, false] {
        repeat_if_stalled(NO_RESPONSE, || count_faults(ping_socket));
    }
}

fn count_faults(ping_socket: bool) {
    let options = "--samples 600 --period 2ms --timeout 1s";
    let (record, faults) = ping_device(ping_socket, 0, options, |sequence| match sequence % 50 {
        0..3 | 20 => Fault::Lose,
        10 if sequence < 100 => Fault::Delay(Duration::from_millis(1500)),
        30 => Fault::Double,
        // A next answer must follow.
        40 if sequence < 500 => Fault::SwapWithNext,
        45 => Fault::Refuse,
        47 => Fault::Change,
        _ => Fault::None,
    });
    let (_, round_trip) = round_trips(&record);
    let Faults { lost, doubled, reordered, delayed, refused, changed } = faults;
    assert!([lost, doubled, reordered, delayed, refused, changed].iter().all(|&count| count > 0), "{faults:?}");
    assert_eq!(round_trip.lost, lost + delayed + refused + changed, "{round_trip:?}");
    assert_eq!((round_trip.duplicates, round_trip.reordered, round_trip.late), (doubled, reordered, delayed));
    assert_eq!((round_trip.icmp_errors, round_trip.foreign), (refused, changed), "{round_trip:?}");
    assert_eq!(round_trip.icmp_error.as_deref(), Some("host unreachable"));
    assert_eq!((round_trip.refused, round_trip.peer_restarts, round_trip.peer_realtime), (0, 0, None));
}

#[test]
fn an_unreachable_device_makes_the_run_invalid_with_its_cause() {
    let (record, _) = ping_device(false, 4, "--duration 300ms --timeout 200ms", |_| Fault::Refuse);
    let (series, round_trip) = round_trips(&record);
    assert_eq!((series.samples, round_trip.lost), (0, round_trip.sent));
    assert!(round_trip.sent > 0 && round_trip.icmp_errors > 0, "{round_trip:?}");
    let reason = &record.validity.reasons[0];
    assert_eq!(reason.id, "ping.silent");
    assert!(reason.text.starts_with("no answer from 192.0.2.2: host unreachable: "), "{}", reason.text);
    assert_eq!(record.verdict.unwrap().outcome, Outcome::Invalid);
}

#[test]
fn this_machine_answers_with_both_protocols() {
    let _alone = alone();
    for peer in ["127.0.0.1", "::1"] {
        if peer == "::1" && fs::read_to_string("/proc/net/if_inet6").unwrap_or_default().is_empty() {
            return skip("ICMPv6, because this machine has no IPv6");
        }
        repeat_if_stalled(NO_RESPONSE, || answer_with_all_stamps(peer));
    }
}

fn answer_with_all_stamps(peer: &str) {
    let scratch = Scratch::new();
    let record = ping(&scratch, 0, &format!("{peer} --samples 500 --size 200 --stamps all --timeout 10s"));
    let (series, round_trip) = round_trips(&record);
    assert_eq!((round_trip.peer.as_str(), round_trip.payload_bytes, round_trip.lost), (peer, 200, 0));
    assert_eq!((round_trip.foreign, round_trip.duplicates, round_trip.icmp_errors), (0, 0, 0), "{round_trip:?}");
    let parts = &round_trip.parts;
    for part in [&parts.stack_out, &parts.stack_in] {
        let stamped = part.as_ref().map_or(0, |times| times.histogram.total());
        assert!(stamped * 10 >= series.samples * 9, "{stamped} of {}", series.samples);
    }
    // A device that returns the request has no times of its own.
    assert_eq!((&parts.peer, &parts.peer_wake, &round_trip.ways), (&None, &None, &None));
    assert!(series.spikes.iter().all(|spike| spike.trip.unwrap().total_ns() == spike.lateness_ns));
    assert_eq!(record.scenario.probe, "ping");
    let shown = scratch.run("show --full a.punctual.json").expect_status(0).stdout();
    assert!(shown.contains(&format!("Round trips to {peer} (ICMP echo): 200 bytes")), "{shown}");
}

/// More requests than the sequence number of ICMP has values.
#[test]
fn the_sequence_number_may_wrap() {
    let _alone = alone();
    repeat_if_stalled(NO_RESPONSE, || {
        let scratch = Scratch::new();
        let options = "127.0.0.1 --samples 75000 --period 100us --max-rate 10000 --timeout 10s";
        let record = ping(&scratch, 0, options);
        let (series, round_trip) = round_trips(&record);
        // A stall of 100 ms fills the buffer of the socket, and the kernel drops the next answers.
        assert!(round_trip.sent > 65_536 && series.samples > round_trip.sent / 2, "{}", series.samples);
        assert_eq!(series.samples + round_trip.lost, round_trip.sent, "{round_trip:?}");
        let other = [round_trip.late, round_trip.duplicates, round_trip.reordered, round_trip.foreign];
        assert_eq!(other, [0; 4], "{round_trip:?}");
    });
}

#[test]
fn wrong_devices_and_missing_rights_are_refused_with_the_remedy() {
    let scratch = Scratch::new();
    let refused = |arguments: &str, status: i32, error: &str| {
        let run = scratch.run(&format!("measure ping --quiet --no-record {arguments}"));
        run.expect_status(status);
        assert!(run.stderr().contains(error), "{arguments}: {}", run.stderr());
    };
    refused("127.0.0.1:7125", 64, "without a port");
    refused("", 64, "HOST");
    refused("no-such-host.invalid", 1, "cannot resolve the host `no-such-host.invalid`");
    refused("127.0.0.1 --period 50us", 64, "raise max-rate to 20000");
    refused("127.0.0.1 --size 1473", 64, "use a size of 1472 or less");
    // In a new namespace nobody but root may open a socket.
    let ends = VethPair::create().unwrap();
    let binary = scratch.path().join("punctual");
    fs::copy(PUNCTUAL, &binary).unwrap();
    fs::set_permissions(scratch.path(), std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    let mut command = std::process::Command::new(&binary);
    command.args(["measure", "ping", "192.0.2.2", "--quiet", "--no-record"]).current_dir(scratch.path());
    let output = ends.near.namespace.run(|| command.uid(65_534).gid(65_534).output().unwrap()).unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("net.ipv4.ping_group_range") && stderr.contains("run as root"), "{stderr}");
}
