//! Frames as they might have come, and what they tell.

use frames::{Class, Stream, parse};

use super::*;

const PERIOD_NS: i64 = 125_000;
const SOURCE: Mac = [2, 0, 0, 0, 0, 1];

fn expected() -> Expected {
    Expected {
        stream_id: None,
        period_ns: PERIOD_NS as u64,
        transit_ns: 2_000_000,
        tie: ClockTie::SameHost,
        whole: true,
    }
}

/// Frame `seq`, sent on time, stamped 2 us later and read 7 us after that.
fn arrival(seq: u64) -> Arrival {
    let stream = Stream {
        source: SOURCE,
        destination: frames::ethernet::multicast_of(SOURCE, 0),
        tci: Class::A.tci(),
        stream_id: frames::stream_id(SOURCE, 0),
        format: Format::Aaf,
        samples: 6,
    };
    let sent_ns = 1_000_000_000 + seq as i64 * PERIOD_NS;
    let mut frame = stream.frame();
    frame.patch(&Payload { run: 1, seq, scheduled_ns: sent_ns, woke_ns: sent_ns, sent_ns }, 2_000_000);
    let parsed = parse(frame.bytes()).expect("a frame");
    Arrival {
        read_ns: sent_ns + 9_000,
        stamp_ns: Some(sent_ns + 2_000),
        length: frame.bytes().len(),
        source: parsed.source,
        destination: parsed.destination,
        tci: parsed.vlan,
        avtp: parsed.avtp.expect("a packet"),
        probe: Some(Payload { sent_ns, ..parsed.probe.expect("our payload") }),
    }
}

fn told(expected: Expected, arrivals: impl IntoIterator<Item = Arrival>) -> record::Listener {
    let mut tracker = Tracker::new(expected);
    arrivals.into_iter().for_each(|arrival| tracker.take_in(&arrival));
    tracker.told("eth0", Some(Dropped::InSocket(0)))
}

#[test]
fn a_stream_without_a_fault_tells_none() {
    let told = told(expected(), (0..1000).map(arrival));
    let identity = &told.identity;
    assert_eq!((identity.stream_id.as_str(), identity.source.as_str()), ("0200000000010000", "02:00:00:00:00:01"));
    assert_eq!((identity.pcp, identity.vid, identity.frame_bytes), (Some(3), Some(2), 90));
    assert_eq!((told.frames, told.lost, told.duplicates, told.reordered, told.gaps), (1000, 0, 0, 0, 0));
    assert_eq!((told.max_gap_ns, told.max_kernel_gap_ns), (Some(125_000), Some(125_000)));
    assert_eq!((told.window_violations, told.wrong_tag, told.numbers.as_str()), (0, 0, "probe"));
    let one_way = told.one_way.expect("one clock");
    assert_eq!((one_way.late_presentation, one_way.least_slack_ns), (0, Some(1_991_000)));
    assert_eq!((one_way.way.percentile(50.0), one_way.whole.total()), (Some(2_000), 1000));
    let counters = told.counters;
    assert_eq!((counters.frames_rx, counters.seq_num_mismatch, counters.timestamp_valid), (1000, 0, 1000));
    assert_eq!((counters.late_timestamp, counters.early_timestamp), (Some(0), Some(0)));
}

#[test]
fn each_fault_is_told_as_what_it_is() {
    let late = |seq, ns| {
        let on_time = arrival(seq);
        Arrival { read_ns: on_time.read_ns + ns, stamp_ns: on_time.stamp_ns.map(|stamp_ns| stamp_ns + ns), ..on_time }
    };
    // A gap of 3 periods before frame 4, which is read after its presentation time; frame 5 on its heels.
    let arrivals = [arrival(0), arrival(1), late(4, 2_500_000), late(5, 2_380_000), late(3, 2_690_000)];
    let told = told(expected(), arrivals);
    assert_eq!((told.lost, told.loss_bursts, told.reordered, told.gaps), (1, 1, 1, 1));
    assert_eq!((told.max_gap_ns, told.max_gap_at_ns), (Some(2_875_000), Some(3_000_000)));
    assert_eq!(told.window_violations, 2, "5 us after the one before, and 60 us");
    assert_eq!(told.counters.seq_num_mismatch, 2);
    assert_eq!(told.one_way.map(|one_way| one_way.late_presentation), Some(3));
}

#[test]
fn another_clock_tells_no_one_way_figures() {
    let told = told(Expected { tie: ClockTie::None, whole: false, ..expected() }, (10..20).map(arrival));
    assert_eq!((told.one_way, told.delay_variation, told.counters.late_timestamp, told.lost), (None, None, None, 0));
    assert_eq!(told.read_delay.percentile(50.0), Some(7_003), "the end of its bucket");
}

