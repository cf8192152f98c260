//! Simulated faults must be found exactly, and none in a fault-free capture.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod support;

use capture::{Analysis, CaptureError, Filter, Options, analyse};
use record::{Capture, NumberedBy, PeriodSource};
use support::{BIG, ByteOrder, LITTLE, OPTIONS, Pcapng, Seen, Talker, pcap, scatter};

fn analysed(file: &[u8], options: &Options) -> Result<Analysis, CaptureError> {
    analyse(|| Ok(file), "test", options)
}

fn of(frames: &[Seen]) -> Analysis {
    analysed(&pcap(LITTLE, true, 1, frames), &OPTIONS).unwrap()
}

fn kinds(analysis: &Analysis) -> Vec<&str> {
    analysis.caveats.iter().map(|caveat| caveat.kind.as_str()).collect()
}

/// Asserts that the stream has no faults.
#[track_caller]
fn assert_clean(capture: &Capture) {
    let Capture { late, missed_slots, skipped_slots, lost, losses, duplicates, reordered, too_late, restarts, .. } =
        capture;
    let counts = [late, missed_slots, skipped_slots, lost, losses, duplicates, reordered, too_late, restarts];
    assert_eq!(counts, [&Some(0); 9], "late, missed, skipped, lost, losses, duplicates, reordered, too late, restarts");
    assert_eq!((capture.bursts, capture.out_of_order, capture.window_violations), (Some(0), 0, Some(0)));
    assert_eq!(capture.dropped, None, "the file has no statistics");
    assert_eq!(capture.shaper.as_ref().unwrap().violations, 0);
}

#[test]
fn finds_nothing_in_a_clean_capture() {
    let found = of(&Talker::new(1).steady(10_000));
    let capture = &found.capture;
    assert_clean(capture);
    assert_eq!(kinds(&found), [""; 0]);
    assert_eq!((capture.frames, capture.file_frames, capture.streams.len()), (10_000, 10_000, 1));
    assert_eq!((capture.period.nominal_ns, capture.period.told_by), (125_000, PeriodSource::ClassA));
    assert!(capture.period.clock_ppm.unwrap().abs() < 0.5, "{:?}", capture.period);
    assert_eq!((capture.numbered_by, capture.resolution_ns), (NumberedBy::Talker, 1));
    assert!((124_800..=125_200).contains(&capture.max_gap_ns.unwrap()));
    assert!(found.series.max_ns.unwrap() <= 250 && found.series.min_ns.unwrap() >= -250, "{:?}", found.series.max_ns);
    assert_eq!((found.series.samples, found.series.raw.total()), (10_000, 10_000));
    // 114 bytes on the wire every 125 us.
    assert_eq!(capture.shaper.as_ref().unwrap().idle_slope_bps, 7_296_000);
}

#[test]
fn each_stream_can_have_a_period_of_its_own() {
    let file = pcap(LITTLE, true, 1, &Talker::new(1).steady(10_000));
    let options = |of_stream: u64| {
        let stream_periods_ns = vec![(7, 4_000_000), (of_stream, 125_000)];
        Options { period_ns: Some(1_000_000), stream_periods_ns, ..OPTIONS }
    };
    let own = analysed(&file, &options(support::stream(1).stream_id)).unwrap().capture;
    assert_clean(&own);
    assert_eq!((own.period.nominal_ns, own.period.told_by), (125_000, PeriodSource::Asked));
    let other = analysed(&file, &options(support::stream(2).stream_id)).unwrap().capture;
    assert_ne!(other.period.nominal_ns, 125_000, "the period of another stream does not apply");
}

