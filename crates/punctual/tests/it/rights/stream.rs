//! Streams between two network namespaces: every frame is counted, and known delays are found.

use std::{
    ops::Range,
    os::unix::net::UnixDatagram,
    path::Path,
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};

use frames::{Class, Format, Payload, ethernet};
use machine::veth::{VethEnd, VethPair};
use probes::{
    ReceiveWait,
    stream::{
        listener::{Listener, ListenerSettings},
        tracker::Expected,
    },
};
use record::{ClockTie, Record, Series};
use stalls::{Stall, repeat_if_stalled};
use sys::{
    clock::Clock,
    packet::{FrameReceiver, RawSender},
    sched,
};

use crate::harness::{PUNCTUAL, Scratch, Start, Started, alone, last_cpu, signal, skip, wait_until};

pub fn talker(record: &Record) -> (&Series, &record::Talker) {
    let found = record.series.iter().find_map(|series| Some((series, series.kind.talker()?)));
    found.expect("a talker's series")
}

pub fn listener(record: &Record) -> (&Series, &record::Listener) {
    let found = record.series.iter().find_map(|series| Some((series, series.kind.listener()?)));
    found.expect("a listener's series")
}

/// Checks the counts of a run with both ends on one machine: every sent frame must be received or lost.
#[track_caller]
pub fn assert_all_frames_counted(record: &Record) {
    let ((series, talker), (_, listener)) = (talker(record), listener(record));
    assert_eq!(talker.frames, listener.frames - listener.duplicates + listener.lost);
    assert_eq!((listener.duplicates, listener.reordered, listener.strays, listener.wrong_tag), (0, 0, 0, 0));
    assert_eq!((listener.other_streams, listener.not_told), (0, 0));
    assert_eq!(talker.send.total(), talker.frames);
    assert!(talker.late <= talker.frames && talker.frames <= series.samples, "{talker:?}");
    assert!(talker.frames > 0 && listener.frames > 0);
    assert_eq!(talker.identity.stream_id, listener.identity.stream_id);
    assert_eq!(talker.identity.frame_bytes, listener.identity.frame_bytes);
    let counters = &listener.counters;
    assert_eq!((counters.frames_rx, counters.timestamp_valid), (listener.frames, listener.frames));
    assert_eq!((counters.timestamp_uncertain, counters.media_reset, counters.unsupported_format), (0, 0, 0));
    let one_way = listener.one_way.as_ref().expect("one-way times, because there is one clock");
    // A frame arrives before it is read, apart from the error of converting its timestamp.
    let margin = one_way.margin.as_ref().expect("margins of presentation times");
    assert!(margin.min_ns + 10_000 >= one_way.least_slack_ns.expect("presentation times"), "{one_way:?}");
    assert!(margin.late <= one_way.late_presentation && margin.min_ns <= margin.max_ns, "{margin:?}");
    // AF_XDP has no timestamps.
    let stamped = if listener.from == "socket" { listener.frames } else { 0 };
    assert_eq!((one_way.whole.total(), one_way.way.total()), (listener.frames, stamped));
    assert_eq!((listener.read_delay.total(), listener.max_kernel_gap_ns.is_some()), (stamped, stamped > 1));
    let tags = (listener.identity.pcp, listener.identity.vid);
    assert_eq!(tags, (talker.identity.pcp, talker.identity.vid), "the tag must not change on the way");
}

#[test]
fn sent_frames_are_received_or_counted_as_lost() {
    let _alone = alone();
    for (options, tag, bytes, format) in [
        ("--wakeup-offset 30us", (3, 2), 90, "aaf"),
        ("--class B --format 61883-6 --mode bypass --spin", (2, 2), 146, "61883-6"),
        ("--period 1ms --busy-poll 50us", (3, 2), 90, "aaf"),
        ("--wakeup-offset 30us --mode tx-ring", (3, 2), 90, "aaf"),
    ] {
        // The thread that collects the frames of the listener is an ordinary one.
        repeat_if_stalled(Stall::Ordinary(Duration::from_millis(50)), || count_frames(options, tag, bytes, format));
    }
}

fn count_frames(options: &str, tag: (u8, u16), bytes: u64, format: &str) {
    let scratch = Scratch::new();
    scratch.run(&format!("measure stream --self {options} --quiet --record a --duration 1s")).expect_status(0);
    let record = scratch.record();
    assert_all_frames_counted(&record);
    let (series, talker) = talker(&record);
    let identity = &talker.identity;
    assert_eq!((identity.pcp, identity.vid), (Some(tag.0), Some(tag.1)), "{options}");
    assert_eq!((identity.frame_bytes, identity.format.as_str()), (bytes, format), "{options}");
    // One slot per period, including the slot at the end if the run reached it. A late wake-up may miss it.
    let slots = talker.frames + talker.refused + talker.missed_slots;
    let last = 1_000_000_000 / series.period_ns + 1;
    let overrun = (talker.max_delta_ns.unwrap_or_default().cast_unsigned() + talker.offset_ns) / series.period_ns + 1;
    assert!((last - overrun.min(last)..=last + overrun).contains(&slots), "{slots} of {last}, {overrun}: {talker:?}");
    assert_eq!(series.granted.policy, "fifo:90");
    assert!(series.granted.memory_locked);
    let value = serde_json::to_value(&record).unwrap();
    let validator = jsonschema::validator_for(&record::json_schema()).unwrap();
    assert!(validator.is_valid(&value), "{options}");
    let shown = scratch.run("show --full a.punctual.json").expect_status(0).stdout();
    // Without the line breaks, whose places depend on the figures.
    let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    for text in [
        "Late packets (talker) = ",
        "Max delta (talker) = ",
        "Late packets (listener) = ",
        "Max delta (listener) = ",
        "missed slots",
        "1722.1: FRAMES_RX ",
        "median margin",
        "margin: from arrival to presentation time",
    ] {
        assert!(shown.contains(text), "{text} in {shown}");
    }
}

