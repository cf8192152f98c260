//! `capture`: files with known faults.

#[path = "../../../capture/tests/support/mod.rs"]
mod support;

use record::{Capture, Outcome, Record};

use super::harness::{Run, Scratch};
use support::{LITTLE, Pcapng, Seen, Talker, pcap, scatter};

/// 50 000 frames, 6.25 s of class A, one of them `late_ns` late.
fn talk(late_ns: i64) -> Vec<Seen> {
    let mut talker = Talker::new(1);
    let mut frames = talker.steady(50_000);
    frames[31_000] = talker.seen(31_000, 31_000 * 125_000 + scatter(31_000) + late_ns);
    frames
}

fn run(file: &[u8], arguments: &str) -> (Scratch, Run) {
    let scratch = Scratch::new();
    std::fs::write(scratch.path().join("talk.pcap"), file).unwrap();
    let run = scratch.run(&format!("capture talk.pcap --full {arguments}"));
    (scratch, run)
}

fn judged(run: &Run) -> (Record, Capture) {
    let record = record::file::parse(run.stdout().as_bytes()).unwrap();
    let capture = record.capture.clone().unwrap();
    (record, capture)
}

#[test]
fn a_stream_without_faults_is_on_time_so_far_and_is_recorded() {
    let (scratch, run) = run(&pcap(LITTLE, true, 1, &talk(0)), "--profile avb-class-a --record a --export a.csv");
    let page = run.expect_status(3).stdout();
    for text in [
        "Late packets (as captured) = 0",
        "Max delta (as captured) = ",
        "class A, from its priority",
        "none late so far",
        "Stream 30:64:3e:54:ee:01:0001",
    ] {
        assert!(page.contains(text), "{text} in\n{page}");
    }
    assert!(run.stderr().contains("record  a.punctual.json"), "{}", run.stderr());
    let record = scratch.record();
    let value = serde_json::to_value(&record).unwrap();
    let validator = jsonschema::validator_for(&record::json_schema()).unwrap();
    let errors: Vec<_> = validator.iter_errors(&value).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
    assert_eq!((&value["capture"]["frames"], &value["capture"]["lost"]), (&50_000.into(), &0.into()));
    assert!(value["capture"]["max_gap_ns"].as_i64().is_some_and(|ns| ns < 125_300));
    assert!(std::fs::read_to_string(scratch.path().join("a.csv")).unwrap().contains("capture,capture,,125000,raw,"));
    let shown = scratch.run("show --full a.punctual.json").expect_status(3).stdout();
    assert!(shown.contains("Late packets (as captured) = 0"), "{shown}");
    scratch.run("show a.punctual.json --export a.html").expect_status(3);
}

#[test]
fn the_verdict_determines_the_exit_status() {
    let file = pcap(LITTLE, true, 1, &talk(60_000));
    let (_, fails) = run(&file, "--profile avb-class-a --json");
    let (record, capture) = judged(fails.expect_status(2));
    assert_eq!((capture.late.unwrap(), capture.worst_late[0].frame), (1, 31_001));
    assert!((capture.worst_late[0].ns - 60_000).abs() < 300);
    assert_eq!(record.verdict.unwrap().outcome, Outcome::Fail);
    let (_, done) = run(&file, "");
    // 60 us are less than half a period.
    for text in ["Late packets (as captured) = 0\n", "more than 1.25 us behind: 1;"] {
        assert!(done.expect_status(0).stdout().contains(text), "{}", done.stdout());
    }
    // Inconclusive: too few frames, stamps of 1 ms for a limit of 50 us, a profile with another period.
    let (_, short) = run(&pcap(LITTLE, true, 1, &talk(0)[..2_000]), "--profile avb-class-a");
    assert!(short.expect_status(3).stdout().contains("none late so far, at 95 % fewer than 720 stalls a minute"));
    let coarse: Vec<_> =
        talk(0).iter().map(|seen| Seen { at_ns: seen.at_ns / 1_000_000 * 1_000_000, ..seen.clone() }).collect();
    let (_, coarse) = run(&pcap(LITTLE, true, 1, &coarse), "--profile avb-class-a");
    let page = coarse.expect_status(3).stdout().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(page.contains("timestamps are multiples of 1 ms, too coarse for a period of 125 us"), "{page}");
    let (_, other) = run(&file, "--profile cnc-servo-1ms");
    let page = other.expect_status(3).stdout().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(page.contains("but the use needs one every 1 ms"), "{page}");
}

#[test]
fn lost_frames_and_other_streams_are_counted() {
    let mut file = Pcapng::new(LITTLE);
    file.interface(1, Some(9), 0);
    let mut frames = talk(0);
    frames.drain(20_000..20_300);
    let mut other = Talker::plain(2);
    frames.extend((0..5_000).map(|seq| other.seen(seq, seq.cast_signed() * 250_000 + 60_000)));
    frames.sort_by_key(|seen| seen.at_ns);
    frames.iter().for_each(|seen| {
        file.packet(seen);
    });
    let (_, failed) = run(&file.bytes, "--json --profile avb-class-a");
    let (record, capture) = judged(failed.expect_status(2));
    assert_eq!(
        (capture.lost.unwrap(), capture.losses.unwrap(), capture.longest_loss.unwrap(), capture.late.unwrap()),
        (300, 1, 300, 0)
    );
    assert_eq!((capture.frames, capture.streams.len()), (49_700, 2));
    assert!(record.verdict.unwrap().reason.contains("300 slots without a frame (300 lost, 0 skipped)"));
    let (_, chosen) = run(&file.bytes, "--stream-id 30:64:3e:54:ee:02:0002 --period 250us");
    let page = chosen.expect_status(0).stdout().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(page.contains("5,000 frames in 1.25 s") && !page.contains("Streams in the file"), "{page}");
}