#[test]
fn finds_late_frames() {
    let mut talker = Talker::new(1);
    let mut frames = talker.steady(20_000);
    let base = |n: u64| n.cast_signed() * 125_000;
    frames[4_000] = talker.seen(4_000, base(4_000) + 9_000);
    frames[7_000] = talker.seen(7_000, base(7_000) + 100_000);
    // Delayed by 6 slots, then sent in one burst.
    for (n, frame) in (0..6).zip(&mut frames[12_000..]) {
        *frame = talker.seen(12_000 + n, base(12_005) + 1_000 * n.cast_signed() + 500);
    }
    let found = of(&frames);
    let capture = &found.capture;
    assert_eq!(
        (capture.late.unwrap(), capture.missed_slots.unwrap(), capture.skipped_slots.unwrap(), capture.lost.unwrap()),
        (8, 5, 0, 0)
    );
    let latest = &capture.worst_late[0];
    assert_eq!(latest.frame, 12_001);
    assert!((latest.ns - 625_500).abs() <= 250, "{latest:?}");
    assert!((found.series.max_ns.unwrap() - 625_500).abs() <= 250);
    let single: Vec<_> = capture.worst_late.iter().filter(|late| [4_001, 7_001].contains(&late.frame)).collect();
    assert!((single[0].ns - 100_000).abs() <= 250 && (single[1].ns - 9_000).abs() <= 250, "{single:?}");
    assert_eq!(capture.worst_gaps[0].frame, 12_001);
    assert!((capture.max_gap_ns.unwrap() - 750_500).abs() <= 250);
    assert_eq!(capture.max_gap_ns, Some(capture.worst_gaps[0].ns));
    assert!((capture.max_deviation_ns.unwrap().cast_signed() - 625_500).abs() <= 250);
    // The burst of six, and the frame that follows the late frame 7000 by only 25 us.
    assert_eq!((capture.bursts, capture.longest_burst), (Some(2), 6));
    assert!(capture.shaper.as_ref().unwrap().violations >= 6);
    assert_eq!(found.series.spikes_total, 8);
}

#[test]
fn fits_the_grid_of_a_stream_with_many_stalls() {
    let mut talker = Talker::new(1);
    let mut frames = talker.steady(20_000);
    let mut late = 0;
    for stall in (100_u32..19_900).step_by(130) {
        // Delayed by 35 slots, then sent 5 us apart until the schedule is reached again.
        for n in 0..37 {
            let (slot, released) =
                (i64::from(stall + n) * 125_000, i64::from(stall + 35) * 125_000 + 40_000 + i64::from(n) * 5_000);
            if released > slot {
                frames[(stall + n) as usize] = talker.seen(u64::from(stall + n), released);
                late += 1;
            }
        }
    }
    let found = of(&frames);
    let capture = &found.capture;
    assert_eq!((capture.late.unwrap(), capture.skipped_slots.unwrap(), capture.lost.unwrap()), (late, 0, 0));
    assert!((found.series.max_ns.unwrap() - (35 * 125_000 + 40_000)).abs() < 400, "{:?}", found.series.max_ns);
    assert!(capture.period.clock_ppm.unwrap().abs() < 0.5, "{:?}", capture.period);
}

/// The nearest whole number of nanoseconds.
#[expect(clippy::cast_possible_truncation, reason = "the times of the test captures are far below 2^63 ns")]
fn rounded(ns: f64) -> i64 {
    ns.round() as i64
}

#[test]
fn clock_offset_is_a_ratio_and_not_lateness() {
    for ppm in [-180.0f64, -37.0, 3.5, 92.0] {
        let mut talker = Talker::new(1);
        let at = |n: u64| rounded(n as f64 * 125_000.0 * (1.0 + ppm * 1e-6)) + scatter(n);
        let frames: Vec<_> = (0..40_000).map(|n| talker.seen(n, at(n))).collect();
        let found = of(&frames);
        assert_clean(&found.capture);
        assert!((found.capture.period.clock_ppm.unwrap() - ppm).abs() < 0.2, "{ppm}: {:?}", found.capture.period);
        assert!(found.capture.period.clock_error_ppm.unwrap() < 0.2);
        assert!(found.series.max_ns.unwrap() < 300);
    }
}

#[test]
fn counts_losses_without_lateness() {
    for talker in [Talker::new, Talker::plain] {
        for lost in [1, 2, 63, 64, 65, 191, 192, 255, 256, 257, 300, 512, 1000] {
            let frames: Vec<_> = talker(1).steady(12_000);
            let frames = [&frames[..3_000], &frames[3_000 + lost..9_000], &frames[9_001..]].concat();
            let found = of(&frames);
            let capture = &found.capture;
            let counts = (capture.lost.unwrap(), capture.losses.unwrap(), capture.longest_loss.unwrap());
            assert_eq!(counts, (lost as u64 + 1, 2, lost as u64), "{:?}", capture.numbered_by);
            let (late, doubled) = (
                capture.late.unwrap() + capture.skipped_slots.unwrap(),
                capture.duplicates.unwrap() + capture.reordered.unwrap(),
            );
            assert_eq!((late, doubled, capture.too_late.unwrap()), (0, 0, 0), "{lost}");
        }
    }
}