#[test]
fn each_of_several_streams_is_counted() {
    let _alone = alone();
    for options in ["", "--mode bypass", "--mode tx-ring --class B", "--unique-id 7 --capture a.pcapng"] {
        repeat_if_stalled(Stall::Ordinary(Duration::from_millis(50)), || count_streams(options));
    }
}

fn count_streams(options: &str) {
    let scratch = Scratch::new();
    // On a noisy machine, causes of spikes would take the lines of the short answer.
    let stream = format!(
        "measure stream --self --streams 8 --period 1ms {options} --blame=off --quiet --record a --duration 1s"
    );
    scratch.run(&stream).expect_status(0);
    let record = scratch.record();
    assert_all_frames_counted(&record);
    let ((_, talker), (_, listener)) = (talker(&record), listener(&record));
    assert_eq!((talker.streams.len(), listener.streams.len()), (8, 8), "{options}");
    assert_eq!(talker.identity.stream_id, talker.streams[0].stream_id);
    for (index, sent) in talker.streams.iter().enumerate() {
        let heard = listener.streams.iter().find(|heard| heard.stream_id == sent.stream_id).expect("the same streams");
        assert_eq!(sent.frames, heard.frames - heard.duplicates + heard.lost, "{options}: {heard:?}");
        assert_eq!((heard.duplicates, heard.reordered), (0, 0));
        assert_eq!(
            sent.frames + sent.refused,
            talker.frames + talker.refused,
            "{options}: one frame each in every slot"
        );
        let number = u16::from_str_radix(&sent.stream_id[12..], 16).unwrap();
        let first = u16::from_str_radix(&talker.streams[0].stream_id[12..], 16).unwrap();
        assert_eq!(usize::from(number - first), index, "consecutive unique ids");
        assert_eq!(talker.streams.iter().filter(|other| other.destination == sent.destination).count(), 1);
    }
    let shown = scratch.run("show --full a.punctual.json").expect_status(0).stdout();
    assert!(shown.contains("8 streams with one frame each in every slot") && shown.contains("longest gap"), "{shown}");
    let brief = scratch.run("show a.punctual.json").expect_status(0).stdout();
    assert!(brief.contains("received: margin"), "{brief}");
    let brief = brief.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(brief.contains("of 8 streams") || brief.contains("of the 7 other streams"), "{brief}");
}

/// The times of a talker's frames from their handover to the driver. All 8 frames of each slot must be stamped.
#[track_caller]
fn way_to_the_driver(record: &Record) -> record::Times {
    let (_, talker) = talker(record);
    let stamps = talker.stamps.as_ref().expect("timestamps of sent frames");
    let sent: u64 = talker.streams.iter().map(|stream| stream.frames).sum();
    assert!(sent > 8 * 100, "{talker:?}");
    let way = stamps.stack_out.clone().expect("timestamps of the driver");
    assert_eq!((way.histogram.total() + stamps.missing, stamps.missing, stamps.unusable), (sent, 0, 0), "{stamps:?}");
    way
}

#[test]
fn sent_frames_are_stamped_by_the_driver() {
    let _alone = alone();
    let scratch = Scratch::new();
    let arguments = "measure stream --self --streams 8 --period 1ms --stamps all --quiet --record a --duration 1s";
    scratch.run(arguments).expect_status(0);
    let record = scratch.record();
    let way = way_to_the_driver(&record);
    let (_, listener) = listener(&record);
    let whole = &listener.one_way.as_ref().expect("one clock").way;
    // The driver has a frame before the other end does; the listener follows one of the 8 streams.
    assert!(way.min_ns <= whole.percentile(50.0).unwrap(), "{way:?}");
    let shown = scratch.run("show --full a.punctual.json").expect_status(0).stdout();
    assert!(shown.contains("from send to driver") && !shown.contains("stamped all but"), "{shown}");
}

