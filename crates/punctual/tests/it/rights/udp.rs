//! `measure udp --self`: both ends in one process, connected by a veth pair.

use std::{
    fs,
    hint::spin_loop,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use record::Record;
use stalls::{Stall, repeat_if_stalled};
use sys::{
    clock::Clock,
    sched::{self, Policy},
};

use crate::harness::{PUNCTUAL, Scratch, Start, alone, last_cpu, skip, wait_until};

/// A stall that changes the mean of 2 s of round trips by a few per cent, because not all round trips have all parts.
const UNEVEN: Stall = Stall::Realtime(Duration::from_micros(500));

fn measure(more: &str) -> (Scratch, Record) {
    let scratch = Scratch::new();
    scratch.run(&format!("measure udp --self --quiet --record a --duration 2s {more}")).expect_status(0);
    let record = scratch.record();
    (scratch, record)
}

#[test]
fn both_ends_have_their_settings_and_lose_no_datagram() {
    let _alone = alone();
    repeat_if_stalled(UNEVEN, measure_both_ends);
}

fn measure_both_ends() {
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
    // The thread of the timer and the round trips count the same slots.
    assert_eq!((sender.samples, sender.samples + sender.missed), (round_trip.sent, round_trip.slots));
    let parts = &round_trip.parts;
    let wake = parts.wake.as_ref().unwrap();
    assert!(wake.max_ns >= sender.max_ns.unwrap(), "a datagram is sent after the thread woke up");
    // A veth pair has all timestamps.
    for part in [&parts.stack_out, &parts.stack_in, &parts.peer, &parts.peer_wake] {
        let stamped = part.as_ref().map_or(0, |times| times.histogram.total());
        assert!(stamped * 100 >= series.samples * 99, "{stamped} of {}", series.samples);
    }
    let mean_ns: f64 = parts.named().into_iter().filter_map(|(_, times)| times).map(|times| times.mean_ns).sum();
    let whole_ns = series.mean_ns.unwrap();
    assert!((0.97..=1.03).contains(&(mean_ns / whole_ns)), "the parts sum up to {mean_ns} of {whole_ns} ns");
    let shown = scratch.run("show --full a.punctual.json").expect_status(0).stdout();
    assert!(shown.contains("our own, through a veth pair") && shown.contains("fifo:97 for receiver granted"));
}

#[test]
fn long_payloads_and_fragments_are_not_lost() {
    let (_scratch, record) = measure("--size 1472 --period 5ms --stamps none");
    let round_trip = record.series[1].kind.round_trip().unwrap();
    assert_eq!((round_trip.payload_bytes, round_trip.lost), (1472, 0));
    let (_scratch, record) = measure("--size 4000 --allow-fragments --period 5ms");
    let round_trip = record.series[1].kind.round_trip().unwrap();
    assert_eq!((round_trip.payload_bytes, round_trip.lost), (4000, 0));
}

#[test]
fn a_queue_that_cannot_be_polled_is_noted() {
    let (_scratch, record) = measure("--busy-poll 50us");
    let series = &record.series[1];
    assert_eq!(series.kind.round_trip().unwrap().wait, "busy-poll:50us");
    assert!(series.notes.iter().any(|note| note.contains("cannot be polled")), "{:?}", series.notes);
}

#[test]
fn missing_rights_are_reported_with_the_remedy() {
    let scratch = Scratch::new();
    let binary = scratch.path().join("punctual");
    fs::copy(PUNCTUAL, &binary).unwrap();
    fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let mut command = Command::new(&binary);
    command.args(["measure", "udp", "--self", "--no-record", "--quiet"]).current_dir(scratch.path());
    let output = command.uid(65_534).gid(65_534).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("no right to create network namespaces: run as root"), "{stderr}");
}

#[test]
fn nothing_is_left_behind() {
    // In a namespace of its own, because other programs add interfaces, too. `/proc/net` shows the namespace of the
    // process.
    let interfaces = || fs::read_to_string("/proc/thread-self/net/dev").unwrap().lines().count();
    let compare = || {
        let before = interfaces();
        let (_scratch, _record) = measure("--load cpu");
        assert_eq!(interfaces(), before);
    };
    sys::netns::Namespace::new().unwrap().run(compare).unwrap();
}