#[test]
fn duplicates_and_reordering_are_not_losses() {
    for talker in [Talker::new, Talker::plain] {
        let mut frames = talker(1).steady(10_000);
        let again = Seen { at_ns: frames[100].at_ns + 2_000, ..frames[100].clone() };
        frames.insert(101, again);
        // Frame 5000 arrives three positions later; frames 6000 and 6001 are swapped.
        let mut delayed = frames.remove(5_001);
        delayed.at_ns = frames[5_003].at_ns + 700;
        frames.insert(5_004, delayed);
        let (a, b) = (frames[6_001].bytes.clone(), frames[6_002].bytes.clone());
        (frames[6_001].bytes, frames[6_002].bytes) = (b, a);
        let found = of(&frames);
        let capture = &found.capture;
        let counts =
            (capture.lost.unwrap(), capture.duplicates.unwrap(), capture.reordered.unwrap(), capture.too_late.unwrap());
        assert_eq!(counts, (0, 1, 2, 0), "{:?}", capture.numbered_by);
        assert_eq!(capture.frames, 10_001);
        // The delayed frame and the overtaken one are late.
        assert_eq!((capture.late.unwrap(), found.series.samples), (2, 10_000));
    }
}

#[test]
fn skipped_slots_are_not_late_frames() {
    let mut talker = Talker::new(1);
    let slot = |n: u64| n.cast_signed() + i64::from(n >= 5_000) * 3 + i64::from(n >= 9_000);
    let frames: Vec<_> = (0..15_000).map(|n| talker.seen(n, slot(n) * 125_000 + scatter(n))).collect();
    let found = of(&frames);
    let capture = &found.capture;
    assert_eq!((capture.skipped_slots.unwrap(), capture.late.unwrap(), capture.lost.unwrap()), (4, 0, 0));
    assert_eq!(found.series.missed, 4);
}

#[test]
fn detects_coarse_time_stamps() {
    let mut talker = Talker::new(1);
    let frames: Vec<_> = (0..10_000).map(|n| talker.seen(n, n.cast_signed() * 125_003 + scatter(n))).collect();
    let microseconds = analysed(&pcap(LITTLE, false, 1, &frames), &OPTIONS).unwrap();
    assert_eq!((microseconds.capture.resolution_ns, kinds(&microseconds)), (1_000, vec!["resolution"]));
    assert_clean(&microseconds.capture);
    let coarse: Vec<_> = frames.iter().map(|seen| Seen { at_ns: seen.at_ns / 1000 * 1000, ..seen.clone() }).collect();
    let found = of(&coarse);
    assert_eq!((found.capture.resolution_ns, kinds(&found)), (1_000, vec!["resolution"]));
    assert!(found.caveats[0].text.contains("claims 1 ns"), "{:?}", found.caveats);
    assert_clean(&found.capture);
    let eight: Vec<_> = frames.iter().map(|seen| Seen { at_ns: seen.at_ns / 8 * 8, ..seen.clone() }).collect();
    assert_eq!(of(&eight).capture.resolution_ns, 8);
    let tick: Vec<_> =
        frames.iter().map(|seen| Seen { at_ns: seen.at_ns / 4_000_000 * 4_000_000, ..seen.clone() }).collect();
    assert_eq!(of(&tick).capture.resolution_ns, 4_000_000);
}

#[test]
fn all_formats_give_the_same_figures() {
    let frames = Talker::new(1).steady(3_000);
    let expected = of(&frames);
    let same = |file: &[u8]| {
        let found = analysed(file, &OPTIONS).unwrap();
        let without_format = |capture: &Capture| Capture { format: String::new(), ..capture.clone() };
        assert_eq!(without_format(&found.capture), without_format(&expected.capture));
        assert_eq!(found.series, expected.series);
    };
    same(&pcap(BIG, true, 1, &frames));
    for order in [LITTLE, BIG] {
        for (tsresol, offset_s) in
            [(9, 0), (9, 1_700_000_000), (9, -5), (12, 1_789_999_000), (0x80 | 40, 1_789_999_999)]
        {
            let mut file = Pcapng::new(order);
            file.interface(1, Some(tsresol), offset_s).block(0x0bad, &[1, 2, 3]);
            frames.iter().for_each(|seen| {
                file.packet(seen);
            });
            if tsresol & 0x80 == 0 {
                same(&file.bytes);
            } else {
                // A resolution of 2^-40 s cannot represent each ns.
                assert_clean(&analysed(&file.bytes, &OPTIONS).unwrap().capture);
            }
        }
    }
}

