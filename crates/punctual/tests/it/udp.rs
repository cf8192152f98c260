//! `measure udp` with `echo`, and with a relay that loses, duplicates, delays and reorders responses. Over loopback and
//! with the ordinary policy, so no rights are needed.

mod relay;

use std::{
    io::{BufRead, BufReader},
    net::{SocketAddr, UdpSocket},
    process::Stdio,
    time::Duration,
};

use record::{Histogram, Outcome, Record, RoundTrip, Series};
use stalls::{Stall, repeat_if_stalled};

use super::harness::{Scratch, Start, Started, signal, wait_until};
use relay::{Fault, Relay};

const POLICIES: &str = "--policy other --receive-policy other";

/// A stall after which a socket is full, so datagrams are lost.
const NO_RESPONSE: Stall = Stall::Ordinary(Duration::from_millis(200));

/// An answering end in a process of its own.
struct Peer {
    child: Started,
    address: SocketAddr,
}

impl Peer {
    fn start(scratch: &Scratch, bind: &str) -> Self {
        let ready = scratch.path().join("ready");
        let _ = std::fs::remove_file(&ready);
        let mut echo = scratch.punctual(&format!("echo --bind {bind} --policy other --json --ready ready"));
        let child = echo.stdout(Stdio::piped()).stderr(Stdio::piped()).start();
        wait_until("the peer responds", || ready.exists());
        let address = std::fs::read_to_string(&ready).unwrap().trim().parse().unwrap();
        Self { child, address }
    }

