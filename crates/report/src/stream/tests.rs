//! Texts and figures of a stream's ends.

use record::{Calibration, ClockRelation, DelayVariation, OneWay, SeriesKind};

use super::*;

fn of(stream: Stream) -> EndSummary {
    let series = Series { period_ns: 125_000, samples: 8000, kind: SeriesKind::Stream(stream), ..Series::default() };
    summarize(&series).expect("the series is of a stream")
}

fn of_frames_received(listener: Listener) -> EndSummary {
    of(Stream::Listener(Box::new(Listener { frames: 8000, ..listener })))
}

#[test]
fn summarizes_a_talker() {
    let talker = Talker {
        frames: 8000,
        late: 40,
        late_packets: Some(3),
        offset_ns: 8_000,
        max_delta_ns: Some(35_454),
        mode: "send".to_owned(),
        curve: vec![(0, 8000), (8_000, 3)],
        ..Talker::default()
    };
    let plain = of(Stream::Talker(Box::new(talker.clone())));
    assert_eq!(plain.first, [("Late packets (talker)", "3".to_owned()), ("Max delta (talker)", "35.5 us".to_owned())]);
    assert!(plain.remarks.starts_with("Woke 8 us before each slot, then spun until the slot"), "{}", plain.remarks);
    let late = plain.figures.iter().find(|figure| figure.name == "late").unwrap();
    assert_eq!(late.text, "40");
    assert!(plain.calibration.is_empty());
    let point = |cells: [&str; 4]| cells.map(str::to_owned);
    assert_eq!(
        plain.curve,
        [(point(["0 ns", "8,000", "100.0000 %", "0.0 %"]), false), (point(["8 us", "3", "0.0375 %", "6.4 %"]), true)]
    );
    let calibration = Some(Calibration { samples: 40_000, max_ns: 2_000_000, ..Calibration::default() });
    let auto = of(Stream::Talker(Box::new(Talker { calibration, ..talker })));
    assert!(auto.calibration.contains("because the period is too short for one that covers all of them"));
}

#[test]
fn reports_claimed_addresses_and_conflicts() {
    let claimed = |first: &str, lost_to: Option<&str>| ClaimedAddresses {
        first: first.to_owned(),
        count: 2,
        lost_to: lost_to.map(str::to_owned),
        ..ClaimedAddresses::default()
    };
    let remarks = |maap| of(Stream::Talker(Box::new(Talker { maap: Some(maap), ..Talker::default() }))).addresses;
    let alone = remarks(Maap { claimed: vec![claimed("91:e0:f0:00:12:34", None)], ..Maap::default() });
    assert_eq!(alone, "MAAP claimed 2 addresses from 91:e0:f0:00:12:34, without a conflict.");
    let conflict = |resolution| record::MaapConflict {
        at_ns: 1,
        source: "02:00:00:00:00:01".to_owned(),
        message: record::MaapMessage::Announce,
        first: "a".to_owned(),
        count: 1,
        resolution,
    };
    let resolutions = [
        MaapResolution::Left,
        MaapResolution::Left,
        MaapResolution::Defended,
        MaapResolution::Kept,
        MaapResolution::Yielded,
    ];
    let contested = remarks(Maap {
        claimed: vec![claimed("b", Some("02:00:00:00:00:01")), claimed("c", None)],
        conflict_count: 5,
        conflicts: resolutions.map(conflict).to_vec(),
        link_returns: 2,
        ..Maap::default()
    });
    let expected = "MAAP claimed 2 addresses from b (lost to 02:00:00:00:00:01), then 2 addresses from c, with 5 conflicts: \
                    02:00:00:00:00:01 had a, so another address was probed, 02:00:00:00:00:01 probed a, which was defended, \
                    02:00:00:00:00:01 also claimed a, but has to yield, and 1 more. The link returned 2 times, and the addresses were \
                    probed again.";
    assert_eq!(contested, expected);
}

#[test]
fn the_worst_streams_come_first_and_the_others_in_one_row() {
    let stream = |number: u64| ReceivedStream {
        stream_id: format!("02000000000{number:05x}"),
        frames: 8_000,
        lost: if number == 40 { 7 } else { 0 },
        max_gap_ns: Some(130_000 + number),
        ..ReceivedStream::default()
    };
    let rows =
        |count: u64| of_frames_received(Listener { streams: (0..count).map(stream).collect(), ..Listener::default() });
    assert!(rows(0).streams.is_empty());
    assert_eq!(rows(8).streams.len(), 8);
    let many = rows(64).streams;
    let [first, .., last] = &many[..] else { panic!("{many:?}") };
    assert_eq!((many.len(), &first[..3]), (9, &["02:00:00:00:00:00:0028".to_owned(), "8,000".into(), "7".into()][..]));
    assert_eq!((&last[0], &last[1], &last[2]), (&"56 others".to_owned(), &"448,000".to_owned(), &"0".to_owned()));
}