#[test]
fn frames_held_back_by_the_queueing_discipline_reach_the_driver_later() {
    let _alone = alone();
    let ends = VethPair::create().expect("the right to make namespaces: run as root");
    let tbf = format!("qdisc add dev near root tbf rate {SLOW_BYTES_PER_S}bps burst {SLOW_BURST_BYTES} limit 100000");
    let install = || Command::new("tc").args(tbf.split(' ')).output().expect("tc of iproute2");
    let installed = ends.near.namespace.run(install).unwrap();
    if !installed.status.success() {
        let why = String::from_utf8_lossy(&installed.stderr).into_owned();
        assert!(why.contains("qdisc kind is unknown"), "{why}");
        return skip("frames held back, because this kernel has no TBF queueing discipline");
    }
    let scratch = Scratch::new();
    let sent_by = |mode: &str| {
        let talk = format!(
            "measure stream talk near --streams 8 --period 5ms --wakeup-offset 0us --stamps all --mode {mode} --quiet --record \
             {mode} --blame=off --duration 1s"
        );
        let talked = inside(&ends.near, &scratch, &talk).wait_with_output().unwrap();
        assert_eq!(talked.status.code(), Some(0), "{}", String::from_utf8_lossy(&talked.stderr));
        way_to_the_driver(&record::file::read(&scratch.path().join(format!("{mode}.punctual.json"))).unwrap())
    };
    // The last frame of a slot waits for the tokens of the others.
    let waits_ns = (7 * SLOW_FRAME_BYTES - SLOW_BURST_BYTES) * 1_000_000_000 / SLOW_BYTES_PER_S;
    let (held, direct) = (sent_by("send"), sent_by("bypass"));
    let share =
        |way: &record::Times| way.histogram.count_above(waits_ns.cast_signed()) as f64 / way.histogram.total() as f64;
    assert!(share(&held) > 0.1, "one of eight frames: {}", share(&held));
    assert!(held.mean_ns > 10.0 * direct.mean_ns, "{} {}", held.mean_ns, direct.mean_ns);
}

/// The frames of a slot take 2.9 ms.
const SLOW_BYTES_PER_S: u64 = 250_000;
const SLOW_BURST_BYTES: u64 = 200;
const SLOW_FRAME_BYTES: u64 = 90;

const STREAMS: &str = r#"
[[stream]]
name = "mics"
period = "2ms"
channels = 4
samples = 6
[[stream]]
name = "video"
class = "B"
period = "4ms"
vlan = 5
priority = 4
format = "61883-6"
samples = 96
destination = "91:e0:f0:00:20:01"
[[stream]]
name = "mono"
period = "2ms"
channels = 1
"#;

#[test]
fn each_stream_of_a_file_has_its_own_series() {
    let _alone = alone();
    repeat_if_stalled(Stall::Ordinary(Duration::from_millis(50)), count_listed);
}

fn count_listed() {
    let scratch = Scratch::new();
    std::fs::write(scratch.path().join("s.toml"), STREAMS).unwrap();
    let options = "--streams s.toml --wakeup-offset 100us --capture a.pcapng --quiet --record a --duration 1s";
    scratch.run(&format!("measure stream --self {options}")).expect_status(0);
    let record = scratch.record();
    let talkers: Vec<_> =
        record.series.iter().filter_map(|s| Some((s.role.as_str(), s.period_ns, s.kind.talker()?))).collect();
    let roles: Vec<_> = talkers.iter().map(|(role, period_ns, _)| (*role, *period_ns)).collect();
    assert_eq!(roles, [("talker 2ms", 2_000_000), ("talker B 4ms", 4_000_000)], "one thread for each class");
    let sent: Vec<_> = talkers.iter().flat_map(|(.., talker)| &talker.streams).collect();
    let names: Vec<_> = sent.iter().map(|stream| (stream.name.as_str(), stream.frame_bytes)).collect();
    // 18 bytes of Ethernet and tag, 24 of AVTP, 8 of CIP, and 4 for each sample.
    let expected = [("mics", 42 + 4 * 6 * 4), ("mono", 42 + 96 * 4), ("video", 50 + 2 * 96 * 4)];
    assert_eq!(names, expected.map(|(name, bytes)| (name, Some(bytes))));
    for stream in &sent {
        let role = format!("listener {}", stream.name);
        let heard = record.series.iter().find(|series| series.role == role).expect("a series of the stream");
        let listener = heard.kind.listener().expect("a listener");
        assert_eq!(stream.frames, listener.frames - listener.duplicates + listener.lost, "{role}: {listener:?}");
        assert!(stream.frames * heard.period_ns > 500_000_000, "{role}: {} frames", stream.frames);
        assert_eq!((listener.identity.stream_id.as_str(), listener.other_streams), (stream.stream_id.as_str(), 0));
        assert_eq!(Some(listener.identity.frame_bytes), stream.frame_bytes);
        assert_eq!(listener.identity.destination, stream.destination);
        let one_way = listener.one_way.as_ref().expect("one clock");
        // A wrong transit time makes all frames late; a stall of this machine makes a few late.
        assert!(one_way.late_presentation < listener.frames / 2, "{role}: {one_way:?}");
        let least_ns = one_way.least_slack_ns.expect("presentation times");
        assert_eq!(one_way.late_presentation > 0, least_ns < 0, "{role}: {least_ns} ns");
    }
    let video = record.series.iter().find(|series| series.role == "listener video").unwrap().kind.listener().unwrap();
    assert_eq!((video.identity.pcp, video.identity.vid), (Some(4), Some(5)));
    assert_eq!((video.identity.destination.as_str(), video.identity.format.as_str()), ("91:e0:f0:00:20:01", "61883-6"));
    let capture = record.capture.as_ref().expect("a capture");
    let captured: Vec<_> = capture.streams.iter().map(|stream| stream.frames).collect();
    assert_eq!(captured.len(), 3, "the capture lists each stream");
    let number = &sent[0].stream_id[12..];
    assert!(capture.stream.name.ends_with(number), "{} {number}", capture.stream.name);
}

