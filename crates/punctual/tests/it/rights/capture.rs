//! A stream captured while it runs: the file holds what the listener saw, and the record says what both saw.

use std::fs;

use capture::Reader;
use machine::ends::Ends;
use record::{CAPTURE, Measured, ObservedAt, Record, file};

use super::stream::{every_frame_is_accounted_for, inside, listener, talker};
use crate::harness::{Scratch, alone};

/// Frames of the file, read to its end.
fn frames_of(scratch: &Scratch, name: &str) -> u64 {
    let mut reader = Reader::new(fs::File::open(scratch.path().join(name)).expect("the capture")).unwrap();
    while let Some(packet) = reader.next().unwrap() {
        let parsed = frames::parse(packet.data).unwrap();
        assert!(parsed.probe.is_some() && parsed.vlan.is_some(), "whole frames of ours, with their tag");
        assert_eq!(packet.data.len(), packet.length as usize);
    }
    assert_eq!((reader.cut_at(), reader.interfaces().len(), reader.interfaces()[0].dropped), (None, 1, 0));
    reader.frames()
}

fn captured(record: &Record) -> &record::Capture {
    let capture = record.capture.as_ref();
    capture.unwrap_or_else(|| panic!("what the capture tells: {:?}", record.caveats))
}

#[test]
fn what_was_captured_is_what_the_listener_had() {
    let _alone = alone();
    for options in ["--wakeup-offset 30us", "--class B --mode bypass", "--mode tx-ring --spin"] {
        let scratch = Scratch::new();
        let arguments = format!(
            "measure stream --self {options} --quiet --record a --capture a.pcapng --duration 1s --profile avb-class-a \
             --export a.html"
        );
        let run = scratch.run(&arguments);
        assert!([0, 2, 3].contains(&run.0.status.code().unwrap()), "{}", run.stderr());
        let record = scratch.record();
        every_frame_is_accounted_for(&record);
        let ((_, talker), (_, listener), capture) = (talker(&record), listener(&record), captured(&record));
        assert_eq!(frames_of(&scratch, "a.pcapng"), capture.frames);
        assert_eq!((capture.frames, capture.lost, capture.dropped), (listener.frames, listener.lost, 0), "{options}");
        assert_eq!(capture.frames + capture.lost, talker.frames, "{options}");
        // The same stamps, which the listener tells on its own clock.
        let stamped_ns = listener.max_kernel_gap_ns.unwrap() as i64;
        let apart_ns = (capture.max_gap_ns.unwrap() - stamped_ns).abs();
        assert!(apart_ns <= 1_000, "{apart_ns} ns of {stamped_ns} ns");
        let observer = capture.observer.as_ref().expect("who saw it");
        assert_eq!((observer.interface.as_str(), observer.at), ("far", ObservedAt::Receiving));
        let series = record.series.iter().find(|series| series.role == CAPTURE).expect("its lateness");
        assert_eq!(series.phase, record.phases[0].name);
        assert!(record.caveats.iter().any(|caveat| caveat.kind == "observer"), "{:?}", record.caveats);
        let value = serde_json::to_value(&record).unwrap();
        assert!(jsonschema::validator_for(&record::json_schema()).unwrap().is_valid(&value), "{options}");
        let shown = scratch.run("show a.punctual.json").stdout();
        let html = fs::read_to_string(scratch.path().join("a.html")).unwrap();
        for told in ["Captured meanwhile: a.pcapng", "listener, as stamped", "Capture and listener agree"] {
            assert!(shown.contains(told) && html.contains(told), "{told} in {shown}");
        }
        // The same analysis, of the same file.
        let alone = scratch.run("capture a.pcapng --json").expect_status(0).stdout();
        let alone = file::parse(alone.as_bytes()).unwrap();
        let alone = captured(&alone);
        assert_eq!((alone.frames, alone.max_gap_ns, alone.lost), (capture.frames, capture.max_gap_ns, capture.lost));
        assert_eq!((&alone.worst_gaps, alone.observer.as_ref()), (&capture.worst_gaps, None));
    }
}

#[test]
fn a_talker_alone_is_captured_where_its_frames_leave() {
    let _alone = alone();
    let ends = Ends::make().expect("the right to make namespaces: run as root");
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
    let observer = capture.observer.as_ref().expect("who saw it");
    assert_eq!((observer.interface.as_str(), observer.at), ("near", ObservedAt::Sending));
    assert_eq!((frames_of(&scratch, "a.pcapng"), capture.frames, capture.lost), (talker.frames, talker.frames, 0));
    assert!(capture.stream.name.ends_with(":0007"), "{}", capture.stream.name);
    // Frames that pass by there cannot be captured, which is said before any is sent.
    let output = talk("--mode bypass");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        output.status.code() == Some(64) && said.contains("a capture on this machine would see no frame"),
        "{said}"
    );
}

#[test]
fn a_campaign_keeps_a_capture_beside_each_record() {
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
    let run = scratch.run("run net.toml --dir out --quiet");
    assert!([0, 2, 3].contains(&run.0.status.code().unwrap()), "{}{}", run.stdout(), run.stderr());
    let campaign = file::read_campaign(&scratch.path().join("out/campaign.json")).unwrap();
    let entry = &campaign.scenarios[0];
    let record = file::read(&scratch.path().join("out").join(&entry.record)).unwrap();
    let (capture, name) = (captured(&record), format!("out/{}", entry.record.replace(".json", ".pcapng")));
    assert_eq!(frames_of(&scratch, &name), capture.frames);
    let roles = &entry.result.as_ref().expect("it ran").roles;
    let role = roles.iter().find(|role| role.measured == Measured::Spacing).expect("the capture's figures");
    assert_eq!((role.role.as_str(), role.samples, role.max_ns), (CAPTURE, capture.frames, capture.max_gap_ns));
    assert_eq!((role.late, role.lost), (Some(capture.late), Some(capture.lost)));
    for words in ["Max spacing in the capture", "Frames captured", "max spacing"] {
        assert!(run.stdout().contains(words), "{words}: {}", run.stdout());
    }
}
