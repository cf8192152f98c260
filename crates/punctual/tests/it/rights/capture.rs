//! A stream that is captured while it runs: the file, the listener and the record agree.

use std::{fs, time::Duration};

use capture::Reader;
use machine::veth::VethPair;
use record::{CAPTURE, Measured, ObservedAt, Record, file};
use stalls::{Stall, repeat_if_stalled};

use super::stream::{assert_all_frames_counted, inside, listener, talker};
use crate::harness::{Scratch, alone};

/// The number of frames in the file.
fn frames_of(scratch: &Scratch, name: &str) -> u64 {
    let mut reader = Reader::new(fs::File::open(scratch.path().join(name)).expect("the capture")).unwrap();
    while let Some(packet) = reader.next().unwrap() {
        let parsed = frames::parse(packet.data).unwrap();
        assert!(parsed.probe.is_some() && parsed.vlan.is_some(), "whole frames of the probe, with their tag");
        assert_eq!(packet.data.len(), packet.length as usize);
    }
    assert_eq!((reader.cut_at(), reader.interfaces().len(), reader.interfaces()[0].dropped), (None, 1, Some(0)));
    reader.frames()
}

fn captured(record: &Record) -> &record::Capture {
    let capture = record.capture.as_ref();
    capture.unwrap_or_else(|| panic!("no capture: {:?}", record.caveats))
}

#[test]
fn capture_and_listener_see_the_same_frames() {
    let _alone = alone();
    for options in ["--wakeup-offset 30us", "--class B --mode bypass", "--mode tx-ring --spin"] {
        // The capturing thread is an ordinary one.
        repeat_if_stalled(Stall::Ordinary(Duration::from_millis(50)), || capture_both_ends(options));
    }
}

fn capture_both_ends(options: &str) {
    let scratch = Scratch::new();
    let arguments = format!(
        "measure stream --self {options} --quiet --record a --capture a.pcapng --duration 1s --profile avb-class-a \
             --export a.html"
    );
    let run = scratch.run(&arguments);
    assert!([0, 2, 3].contains(&run.0.status.code().unwrap()), "{}", run.stderr());
    let record = scratch.record();
    assert_all_frames_counted(&record);
    let ((_, talker), (_, listener), capture) = (talker(&record), listener(&record), captured(&record));
    assert_eq!(frames_of(&scratch, "a.pcapng"), capture.frames);
    assert_eq!(
        (capture.frames, capture.lost.unwrap(), capture.dropped),
        (listener.frames, listener.lost, Some(0)),
        "{options}"
    );
    assert_eq!(capture.frames + capture.lost.unwrap(), talker.frames, "{options}");
    // The same timestamps, which the listener converts to its own clock.
    let stamped_ns = listener.max_kernel_gap_ns.unwrap().cast_signed();
    let apart_ns = (capture.max_gap_ns.unwrap() - stamped_ns).abs();
    assert!(apart_ns <= 1_000, "{apart_ns} ns of {stamped_ns} ns");
    let observer = capture.observer.as_ref().expect("the observer");
    assert_eq!((observer.interface.as_str(), observer.at), ("far", ObservedAt::Receiving));
    let series = record.series.iter().find(|series| series.role == CAPTURE).expect("the series of the capture");
    assert_eq!(series.phase, record.phases[0].name);
    assert!(record.caveats.iter().any(|caveat| caveat.kind == "observer"), "{:?}", record.caveats);
    let value = serde_json::to_value(&record).unwrap();
    assert!(jsonschema::validator_for(&record::json_schema()).unwrap().is_valid(&value), "{options}");
    let shown = scratch.run("show --full a.punctual.json").stdout();
    let html = fs::read_to_string(scratch.path().join("a.html")).unwrap();
    for text in ["Capture of this run: a.pcapng", "listener, as stamped", "Capture and listener agree"] {
        assert!(shown.contains(text) && html.contains(text), "{text} in {shown}");
    }
    // The command `capture` finds the same in the file.
    let read = scratch.run("capture a.pcapng --json").expect_status(0).stdout();
    let read = file::parse(read.as_bytes()).unwrap();
    let read = captured(&read);
    assert_eq!(
        (read.frames, read.max_gap_ns, read.lost.unwrap()),
        (capture.frames, capture.max_gap_ns, capture.lost.unwrap())
    );
    assert_eq!((&read.worst_gaps, read.observer.as_ref()), (&capture.worst_gaps, None));
}

#[test]
fn a_talker_without_listener_is_captured_at_the_sender() {
    let _alone = alone();
    repeat_if_stalled(Stall::Ordinary(Duration::from_millis(50)), capture_the_talker);
}

fn capture_the_talker() {
    let ends = VethPair::create().expect("the right to make namespaces: run as root");
    let scratch = Scratch::new();
    let talk = |options: &str| {
        let arguments =
            format!("measure stream talk near --quiet --record a --capture a.pcapng --duration 500ms {options}");
        inside(&ends.near, &scratch, &arguments).wait_with_output().unwrap()
    };
    let output = talk("--unique-id 7");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let record = scratch.record();
    let ((_, talker), capture) = (talker(&record), captured(&record));
    let observer = capture.observer.as_ref().expect("the observer");
    assert_eq!((observer.interface.as_str(), observer.at), ("near", ObservedAt::Sending));
    assert_eq!(
        (frames_of(&scratch, "a.pcapng"), capture.frames, capture.lost.unwrap()),
        (talker.frames, talker.frames, 0)
    );
    assert!(capture.stream.name.ends_with(":0007"), "{}", capture.stream.name);
    // Frames that bypass the capture are refused before any is sent.
    let output = talk("--mode bypass");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        output.status.code() == Some(64) && stderr.contains("a capture on this machine would see no frame"),
        "{stderr}"
    );
}

#[test]
fn a_campaign_writes_a_capture_for_each_record() {
    let _alone = alone();
    let scratch = Scratch::new();
    let text = r#"
        name = "net"
        profiles = ["avb-class-a"]
        [probe]
        kind = "stream"
        duration = "500ms"
        capture = true
        blame = "off"
        [placement]
        cpus = "last"
    "#;
    fs::write(scratch.path().join("net.toml"), text).unwrap();
    let run = scratch.run("run net.toml --full --dir out");
    assert!([0, 2, 3].contains(&run.0.status.code().unwrap()), "{}{}", run.stdout(), run.stderr());
    let campaign = file::read_campaign(&scratch.path().join("out/campaign.json")).unwrap();
    let entry = &campaign.scenarios[0];
    let record = file::read(&scratch.path().join("out").join(&entry.record)).unwrap();
    let (capture, name) = (captured(&record), format!("out/{}", entry.record.replace(".json", ".pcapng")));
    assert_eq!(frames_of(&scratch, &name), capture.frames);
    let roles = &entry.result.as_ref().expect("it ran").roles;
    let role = roles.iter().find(|role| role.measured == Measured::Spacing).expect("the figures of the capture");
    assert_eq!((role.role.as_str(), role.samples, role.max_ns), (CAPTURE, capture.frames, capture.max_gap_ns));
    assert_eq!((role.late, role.lost), (Some(capture.late.unwrap()), Some(capture.lost.unwrap())));
    for words in ["Max spacing in the capture", "Frames captured", "max spacing"] {
        assert!(run.stdout().contains(words), "{words}: {}", run.stdout());
    }
}
