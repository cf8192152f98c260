//! Captures made by other programs (`foreign/record`) have the streams, and the losses, that tshark reads in them.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod support;

use std::{collections::BTreeMap, fs, path::PathBuf};

use capture::{Analysis, Options, analyse};
use record::{CaptureClock, NumberedBy};
use support::OPTIONS;

/// The numbers of the frames of each stream, as tshark reads them.
type Numbers = BTreeMap<String, Vec<u64>>;

fn path(file: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/foreign").join(file)
}

fn analysed(file: &str) -> Analysis {
    analysed_with(file, &OPTIONS)
}

fn analysed_with(file: &str, options: &Options) -> Analysis {
    analyse(|| fs::File::open(path(file)), file, options).unwrap()
}

/// The streams of a capture. `stream` gives a frame its stream and the number of the frame: from the columns that `record`
/// requests of tshark, which are frame number, RTP sequence number, PTP message type and sequence id, PROFINET cycle counter,
/// EtherCAT index and working counter, Ethernet source, and IPv4 source.
fn of_tshark(file: &str, stream: fn(&[&str]) -> (String, u64)) -> Numbers {
    let mut all = Numbers::new();
    for line in fs::read_to_string(path(file)).unwrap().lines() {
        let columns: Vec<&str> = line.split('\t').collect();
        let (name, number) = stream(&columns);
        all.entry(name).or_default().push(number);
    }
    all
}

/// The numbers left out, and the places, where numbers count up in `step` below `modulus`.
fn left_out(numbers: &[u64], step: u64, modulus: u64) -> (u64, u64) {
    let gaps = numbers.windows(2).map(|pair| (pair[1] + modulus - pair[0]) % modulus / step - 1);
    gaps.fold((0, 0), |(lost, places), gap| (lost + gap, places + u64::from(gap > 0)))
}

/// Checks the number of streams, and the frames and losses of the stream that is analysed.
#[track_caller]
fn assert_equal(analysis: &Analysis, protocol: &str, expected: &Numbers, main: &str, step: u64, modulus: u64) {
    let capture = &analysis.capture;
    let mut frames: Vec<u64> = capture.streams.iter().map(|stream| stream.frames).collect();
    let mut expected_frames: Vec<u64> = expected.values().map(|numbers| numbers.len() as u64).collect();
    frames.sort_unstable();
    expected_frames.sort_unstable();
    assert_eq!(frames, expected_frames, "{:?}", capture.streams);
    let numbers = &expected[main];
    let (lost, losses) = left_out(numbers, step, modulus);
    let by = if protocol.starts_with("AVTP") { NumberedBy::Avtp } else { NumberedBy::Protocol };
    assert_eq!((capture.stream.protocol.as_str(), capture.numbered_by), (protocol, by));
    assert_eq!((capture.frames, capture.lost.unwrap(), capture.losses.unwrap()), (numbers.len() as u64, lost, losses));
    assert_eq!((capture.duplicates.unwrap(), capture.reordered.unwrap(), capture.restarts.unwrap()), (0, 0, 0));
}

fn hexadecimal(text: &str) -> u64 {
    u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap()
}

#[test]
fn rtp_of_gstreamer_and_scapy() {
    for (file, frames) in [("rtp.pcapng", 144), ("rtp-sll.pcapng", 144), ("rtp-sll2.pcapng", 144), ("qinq.pcap", 294)] {
        let tsv = format!("{}.tsv", file.split('.').next().unwrap());
        let expected = of_tshark(&tsv, |columns| (String::new(), columns[1].parse().unwrap()));
        assert_eq!(expected[""].len(), frames, "{file}");
        assert_eq!(left_out(&expected[""], 1, 1 << 16), (6, 2), "{file}");
        assert_equal(&analysed(file), "RTP", &expected, "", 1, 1 << 16);
    }
}

#[test]
fn ptp_of_ptp4l() {
    const NAMES: [(u64, &str); 7] = [
        (0, "Sync"),
        (1, "Delay_Req"),
        (2, "Pdelay_Req"),
        (3, "Pdelay_Resp"),
        (8, "Follow_Up"),
        (9, "Delay_Resp"),
        (11, "Announce"),
    ];
    for (file, source) in [("ptp-l2.pcapng", "02:00:00:00:00:01"), ("ptp-udp.pcapng", "02:00:00:00:00:01")] {
        let tsv = format!("{}.tsv", file.split('.').next().unwrap());
        let expected = of_tshark(&tsv, |columns| {
            (format!("{} {}", hexadecimal(columns[2]), columns[7]), columns[3].parse().unwrap())
        });
        let analysis = analysed(file);
        let sync = format!("0 {source}");
        assert_equal(&analysis, "PTP Sync, domain 0", &expected, &sync, 1, 1 << 16);
        for (number, name) in NAMES {
            let of_kind = |numbers: &Numbers| -> usize {
                let kind = format!("{number} ");
                numbers.iter().filter(|(stream, _)| stream.starts_with(&kind)).map(|(_, all)| all.len()).sum()
            };
            let protocol = format!("PTP {name}, domain 0");
            let found = analysis.capture.streams.iter().filter(|stream| {
                // Responses have the port that they are for as well.
                stream
                    .protocol
                    .strip_prefix(&protocol)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with(", for "))
            });
            assert_eq!(found.map(|stream| stream.frames).sum::<u64>(), of_kind(&expected) as u64, "{file}: {name}");
        }
    }
}