#[test]
fn reports_missed_launch_times() {
    let launch = |offloaded| Some(Launch { delta_ns: 50_000, offloaded, invalid: 2, missed: 7 });
    let summary = |launch: Option<Launch>| {
        let mode = if launch.is_none() { "send" } else { "txtime" };
        let talker = Talker { offset_ns: 100_000, mode: mode.to_owned(), launch, ..Talker::default() };
        of(Stream::Talker(Box::new(talker)))
    };
    let figure = |summary: &EndSummary, name| {
        summary.figures.iter().find(|figure| figure.name == name).map(|figure| (figure.text.clone(), figure.bad))
    };
    let software = summary(launch(false));
    assert_eq!(figure(&software, "invalid"), Some(("2".to_owned(), true)));
    assert_eq!(figure(&software, "txtime missed"), Some(("7".to_owned(), true)));
    assert!(software.remarks.starts_with("Woke 100 us before each slot, and handed over its frame at once"));
    assert!(software.remarks.contains("50 us before its slot, because no NIC holds it"), "{}", software.remarks);
    assert!(summary(launch(true)).remarks.contains("at its slot, by the NIC"));
    assert_eq!(figure(&summary(None), "invalid"), None);
}

#[test]
fn shows_the_way_of_a_frame_to_the_wire() {
    let times = |max_ns: i64| {
        let histogram = Histogram::from_buckets([(max_ns, 9)].into_iter());
        Some(Times { min_ns: 0, mean_ns: 0.0, max_ns, histogram })
    };
    let summary = |stamps, launch| of(Stream::Talker(Box::new(Talker { stamps, launch, ..Talker::default() })));
    let rows =
        |summary: &EndSummary| summary.times.iter().map(|[name, .., max]| format!("{name}: {max}")).collect::<Vec<_>>();
    let by_driver = record::TransmitStamps { stack_out: times(4_000), ..record::TransmitStamps::default() };
    let driver = summary(Some(by_driver.clone()), None);
    assert_eq!(rows(&driver)[1..], ["from send to driver: 4 us"]);
    assert!(!driver.remarks.contains("stamped"), "{}", driver.remarks);
    assert_eq!(
        rows(&summary(Some(by_driver.clone()), Some(Launch::default())))[1..],
        ["from launch time to driver: 4 us"]
    );
    let card = record::CardStamps {
        clock: "ptp0".to_owned(),
        clock_error_ns: 300,
        missing: 1,
        driver_and_card: times(6_000),
        after_slot: times(9_000),
    };
    let by_card =
        |card| record::TransmitStamps { missing: 2, unusable: 1, clock_error_ns: 100, card, ..by_driver.clone() };
    let whole = summary(Some(by_card(Some(card))), None);
    let expected = ["from send to driver: 4 us", "from driver to wire: 6 us", "on the wire after the slot began: 9 us"];
    assert_eq!(rows(&whole)[1..], expected);
    let words = "the driver stamped all but 2 frames; times of the wire are on the clock ptp0 of the network card, to within \
                 400 ns; it stamped all but 1 frame; a clock was set, so 1 timestamp is not used";
    assert!(whole.remarks.contains(words), "{}", whole.remarks);
    let none = summary(Some(by_card(Some(record::CardStamps::default()))), None);
    assert!(none.remarks.contains("the network card stamped no frame"), "{}", none.remarks);
}

#[test]
fn reports_where_frames_were_lost() {
    let remarks =
        |lost, lost_in_socket| of_frames_received(Listener { lost, lost_in_socket, ..Listener::default() }).remarks;
    assert!(!remarks(0, Some(0)).contains("loss"));
    assert!(remarks(5, Some(0)).contains("all losses happened before the listener's socket"));
    assert!(remarks(5, Some(5)).contains("all were lost in the listener's socket"));
    assert!(remarks(5, Some(2)).contains("2 were lost in the listener's socket, the others before it"));
    assert!(remarks(5, None).contains("the place of the losses is unknown"));
    let ring = |ours| of_frames_received(Listener { lost: 5, lost_in_ring: Some(ours), ..Listener::default() }).remarks;
    assert!(ring(0).contains("all losses happened before the listener's XDP ring"));
    assert!(ring(5).contains("all were lost in the listener's XDP ring, which was full"));
    assert!(ring(2).contains("2 were lost in the listener's XDP ring, the others before it"));
}

