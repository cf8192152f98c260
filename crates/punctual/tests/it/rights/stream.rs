//! Streams between two network namespaces: every frame is accounted for, and each delay of ours is found.

use std::{
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use frames::{Class, Format, Payload, ethernet};
use machine::ends::{End, Ends};
use probes::{
    ReceiveWait,
    stream::{
        listener::{Listener, ListenerSettings},
        tracker::Expected,
    },
};
use record::{ClockTie, Record, Series};
use sys::{
    clock::Clock,
    packet::{FrameReceiver, RawSender},
    sched,
};

use crate::harness::{PUNCTUAL, Scratch, alone, last_cpu, signal, wait_until};

pub fn talker(record: &Record) -> (&Series, &record::Talker) {
    let found = record.series.iter().find_map(|series| Some((series, series.kind.talker()?)));
    found.expect("a talker's series")
}

pub fn listener(record: &Record) -> (&Series, &record::Listener) {
    let found = record.series.iter().find_map(|series| Some((series, series.kind.listener()?)));
    found.expect("a listener's series")
}

/// What holds of every run with both ends on one machine.
#[track_caller]
pub fn every_frame_is_accounted_for(record: &Record) {
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
    let one_way = listener.one_way.as_ref().expect("one clock");
    // AF_XDP has no stamps.
    let stamped = if listener.from == "socket" { listener.frames } else { 0 };
    assert_eq!((one_way.whole.total(), one_way.way.total()), (listener.frames, stamped));
    assert_eq!((listener.read_delay.total(), listener.max_kernel_gap_ns.is_some()), (stamped, stamped > 1));
    let tags = (listener.identity.pcp, listener.identity.vid);
    assert_eq!(tags, (talker.identity.pcp, talker.identity.vid), "the tag that was sent is the one that came");
}

#[test]
fn frames_that_were_sent_came_or_are_counted_as_lost() {
    let _alone = alone();
    for (options, tag, bytes, format) in [
        ("--wakeup-offset 30us", (3, 2), 90, "aaf"),
        ("--class B --format 61883-6 --mode bypass --spin", (2, 2), 146, "61883-6"),
        ("--period 1ms --busy-poll 50us", (3, 2), 90, "aaf"),
        ("--wakeup-offset 30us --mode tx-ring", (3, 2), 90, "aaf"),
    ] {
        let scratch = Scratch::new();
        scratch.run(&format!("measure stream --self {options} --quiet --record a --duration 1s")).expect_status(0);
        let record = scratch.record();
        every_frame_is_accounted_for(&record);
        let (series, talker) = talker(&record);
        let identity = &talker.identity;
        assert_eq!((identity.pcp, identity.vid), (Some(tag.0), Some(tag.1)), "{options}");
        assert_eq!((identity.frame_bytes, identity.format.as_str()), (bytes, format), "{options}");
        // One slot a period, the one at the end included where it was reached; a late wake-up may run over it.
        let slots = talker.frames + talker.refused + talker.missed_slots;
        let last = 1_000_000_000 / series.period_ns + 1;
        let overrun = (talker.max_delta_ns.unwrap_or_default() as u64 + talker.offset_ns) / series.period_ns + 1;
        assert!(
            (last - overrun.min(last)..=last + overrun).contains(&slots),
            "{slots} of {last}, {overrun}: {talker:?}"
        );
        assert_eq!(series.granted.policy, "fifo:90");
        assert!(series.granted.memory_locked);
        let value = serde_json::to_value(&record).unwrap();
        let validator = jsonschema::validator_for(&record::json_schema()).unwrap();
        assert!(validator.is_valid(&value), "{options}");
        let shown = scratch.run("show a.punctual.json").expect_status(0).stdout();
        for told in ["Late packets = ", "Max delta = ", "missed slots", "1722.1: FRAMES_RX "] {
            assert!(shown.contains(told), "{told} in {shown}");
        }
    }
}

/// Has the kernel of this machine the discipline that keeps launch times?
fn has_etf() -> bool {
    let ends = Ends::make().expect("the right to make namespaces: run as root");
    let put = || sys::qdisc::keep_launch_times(ends.near.index, 50_000);
    ends.near.namespace.run(put).unwrap().is_ok()
}

#[test]
fn launch_times_are_kept_or_refused() {
    let _alone = alone();
    let scratch = Scratch::new();
    let arguments = "measure stream --self --mode txtime --wakeup-offset 100us --quiet --record a --duration 1s";
    let run = scratch.run(arguments);
    if !has_etf() {
        let said = run.expect_status(1).stderr();
        assert!(
            said.contains("cannot keep frames until their launch times") && said.contains("modprobe sch_etf"),
            "{said}"
        );
        eprintln!("SKIPPED: whether launch times are kept, as this kernel has no ETF discipline");
        return;
    }
    run.expect_status(0);
    let record = scratch.record();
    every_frame_is_accounted_for(&record);
    let ((_, talker), (_, listener)) = (talker(&record), listener(&record));
    let launch = talker.launch.as_ref().expect("what became of them");
    assert_eq!((record.scenario.clock.as_str(), launch.delta_ns, launch.offloaded), ("tai", 50_000, false));
    assert!(launch.invalid <= talker.refused && launch.missed <= listener.lost, "{launch:?}");
}

#[test]
fn launch_times_that_would_be_ignored_are_refused() {
    let ends = Ends::make().expect("the right to make namespaces: run as root");
    let scratch = Scratch::new();
    let arguments = "measure stream talk near --mode txtime --wakeup-offset auto --duration 1s --quiet --record a";
    let output = inside(&ends.near, &scratch, arguments).wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let remedy = "near has no ETF discipline for frames of priority 3, so that their launch times would be ignored: sudo tc \
                  qdisc replace dev near root etf clockid CLOCK_TAI delta 50000";
    assert!(output.status.code() == Some(1) && said.contains(remedy), "{said}");
    assert!(!scratch.record_path().exists(), "nothing was measured");
}

#[test]
fn a_calibrated_offset_comes_from_this_machines_wake_ups() {
    let _alone = alone();
    let scratch = Scratch::new();
    let options = "--wakeup-offset auto --period 2ms --duration 1s --blame=off --profile avb-class-a";
    let run = scratch.run(&format!("measure stream --self {options} --quiet --record a"));
    assert!([0, 2, 3, 4].contains(&run.0.status.code().unwrap()), "{}", run.stderr());
    let record = scratch.record();
    every_frame_is_accounted_for(&record);
    let (series, talker) = talker(&record);
    let calibration = talker.calibration.as_ref().expect("how the offset was found");
    // 5 s of wake-ups every 2 ms, but for those that were missed.
    assert!((1..=2501).contains(&calibration.samples), "{calibration:?}");
    assert_eq!(talker.offset_ns, calibration.wanted_ns);
    assert!(calibration.fits == (calibration.max_ns <= 1_600_000) && calibration.wanted_ns <= 1_600_000);
    assert!(talker.curve.iter().any(|point| point.0 == talker.offset_ns));
    assert!(talker.curve.windows(2).all(|pair| pair[0].1 >= pair[1].1), "{:?}", talker.curve);
    assert!(talker.curve[0].1 <= series.samples);
    let judged = &record.uses[0];
    assert_eq!((judged.samples, judged.worst_ns), (talker.frames, talker.max_delta_ns), "by when it sent");
}

/// Lengths of the delays; shorter ones would drown in this machine's own.
const LENGTHS_NS: [i64; 3] = [1_000_000, 3_000_000, 9_000_000];
const DELAYS: usize = 30;
const PERIOD_NS: i64 = 125_000;

/// Takes a CPU from everything below priority 95; begin and end of each time, ns.
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
fn each_delay_makes_a_late_packet_and_its_missed_slots() {
    let _alone = alone();
    let scratch = Scratch::new();
    let cpu = last_cpu();
    let arguments = format!(
        "measure stream --self --quiet --record a --cpu {cpu} --policy fifo:80 --wakeup-offset 30us --threshold 300us \
         --blame=off --endless"
    );
    let child = scratch.punctual(&arguments).stdout(Stdio::null()).spawn().unwrap();
    wait_until("the record exists", || scratch.record_path().exists());
    thread::sleep(Duration::from_millis(300));
    let delays = thread::spawn(move || take(cpu)).join().unwrap();
    thread::sleep(Duration::from_millis(200));
    signal(&child, "INT");
    let status = child.wait_with_output().unwrap().status.code();
    assert!([Some(0), Some(4)].contains(&status), "{status:?}");
    let record = scratch.record();
    every_frame_is_accounted_for(&record);
    let ((series, talker), (_, listener)) = (talker(&record), listener(&record));
    let mut found = 0;
    let mut slots_in_delays = 0;
    for &(begin_ns, end_ns) in &delays {
        let (begin_ns, end_ns) = (begin_ns - series.first_deadline_ns, end_ns - series.first_deadline_ns);
        let struck = |spike: &&record::Spike| {
            let at_ns = spike.at_ns as i64;
            at_ns < end_ns && at_ns + spike.lateness_ns >= end_ns
        };
        found += usize::from(series.spikes.iter().any(|spike| struck(&spike)));
        // Slots that began and ended within; one that had its frame before is none.
        slots_in_delays += ((end_ns - begin_ns) / PERIOD_NS - 2).max(0) as u64;
    }
    assert!(found * 10 >= DELAYS * 9, "{found} of {DELAYS} delays are among {} spikes", series.spikes.len());
    assert!(talker.late >= found as u64, "{} late", talker.late);
    assert!(talker.missed_slots >= slots_in_delays, "{} missed, {slots_in_delays} in delays", talker.missed_slots);
    let longest_ns = delays.iter().map(|(begin_ns, end_ns)| end_ns - begin_ns).max().unwrap();
    assert!(talker.max_delta_ns.unwrap() >= longest_ns - 2 * PERIOD_NS);
    assert!(listener.max_kernel_gap_ns.unwrap() as i64 >= longest_ns - PERIOD_NS, "{:?}", listener.max_kernel_gap_ns);
    assert!(listener.gaps >= found as u64);
}

/// Frames of a stream as a talker of ours would lay them.
pub fn stream_from(end: &End) -> frames::Stream {
    frames::Stream {
        source: end.mac,
        destination: ethernet::multicast_of(end.mac, 9),
        tci: Class::B.tci(),
        stream_id: frames::stream_id(end.mac, 9),
        format: Format::Aaf,
        samples: 12,
    }
}

#[test]
fn what_was_done_to_frames_on_the_way_is_counted_exactly() {
    let ends = Ends::make().expect("the right to make namespaces: run as root");
    let open = || FrameReceiver::open(&ends.far.interface, ethernet::AVTP, None);
    let receiver = ends.far.namespace.run(open).unwrap().unwrap();
    let sender = ends.near.namespace.run(|| RawSender::open(&ends.near.interface, 2, false)).unwrap().unwrap();
    let settings = ListenerSettings {
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
                // This one overtaken by the three that follow.
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
        // The receiver's queue is long, but not endless.
        if seq % 500 == 0 {
            listener.collect();
        }
    }
    listener.finish(Some(seq));
    let series = listener.series("rest");
    let told = series.kind.listener().unwrap();
    assert_eq!((told.frames, told.lost), (sent, lost), "{told:?}");
    // A frame that overtakes opens a gap for as long as the other takes.
    assert_eq!((told.duplicates, told.reordered, told.loss_bursts), (duplicates, reordered, bursts + reordered));
    assert_eq!((told.strays, told.not_told, told.wrong_tag, told.lost_in_socket), (0, 0, 0, Some(0)));
    assert_eq!((told.identity.pcp, told.identity.vid, told.identity.frame_bytes), (Some(2), Some(2), 138));
    assert_eq!(told.counters.late_timestamp, told.one_way.as_ref().map(|one_way| one_way.late_presentation));
}

/// The command inside one end of the cable, with the interfaces of that end in its /sys.
pub fn inside(end: &End, scratch: &Scratch, arguments: &str) -> Child {
    let script = format!("mount -t sysfs sysfs /sys && exec {PUNCTUAL} {arguments}");
    let start = || {
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", &script]).current_dir(scratch.path()).stdout(Stdio::null());
        command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn()
    };
    end.namespace.run(start).unwrap().expect("unshare, of util-linux")
}

#[test]
fn a_talker_and_a_listener_that_know_nothing_of_each_other() {
    let _alone = alone();
    let ends = Ends::make().expect("the right to make namespaces: run as root");
    let scratch = Scratch::new();
    let heard = "measure stream listen far --quiet --record heard --blame=off";
    let mut listening = inside(&ends.far, &scratch, heard);
    let heard_at = scratch.path().join("heard.punctual.json");
    wait_until("it listens", || heard_at.exists());
    // Its socket is open once its first record is on disk and its thread is there.
    thread::sleep(Duration::from_millis(500));
    let said = "measure stream talk near --unique-id 7 --quiet --record said --blame=off --duration 1s";
    let talked = inside(&ends.near, &scratch, said).wait_with_output().unwrap();
    assert_eq!(talked.status.code(), Some(0), "{}", String::from_utf8_lossy(&talked.stderr));
    wait_until("it ends with the talker", || listening.try_wait().unwrap().is_some());
    assert_eq!(listening.wait().unwrap().code(), Some(0));
    let said = record::file::read(&scratch.path().join("said.punctual.json")).unwrap();
    let heard = record::file::read(&heard_at).unwrap();
    let ((_, talker), (series, listener)) = (talker(&said), listener(&heard));
    assert_eq!(talker.frames, listener.frames + listener.lost, "{listener:?}");
    assert!(listener.identity.stream_id.ends_with("0007") && series.samples + 1 == listener.frames);
    assert_eq!(
        (listener.one_way.as_ref(), listener.counters.late_timestamp),
        (None, None),
        "two clocks, for all it knows"
    );
    assert_eq!(heard.series.len(), 1, "no timer ran beside it");
}
