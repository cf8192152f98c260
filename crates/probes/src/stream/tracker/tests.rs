//! Counting of given frames.

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
pub fn arrival(seq: u64) -> Arrival {
    let stream = Stream {
        source: SOURCE,
        destination: frames::ethernet::multicast_of(SOURCE, 0),
        tci: Class::A.tci(),
        stream_id: frames::stream_id(SOURCE, 0),
        format: Format::Aaf,
        channels: frames::template::STEREO,
        samples: 6,
    };
    let sent_ns = 1_000_000_000 + seq.cast_signed() * PERIOD_NS;
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

fn tracked(expected: Expected, arrivals: impl IntoIterator<Item = Arrival>) -> record::Listener {
    let mut tracker = Tracker::new(expected);
    arrivals.into_iter().for_each(|arrival| tracker.add(&arrival));
    tracker.to_record("eth0", Some(Dropped::InSocket(0)))
}

#[test]
fn another_period_than_the_expected_one_is_known() {
    let found = |period_ns: u64, arrivals: &[Arrival]| {
        let mut tracker = Tracker::new(Expected { period_ns, ..expected() });
        arrivals.iter().for_each(|arrival| tracker.add(arrival));
        tracker.other_period_ns()
    };
    let stream: Vec<Arrival> = (0..1000).map(arrival).collect();
    assert_eq!(found(125_000, &stream), None);
    assert_eq!(found(250_000, &stream), Some(125_000));
    // The median has the resolution of a histogram.
    assert!(found(62_500, &stream).is_some_and(|ns| ns.abs_diff(125_000) < 200), "{:?}", found(62_500, &stream));
    assert_eq!(found(250_000, &stream[..50]), None, "too few");
    // Losses alone, and frames that are read in groups, are not another period.
    let lossy: Vec<Arrival> = (0..1000).filter(|seq| seq % 5 < 3).map(arrival).collect();
    let grouped: Vec<Arrival> =
        (0..1000).map(|seq| Arrival { read_ns: arrival(seq / 8 * 8 + 7).read_ns, ..arrival(seq) }).collect();
    assert_eq!((found(125_000, &lossy), found(125_000, &grouped)), (None, None));
}

#[test]
fn a_perfect_stream_has_no_faults() {
    let result = tracked(expected(), (0..1000).map(arrival));
    let identity = &result.identity;
    assert_eq!((identity.stream_id.as_str(), identity.source.as_str()), ("0200000000010000", "02:00:00:00:00:01"));
    assert_eq!((identity.pcp, identity.vid, identity.frame_bytes), (Some(3), Some(2), 90));
    assert_eq!((result.frames, result.lost, result.duplicates, result.reordered, result.gaps), (1000, 0, 0, 0, 0));
    assert_eq!((result.max_gap_ns, result.max_kernel_gap_ns), (Some(125_000), Some(125_000)));
    assert_eq!((result.window_violations, result.wrong_tag, result.numbers.as_str()), (0, 0, "probe"));
    let one_way = result.one_way.expect("one clock");
    assert_eq!((one_way.late_presentation, one_way.least_slack_ns), (0, Some(1_991_000)));
    assert_eq!((one_way.way.percentile(50.0), one_way.whole.total()), (Some(2_000), 1000));
    let counters = result.counters;
    assert_eq!((counters.frames_rx, counters.seq_num_mismatch, counters.timestamp_valid), (1000, 0, 1000));
    assert_eq!((counters.late_timestamp, counters.early_timestamp), (Some(0), Some(0)));
}

#[test]
fn counts_each_kind_of_fault() {
    let late = |seq, ns| {
        let on_time = arrival(seq);
        Arrival { read_ns: on_time.read_ns + ns, stamp_ns: on_time.stamp_ns.map(|stamp_ns| stamp_ns + ns), ..on_time }
    };
    // A gap of 3 periods before frame 4, which is read after its presentation time, and frame 5 right after it.
    let arrivals = [arrival(0), arrival(1), late(4, 2_500_000), late(5, 2_380_000), late(3, 2_690_000)];
    let result = tracked(expected(), arrivals);
    assert_eq!((result.lost, result.loss_bursts, result.reordered, result.gaps), (1, 1, 1, 1));
    assert_eq!((result.max_gap_ns, result.max_gap_at_ns), (Some(2_875_000), Some(3_000_000)));
    assert_eq!(result.window_violations, 2, "5 us and 60 us after the frame before");
    assert_eq!(result.counters.seq_num_mismatch, 2);
    assert_eq!(result.one_way.map(|one_way| one_way.late_presentation), Some(3));
}

#[test]
fn margins_are_those_on_arrival_without_uncertain_times() {
    // Across a wrap of the 32 bits of presentation times, the margins are the same.
    let wrap_ns = 3 * (1_i64 << 32);
    let moved = |seq: u64| {
        let mut now = arrival(seq);
        let shift_ns = wrap_ns - now.read_ns + i64::try_from(seq).unwrap() * 125_000 - 500_000;
        now.read_ns += shift_ns;
        now.stamp_ns = now.stamp_ns.map(|stamp_ns| stamp_ns + shift_ns);
        let margin_ns = if seq == 5 { -40_000 } else { 1_000_000 };
        now.avtp.timestamp = Some(frames::avtp::presentation(now.stamp_ns.expect("a stamp") + margin_ns));
        // An uncertain time of frame 6 that would be far too late.
        if seq == 6 {
            now.avtp.timestamp = Some(frames::avtp::presentation(now.read_ns - 1_000_000_000));
            now.avtp.timestamp_uncertain = true;
        }
        now
    };
    let margin = tracked(expected(), (0..10).map(moved)).one_way.unwrap().margin.expect("margins");
    assert_eq!((margin.min_ns, margin.max_ns, margin.late), (-40_000, 1_000_000, 1));
    assert!((margin.mean_ns - (8.0 * 1e6 - 40e3) / 9.0).abs() < 1.0, "{}", margin.mean_ns);
    let [late] = &margin.worst[..] else { panic!("{:?}", margin.worst) };
    assert_eq!((late.frame, late.at_ns, late.ns), (6, 625_000, -40_000));
}

#[test]
fn unrelated_clocks_give_no_one_way_times() {
    let result = tracked(Expected { tie: ClockTie::None, whole: false, ..expected() }, (10..20).map(arrival));
    assert_eq!(
        (result.one_way, result.delay_variation, result.counters.late_timestamp, result.lost),
        (None, None, None, 0)
    );
    assert_eq!(result.read_delay.percentile(50.0), Some(7_003), "the upper end of the bucket");
}

#[test]
fn unrelated_clocks_give_the_delay_variation() {
    let mut tracker = Tracker::new(Expected { tie: ClockTie::None, ..expected() });
    // The listener's clock is a day ahead; each fifth frame takes 5 us longer.
    let ahead_ns = 86_400_000_000_000;
    for seq in 0..1000 {
        let now = arrival(seq);
        let longer_ns = ahead_ns + if seq % 5 == 1 { 5_000 } else { 0 };
        let stamp_ns = now.stamp_ns.map(|stamp_ns| stamp_ns + longer_ns);
        tracker.add(&Arrival { read_ns: now.read_ns + longer_ns, stamp_ns, ..now });
    }
    tracker.end();
    let result = tracker.to_record("eth0", None);
    assert_eq!((result.one_way, result.counters.late_timestamp), (None, None));
    let variation = result.delay_variation.expect("our talker");
    for times in [&variation.way, &variation.whole] {
        assert_eq!(times.iter().collect::<Vec<_>>(), [(0, 800), (5_003, 200)], "the upper end of the bucket");
    }
    assert_eq!((variation.drift_ppb, variation.window_ns), (0, 10_000_000_000));
}

#[test]
fn a_drift_of_no_clock_leaves_the_variation_unknown() {
    let variation = |ppm: i64| {
        let mut tracker = Tracker::new(Expected { tie: ClockTie::None, period_ns: 1_000_000, ..expected() });
        for seq in 0..30_000_i64 {
            let now = arrival(0);
            let probe = now.probe.map(|probe| Payload {
                seq: seq.cast_unsigned(),
                sent_ns: 1_000_000_000 + seq * (1_000_000 - ppm),
                ..probe
            });
            tracker.add(&Arrival { read_ns: 1_000_000_000 + seq * 1_000_000, probe, ..now });
        }
        tracker.end();
        let variation = tracker.to_record("eth0", None).delay_variation;
        (variation.map(|variation| variation.drift_ppb / 1_000_000), tracker.impossible_drift_ppb().is_some())
    };
    assert_eq!((variation(100), variation(500_000)), ((Some(0), false), (None, true)));
}

#[test]
fn counts_each_stream_of_the_talker() {
    let of_stream = |unique: u16, seq: u64| {
        let one = arrival(seq);
        Arrival { avtp: Avtp { stream_id: frames::stream_id(SOURCE, unique), ..one.avtp }, ..one }
    };
    let mut tracker = Tracker::new(expected());
    // Stream 1 loses frames 3 and 4, stream 2 gets frame 5 twice and loses its last two, and nothing arrives of stream 3.
    for seq in 0..10 {
        let frames = [(0, true), (2, seq < 8), (1, seq != 3 && seq != 4)].into_iter().filter(|(_, arrives)| *arrives);
        frames.for_each(|(unique, _)| tracker.add(&of_stream(unique, seq)));
        if seq == 5 {
            tracker.add(&of_stream(2, seq));
        }
    }
    let foreign = arrival(3);
    tracker.add(&Arrival { avtp: Avtp { stream_id: 77 << 16, ..foreign.avtp }, ..foreign });
    tracker.end_each_at(&[0, 1, 2, 3].map(|unique| (frames::stream_id(SOURCE, unique), 10)));
    let result = tracker.to_record("eth0", Some(Dropped::InSocket(4)));
    let counts: Vec<_> = result.streams.iter().map(|s| (s.frames, s.lost, s.loss_bursts, s.duplicates)).collect();
    assert_eq!(counts, [(10, 0, 0, 0), (8, 2, 1, 0), (9, 2, 1, 1), (0, 10, 1, 0)]);
    assert_eq!((result.frames, result.lost, result.other_streams), (10, 0, 1), "the figures of the first");
    assert_eq!(result.streams[1].max_gap_ns, Some(375_000));
    assert_eq!(result.lost_in_socket, None, "dropped frames can be of any stream");
    assert_eq!(result.worst_first()[0].stream_id, "0200000000010003");
}

#[test]
fn a_stream_of_several_that_is_silent_for_seconds_is_known() {
    // 8000 frames a second. Stream 1 loses 3 s of frames, which its numbers show.
    let frame = |unique: u16, seq: u64, run: u32| {
        let one = arrival(seq);
        let probe = one.probe.map(|probe| Payload { run, ..probe });
        Arrival { avtp: Avtp { stream_id: frames::stream_id(SOURCE, unique), ..one.avtp }, probe, ..one }
    };
    let silences = |whole: bool, other: &dyn Fn(u64) -> Option<Arrival>| {
        let mut tracker = Tracker::new(Expected { tie: ClockTie::None, whole, ..expected() });
        for seq in 0..80_000 {
            tracker.add(&frame(0, seq, 1));
            let lossy = (!(8_000..32_000).contains(&seq)).then(|| frame(1, seq, 1));
            [lossy, other(seq)].into_iter().flatten().for_each(|arrival| tracker.add(&arrival));
        }
        let listener = tracker.to_record("eth0", None);
        let [_, lossy, other] = &listener.streams[..] else { panic!("{:?}", listener.streams) };
        assert_eq!((lossy.lost, lossy.silence()), (24_000, None));
        let rounded = |ns: u64| ns / 1_000_000_000;
        let figures = [other.began_after_ns, other.ended_before_ns, other.paused_ns].map(rounded);
        (figures, other.restarts, tracker.ended_sibling().is_some())
    };
    assert_eq!(silences(false, &|seq| Some(frame(2, seq, 1))), ([0, 0, 0], 0, false));
    assert_eq!(silences(false, &|seq| (seq < 15_999).then(|| frame(2, seq, 1))), ([0, 8, 0], 0, true));
    assert_eq!(silences(false, &|seq| (seq > 56_001).then(|| frame(2, seq, 1))), ([7, 0, 0], 0, false));
    assert_eq!(silences(false, &|seq| (seq > 7_000).then(|| frame(2, seq, 1))), ([0, 0, 0], 0, false), "0.9 s late");
    let continued = |seq: u64| match seq {
        0..8_000 => Some(frame(2, seq, 1)),
        8_000..48_001 => None,
        _ => {
            let later = frame(2, seq, 1);
            Some(Arrival { probe: later.probe.map(|probe| Payload { seq: seq - 40_001, ..probe }), ..later })
        }
    };
    assert_eq!(silences(false, &continued), ([0, 0, 5], 0, false), "the talker paused");
    let restarted = |seq: u64| (!(8_000..9_000).contains(&seq)).then(|| frame(2, seq, 1 + u32::from(seq > 8_000)));
    assert_eq!(silences(false, &restarted), ([0, 0, 0], 1, false));
    assert_eq!(silences(true, &|seq| (seq < 15_999).then(|| frame(2, seq, 1))), ([0, 0, 0], 0, false), "it reports");
}

#[test]
fn a_followed_stream_that_ends_before_others_is_known() {
    let ends_at = |end: u64| {
        let mut tracker = Tracker::new(Expected { tie: ClockTie::None, whole: false, ..expected() });
        for seq in 0..20_000 {
            let one = arrival(seq);
            let other = Arrival { avtp: Avtp { stream_id: one.avtp.stream_id + 1, ..one.avtp }, ..one };
            [(seq < end).then_some(one), Some(other)].into_iter().flatten().for_each(|frame| tracker.add(&frame));
        }
        tracker.outlived(Duration::from_secs(1))
    };
    assert_eq!([ends_at(20_000), ends_at(13_000), ends_at(11_000)], [None, None, Some(arrival(0).avtp.stream_id)]);
}

#[test]
fn follows_one_stream() {
    let other = |seq| {
        let arrival = arrival(seq);
        Arrival { avtp: Avtp { stream_id: 77, ..arrival.avtp }, ..arrival }
    };
    let first_found = tracked(expected(), [arrival(0), other(1), arrival(1)]);
    assert_eq!((first_found.frames, first_found.other_streams, first_found.lost), (2, 1, 0));
    let requested = tracked(Expected { stream_id: Some(77), ..expected() }, [arrival(0), other(0), other(1)]);
    assert_eq!((requested.frames, requested.other_streams), (2, 1));
    assert_eq!(requested.identity.stream_id, "000000000000004d");
}

#[test]
fn compares_tags_and_headers_with_earlier_frames() {
    let plain = arrival(1);
    let untagged = Arrival { tci: None, ..plain };
    let restarted =
        Arrival { avtp: Avtp { media_restart: true, timestamp_uncertain: true, ..plain.avtp }, ..arrival(2) };
    let vendor = Arrival { avtp: Avtp { subtype: 0x6f, timestamp: None, ..plain.avtp }, probe: None, ..arrival(3) };
    let result = tracked(expected(), [arrival(0), untagged, restarted, vendor]);
    assert_eq!(result.wrong_tag, 1);
    let counters = result.counters;
    assert_eq!((counters.media_reset, counters.timestamp_uncertain), (2, 1));
    assert_eq!((counters.unsupported_format, counters.timestamp_not_valid), (1, 1));
    let tagged_later = tracked(expected(), [Arrival { tci: None, ..arrival(0) }, untagged, arrival(2)]);
    assert_eq!(tagged_later.wrong_tag, 1);
}

#[test]
fn frames_of_a_clock_reference_have_timestamps() {
    let crf =
        |n| Arrival { avtp: Avtp { subtype: CRF, timestamp: None, ..arrival(n).avtp }, probe: None, ..arrival(n) };
    let counters = tracked(expected(), [crf(0), crf(1)]).counters;
    assert_eq!((counters.timestamp_valid, counters.timestamp_not_valid, counters.unsupported_format), (2, 0, 0));
}

#[test]
fn a_jump_of_the_presentation_time_is_found_and_margins_have_a_median() {
    let moved = |seq: u64| {
        let plain = arrival(seq);
        let by_ns = if seq < 500 { 0 } else { 40_000 };
        Arrival {
            avtp: Avtp { timestamp: plain.avtp.timestamp.map(|ns| ns.wrapping_add(by_ns)), ..plain.avtp },
            ..plain
        }
    };
    let result = tracked(expected(), (0..1000).map(moved));
    assert_eq!((result.jumps, result.media_changes.len()), (Some(1), 1), "{:?}", result.media_changes);
    let change = &result.media_changes[0];
    assert_eq!((change.frame, change.jump_ns, change.restarted), (501, Some(40_000), false));
    let margin = result.one_way.unwrap().margin.unwrap();
    let (median_ns, middle_ns) = (margin.median_ns.unwrap(), margin.max_ns - 40_000);
    assert!((middle_ns - middle_ns / 1000..=middle_ns + middle_ns / 1000).contains(&median_ns), "{margin:?}");
    let restarted = |seq| {
        let plain = moved(seq);
        Arrival { probe: plain.probe.map(|probe| Payload { run: if seq < 500 { 1 } else { 2 }, ..probe }), ..plain }
    };
    let result = tracked(Expected { whole: false, ..expected() }, (0..1000).map(restarted));
    assert_eq!((result.jumps, result.media_changes), (Some(0), Vec::new()), "the talker restarted");
}

#[test]
fn a_restarted_talker_loses_no_frames() {
    let restarted = |seq| {
        let arrival = arrival(seq);
        Arrival { probe: arrival.probe.map(|probe| Payload { run: 2, seq: seq - 100, ..probe }), ..arrival }
    };
    let result = tracked(
        Expected { tie: ClockTie::None, whole: false, ..expected() },
        (50..100).map(arrival).chain((100..150).map(restarted)),
    );
    assert_eq!((result.frames, result.lost, result.strays, result.duplicates), (100, 0, 0, 0));
}

#[test]
fn another_talker_that_takes_over_a_stream_loses_no_frames() {
    // The second talker has another number, and is ours or not, as the first one.
    for (ours, ours_then, number) in
        [(false, false, 33), (false, false, 200), (false, false, 100), (true, false, 33), (false, true, 7)]
    {
        let by = |seq: u64| {
            let is_second = seq >= 500;
            let one = arrival(seq);
            let is_ours = if is_second { ours_then } else { ours };
            let probe = one.probe.filter(|_| is_ours).map(|probe| Payload { run: 1 + u32::from(is_second), ..probe });
            let sequence = one.avtp.sequence.wrapping_add(if is_second { number } else { 0 });
            let source = [2, 0, 0, 0, 0, 1 + u8::from(is_second)];
            Arrival { source, probe, avtp: Avtp { sequence, ..one.avtp }, ..one }
        };
        let listens = Expected { tie: ClockTie::None, whole: false, ..expected() };
        let mut tracker = Tracker::new(listens);
        (0..1_000).for_each(|seq| tracker.add(&by(seq)));
        let result = tracker.to_record("eth0", None);
        let counts = (result.frames, result.lost, result.strays, result.duplicates, tracker.restarts());
        assert_eq!(counts, (1_000, 0, 0, 0, 1), "{ours} {ours_then} {number}");
        let sources = tracker.successive_sources().unwrap();
        assert_eq!(sources.iter().map(|source| source.frames).collect::<Vec<_>>(), [500, 500]);
        // The same as another stream of the talker.
        let mut tracker = Tracker::new(Expected { stream_id: Some(frames::stream_id(SOURCE, 9)), ..listens });
        (0..1_000).for_each(|seq| tracker.add(&by(seq)));
        let Sibling { restarts, numbers, .. } = &tracker.siblings[0];
        assert_eq!((*restarts, numbers.lost, numbers.strays), (1, 0, 0), "{ours} {ours_then} {number}");
    }
    let continues = |seq| Arrival { source: [2, 0, 0, 0, 0, 1 + u8::from(seq >= 500)], probe: None, ..arrival(seq) };
    let mut tracker = Tracker::new(Expected { whole: false, ..expected() });
    (0..1_000).for_each(|seq| tracker.add(&continues(seq)));
    assert_eq!((tracker.restarts(), tracker.numbers.lost), (0, 0), "it continues the numbers");
}

#[test]
fn attributes_losses_to_drops_on_this_machine() {
    let mut tracker = Tracker::new(expected());
    [0, 1, 6].into_iter().for_each(|seq| tracker.add(&arrival(seq)));
    tracker.end_at(10);
    let lost = |tracker: &Tracker, dropped| {
        let result = tracker.to_record("eth0", dropped);
        (result.lost, result.lost_in_socket, result.lost_in_ring)
    };
    let (in_socket, in_ring) = (Some(Dropped::InSocket(3)), Some(Dropped::InRing(3)));
    assert_eq!(lost(&tracker, in_socket), (7, Some(3), None));
    assert_eq!(lost(&tracker, in_ring), (7, None, Some(3)));
    assert_eq!(
        lost(&tracker, Some(Dropped::InRing(8))),
        (7, None, Some(7)),
        "some dropped frames do not count as lost yet"
    );
    assert_eq!(lost(&tracker, None), (7, None, None));
    let other = Arrival { avtp: Avtp { stream_id: 77, ..arrival(9).avtp }, ..arrival(9) };
    tracker.add(&other);
    assert_eq!(lost(&tracker, in_socket), (7, None, None), "the dropped frames may be of the other stream");
    assert_eq!(lost(&tracker, Some(Dropped::InRing(0))), (7, None, Some(0)));
}

#[test]
fn talkers_that_send_one_stream_at_the_same_time_are_named() {
    let by = |seq: u64, source: u8, run: u32| {
        let arrival = arrival(seq);
        let probe = arrival.probe.map(|probe| Payload { run, ..probe });
        Arrival { source: [2, 0, 0, 0, 0, source], probe, ..arrival }
    };
    let mixed = |arrivals: Vec<Arrival>| {
        let mut tracker = Tracker::new(expected());
        arrivals.iter().for_each(|arrival| tracker.add(arrival));
        tracker.mixed_sources().map(|sources| sources.iter().map(|source| (source.address[5], source.frames)).collect())
    };
    let both = |second: (u8, u32)| (0..50).flat_map(|seq| [by(seq, 1, 1), by(seq, second.0, second.1)]).collect();
    assert_eq!(mixed(both((2, 7))), Some(vec![(1, 50), (2, 50)]));
    assert_eq!(mixed(both((1, 7))), Some(vec![(1, 50), (1, 50)]), "two talkers on one interface");
    assert_eq!(mixed(both((1, 1))), None, "each frame arrives twice");
    let restarts = (0..50).map(|seq| by(seq, 1 + u8::from(seq > 25), 1 + u32::from(seq > 25)));
    assert_eq!(mixed(restarts.collect()), None, "another talker continues");
}

#[test]
fn streams_that_arrive_instead_of_the_wanted_one_are_known() {
    let id = frames::stream_id(SOURCE, 0);
    let others = |wanted| {
        let mut tracker = Tracker::new(Expected { stream_id: Some(wanted), ..expected() });
        (0..5).for_each(|seq| tracker.add(&arrival(seq)));
        (tracker.frames(), tracker.others().collect::<Vec<_>>())
    };
    assert_eq!(others(id), (5, vec![]));
    assert_eq!(others(id + 1), (0, vec![(id, 5)]), "of the same talker");
    assert_eq!(others(id + (1 << 16)), (0, vec![(id, 5)]), "of another talker");
}