/// True if the kernel has the ETF queueing discipline, which sends frames at their launch times.
fn has_etf() -> bool {
    let ends = VethPair::create().expect("the right to make namespaces: run as root");
    let put = || sys::qdisc::install_etf(ends.near.index, 50_000);
    ends.near.namespace.run(put).unwrap().is_ok()
}

#[test]
fn launch_times_are_met_or_refused() {
    let _alone = alone();
    let scratch = Scratch::new();
    let arguments = "measure stream --self --mode txtime --wakeup-offset 100us --quiet --record a --duration 1s";
    let run = scratch.run(arguments);
    if !has_etf() {
        let stderr = run.expect_status(1).stderr();
        assert!(stderr.contains("does not support launch times") && stderr.contains("modprobe sch_etf"), "{stderr}");
        return skip("launch times, because this kernel has no ETF queueing discipline");
    }
    run.expect_status(0);
    let record = scratch.record();
    assert_all_frames_counted(&record);
    let ((_, talker), (_, listener)) = (talker(&record), listener(&record));
    let launch = talker.launch.as_ref().expect("the counts of launch times");
    assert_eq!((record.scenario.clock.as_str(), launch.delta_ns, launch.offloaded), ("tai", 50_000, false));
    assert!(launch.invalid <= talker.refused && launch.missed <= listener.lost, "{launch:?}");
}

#[test]
fn launch_times_that_would_be_ignored_are_refused() {
    let ends = VethPair::create().expect("the right to make namespaces: run as root");
    let scratch = Scratch::new();
    let arguments = "measure stream talk near --mode txtime --wakeup-offset auto --duration 1s --quiet --record a";
    let output = inside(&ends.near, &scratch, arguments).wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    let remedy = "near has no ETF discipline for frames of priority 3, so their launch times would be ignored: tc \
                  qdisc replace dev near root etf clockid CLOCK_TAI delta 50000";
    let without_sudo = stderr.replace("sudo ", "");
    assert!(output.status.code() == Some(1) && without_sudo.contains(remedy), "{stderr}");
    assert!(!scratch.record_path().exists(), "nothing was measured");
}

#[test]
fn the_offset_is_calibrated_from_measured_wake_ups() {
    let _alone = alone();
    let scratch = Scratch::new();
    let options = "--wakeup-offset auto --period 2ms --duration 1s --blame=off --profile avb-class-a";
    let run = scratch.run(&format!("measure stream --self {options} --quiet --record a"));
    assert!([0, 2, 3, 4].contains(&run.0.status.code().unwrap()), "{}", run.stderr());
    let record = scratch.record();
    assert_all_frames_counted(&record);
    let (series, talker) = talker(&record);
    let calibration = talker.calibration.as_ref().expect("the calibration");
    // A quarter of the run, 250 ms, of wake-ups every 2 ms, minus the missed ones.
    assert!((1..=126).contains(&calibration.samples), "{calibration:?}");
    assert_eq!(talker.offset_ns, calibration.wanted_ns);
    assert!(calibration.fits == (calibration.max_ns <= 1_600_000) && calibration.wanted_ns <= 1_600_000);
    assert!(talker.curve.iter().any(|point| point.0 == talker.offset_ns));
    assert!(talker.curve.windows(2).all(|pair| pair[0].1 >= pair[1].1), "{:?}", talker.curve);
    assert!(talker.curve[0].1 <= series.samples);
    let judged = &record.uses[0];
    assert_eq!(
        (judged.samples, judged.worst_ns),
        (talker.frames, talker.max_delta_ns),
        "judged by the time of sending"
    );
}

/// Lengths of the delays. Shorter ones could not be distinguished from the delays of this machine.
const LENGTHS_NS: [i64; 3] = [1_000_000, 3_000_000, 9_000_000];
const DELAYS: usize = 30;
const PERIOD_NS: i64 = 125_000;

/// Takes a CPU from all threads below priority 95 at irregular times; returns the begin and end of each time, ns.
fn take(cpu: u32) -> Vec<(i64, i64)> {
    sched::set_affinity(&[cpu]).expect("the right to pin a thread");
    sched::set_policy(sched::Policy::Fifo(95)).expect("the right to real-time policies: run as root");
    let taken = |round: usize| {
        thread::sleep(Duration::from_micros(31_000 + (round * 7_919 % 997) as u64));
        let begin_ns = Clock::Monotonic.now_ns();
        let mut end_ns = begin_ns;
        while end_ns < begin_ns + LENGTHS_NS[round % LENGTHS_NS.len()] {
            end_ns = Clock::Monotonic.now_ns();
        }
        (begin_ns, end_ns)
    };
    (0..DELAYS).map(taken).collect()
}