#[test]
fn refuses_unreadable_files_and_unknown_streams() {
    let frames = &talk(0)[..100];
    let whole = pcap(LITTLE, true, 1, frames);
    let refused = |file: &[u8], arguments: &str, status: i32, error: &str| {
        let (scratch, run) = run(file, arguments);
        let errors = run.expect_status(status).stderr();
        assert!(errors.contains(error), "expected: {error}\ngot: {errors}");
        assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 1, "it must leave no file");
    };
    refused(b"MZ and more of it, far more", "", 1, "error: talk.pcap: not a capture");
    refused(b"", "", 1, "no frames in the file");
    refused(&pcap(LITTLE, true, 1, &[]), "", 1, "no frames in the file");
    refused(&pcap(LITTLE, true, 101, frames), "", 1, "link type 101 is neither Ethernet (1)");
    refused(&whole, "--vlan 7", 1, "no stream found for frames on VLAN 7; other frames: 100 of EtherType 0x22f0");
    refused(&whole, "--udp 9", 1, "no stream found for UDP port 9");
    refused(&whole, "--record /nonexistent/folder/a", 1, "cannot write /nonexistent/folder/a.punctual.json");
    refused(&whole, "--stream-id 12", 64, "must be 16 hexadecimal digits");
    refused(&whole, "--source 12", 64, "must be six bytes");
    refused(&whole, "--vlan 4096", 64, "4096");
    refused(&whole, "--ethertype 5", 64, "must be 0x0600 to 0xffff");
    refused(&whole, "--udp 9 --ethertype 0x88f7", 64, "cannot be used with");
    refused(&whole, "--idle-slope 7", 64, "must be a number with bit, kbit, Mbit or Gbit");
    let above = "--idle-slope must be at most --link-speed, 100,000,000 bit/s (got 200,000,000 bit/s)";
    refused(&whole, "--idle-slope 200Mbit --link-speed 100Mbit", 64, above);
    refused(&whole, "--profile avb-klass-a", 64, "avb-class-a");
    let missing = Scratch::new().run("capture nothing.pcap");
    let errors = missing.expect_status(1).stderr();
    assert_eq!(
        errors,
        "error: nothing.pcap: cannot open the file: No such file or directory (os error 2); check its name and folder\n"
    );
    let (_, cut) = run(&whole[..whole.len() - 3], "");
    assert!(cut.expect_status(0).stdout().contains("the file ends inside a frame"), "{}", cut.stdout());
}

#[test]
fn streams_are_selected_by_number_and_files_are_read_from_the_standard_input() {
    let (mut first, mut second) = (Talker::new(1), Talker::new(2));
    let mut frames = [first.steady(2_000), second.steady(1_000)].concat();
    frames.sort_by_key(|seen| seen.at_ns);
    let (scratch, listed) = run(&pcap(LITTLE, true, 1, &frames), "");
    let page = listed.expect_status(0).stdout();
    assert!(page.contains("select another one with --stream NUMBER"), "{page}");
    let selected = scratch.run("capture talk.pcap --json --stream 2").expect_status(0).stdout();
    let capture = record::file::parse(selected.as_bytes()).unwrap().capture.unwrap();
    assert_eq!((capture.frames, &capture.stream), (1_000, &capture.streams[1]));
    let (reader, mut writer) = std::io::pipe().unwrap();
    let write = std::thread::spawn(move || std::io::Write::write_all(&mut writer, selected.as_bytes()));
    let shown = Run(scratch.punctual("show /dev/stdin").stdin(reader).output().unwrap()).expect_status(0).stdout();
    write.join().unwrap().unwrap();
    assert!(shown.contains("of 1,000 frames"), "{shown}");
    let wrong = scratch.run("capture talk.pcap --stream 3");
    wrong.expect_status(1);
    assert!(wrong.stderr().contains("no stream 3: the file has 2 such streams"), "{}", wrong.stderr());
    // The standard input can be read twice only if it is a file.
    let file = std::fs::File::open(scratch.path().join("talk.pcap")).unwrap();
    let redirected = Run(scratch.punctual("capture - --json").stdin(file).output().unwrap()).expect_status(0).stdout();
    assert_eq!(record::file::parse(redirected.as_bytes()).unwrap().capture.unwrap().frames, 2_000);
    let (reader, _writer) = std::io::pipe().unwrap();
    let piped = Run(scratch.punctual("capture -").stdin(reader).output().unwrap());
    assert!(piped.expect_status(1).stderr().contains("-: a pipe cannot be read twice"), "{}", piped.stderr());
    let zero = scratch.run("capture talk.pcap --stream 0");
    zero.expect_status(64);
    assert!(zero.stderr().contains("--stream"), "{}", zero.stderr());
}
