//! Captures made by other programs (`foreign/record`) have the streams, and the losses, that tshark reads in them.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod support;

use std::{collections::BTreeMap, fs, path::PathBuf};

use capture::{Analysis, analyse};
use record::NumberedBy;
use support::OPTIONS;

/// The numbers of the frames of each stream, as tshark reads them.
type Numbers = BTreeMap<String, Vec<u64>>;

fn path(file: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/foreign").join(file)
}

fn analysed(file: &str) -> Analysis {
    analyse(|| fs::File::open(path(file)), file, &OPTIONS).unwrap()
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
    assert_eq!((capture.stream.protocol.as_str(), capture.numbered_by), (protocol, NumberedBy::Protocol));
    assert_eq!((capture.frames, capture.lost, capture.losses), (numbers.len() as u64, lost, losses));
    assert_eq!((capture.duplicates, capture.reordered, capture.restarts), (0, 0, 0));
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
            let found = analysis.capture.streams.iter().filter(|stream| stream.protocol == protocol);
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