#[test]
fn each_delay_makes_a_late_packet_and_missed_slots() {
    let _alone = alone();
    repeat_if_stalled(Stall::Realtime(Duration::from_micros(500)), find_delays);
}

fn find_delays() {
    let scratch = Scratch::new();
    let cpu = last_cpu();
    let arguments = format!(
        "measure stream --self --quiet --record a --cpu {cpu} --policy fifo:80 --wakeup-offset 30us --threshold 300us \
         --blame=off --endless"
    );
    let child = scratch.punctual(&arguments).stdout(Stdio::null()).start();
    wait_until("the record exists", || scratch.record_path().exists());
    thread::sleep(Duration::from_millis(300));
    let delays = thread::spawn(move || take(cpu)).join().unwrap();
    thread::sleep(Duration::from_millis(200));
    signal(&child, "INT");
    let status = child.wait_with_output().unwrap().status.code();
    assert!([Some(0), Some(4)].contains(&status), "{status:?}");
    let record = scratch.record();
    assert_all_frames_counted(&record);
    let ((series, talker), (_, listener)) = (talker(&record), listener(&record));
    let mut found = 0;
    let mut slots_in_delays = 0;
    for &(begin_ns, end_ns) in &delays {
        let (begin_ns, end_ns) = (begin_ns - series.first_deadline_ns, end_ns - series.first_deadline_ns);
        let hit = |spike: &&record::Spike| {
            let at_ns = spike.at_ns.cast_signed();
            at_ns < end_ns && at_ns + spike.lateness_ns >= end_ns
        };
        found += usize::from(series.spikes.iter().any(|spike| hit(&spike)));
        // Only slots that begin and end within the delay, because the first one may have its frame already.
        slots_in_delays += ((end_ns - begin_ns) / PERIOD_NS - 2).max(0).cast_unsigned();
    }
    assert!(found * 10 >= DELAYS * 9, "{found} of {DELAYS} delays are among {} spikes", series.spikes.len());
    assert!(talker.late >= found as u64, "{} late", talker.late);
    assert!(talker.missed_slots >= slots_in_delays, "{} missed, {slots_in_delays} in delays", talker.missed_slots);
    let longest_ns = delays.iter().map(|(begin_ns, end_ns)| end_ns - begin_ns).max().unwrap();
    assert!(talker.max_delta_ns.unwrap() >= longest_ns - 2 * PERIOD_NS);
    assert!(
        listener.max_kernel_gap_ns.unwrap().cast_signed() >= longest_ns - PERIOD_NS,
        "{:?}",
        listener.max_kernel_gap_ns
    );
    assert!(listener.gaps >= found as u64);
}

/// A stream like that of a talker of the program.
pub fn stream_from(end: &VethEnd) -> frames::Stream {
    frames::Stream {
        source: end.mac,
        destination: ethernet::multicast_of(end.mac, 9),
        tci: Class::B.tci(),
        stream_id: frames::stream_id(end.mac, 9),
        format: Format::Aaf,
        channels: frames::template::STEREO,
        samples: 12,
    }
}

#[test]
fn lost_duplicate_and_reordered_frames_are_counted_exactly() {
    // A listener that does not run loses frames in its socket.
    repeat_if_stalled(Stall::Ordinary(Duration::from_millis(10)), count_faults);
}