#[test]
fn a_section_continues_the_interfaces_of_the_one_before() {
    let (mut a, mut b) = (Talker::new(1), Talker::new(1));
    b.interface = 1;
    let (a, mut b) = (a.steady(4_000), b.steady(4_000));
    // Microseconds would show regular frames without jitter.
    b.iter_mut().zip(0..).for_each(|(seen, n)| seen.at_ns += scatter(n).unsigned_abs() * 10);
    let mut file = Pcapng::new(LITTLE);
    file.interface(1, Some(9), 0).interface(1, None, 3).statistics(1, 4).statistics(1, 17);
    for (n, second) in b.iter().enumerate() {
        a.get(n).filter(|_| n < 3_000).map(|seen| file.packet(seen));
        file.packet(second);
    }
    file.simple(&a[0].bytes).section(BIG).interface(1, Some(9), 0).interface(1, Some(9), 7);
    a[3_000..].iter().for_each(|seen| {
        file.packet(seen);
    });
    // Another clock is another interface.
    file.packet(&Seen { interface: 1, ..a[0].clone() });
    let found = analysed(&file.bytes, &OPTIONS).unwrap();
    let streams: Vec<_> = found.capture.streams.iter().map(|stream| (stream.interface, stream.frames)).collect();
    assert_eq!(streams, [(0, 4_001), (1, 4_000), (2, 1)]);
    let second = Options { filter: Filter { interface: Some(1), ..Filter::default() }, ..OPTIONS };
    let found = analysed(&file.bytes, &second).unwrap();
    assert_eq!((found.capture.dropped, found.capture.resolution_ns, found.capture.frames), (Some(17), 1_000, 4_000));
    assert_eq!(kinds(&found), ["lost", "resolution"]);
    let first = Options { filter: Filter { interface: Some(0), ..Filter::default() }, ..OPTIONS };
    let found = analysed(&file.bytes, &first).unwrap();
    assert_eq!((found.capture.frames, found.capture.file_frames, kinds(&found)), (4_000, 8_002, vec!["stamps"]));
    assert_clean(&found.capture);
}

#[test]
fn drops_are_counted_in_packets_and_kept_after_statistics_without_them() {
    let frames = Talker::new(1).steady(3_000);
    let dropped = |between: u64, counted: u64| {
        let mut file = Pcapng::new(LITTLE);
        file.interface(1, Some(9), 0);
        for (n, seen) in frames.iter().enumerate() {
            match n {
                1_000..1_010 => &mut file,
                1_010 if between > 0 => file.packet_after_drops(seen, between),
                _ => file.packet(seen),
            };
        }
        if counted > 0 {
            file.statistics(0, counted).empty_statistics(0);
        }
        analysed(&file.bytes, &OPTIONS).unwrap().capture.dropped
    };
    assert_eq!([dropped(0, 0), dropped(10, 0), dropped(0, 10), dropped(10, 12)], [None, Some(10), Some(10), Some(12)]);
}