#[test]
fn two_clocks_tell_how_much_longer_than_the_quickest() {
    let mut tracker = Tracker::new(Expected { tie: ClockTie::None, ..expected() });
    // The listener's clock is a day ahead; each fifth frame is 5 us longer under way.
    let ahead_ns = 86_400_000_000_000;
    for seq in 0..1000 {
        let now = arrival(seq);
        let longer_ns = ahead_ns + if seq % 5 == 1 { 5_000 } else { 0 };
        let stamp_ns = now.stamp_ns.map(|stamp_ns| stamp_ns + longer_ns);
        tracker.take_in(&Arrival { read_ns: now.read_ns + longer_ns, stamp_ns, ..now });
    }
    tracker.end();
    let told = tracker.told("eth0", None);
    assert_eq!((told.one_way, told.counters.late_timestamp), (None, None));
    let variation = told.delay_variation.expect("our talker");
    for times in [&variation.way, &variation.whole] {
        assert_eq!(times.iter().collect::<Vec<_>>(), [(0, 800), (5_003, 200)], "the end of its bucket");
    }
    assert_eq!((variation.drift_ppb, variation.window_ns), (0, 10_000_000_000));
}

#[test]
fn one_stream_is_followed() {
    let other = |seq| {
        let arrival = arrival(seq);
        Arrival { avtp: Avtp { stream_id: 77, ..arrival.avtp }, ..arrival }
    };
    let first_found = told(expected(), [arrival(0), other(1), arrival(1)]);
    assert_eq!((first_found.frames, first_found.other_streams, first_found.lost), (2, 1, 0));
    let asked = told(Expected { stream_id: Some(77), ..expected() }, [arrival(0), other(0), other(1)]);
    assert_eq!((asked.frames, asked.other_streams), (2, 1));
    assert_eq!(asked.identity.stream_id, "000000000000004d");
}

#[test]
fn tags_and_headers_are_held_to_what_they_were() {
    let plain = arrival(1);
    let untagged = Arrival { tci: None, ..plain };
    let restarted =
        Arrival { avtp: Avtp { media_restart: true, timestamp_uncertain: true, ..plain.avtp }, ..arrival(2) };
    let vendor = Arrival { avtp: Avtp { subtype: 0x6f, timestamp: None, ..plain.avtp }, probe: None, ..arrival(3) };
    let told = told(expected(), [arrival(0), untagged, restarted, vendor]);
    assert_eq!(told.wrong_tag, 1);
    let counters = told.counters;
    assert_eq!((counters.media_reset, counters.timestamp_uncertain), (2, 1));
    assert_eq!((counters.unsupported_format, counters.timestamp_not_valid), (1, 1));
}

#[test]
fn a_talker_that_begins_anew_has_lost_nothing() {
    let anew = |seq| {
        let arrival = arrival(seq);
        Arrival { probe: arrival.probe.map(|probe| Payload { run: 2, seq: seq - 100, ..probe }), ..arrival }
    };
    let told = told(
        Expected { tie: ClockTie::None, whole: false, ..expected() },
        (50..100).map(arrival).chain((100..150).map(anew)),
    );
    assert_eq!((told.frames, told.lost, told.strays, told.duplicates), (100, 0, 0, 0));
}

#[test]
fn losses_are_this_machines_as_far_as_it_dropped() {
    let mut tracker = Tracker::new(expected());
    [0, 1, 6].into_iter().for_each(|seq| tracker.take_in(&arrival(seq)));
    tracker.end_at(10);
    let lost = |tracker: &Tracker, dropped| {
        let told = tracker.told("eth0", dropped);
        (told.lost, told.lost_in_socket, told.lost_in_ring)
    };
    let (in_socket, in_ring) = (Some(Dropped::InSocket(3)), Some(Dropped::InRing(3)));
    assert_eq!(lost(&tracker, in_socket), (7, Some(3), None));
    assert_eq!(lost(&tracker, in_ring), (7, None, Some(3)));
    assert_eq!(lost(&tracker, Some(Dropped::InRing(8))), (7, None, Some(7)), "those are not lost by number yet");
    assert_eq!(lost(&tracker, None), (7, None, None));
    let other = Arrival { avtp: Avtp { stream_id: 77, ..arrival(9).avtp }, ..arrival(9) };
    tracker.take_in(&other);
    assert_eq!(lost(&tracker, in_socket), (7, None, None), "whose frames they were is not known");
    assert_eq!(lost(&tracker, Some(Dropped::InRing(0))), (7, None, Some(0)));
}