/// Number of times that a thread of a higher priority occupies the CPU of the answering thread, and for how long.
const OCCUPIED: usize = 100;
const OCCUPIED_NS: i64 = 5_000_000;

#[test]
fn a_delayed_answering_thread_is_a_late_peer_and_not_a_slow_wire() {
    let _alone = alone();
    if last_cpu() == 0 {
        return skip("a delayed answering thread, because there is only one CPU");
    }
    repeat_if_stalled(Stall::Realtime(Duration::from_millis(1)), delay_the_answering_thread);
}

fn delay_the_answering_thread() {
    let scratch = Scratch::new();
    let options = "--echo-cpu 0 --threshold 2ms --blame=off --duration 7s";
    let command = format!("measure udp --self --quiet --record a --cpu {} {options}", last_cpu());
    let child = scratch.punctual(&command).stdout(Stdio::null()).start();
    wait_until("the record exists", || scratch.record_path().exists());
    let occupied = thread::spawn(occupy_again_and_again).join().unwrap();
    assert!(child.wait_with_output().unwrap().status.success());
    let record = scratch.record();
    let series = record.series.iter().find(|series| series.kind.round_trip().is_some()).unwrap();
    let found = occupied.iter().filter(|&&(begin_ns, end_ns)| {
        series.spikes.iter().any(|spike| {
            let trip = spike.trip.unwrap();
            let at_ns = series.first_deadline_ns + spike.at_ns.cast_signed();
            let peer_wake_ns = trip.peer_wake_ns.unwrap_or(0);
            (begin_ns..end_ns).contains(&at_ns) && 2 * peer_wake_ns > OCCUPIED_NS && 4 * trip.wire_ns < peer_wake_ns
        })
    });
    let found = found.count();
    assert!(found * 100 >= OCCUPIED * 99, "{found} of {OCCUPIED}");
}

/// Occupies CPU 0 with a priority above that of the answering thread. Returns the begin and the end of each time, ns.
fn occupy_again_and_again() -> Vec<(i64, i64)> {
    sched::set_affinity(&[0]).unwrap();
    sched::set_policy(Policy::Fifo(98)).unwrap();
    let occupy = |_| {
        thread::sleep(Duration::from_millis(20));
        let begin_ns = Clock::Monotonic.now_ns();
        while Clock::Monotonic.now_ns() < begin_ns + OCCUPIED_NS {
            spin_loop();
        }
        (begin_ns, Clock::Monotonic.now_ns())
    };
    (0..OCCUPIED).map(occupy).collect()
}

/// Datagrams that wait for the address of the peer fill the send buffer. The sender does not wait with them, so it is not late.
#[test]
fn a_full_send_buffer_is_no_lateness_of_the_sender() {
    let setup = "ip link add va type veth peer name vb && ip address add 192.0.2.1/24 dev va && ip link set va up \
                 && ip link set vb up arp off && echo 9999999 >/proc/sys/net/ipv4/neigh/va/unres_qlen_bytes";
    let measure = || {
        let made = Command::new("sh").args(["-c", setup]).status().unwrap();
        assert!(made.success());
        let scratch = Scratch::new();
        scratch.run("measure udp 192.0.2.2 --quiet --record a --samples 2000 --period 1ms --size 1400");
        scratch.record()
    };
    let record = sys::netns::Namespace::new().unwrap().run(measure).unwrap();
    let [sender, series] = &record.series[..] else { panic!("{:?}", record.series.len()) };
    let round_trip = series.kind.round_trip().unwrap();
    let error = round_trip.send_error.clone().unwrap_or_default();
    assert!(error.starts_with("the send buffer was full"), "{error}");
    assert!(round_trip.send_failed * 4 > round_trip.slots, "{} of {}", round_trip.send_failed, round_trip.slots);
    assert!(sender.missed * 4 < round_trip.slots, "{} of {}", sender.missed, round_trip.slots);
}