#[test]
fn selects_streams_by_filter() {
    let (mut a, mut b) = (Talker::new(1), Talker::plain(2));
    let (few, many) = (a.steady(3_000), b.steady(5_000));
    let mut frames: Vec<_> = few.into_iter().chain(many).collect();
    frames.extend((0..500u64).map(|n| udp(n, 5_000 + (n % 2) as u16)));
    frames.sort_by_key(|seen| seen.at_ns);
    let select = |filter: Filter| {
        analysed(&pcap(LITTLE, true, 1, &frames), &Options { filter, ..OPTIONS }).map(|found| found.capture)
    };
    let busiest = select(Filter::default()).unwrap();
    assert_clean(&busiest);
    assert_eq!((busiest.frames, busiest.streams.len(), busiest.numbered_by), (5_000, 4, NumberedBy::Avtp));
    let wanted = support::stream(1);
    for filter in [
        Filter { stream: Some(wanted.stream_id), ..Filter::default() },
        Filter { source: Some(wanted.source), ..Filter::default() },
        Filter { destination: Some(wanted.destination), vlan: Some(2), ..Filter::default() },
        Filter { ethertype: Some(0x22f0), source: Some(wanted.source), ..Filter::default() },
    ] {
        let found = select(filter).unwrap();
        assert_eq!(found.frames, 3_000);
        assert_clean(&found);
    }
    let found = select(Filter { udp: Some(5_001), ..Filter::default() }).unwrap();
    assert_eq!(
        (found.frames, found.numbered_by, found.period.told_by),
        (250, NumberedBy::Nothing, PeriodSource::Median)
    );
    let error = select(Filter { stream: Some(9), ..Filter::default() }).unwrap_err().to_string();
    assert_eq!(
        error,
        "no stream found for stream 00:00:00:00:00:00:0009; other frames: 5,000 of stream 30:64:3e:54:ee:02:0002, 3,000 of \
         stream 30:64:3e:54:ee:01:0001, 500 of EtherType 0x0800"
    );
    let error = select(Filter { vlan: Some(9), ..Filter::default() }).unwrap_err().to_string();
    assert_eq!(
        error,
        "no stream found for frames on VLAN 9; other frames: 8,000 of EtherType 0x22f0, 500 of EtherType 0x0800"
    );
}

#[test]
fn a_stream_that_ends_before_the_capture_is_named() {
    let of = |others: u64, interface: u32| {
        let mut frames = Talker::new(1).steady(3_000);
        frames.extend((0..others).map(|n| Seen { interface, ..udp(n, 5_000) }));
        frames.sort_by_key(|seen| seen.at_ns);
        let mut file = Pcapng::new(LITTLE);
        file.interface(1, Some(9), 0).interface(1, Some(9), 0);
        frames.iter().for_each(|seen| {
            file.packet(seen);
        });
        kinds(&analysed(&file.bytes, &OPTIONS).unwrap()).contains(&"ended")
    };
    // The stream takes 375 ms, and one of the others each 500 us.
    assert_eq!([750, 752, 1_000].map(|others| of(others, 0)), [false, true, true]);
    assert_eq!([750, 900, 1_000].map(|others| of(others, 1)), [false, false, true]);
}

/// However few frames another interface has after the stream, they show that the capture went on, if its clock says so, too.
#[test]
fn few_frames_of_another_interface_show_the_end_of_a_stream() {
    // The other interface has a frame each second, and its clock is so far ahead.
    let ended_s = |last_s: u64, ahead_ns: i64| {
        let mut frames = Talker::new(1).steady(40_000);
        let other =
            |n: u64| Seen { interface: 1, ..support::datagram(n.cast_signed() * 1_000_000_000 + 33_000, 5_000) };
        frames.extend((0..=last_s).map(other));
        let mut frames = support::sorted(frames);
        let mut file = Pcapng::new(LITTLE);
        file.interface(1, Some(9), 0).interface(1, Some(9), 0);
        for seen in &mut frames {
            let ahead_ns = if seen.interface == 1 { ahead_ns } else { 0 };
            file.packet(&Seen { at_ns: seen.at_ns.wrapping_add_signed(ahead_ns), ..seen.clone() });
        }
        analysed(&file.bytes, &OPTIONS).unwrap().capture.ended_before_ns / 1_000_000_000
    };
    // The stream takes 5 s.
    for ahead_ns in [0, 500_000_000, 3_600_000_000_000, -3_600_000_000_000] {
        assert_eq!([4, 7, 12, 35].map(|last_s| ended_s(last_s, ahead_ns)), [0, 2, 7, 30], "{ahead_ns}");
    }
}

/// A datagram every 500 us.
fn udp(n: u64, port: u16) -> Seen {
    support::datagram(n.cast_signed() * 500_000 + scatter(n), port)
}

/// A router, or a multicast address of Ethernet that several groups share, gives two streams the same Ethernet addresses.
#[test]
fn datagrams_to_two_addresses_are_two_streams() {
    let to = |n: u64| [10, 0, 0, 2 + (n % 2) as u8];
    let mut frames: Vec<_> = (0..2_000).map(|n| udp(n, 5_000)).collect();
    for (n, frame) in (0..).zip(&mut frames) {
        frame.bytes[30..34].copy_from_slice(&to(n));
    }
    let found = of(&frames).capture;
    let streams: Vec<_> = found.streams.iter().map(|stream| (stream.name.as_str(), stream.frames)).collect();
    assert_eq!(streams, [("10.0.0.2:5000 from 10.0.0.1:0", 1_000), ("10.0.0.3:5000 from 10.0.0.1:0", 1_000)]);
    assert_eq!(found.frames, 1_000);
}

