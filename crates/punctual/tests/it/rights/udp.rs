//! `measure udp --self`: both ends of this process, behind a virtual cable.

use std::{
    fs,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    process::Command,
};

use record::Record;

use crate::harness::{PUNCTUAL, Scratch, alone, last_cpu};

fn measure(more: &str) -> (Scratch, Record) {
    let scratch = Scratch::new();
    scratch.run(&format!("measure udp --self --quiet --record a --duration 2s {more}")).expect_status(0);
    let record = scratch.record();
    (scratch, record)
}

#[test]
fn both_ends_run_as_asked_and_no_datagram_is_lost() {
    let _alone = alone();
    let (scratch, record) = measure("--stamps all --size 128");
    assert!(record.validity.valid, "{:?}", record.validity);
    let [sender, series] = &record.series[..] else { panic!("{:?}", record.series.len()) };
    assert_eq!((sender.role.as_str(), sender.granted.policy.as_str()), ("sender", "fifo:98"));
    assert_eq!((series.role.as_str(), series.granted.policy.as_str()), ("round-trip", "fifo:97"));
    assert!(sender.granted.memory_locked && series.granted.memory_locked);
    assert_eq!((sender.cpu, series.cpu), (Some(last_cpu()), Some(last_cpu())));
    let round_trip = series.kind.round_trip().unwrap();
    assert_eq!((round_trip.peer.as_str(), round_trip.own_peer), ("192.0.2.2:7125", true));
    assert_eq!((round_trip.peer_realtime, round_trip.lost, round_trip.refused), (Some(true), 0, 0));
    assert_eq!((round_trip.duplicates, round_trip.reordered, round_trip.foreign), (0, 0, 0));
    assert_eq!(series.samples + series.missed, round_trip.slots);
    // What the timer's thread saw of the slots is what became of them.
    assert_eq!((sender.samples, sender.samples + sender.missed), (round_trip.sent, round_trip.slots));
    let parts = &round_trip.parts;
    let wake = parts.wake.as_ref().unwrap();
    assert!(wake.max_ns >= sender.max_ns.unwrap(), "it is sent after the thread woke");
    // A virtual cable has all stamps.
    for part in [&parts.stack_out, &parts.stack_in, &parts.peer] {
        let told = part.as_ref().map_or(0, |times| times.histogram.total());
        assert!(told * 100 >= series.samples * 99, "{told} of {}", series.samples);
    }
    let mean_ns: f64 = parts.named().into_iter().filter_map(|(_, times)| times).map(|times| times.mean_ns).sum();
    let whole_ns = series.mean_ns.unwrap();
    assert!((0.97..=1.03).contains(&(mean_ns / whole_ns)), "{mean_ns} of {whole_ns}: parts add up to the whole");
    let shown = scratch.run("show a.punctual.json").expect_status(0).stdout();
    assert!(shown.contains("of our own, behind a virtual cable") && shown.contains("fifo:97 for receiver granted"));
}

#[test]
fn a_long_payload_fits_and_one_that_needs_two_frames_is_refused() {
    let (_scratch, record) = measure("--size 1472 --period 5ms --stamps none");
    let round_trip = record.series[1].kind.round_trip().unwrap();
    assert_eq!((round_trip.payload_bytes, round_trip.lost), (1472, 0));
    let (_scratch, record) = measure("--size 4000 --allow-fragments --period 5ms");
    let round_trip = record.series[1].kind.round_trip().unwrap();
    assert_eq!((round_trip.payload_bytes, round_trip.lost), (4000, 0));
}

#[test]
fn a_queue_that_cannot_be_polled_is_told() {
    let (_scratch, record) = measure("--busy-poll 50us");
    let series = &record.series[1];
    assert_eq!(series.kind.round_trip().unwrap().wait, "busy-poll:50us");
    assert!(series.notes.iter().any(|note| note.contains("cannot be polled")), "{:?}", series.notes);
}

#[test]
fn without_rights_it_says_what_to_do() {
    let scratch = Scratch::new();
    let binary = scratch.path().join("punctual");
    fs::copy(PUNCTUAL, &binary).unwrap();
    fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let mut command = Command::new(&binary);
    command.args(["measure", "udp", "--self", "--no-record", "--quiet"]).current_dir(scratch.path());
    let output = command.uid(65_534).gid(65_534).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("no right to make network namespaces: run as root"), "{said}");
}

#[test]
fn nothing_is_left_behind() {
    let before = fs::read_to_string("/proc/net/dev").unwrap().lines().count();
    let (_scratch, _record) = measure("--load cpu");
    assert_eq!(fs::read_to_string("/proc/net/dev").unwrap().lines().count(), before);
}