#[test]
fn profinet_of_scapy() {
    let expected = of_tshark("profinet.tsv", |columns| (String::new(), columns[4].parse().unwrap()));
    assert_equal(&analysed("profinet.pcap"), "PROFINET 0x8001", &expected, "", 32, 1 << 16);
}

#[test]
fn ethercat_of_scapy() {
    let expected = of_tshark("ethercat.tsv", |columns| (columns[6].to_owned(), hexadecimal(columns[5])));
    assert_eq!(expected.keys().collect::<Vec<_>>(), ["0", "3"], "working counters");
    assert_equal(&analysed("ethercat.pcap"), "EtherCAT", &expected, "0", 1, 1 << 8);
}

/// A time in seconds with nine decimals, in ns.
fn nanoseconds(seconds: &str) -> i64 {
    seconds.replace('.', "").parse().unwrap()
}

#[test]
fn avtp_of_libavtp() {
    // The talkers take their timestamps from the clock of the capture.
    let options = Options { clock: Some(CaptureClock::Gptp), ..OPTIONS };
    for (format, protocol, unique_id) in
        [("aaf", "AVTP AAF", 1), ("crf", "AVTP CRF", 2), ("cvf", "AVTP CVF", 1), ("iec61883", "AVTP IEC 61883", 1)]
    {
        let text = fs::read_to_string(path(&format!("avtp-{format}.tsv"))).unwrap();
        // Each format has fields of its own, so only these columns are filled: time, subtype, sequence number, stream id,
        // uncertain, then for CRF the timestamps, and for other formats whether the timestamp is valid, and the timestamp.
        let frames: Vec<Vec<&str>> =
            text.lines().map(|line| line.split('\t').filter(|column| !column.is_empty()).collect()).collect();
        let number = |text: &str| if text.starts_with("0x") { hexadecimal(text) } else { text.parse().unwrap() };
        let numbers: Vec<u64> = frames.iter().map(|frame| number(frame[2])).collect();
        assert_eq!(left_out(&numbers, 1, 1 << 8), (6, 2), "{format}");
        let analysis = analysed_with(&format!("avtp-{format}.pcapng"), &options);
        let expected = Numbers::from([(String::new(), numbers)]);
        assert_equal(&analysis, protocol, &expected, "", 1, 1 << 8);
        let id = format!("aa:bb:cc:dd:ee:ff:{unique_id:04x}");
        assert_eq!(analysis.capture.stream.name, id);
        assert!(frames.iter().all(|frame| frame[3] == format!("0x{}", id.replace(':', ""))), "{format}");

        let found = analysis.capture.presentation.unwrap();
        let margins: Vec<i64> = frames.iter().filter_map(|frame| margin_ns(format, frame)).collect();
        assert_eq!((found.valid, found.not_valid), (margins.len() as u64, (frames.len() - margins.len()) as u64));
        let uncertain = frames.iter().filter(|frame| frame[4] == "1").count();
        assert_eq!((found.uncertain, found.restarts), (uncertain as u64, 0), "{format}");
        let extremes = margins.iter().min().zip(margins.iter().max());
        let margin = found.margin.map(|margin| (margin.min_ns, margin.max_ns));
        assert_eq!(margin, extremes.map(|(min, max)| (*min, *max)), "{format}");
        if format == "crf" {
            let clock = found.reference.unwrap();
            let header = [u64::from(clock.kind), clock.pull.into(), clock.base_hz.into(), clock.interval.into()];
            assert_eq!(frames[0][6..].iter().map(|column| number(column)).collect::<Vec<_>>(), header);
            assert_eq!((clock.timestamps, clock.changed), (6, 0));
        }
    }
}

/// The time from the capture of a frame to its presentation time, for CRF to its last timestamp; `None` without a valid
/// one.
fn margin_ns(format: &str, frame: &[&str]) -> Option<i64> {
    let at_ns = nanoseconds(frame[0]);
    if format == "crf" {
        let last = frame[5].rsplit(',').next().unwrap();
        return Some(hexadecimal(last).cast_signed() - at_ns);
    }
    // The low 32 bits of the time.
    let due: u32 = if frame[5] == "1" { frame[6].parse().unwrap() } else { return None };
    let [.., a, b, c, d] = at_ns.to_be_bytes();
    Some(due.wrapping_sub(u32::from_be_bytes([a, b, c, d])).cast_signed().into())
}