#[test]
fn omits_one_way_times_without_a_common_clock() {
    let apart = of_frames_received(Listener::default());
    assert!(
        apart.remarks.contains("they refer to another machine's clock") && !apart.remarks.contains("LATE_TIMESTAMP")
    );
    assert_eq!(apart.times.len(), 3);
    let variation = Some(DelayVariation { drift_ppb: -12_345, window_ns: 10_000_000_000, ..DelayVariation::default() });
    let apart = of_frames_received(Listener { delay_variation: variation, ..Listener::default() });
    assert!(
        apart.remarks.contains("smallest delay of its 10 s") && apart.remarks.contains("-12.345 ppm"),
        "{}",
        apart.remarks
    );
    assert_eq!(apart.times.len(), 5);
    let clock = ClockRelation::same_host();
    let one_way = Some(OneWay { clock, late_presentation: 7, least_slack_ns: Some(-5_000), ..OneWay::default() });
    let together = of_frames_received(Listener { one_way, ..Listener::default() });
    assert!(together.remarks.contains("7 frames read after their presentation time, smallest margin -5 us"));
    assert_eq!(together.times.len(), 5);
    assert_eq!(together.times[4][0], "from send to read (one clock)");
    assert!(!together.remarks.contains("margin: from arrival"), "an older record");
    let worst = vec![record::MarkedFrame { frame: 1_234, at_ns: 7, ns: -5_000 }];
    let (mean_ns, median_ns) = (1e6, Some(1_900_000));
    let margin = record::PresentationMargin { min_ns: -5_000, mean_ns, median_ns, max_ns: 1_990_000, late: 2, worst };
    let one_way = Some(OneWay { margin: Some(margin), ..OneWay::default() });
    let counters = record::StreamCounters { timestamp_uncertain: 3, ..record::StreamCounters::default() };
    let change = CapturedMediaChange { frame: 7, jump_ns: Some(40_000), ..Default::default() };
    let (jumps, media_changes) = (Some(1), vec![change]);
    let known = of_frames_received(Listener { one_way, counters, jumps, media_changes, ..Listener::default() });
    let expected = "; margin: from arrival to presentation time, without 3 frames whose time is uncertain, the latest frame \
                    1,234; media clock moved at frame 7 by 40 us";
    let figure = |name| known.presentation.iter().find(|figure| figure.name == name).map(|figure| figure.text.as_str());
    let names = ["margin", "median margin", "too late to present", "uncertain", "media clock jumps"];
    assert_eq!(names.map(figure), [Some("-5 us to 1.99 ms"), Some("1.9 ms"), Some("2"), Some("3"), Some("1")]);
    assert!(known.remarks.contains(expected), "{}", known.remarks);
}

#[test]
fn omits_rows_of_time_stamps_without_stamps() {
    let from = |from: &str| Listener {
        from: from.to_owned(),
        wait: "spin".to_owned(),
        one_way: Some(OneWay::default()),
        ..Listener::default()
    };
    let names = |listener| of_frames_received(listener).times.into_iter().map(|[name, ..]| name).collect::<Vec<_>>();
    assert_eq!(names(from("xdp copy native")), ["between two frames, as read", "from send to read"]);
    assert_eq!(names(from("socket")).len(), 5);
    assert!(
        of_frames_received(from("xdp copy native"))
            .remarks
            .starts_with("waiting: spin, by xdp copy native; Late packets")
    );
    assert!(
        of_frames_received(from("socket"))
            .remarks
            .starts_with("waiting: spin; Late packets: read more than one and a half periods")
    );
}

#[test]
fn omits_figures_without_frames() {
    let nothing = of(Stream::Listener(Box::new(Listener { other_streams: 4, ..Listener::default() })));
    assert!(nothing.figures.is_empty() && nothing.remarks == "No frames received; 4 frames of other streams.");
    // The first count is that of the stream that did not arrive.
    let streams = [0, 3].map(|frames| ReceivedStream { frames, ..ReceivedStream::default() }).to_vec();
    let sibling = of(Stream::Listener(Box::new(Listener { streams, ..Listener::default() })));
    assert_eq!(sibling.remarks, "No frames received; 3 frames of other streams.");
    assert!(summarize(&Series::default()).is_none());
}