fn count_faults() {
    let ends = VethPair::create().expect("the right to make namespaces: run as root");
    let open = || FrameReceiver::open(&ends.far.interface, ethernet::AVTP, None);
    let receiver = ends.far.namespace.run(open).unwrap().unwrap();
    let sender = ends.near.namespace.run(|| RawSender::open(&ends.near.interface, 2, false)).unwrap().unwrap();
    let settings = ListenerSettings {
        named: Vec::new(),
        expected: Expected {
            stream_id: None,
            period_ns: 250_000,
            transit_ns: 50_000_000,
            tie: ClockTie::SameHost,
            whole: true,
        },
        interface: "far".to_owned(),
        wait: ReceiveWait::Block,
        from: "socket".to_owned(),
        notes: Vec::new(),
        cpu: None,
        policy: sched::Policy::Other,
        clock: Clock::Monotonic,
        talker: None,
    };
    let mut listener = Listener::start(&settings, receiver).unwrap();
    let mut frame = stream_from(&ends.near).frame();
    let mut send = |seq: u64| {
        let now_ns = Clock::Monotonic.now_ns();
        frame.patch(&Payload { run: 5, seq, scheduled_ns: now_ns, woke_ns: now_ns, sent_ns: 0 }, 50_000_000);
        frame.patch_sent(now_ns);
        sender.send(frame.bytes()).unwrap();
    };
    let (mut lost, mut bursts, mut duplicates, mut reordered, mut sent, mut was_lost) = (0, 0, 0, 0, 0, false);
    let mut seq = 0;
    while seq < 3000 {
        let (fate, at) = (seq % 97, seq);
        seq += 1;
        match fate {
            13 | 50..=52 => lost += 1,
            20 => [at, at].into_iter().for_each(&mut send),
            30 => {
                // The three next frames overtake this one.
                [at + 1, at + 2, at + 3, at].into_iter().for_each(&mut send);
                seq += 3;
            }
            _ => send(at),
        }
        let is_lost = matches!(fate, 13 | 50..=52);
        bursts += u64::from(is_lost && !was_lost);
        was_lost = is_lost;
        duplicates += u64::from(fate == 20);
        reordered += u64::from(fate == 30);
        sent += match fate {
            13 | 50..=52 => 0,
            20 => 2,
            30 => 4,
            _ => 1,
        };
        // The queue of the listener is limited.
        if seq % 500 == 0 {
            listener.collect();
        }
    }
    listener.finish(&[(stream_from(&ends.near).stream_id, seq)]);
    let series = listener.series("rest").remove(0);
    let counts = series.kind.listener().unwrap();
    assert_eq!((counts.frames, counts.lost), (sent, lost), "{counts:?}");
    assert_eq!((counts.duplicates, counts.reordered, counts.loss_bursts), (duplicates, reordered, bursts));
    assert_eq!((counts.strays, counts.not_told, counts.wrong_tag, counts.lost_in_socket), (0, 0, 0, Some(0)));
    assert_eq!((counts.identity.pcp, counts.identity.vid, counts.identity.frame_bytes), (Some(2), Some(2), 138));
    // A frame arrives after its slot, and is presented 50 ms after it.
    let margin = counts.one_way.as_ref().and_then(|one_way| one_way.margin.as_ref()).expect("margins");
    assert!(margin.max_ns > 0 && margin.max_ns <= 50_010_000, "{margin:?}");
    assert_eq!(counts.counters.late_timestamp, counts.one_way.as_ref().map(|one_way| one_way.late_presentation));
}

/// Starts the command in one end of the cable, with the `/sys` of that end.
pub fn inside(end: &VethEnd, scratch: &Scratch, arguments: &str) -> Started {
    let script = format!("mount -t sysfs sysfs /sys && exec {PUNCTUAL} {arguments}");
    let start = || {
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", &script]).current_dir(scratch.path()).stdout(Stdio::null());
        command.stdin(Stdio::null()).stderr(Stdio::piped()).start()
    };
    end.namespace.run(start).unwrap()
}

#[test]
fn separate_talker_and_listener_count_the_same_frames() {
    let _alone = alone();
    repeat_if_stalled(Stall::Ordinary(Duration::from_millis(50)), talk_and_listen);
}

/// True if a packet socket is bound to the interface of this end of the cable.
fn is_listening(end: &VethEnd) -> bool {
    // Not `/proc/net`, which shows the namespace of the process.
    let sockets = || std::fs::read_to_string("/proc/thread-self/net/packet").unwrap();
    let interface = end.index.to_string();
    end.namespace.run(sockets).unwrap().lines().any(|line| line.split_whitespace().nth(4) == Some(&interface))
}

fn talk_and_listen() {
    let ends = VethPair::create().expect("the right to make namespaces: run as root");
    let scratch = Scratch::new();
    let listen = "measure stream listen far --quiet --record listener --blame=off";
    let mut listening = inside(&ends.far, &scratch, listen);
    let heard_at = scratch.path().join("listener.punctual.json");
    wait_until("the listener has its socket", || heard_at.exists() && is_listening(&ends.far));
    let talk = "measure stream talk near --unique-id 7 --quiet --record talker --blame=off --duration 1s";
    let talked = inside(&ends.near, &scratch, talk).wait_with_output().unwrap();
    assert_eq!(talked.status.code(), Some(0), "{}", String::from_utf8_lossy(&talked.stderr));
    wait_until("the listener ends with the talker", || listening.try_wait().unwrap().is_some());
    assert_eq!(listening.wait().unwrap().code(), Some(0));
    let sent = record::file::read(&scratch.path().join("talker.punctual.json")).unwrap();
    let heard = record::file::read(&heard_at).unwrap();
    let ((_, talker), (series, listener)) = (talker(&sent), listener(&heard));
    assert_eq!(talker.frames, listener.frames + listener.lost, "{listener:?}");
    assert!(listener.identity.stream_id.ends_with("0007") && series.samples + 1 == listener.frames);
    assert_eq!((listener.one_way.as_ref(), listener.counters.late_timestamp), (None, None), "no common clock is known");
    assert_eq!(heard.series.len(), 1, "a listener has no timer");
}