#[test]
fn counts_frames_beyond_the_tracked_streams() {
    let frames: Vec<_> = (0..5_000u16)
        .flat_map(|unique| {
            let mut talker = Talker::new(unique);
            [0, 1].map(|seq| talker.seen(seq, i64::from(unique) * 1_000_000 + seq.cast_signed() * 125_000))
        })
        .collect();
    let found = of(&frames);
    assert_eq!((found.capture.streams.len(), found.capture.left_out), (4096, 2 * (5_000 - 4_096)));
    assert!(kinds(&found).contains(&"streams"));
}

#[test]
fn uses_truncated_files_up_to_the_last_complete_frame() {
    let frames = Talker::new(1).steady(1_000);
    let file = pcap(LITTLE, true, 1, &frames);
    let record = (file.len() - 24) / 1_000;
    let found = analysed(&file[..file.len() - 1], &OPTIONS).unwrap();
    assert_eq!((found.capture.frames, kinds(&found)), (999, vec!["cut"]));
    let at = format!("at byte {}", file.len() - record);
    assert!(found.caveats[0].text.contains(&at), "{:?}", found.caveats);
}

#[test]
fn rejects_unusable_files() {
    let frames = Talker::new(1).steady(20);
    let refused = |file: &[u8], expected: &str| {
        let error = analysed(file, &OPTIONS).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    refused(b"", "no frames in the file");
    refused(b"GIF89a and so on, and on, and on", "neither pcap nor pcapng");
    refused(&[0x1f, 0x8b, 8, 0, 0], "gzip -dc");
    refused(&pcap(LITTLE, true, 1, &[]), "no frames in the file");
    refused(&pcap(LITTLE, true, 105, &frames), "link type 105 is neither Ethernet");
    refused(&pcap(LITTLE, true, 1, &frames[..1]), "1 frame, too few");
    let mut long = pcap(LITTLE, true, 1, &frames);
    long[24 + 8..24 + 12].copy_from_slice(&LITTLE.u32(1 << 25));
    refused(&long, "damaged at byte 24: a frame length of 33554432 bytes");
    let mut file = Pcapng::new(LITTLE);
    file.interface(105, Some(9), 0).packet(&frames[0]);
    refused(&file.bytes, "link type 105");
    let mut file = Pcapng::new(LITTLE);
    let begins = file.bytes.len();
    file.block(6, &[0; 32]);
    refused(&file.bytes, &format!("damaged at byte {begins}: a frame of undefined interface 0"));
    let mut file = Pcapng::new(LITTLE);
    file.interface(1, Some(9), 0);
    (0..20).for_each(|_| {
        file.simple(&frames[0].bytes);
    });
    refused(&file.bytes, "no timestamps");
}

#[test]
fn frames_without_a_timestamp_may_be_the_lost_ones() {
    let frames = Talker::new(1).steady(2_000);
    let mut file = Pcapng::new(LITTLE);
    file.interface(1, Some(9), 0);
    for (n, seen) in frames.iter().enumerate() {
        if n == 700 {
            file.simple(&seen.bytes)
        } else {
            file.packet(seen)
        };
    }
    let found = analysed(&file.bytes, &OPTIONS).unwrap();
    assert_eq!((found.capture.lost, found.capture.frames, kinds(&found)), (None, 1_999, vec!["stamps"]));
    assert!(found.caveats[0].text.ends_with("is ignored, so the number of lost frames is not known"), "{found:?}");
}

#[test]
fn checks_the_credit_for_the_given_idle_slope() {
    let frames = Talker::new(1).steady(8_000);
    let narrow = Options { idle_slope_bps: Some(7_000_000), ..OPTIONS };
    let found = analysed(&pcap(LITTLE, true, 1, &frames), &narrow).unwrap();
    let shaper = found.capture.shaper.unwrap();
    assert!(shaper.asked && shaper.violations > 0 && shaper.lowest_bits < 0.0, "{shaper:?}");
    let wide = Options { idle_slope_bps: Some(8_000_000), ..OPTIONS };
    assert_eq!(analysed(&pcap(LITTLE, true, 1, &frames), &wide).unwrap().capture.shaper.unwrap().violations, 0);
}

/// Ensures that the tests use two different byte orders.
#[test]
fn byte_orders_differ() {
    assert_ne!(ByteOrder { big: true }.u32(1), ByteOrder { big: false }.u32(1));
}

#[test]
fn a_file_that_ends_in_its_first_frame_is_truncated() {
    let frames = Talker::new(1).steady(1);
    let mut pcapng = Pcapng::new(LITTLE);
    pcapng.interface(1, Some(9), 0).packet(&frames[0]);
    for file in [pcap(LITTLE, true, 1, &frames), pcapng.bytes] {
        for missing in [1, 30, 60] {
            let error = analysed(&file[..file.len() - missing], &OPTIONS).unwrap_err().to_string();
            assert!(error.starts_with("the file ends inside its first frame at byte"), "{error}");
        }
    }
    let error = capture::find_interface(&pcap(LITTLE, true, 1, &frames)[..], "9").unwrap_err().to_string();
    assert_eq!(error, "no interface `9` in the file; it has interface 0");
}

#[test]
fn credit_is_not_checked_if_the_link_is_too_slow() {
    let frames = Talker::new(1).steady(2_000);
    let found = |link_bps| analysed(&pcap(LITTLE, true, 1, &frames), &Options { link_bps, ..OPTIONS }).unwrap();
    let slow = found(5_000_000);
    assert_eq!(slow.capture.shaper, None);
    let text = "more than the link speed of 5,000,000 bit/s; give --link-speed or --idle-slope";
    assert!(slow.caveats.iter().any(|caveat| caveat.text.ends_with(text)), "{:?}", slow.caveats);
    let fast = found(100_000_000);
    assert!(fast.capture.shaper.is_some() && !kinds(&fast).contains(&"credit"));
}

#[test]
fn two_frames_show_no_grid() {
    let found = of(&Talker::new(1).steady(2));
    assert_eq!((found.capture.late, found.capture.lost), (None, Some(0)));
    assert_eq!(found.capture.lateness_unknown.as_deref(), Some("two frames show no grid"));
}

#[test]
fn a_small_change_of_the_period_is_visible_in_its_text() {
    let at = |n: u64| n.cast_signed() * 1_000_000 + n.saturating_sub(5_000).cast_signed() * 3_000 + scatter(n);
    let mut talker = Talker::plain(1);
    let found = of(&(0..10_000).map(|n| talker.seen(n, at(n))).collect::<Vec<_>>());
    let why = found.capture.lateness_unknown.unwrap_or_default();
    assert!(why.starts_with("the talker changed its period from 1,000,000 ns to 1,003,000 ns (+0.3 %)"), "{why}");
}

#[test]
fn frames_that_end_before_their_number_are_a_reason_for_unknown_losses() {
    let mut frames = Talker::new(1).steady(3_000);
    let whole = pcap(LITTLE, true, 1, &frames);
    frames.iter_mut().for_each(|seen| seen.bytes.truncate(20));
    let mut file = pcap(LITTLE, true, 1, &frames);
    // The length on the wire is that of the whole frames.
    for record in file[24..].chunks_mut(16 + 20) {
        record[12..16].copy_from_slice(&whole[36..40]);
    }
    let found = analysed(&file, &OPTIONS).unwrap();
    assert_eq!((found.capture.lost, found.capture.numbered_by), (None, NumberedBy::Nothing));
    let snapped = found.caveats.iter().find(|caveat| caveat.kind == "snapped").unwrap();
    assert!(snapped.text.contains("perhaps before a sequence number"), "{}", snapped.text);
}

#[test]
fn two_senders_with_the_same_addresses_are_named() {
    let both = |n: u64| {
        let mut talker = Talker::plain(1);
        let at = n.cast_signed() * 125_000 + scatter(n);
        [talker.seen(n, at), talker.seen(n + 100, at + 50_000)]
    };
    let found = of(&(0..4_000).flat_map(both).collect::<Vec<_>>());
    assert!(found.caveats.iter().any(|one| one.kind == "copies" && one.text.contains("two senders")), "{found:?}");
}