#[test]
fn advises_a_wakeup_offset_if_most_frames_are_late_without_one() {
    let record = |late: u64, offset_ns: u64, command: &[&str]| {
        let talker = Talker { frames: 100, late, offset_ns, ..Talker::default() };
        let kind = SeriesKind::Stream(Stream::Talker(Box::new(talker)));
        let mut record = Record { series: vec![Series { kind, ..Series::default() }], ..Record::default() };
        record.validity.valid = true;
        record.command = command.iter().map(|&word| word.to_owned()).collect();
        record
    };
    let command = |record: &Record| offset_advice(record).map(|(_, command)| command);
    let measured = ["punctual", "measure", "stream", "--self", "--wakeup-offset", "0us", "--quiet"];
    assert_eq!(
        command(&record(100, 0, &measured)).as_deref(),
        Some("punctual measure stream --self --quiet --wakeup-offset auto")
    );
    let equal_sign = ["punctual", "pair", "a", "stream", "eth0", "--wakeup-offset=0us"];
    assert_eq!(
        command(&record(51, 0, &equal_sign)).as_deref(),
        Some("punctual pair a stream eth0 --wakeup-offset auto")
    );
    assert_eq!(command(&record(100, 0, &["punctual", "run", "x"])).as_deref(), Some(""));
    assert_eq!(command(&record(50, 0, &measured)), None, "half of them");
    assert_eq!(command(&record(100, 8_000, &measured)), None, "it has an offset");
    let mut calibrated = record(100, 0, &measured);
    if let SeriesKind::Stream(Stream::Talker(talker)) = &mut calibrated.series[0].kind {
        talker.calibration = Some(Calibration::default());
    }
    assert_eq!(command(&calibrated), None, "`auto` chose it");
}

#[test]
fn advises_a_shorter_offset_if_the_talker_fills_its_cpu() {
    let advice = |cpu_time_ns, knee_ns, command: &[&str]| {
        let talker = Talker { frames: 8_000, offset_ns: 100_000, knee_ns, ..Talker::default() };
        let kind = SeriesKind::Stream(Stream::Talker(Box::new(talker)));
        let mut series = Series { kind, period_ns: 125_000, samples: 8_000, cpu_time_ns, ..Series::default() };
        series.raw.add(5_000, 8_000);
        let mut record = Record { series: vec![series], ..Record::default() };
        record.validity.valid = true;
        record.command = command.iter().map(|&word| word.to_owned()).collect();
        full_cpu_advice(&record)
    };
    let measured = ["punctual", "measure", "stream", "--self"];
    let full = Some(960_000_000);
    let (text, command) = advice(full, None, &measured).unwrap();
    assert!(text.starts_with("the talker uses 96 % of its CPU, up to 80 % to spin: "), "{text}");
    assert_eq!(command, "punctual measure stream --self --wakeup-offset 81us");
    assert!(advice(full, Some(12_000), &measured).unwrap().1.ends_with(" --wakeup-offset 12us"), "the knee is enough");
    assert!(advice(full, None, &["punctual", "run"]).unwrap().0.ends_with(", with a wake-up offset of 81us"));
    assert_eq!((advice(Some(880_000_000), None, &measured), advice(None, None, &measured)), (None, None));
}

#[test]
fn offers_the_knee_if_it_saves_a_tenth_of_a_cpu() {
    let record = |offset_ns: u64, late: u64, knees: u64| {
        let curve = vec![(12_000, knees), (offset_ns, late)];
        let talker = Talker { frames: 1_000_000, offset_ns, knee_ns: Some(12_000), curve, ..Talker::default() };
        let kind = SeriesKind::Stream(Stream::Talker(Box::new(talker)));
        let series = Series { kind, period_ns: 125_000, samples: 1_000_000, ..Series::default() };
        let mut record = Record { series: vec![series], ..Record::default() };
        record.validity.valid = true;
        record.command = ["punctual", "measure", "stream", "--self"].map(str::to_owned).to_vec();
        record
    };
    let (text, command) = knee_advice(&record(100_000, 40, 44)).expect("80 % for four frames");
    assert_eq!(
        text,
        "spinning takes up to 80 % of the CPU; 12 us takes 10 %, with 44 instead of 40 late frames in a million:"
    );
    assert_eq!(command, "punctual measure stream --self --wakeup-offset 12us");
    assert!(knee_advice(&record(100_000, 40, 40)).is_some_and(|(text, _)| text.contains("10 %, with as few late")));
    assert_eq!(knee_advice(&record(24_000, 40, 44)), None, "it would save less than a tenth");
    assert_eq!(knee_advice(&record(8_000, 50, 44)), None, "the offset is shorter");
}