#[test]
fn a_listener_follows_the_stream_with_its_period_for_its_whole_duration() {
    const LISTED: &str =
        "[[stream]]\nname = \"slow\"\nperiod = \"2ms\"\n[[stream]]\nname = \"wanted\"\nperiod = \"1ms\"\n";
    let _alone = alone();
    repeat_if_stalled(Stall::Ordinary(Duration::from_millis(50)), || {
        let ends = VethPair::create().expect("the right to make namespaces: run as root");
        let scratch = Scratch::new();
        std::fs::write(scratch.path().join("streams.toml"), LISTED).unwrap();
        let listen = |record: &str, options: &str| {
            let command = format!("measure stream listen far --quiet --record {record} --blame=off {options}");
            let listening = inside(&ends.far, &scratch, &command);
            let path = scratch.path().join(format!("{record}.punctual.json"));
            wait_until("the listener has its socket", || path.exists() && is_listening(&ends.far));
            (listening, path)
        };
        let (wanted, wanted_at) = listen("wanted", "--period 1ms --duration 3s");
        // The duration does not include the wait for the talker.
        thread::sleep(Duration::from_secs(1));
        let talk = "measure stream talk near --streams streams.toml --wakeup-offset 0us --quiet --record talker \
                    --blame=off --duration 7s";
        let talking = inside(&ends.near, &scratch, talk);
        assert_eq!(wanted.wait_with_output().unwrap().status.code(), Some(0));
        let (neither, neither_at) = listen("neither", "--period 7ms --duration 1s");
        assert_eq!(neither.wait_with_output().unwrap().status.code(), Some(4));
        let talked = talking.wait_with_output().unwrap();
        assert_eq!(talked.status.code(), Some(0), "{}", String::from_utf8_lossy(&talked.stderr));
        let heard = record::file::read(&wanted_at).unwrap();
        let (_, heard) = listener(&heard);
        assert!(heard.identity.stream_id.ends_with("0001"), "{:?}", heard.identity);
        assert!((2_700..3_300).contains(&(heard.frames + heard.lost)), "{heard:?}");
        let invalid = record::file::read(&neither_at).unwrap();
        let reason = invalid.validity.reasons.iter().find(|reason| reason.id == "stream.other_period").unwrap();
        for words in [":0000 every ", ":0001 every ", " us"] {
            assert!(reason.text.contains(words), "{}", reason.text);
        }
        assert!(reason.remedy.contains("listen far --stream-id ") && reason.remedy.contains("--period "), "{reason:?}");
    });
}

#[test]
fn a_listener_without_frames_is_invalid() {
    let _alone = alone();
    let ends = VethPair::create().expect("the right to make namespaces: run as root");
    let scratch = Scratch::new();
    let listen = "measure stream listen far --quiet --record listener --blame=off --duration 1s";
    let ended = inside(&ends.far, &scratch, listen).wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(4), "{}", String::from_utf8_lossy(&ended.stderr));
    let record = record::file::read(&scratch.path().join("listener.punctual.json")).unwrap();
    let [reason] = &record.validity.reasons[..] else { panic!("{:?}", record.validity) };
    assert_eq!(reason.id, "nothing.measured");
    assert!(reason.text.starts_with("no frame of a stream arrived on far"), "{}", reason.text);
}

/// Sets the interface of this end of the cable up or down; the other end then has a carrier or none.
fn set_link(end: &VethEnd, state: &str) {
    let set = || Command::new("ip").args(["link", "set", &end.interface, state]).status();
    assert!(end.namespace.run(set).unwrap().unwrap().success(), "ip link set {state}");
}

#[test]
fn a_talker_without_a_carrier_does_not_report_success() {
    let _alone = alone();
    let ends = VethPair::create().expect("the right to make namespaces: run as root");
    let scratch = Scratch::new();
    let talk = "measure stream talk near --period 1ms --wakeup-offset 0us --quiet --record a --blame=off --duration 2s";
    let mirror = "measure round-trip near --to 02:00:00:00:00:77 --quiet --record b --blame=off --duration 1s";
    set_link(&ends.far, "down");
    for command in [talk, mirror] {
        let refused = inside(&ends.near, &scratch, command).wait_with_output().unwrap();
        let error = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(refused.status.code() != Some(0) && error.contains("near has no carrier"), "{command}: {error}");
    }
    set_link(&ends.far, "up");
    let talking = inside(&ends.near, &scratch, talk);
    wait_until("the run has begun", || scratch.record_path().exists());
    thread::sleep(Duration::from_millis(500));
    set_link(&ends.far, "down");
    let talked = talking.wait_with_output().unwrap();
    assert_eq!(talked.status.code(), Some(4), "{}", String::from_utf8_lossy(&talked.stderr));
    let record = scratch.record();
    let reason = record.validity.reasons.iter().find(|reason| reason.id == "stream.no_carrier").expect("a reason");
    assert!(
        reason.text.starts_with("near lost its carrier 1 time during the run, and had none at the end"),
        "{reason:?}"
    );
    assert!(reason.text.contains("the interface sent "), "{reason:?}");
}