    /// Ends the peer with Ctrl-C; returns its counts.
    fn end(self) -> serde_json::Value {
        signal(&self.child, "INT");
        let output = self.child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

fn measure(scratch: &Scratch, status: i32, peer: SocketAddr, more: &str) -> Record {
    let arguments = format!("measure udp {peer} --quiet --record a --blame=off {POLICIES} {more}");
    scratch.run(&arguments).expect_status(status);
    scratch.record()
}

fn round_trips(record: &Record) -> (&Series, &RoundTrip) {
    let found = record.series.iter().find_map(|series| Some((series, series.kind.round_trip()?)));
    found.expect("a series of round trips")
}

/// Every slot must be answered, lost or not sent, and every answer must be in the histogram.
#[track_caller]
fn assert_all_slots_counted((series, round_trip): (&Series, &RoundTrip)) {
    assert_eq!(series.samples + round_trip.lost + series.missed, round_trip.slots, "{round_trip:?}");
    assert_eq!(series.samples + round_trip.lost, round_trip.sent, "{round_trip:?}");
    assert_eq!(series.raw.total(), series.samples);
    let parts = &round_trip.parts;
    for times in [&round_trip.from_sent, &parts.wake, &parts.wire].into_iter().flatten() {
        assert_eq!(times.histogram.total(), series.samples);
    }
}

#[test]
fn every_datagram_is_answered_and_every_slot_is_counted() {
    repeat_if_stalled(NO_RESPONSE, round_trips_over_loopback);
}

fn round_trips_over_loopback() {
    let scratch = Scratch::new();
    let peer = Peer::start(&scratch, "127.0.0.1:0");
    let options = "--samples 500 --size 200 --stamps all --timeout 10s --export a.csv --export a.html";
    let record = measure(&scratch, 0, peer.address, options);
    let counts = peer.end();
    let (series, round_trip) = round_trips(&record);
    assert_all_slots_counted((series, round_trip));
    assert_eq!((round_trip.lost, round_trip.duplicates, round_trip.foreign, round_trip.refused), (0, 0, 0, 0));
    assert_eq!((round_trip.payload_bytes, round_trip.own_peer, round_trip.peer_realtime), (200, false, Some(false)));
    assert!(series.samples > 100, "{}", series.samples);
    let greeting = 1;
    assert_eq!(counts["answered"], series.samples + greeting);
    assert_eq!((&counts["strangers"], &counts["runs"]), (&0.into(), &1.into()));
    // Loopback has every timestamp. The kernel starts to make them a moment after the request.
    let parts = &round_trip.parts;
    for part in [&parts.stack_out, &parts.stack_in, &parts.peer, &parts.peer_wake] {
        let stamped = part.as_ref().map_or(0, |times| times.histogram.total());
        assert!(stamped * 10 >= series.samples * 9, "{stamped} of {}", series.samples);
    }
    // The time from the intended sending includes the sender's wake-up, so it is never the shorter one.
    assert!(series.max_ns >= round_trip.from_sent.as_ref().map(|times| times.max_ns));
    for spike in &series.spikes {
        assert_eq!(spike.trip.unwrap().total_ns(), spike.lateness_ns);
    }
    assert_eq!(record.scenario.probe, "udp");
    assert_eq!(record.series[0].role, "sender");
    let value = serde_json::to_value(&record).unwrap();
    let validator = jsonschema::validator_for(&record::json_schema()).unwrap();
    let errors: Vec<_> = validator.iter_errors(&value).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
    let shown = scratch.run("show --full a.punctual.json").expect_status(0).stdout();
    assert!(shown.contains("Round trips to 127.0.0.1:") && shown.contains("stack out"), "{shown}");
    let exported = |name: &str| std::fs::read_to_string(scratch.path().join(name)).unwrap();
    assert!(exported("a.csv").contains(",round-trip,"));
    assert!(
        exported("a.html").contains("Round trips to 127.0.0.1:") && exported("a.html").contains("longest round trip")
    );
}

#[test]
fn lost_duplicate_and_reordered_responses_are_counted_exactly() {
    repeat_if_stalled(NO_RESPONSE, count_faults);
}

fn count_faults() {
    let scratch = Scratch::new();
    let peer = Peer::start(&scratch, "127.0.0.1:0");
    let relay = Relay::to(peer.address, |sequence| match sequence % 50 {
        // Often, because a late sender misses slots. Nothing is swapped at the end, because a next response must
        // follow.
        0..3 | 20 => Fault::Lose,
        30 => Fault::Double,
        40 if sequence < 500 => Fault::SwapWithNext,
        _ => Fault::None,
    });
    let record = measure(&scratch, 0, relay.address, "--samples 600 --period 2ms --timeout 3s");
    let faults = relay.end();
    peer.end();
    let (series, round_trip) = round_trips(&record);
    assert_all_slots_counted((series, round_trip));
    // Nothing is sent for a missed slot, so the relay cannot lose it.
    assert_eq!(round_trip.lost, faults.lost, "{round_trip:?}");
    assert_eq!(round_trip.duplicates, faults.doubled, "{round_trip:?}");
    assert_eq!(round_trip.reordered, faults.reordered, "{round_trip:?}");
    assert_eq!(round_trip.lost_in_a_row, faults.lost_in_a_row, "{round_trip:?}");
    assert_eq!((series.losses.total(), series.losses.counts.len()), (faults.lost, 2), "{:?}", series.losses);
    assert!(faults.lost > 0 && faults.doubled > 0 && faults.reordered > 0);
    assert_eq!((round_trip.late, round_trip.foreign), (0, 0));
    assert_eq!(record.series[0].samples, round_trip.sent);
}

/// A limit far above the stalls of any machine.
const PROFILE: &str = r#"
title = "an answer within 1 s"
group = "control"
judges = "round-trips"
period = "1s"
limit = "1s"
tolerates = "30 per minute"
meaning = "answers come"
sources = [{ what = "limit", where = "this test" }]
"#;

#[test]
fn a_profile_of_round_trips_fails_on_a_lost_response() {
    repeat_if_stalled(NO_RESPONSE, judge_a_lost_response);
}

fn judge_a_lost_response() {
    let scratch = Scratch::new();
    let peer = Peer::start(&scratch, "127.0.0.1:0");
    for (loses, status, outcome) in [(false, 0, Outcome::Pass), (true, 2, Outcome::Fail)] {
        // The outage is one stall.
        let profile = if loses { PROFILE.replace("30 per minute", "1 per hour") } else { PROFILE.to_owned() };
        std::fs::write(scratch.path().join("answers.toml"), profile).unwrap();
        // So many that a late sender cannot miss all their slots.
        let relay = Relay::to(peer.address, move |sequence| match sequence {
            20..120 if loses => Fault::Lose,
            _ => Fault::None,
        });
        let record =
            measure(&scratch, status, relay.address, "--samples 3500 --period 2ms --timeout 3s --profile answers.toml");
        assert_eq!(relay.end().lost > 0, loses);
        let judged = &record.uses[0];
        assert_eq!((judged.outcome, judged.worst_ns), (outcome, round_trips(&record).0.max_ns), "{}", judged.reason);
        assert_eq!(judged.reason.contains("datagrams lost"), loses, "{}", judged.reason);
    }
    peer.end();
    let other = scratch.run("measure udp 127.0.0.1 --profile nonesuch");
    other.expect_status(64);
}

#[test]
fn round_trips_are_compared_with_published_ones() {
    let scratch = Scratch::new();
    let peer = Peer::start(&scratch, "127.0.0.1:0");
    let record = measure(&scratch, 0, peer.address, "--samples 100 --against cortex-a53-rt");
    peer.end();
    let [pair] = &record.against[0].pairs[..] else { panic!("{:?}", record.against) };
    assert_eq!((pair.ours.role.as_str(), pair.theirs.max_ns), ("round-trip", Some(168_000)));
    assert_eq!(pair.ours.max_ns, round_trips(&record).0.max_ns);
}

#[test]
fn delays_of_known_length_are_found() {
    repeat_if_stalled(Stall::Ordinary(TOLERANCE), find_delays);
}

/// By how much a round trip may differ from its known delay. A longer stall of every delayed one fails the test.
const TOLERANCE: Duration = Duration::from_millis(4);

fn find_delays() {
    const DELAY: Duration = Duration::from_millis(20);
    const PERIOD_NS: u64 = 3_000_000;
    let scratch = Scratch::new();
    let peer = Peer::start(&scratch, "127.0.0.1:0");
    let relay = Relay::to(peer.address, |sequence| match sequence % 20 {
        7 => Fault::Delay(DELAY),
        _ => Fault::None,
    });
    let record = measure(&scratch, 0, relay.address, "--samples 600 --period 3ms --threshold 10ms --timeout 10s");
    let faults = relay.end();
    peer.end();
    let (series, round_trip) = round_trips(&record);
    assert_all_slots_counted((series, round_trip));
    assert!(faults.delayed > 0 && round_trip.lost == 0);
    let delayed = |at_ns: u64| at_ns / PERIOD_NS % 20 == 7;
    let ns = |time: Duration| i64::try_from(time.as_nanos()).unwrap();
    // By how much each is longer than the relay held it.
    let rest: Vec<i64> = series
        .spikes
        .iter()
        .filter(|spike| delayed(spike.at_ns))
        .map(|spike| spike.lateness_ns - ns(faults.held[&(spike.at_ns / PERIOD_NS)]))
        .collect();
    assert_eq!(rest.len() as u64, faults.delayed, "each is a spike");
    // Stalls of this machine only add to a round trip, so the shortest ones are those without a stall.
    let (least_ns, usual_ns) = (rest.iter().min().unwrap(), series.min_ns.unwrap());
    assert!(*least_ns > 0 && least_ns - usual_ns <= ns(TOLERANCE), "{least_ns} ns, usually {usual_ns}");
    // The delay belongs to the wire, not to the wake-up of either end.
    let trip = series.spikes.iter().find(|spike| delayed(spike.at_ns)).and_then(|spike| spike.trip).unwrap();
    assert!(trip.wire_ns * 10 > ns(DELAY) * 9, "{trip:?}");
    // The delay is on the way back. Each round trip that took long without a delay may have been stalled on either way.
    let long_ns = ns(DELAY) * 3 / 4;
    let is_stalled = |spike: &&record::Spike| !delayed(spike.at_ns) && spike.lateness_ns > long_ns;
    let stalled = series.spikes.iter().filter(is_stalled).count() as u64;
    let ways = round_trip.ways.as_ref().expect("the peer is another program");
    assert_eq!((ways.out.total(), ways.back.total(), ways.left_out), (series.samples, series.samples, 0));
    let [out, back] = [&ways.out, &ways.back].map(|times| times.count_above(long_ns));
    assert!(
        back >= faults.delayed && out * 4 < faults.delayed + 4 * stalled,
        "{out} on the way out, {back} on the way back, of {}",
        faults.delayed
    );
}

#[test]
fn responses_after_the_timeout_are_lost_and_late() {
    repeat_if_stalled(NO_RESPONSE, respond_after_the_timeout);
}

fn respond_after_the_timeout() {
    let scratch = Scratch::new();
    let peer = Peer::start(&scratch, "127.0.0.1:0");
    let relay = Relay::to(peer.address, |sequence| match sequence {
        50 | 60 | 70 => Fault::Delay(Duration::from_secs(4)),
        _ => Fault::None,
    });
    let record = measure(&scratch, 0, relay.address, "--samples 400 --period 15ms --timeout 2s");
    let faults = relay.end();
    peer.end();
    let (series, round_trip) = round_trips(&record);
    assert_all_slots_counted((series, round_trip));
    assert!(faults.delayed > 0);
    assert_eq!((round_trip.lost, round_trip.late), (faults.delayed, faults.delayed), "{round_trip:?}");
    assert!(series.max_ns.unwrap() < 4_000_000_000 + 2_000_000_000);
}

/// Answers as `punctual echo` of version 0.2 did, which had no kernel timestamps.
fn answer_as_version_0_2(socket: &UdpSocket) {
    let mut bytes = [0; 2000];
    while let Ok((len, from)) = socket.recv_from(&mut bytes) {
        bytes[5] = 2;
        bytes[40..48].copy_from_slice(&1_000i64.to_be_bytes());
        bytes[48..56].copy_from_slice(&3_000i64.to_be_bytes());
        socket.send_to(&bytes[..len], from).unwrap();
    }
}

#[test]
fn an_older_peer_has_no_wake_up() {
    let scratch = Scratch::new();
    let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = peer.local_addr().unwrap();
    peer.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let answering = std::thread::spawn(move || answer_as_version_0_2(&peer));
    let record = measure(&scratch, 0, address, "--samples 100 --timeout 10s");
    answering.join().unwrap();
    let (series, round_trip) = round_trips(&record);
    assert!(series.samples > 0);
    assert_eq!(round_trip.parts.peer_wake, None);
    let peer = round_trip.parts.peer.as_ref().unwrap();
    assert_eq!((peer.min_ns, peer.max_ns, peer.histogram.total()), (2_000, 2_000, series.samples));
    let shown = scratch.run("show --full a.punctual.json").expect_status(0).stdout();
    let row = shown.lines().find(|line| line.trim_start().starts_with("peer wake-up")).expect("a row");
    assert!(row.ends_with(" -") && shown.contains("is older"), "{shown}");
}

#[test]
fn a_silent_peer_makes_the_run_invalid_with_a_remedy() {
    let scratch = Scratch::new();
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    let arguments = format!("measure udp {address} --duration 300ms --timeout 200ms --record a --blame=off {POLICIES}");
    let run = scratch.run(&arguments);
    run.expect_status(4);
    assert!(run.stdout().contains("start `punctual echo` there"), "{}", run.stdout());
    let record = scratch.record();
    let (series, round_trip) = round_trips(&record);
    assert_all_slots_counted((series, round_trip));
    assert_eq!((series.samples, series.max_ns, round_trip.lost), (0, None, round_trip.sent));
    assert!(round_trip.sent > 0 && round_trip.lost_in_a_row == round_trip.sent);
    assert_eq!(record.validity.reasons[0].id, "udp.silent");
    assert_eq!(record.verdict.unwrap().outcome, Outcome::Invalid);
    // If no process listens, the machine of the peer reports it.
    drop(silent);
    let record = measure(&scratch, 4, address, "--duration 300ms --timeout 200ms");
    let (series, round_trip) = round_trips(&record);
    assert_all_slots_counted((series, round_trip));
    assert!(round_trip.refused > 0 && record.validity.reasons[0].text.contains("no program listens"), "{round_trip:?}");
}

#[test]
fn a_silent_peer_is_reported_during_the_run() {
    let scratch = Scratch::new();
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let arguments = format!(
        "measure udp {} --endless --period 10ms --timeout 100ms --no-record --blame=off {POLICIES}",
        silent.local_addr().unwrap()
    );
    let mut child = scratch.punctual(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).start();
    let mut stderr = String::new();
    let mut lines = BufReader::new(child.stderr.take().unwrap());
    while !stderr.contains("start `punctual echo` there") {
        assert!(lines.read_line(&mut stderr).unwrap() > 0, "it ended: {stderr}");
    }
    signal(&child, "INT");
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(4));
}

#[test]
fn a_restarted_peer_is_reported() {
    repeat_if_stalled(Stall::Ordinary(Duration::from_millis(50)), restart_the_peer);
}

fn restart_the_peer() {
    let scratch = Scratch::new();
    let peer = Peer::start(&scratch, "127.0.0.1:0");
    let address = peer.address;
    let arguments =
        format!("measure udp {address} --quiet --record a --blame=off --endless --timeout 100ms {POLICIES}");
    let client = scratch.punctual(&arguments).stdout(Stdio::null()).start();
    wait_until("the record exists", || scratch.record_path().exists());
    std::thread::sleep(Duration::from_millis(400));
    peer.end();
    std::thread::sleep(Duration::from_millis(300));
    let peer = Peer::start(&scratch, &address.to_string());
    std::thread::sleep(Duration::from_millis(400));
    signal(&client, "INT");
    assert_eq!(client.wait_with_output().unwrap().status.code(), Some(0));
    peer.end();
    let record = scratch.record();
    let (series, round_trip) = round_trips(&record);
    assert_all_slots_counted((series, round_trip));
    assert_eq!(round_trip.peer_restarts, 1);
    assert!(round_trip.lost > 0 && round_trip.lost_in_a_row > 0 && round_trip.refused > 0, "{round_trip:?}");
    assert!(record.caveats.iter().any(|caveat| caveat.text.contains("the peer restarted")));
}

#[test]
fn invalid_settings_are_refused_before_anything_is_sent() {
    let scratch = Scratch::new();
    let refused = |arguments: &str, status: i32, error: &str| {
        let run = scratch.run(&format!("measure udp --quiet --no-record {arguments}"));
        run.expect_status(status);
        assert!(run.stderr().contains(error), "{arguments}: {}", run.stderr());
    };
    refused("127.0.0.1:0", 64, "1 to 65535");
    refused("127.0.0.1 --size 1473", 64, "use a size of 1472 or less, or set allow-fragments");
    refused("127.0.0.1 --size 55", 64, "must be 56 to 65507 bytes");
    refused("127.0.0.1 --period 9us", 64, "raise max-rate to 111112");
    refused("127.0.0.1 --spin", 64, "receive with the policy other");
    refused("127.0.0.1 --timeout 2m", 64, "at most 1m");
    refused("127.0.0.1 --self", 64, "cannot be used with");
    refused("--self --irq-priority 85", 64, "cannot be used with");
    refused(
        "127.0.0.1 --irq-priority 85",
        1,
        "127.0.0.1 is an address of this machine, so its packets use no network card",
    );
    refused("192.0.2.1 --irq-priority 100", 64, "--irq-priority must be 1 to 99 (got 100)");
    refused("", 64, "HOST");
    refused("no-such-host.invalid", 1, "cannot resolve the host `no-such-host.invalid`");
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let listening = UdpSocket::bind(taken).unwrap();
    let run = scratch.run(&format!("echo --bind {taken} --policy other"));
    run.expect_status(1);
    assert!(run.stderr().contains("choose another address or port with --bind"), "{}", run.stderr());
    drop(listening);
}

#[test]
fn hardware_stamps_are_refused_without_a_network_card() {
    let scratch = Scratch::new();
    let refused = |arguments: &str, status| {
        let run = scratch.run(&format!("measure udp {arguments} --quiet --samples 10 --stamps hardware {POLICIES}"));
        run.expect_status(status).stderr()
    };
    let loopback = refused("127.0.0.1", 1);
    assert!(
        loopback.contains("127.0.0.1 is an address of this machine") && loopback.contains("no network card"),
        "{loopback}"
    );
    let own = refused("--self", 64);
    assert!(own.contains("the veth pair of --self has no hardware timestamps"), "{own}");
}

#[test]
fn a_spinning_receiver_loses_nothing() {
    repeat_if_stalled(NO_RESPONSE, receive_spinning);
}

fn receive_spinning() {
    let scratch = Scratch::new();
    let peer = Peer::start(&scratch, "127.0.0.1:0");
    let record = measure(&scratch, 0, peer.address, "--samples 200 --spin --stamps none --timeout 10s");
    peer.end();
    let (series, round_trip) = round_trips(&record);
    assert_all_slots_counted((series, round_trip));
    assert_eq!((round_trip.wait.as_str(), round_trip.lost), ("spin", 0));
    assert_eq!((&round_trip.parts.stack_in, round_trip.stamp_error_ns), (&None, None));
    assert_ne!(series.raw, Histogram::default());
}