#[test]
fn a_listener_names_the_streams_that_arrive_instead_of_the_wanted_one() {
    let _alone = alone();
    let ends = VethPair::create().expect("the right to make namespaces: run as root");
    let scratch = Scratch::new();
    let talk = "measure stream talk near --period 1ms --wakeup-offset 0us --unique-id 7 --quiet --record talker \
                --blame=off --duration 4s";
    let talking = inside(&ends.near, &scratch, talk);
    wait_until("the talker has begun", || scratch.path().join("talker.punctual.json").exists());
    // Another talker, and another stream of the same one.
    let [a, b, c, d, e, f] = ends.near.mac;
    let same = format!("{a:02x}{b:02x}{c:02x}{d:02x}{e:02x}{f:02x}0008");
    for (record, wanted) in [("other", "0200000000770001"), ("same", &*same)] {
        let listen = format!(
            "measure stream listen far --stream-id {wanted} --period 1ms --quiet --record {record} --blame=off --duration 1s"
        );
        let heard = inside(&ends.far, &scratch, &listen).wait_with_output().unwrap();
        assert_eq!(heard.status.code(), Some(4), "{}", String::from_utf8_lossy(&heard.stderr));
        let heard = record::file::read(&scratch.path().join(format!("{record}.punctual.json"))).unwrap();
        let [reason] = &heard.validity.reasons[..] else { panic!("{:?}", heard.validity) };
        assert_eq!(reason.id, "stream.absent");
        assert!(reason.text.contains(":0007 (") && reason.remedy.contains(":0007"), "{reason:?}");
    }
    assert_eq!(talking.wait_with_output().unwrap().status.code(), Some(0));
}

/// A simulated ptp4l below `folder`, which sends the recorded responses of a slave. Its PTP time is this machine's
/// CLOCK_TAI. Its offset from the master in ns is the value of `offset_ns`.
fn fake_ptp4l(folder: &Path, offset_ns: Arc<AtomicI64>) {
    const SLAVE: &str = include_str!("../../../../machine/tests/ptp4l/slave.txt");
    const DATA_SET: Range<usize> = 52..54;
    const CURRENT: [u8; 2] = [0x20, 0x01];
    const TIME_PROPERTIES: [u8; 2] = [0x20, 0x03];
    const PTP_TIMESCALE: u8 = 1 << 3;
    let bytes =
        |hex: &str| (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect();
    let recorded = SLAVE.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once(' '));
    let responses: Vec<Vec<u8>> = recorded.map(|(_, hex)| bytes(hex)).collect();
    let tai_offset_s = i16::try_from(sys::timekeeping::kernel_clock().unwrap().tai_offset_s).unwrap();
    let socket = UnixDatagram::bind(folder.join("ptp4l")).unwrap();
    // The thread ends with the test.
    thread::spawn(move || {
        let mut request = [0; 200];
        while let Ok((length, from)) = socket.recv_from(&mut request) {
            let is_answer = |response: &&Vec<u8>| response[DATA_SET] == request[DATA_SET] && response[4] == request[4];
            for response in
                responses.iter().filter(|_| length >= DATA_SET.end && request[0] >> 4 == 0).filter(is_answer)
            {
                let mut response = response.clone();
                if response[DATA_SET] == CURRENT {
                    // In units of 2^-16 ns, after the number of steps.
                    response[56..64].copy_from_slice(&(offset_ns.load(Relaxed) << 16).to_be_bytes());
                }
                if response[DATA_SET] == TIME_PROPERTIES {
                    response[54..56].copy_from_slice(&tai_offset_s.to_be_bytes());
                    response[56] |= PTP_TIMESCALE;
                }
                // The client may have closed its socket already.
                let _ = socket.send_to_addr(&response, &from);
            }
        }
    });
}

#[test]
fn a_lost_synchronisation_is_reported_and_makes_presentation_times_uncertain() {
    let _alone = alone();
    let scratch = Scratch::new();
    let run = tempfile::tempdir().unwrap();
    let offset_ns = Arc::new(AtomicI64::new(900_000));
    fake_ptp4l(run.path(), offset_ns.clone());
    let talk =
        "measure stream --self --require-sync 1us --period 1ms --wakeup-offset 0us --quiet --record a --duration 2s";
    let script = format!("mount --bind {} /run && exec {PUNCTUAL} {talk}", run.path().display());
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", &script]).current_dir(scratch.path()).stdout(Stdio::null());
    let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).start();
    thread::sleep(Duration::from_millis(700));
    assert!(child.try_wait().unwrap().is_none() && !scratch.record_path().exists(), "it waits for the clock");
    offset_ns.store(200, Relaxed);
    wait_until("the run has begun", || scratch.record_path().exists());
    thread::sleep(Duration::from_millis(700));
    offset_ns.store(-5_000, Relaxed);
    let output = child.wait_with_output().unwrap();
    assert!([Some(0), Some(4)].contains(&output.status.code()), "{}", String::from_utf8_lossy(&output.stderr));
    let record = scratch.record();
    let ((_, talker), (_, listener)) = (talker(&record), listener(&record));
    let uncertain = talker.uncertain.expect("it was watched");
    assert!(uncertain > 0 && uncertain < talker.frames, "{uncertain} of {}", talker.frames);
    let heard = listener.counters.timestamp_uncertain;
    assert!(heard <= uncertain && uncertain - heard <= listener.lost, "{heard} of {uncertain}: {listener:?}");
    assert_eq!(record.scenario.clock, "tai");
    let caveat = record.caveats.iter().find(|caveat| caveat.kind == "sync").expect("a caveat");
    assert!(caveat.text.contains("1 times") && caveat.text.contains("5000 ns from its master"), "{}", caveat.text);
}
