//! Copies of redundant streams are left out and counted, and trailers are no part of the protocol.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]
#![allow(clippy::cast_possible_truncation, reason = "a protocol has the low bits of the frame number")]

mod support;

use capture::{Analysis, Filter, Options, analyse};
use record::NumberedBy;
use support::{BEGIN_NS, LITTLE, OPTIONS, Seen, pcap, scatter};

const PERIOD_NS: u64 = 1_000_000;
const ADDRESSES: [u8; 12] = [1, 0, 0x5e, 0, 0, 1, 2, 0, 0, 0, 0, 9];

fn analysed(link_type: u32, frames: &[Seen], options: &Options) -> Analysis {
    let file = pcap(LITTLE, true, link_type, frames);
    analyse(|| Ok(&file[..]), "test", options).unwrap()
}

fn seen(n: u64, bytes: Vec<u8>) -> Seen {
    Seen { at_ns: BEGIN_NS + n * PERIOD_NS + scatter(n).cast_unsigned(), interface: 0, bytes }
}

/// The tag with this number, and another EtherType.
fn tagged(n: u64, number: u64) -> Seen {
    let tag = [&[0xf1, 0xc1, 0, 0][..], &(number as u16).to_be_bytes(), &[0x88, 0xb5]].concat();
    seen(n, [&ADDRESSES[..], &tag, &[0x11; 46]].concat())
}

/// The data of a cyclic frame of PROFINET with this number.
fn profinet(n: u64) -> Vec<u8> {
    [&[0x88, 0x92, 0x80, 0x01][..], &[0; 40], &(n as u16).wrapping_mul(32).to_be_bytes(), &[0x35, 0]].concat()
}

/// A datagram to this port without a number, in IPv4.
fn datagram(port: u16) -> Vec<u8> {
    let header = [0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    [&[0x08, 0x00][..], &header, &[0x03, 0xe8], &port.to_be_bytes(), &[0; 4], &[7; 40]].concat()
}

/// A frame that ends with the trailer of PRP: number, LAN and size, suffix.
fn with_trailer(packet: &[u8], number: u64, lan: u8) -> Vec<u8> {
    // All after the EtherType, with the trailer.
    let size = (packet.len() - 2 + 6) as u16 | u16::from(lan) << 12;
    [&ADDRESSES[..], packet, &(number as u16).to_be_bytes(), &size.to_be_bytes(), &[0x88, 0xfb]].concat()
}

/// A node numbers all its frames in one sequence, so the trailer shows copies, but no losses.
#[test]
fn copies_of_both_networks_of_prp_are_left_out_and_counted() {
    for (name, packet) in [("PROFINET", profinet as fn(u64) -> Vec<u8>), ("UDP", |_| datagram(7_000))] {
        for later_ns in [4_000, 200_000, 1_300_000] {
            let frame = |n: u64, lan: u8| {
                let first = seen(n, with_trailer(&packet(n), n * 3, lan));
                Seen { at_ns: first.at_ns + u64::from(lan - 10) * later_ns, ..first }
            };
            let is_lost = |n: u64| n == 1_000;
            let both = (0..3_000).filter(|&n| !is_lost(n)).flat_map(|n| [frame(n, 10), frame(n, 11)]);
            let mut frames: Vec<Seen> = both.collect();
            frames.sort_by_key(|seen| seen.at_ns);
            let capture = analysed(1, &frames, &OPTIONS).capture;
            assert_eq!((capture.frames, capture.stream.copies), (2_999, 2_999), "{name} {later_ns}");
            assert_eq!((capture.late, capture.bursts), (Some(0), Some(0)), "{name} {later_ns}");
            let missing = capture.lost.or(capture.skipped_slots);
            assert_eq!((missing, capture.duplicates.unwrap_or(0)), (Some(1), 0), "{name} {later_ns}");
        }
    }
}

/// A frame with the tag of HSR: path and size, number.
fn with_hsr(packet: &[u8], number: u64, path: u8) -> Vec<u8> {
    let size = (packet.len() - 2 + 6) as u16 | u16::from(path) << 12;
    let tag = [&[0x89, 0x2f][..], &size.to_be_bytes(), &(number as u16).to_be_bytes()].concat();
    [&ADDRESSES[..], &tag, packet].concat()
}

/// A ring of HSR brings each frame by both ways. A node numbers all its frames in one sequence.
#[test]
fn copies_around_a_ring_of_hsr_are_left_out_and_counted() {
    for (name, packet) in [("PROFINET", profinet as fn(u64) -> Vec<u8>), ("UDP", |_| datagram(7_000))] {
        for later_ns in [4_000, 200_000, 1_300_000] {
            let frame = |n: u64, path: u8| {
                let first = seen(n, with_hsr(&packet(n), n * 3, path));
                Seen { at_ns: first.at_ns + u64::from(path) * later_ns, ..first }
            };
            // One frame is lost on both ways, and one on the longer way.
            let ways = |n: u64| [0, 1].into_iter().filter(move |&path| n != 1_000 && (n != 2_000 || path == 0));
            let mut frames: Vec<Seen> = (0..3_000).flat_map(|n| ways(n).map(move |path| frame(n, path))).collect();
            frames.sort_by_key(|seen| seen.at_ns);
            let capture = analysed(1, &frames, &OPTIONS).capture;
            assert_eq!((capture.frames, capture.stream.copies), (2_999, 2_998), "{name} {later_ns}");
            let missing = capture.lost.or(capture.skipped_slots);
            assert_eq!((missing, capture.duplicates.unwrap_or(0)), (Some(1), 0), "{name} {later_ns}");
            assert_eq!(
                capture.stream.protocol.starts_with("PROFINET"),
                name == "PROFINET",
                "{}",
                capture.stream.protocol
            );
        }
    }
}

/// A node that starts again counts from 0. It forgets the numbers of before.
#[test]
fn a_restart_of_the_trailers_loses_no_frame() {
    let frame = |n: u64, number: u64, lan: u8| {
        let first = seen(n, with_trailer(&profinet(n), number, lan));
        Seen { at_ns: first.at_ns + u64::from(lan - 10) * 4_000, ..first }
    };
    let restarts = [0, 1_500, 3_000];
    let number = |n: u64| n - restarts.into_iter().filter(|&from| from <= n).max().unwrap();
    let both = (0..5_000).flat_map(|n| [frame(n, number(n), 10), frame(n, number(n), 11)]);
    let capture = analysed(1, &both.collect::<Vec<_>>(), &OPTIONS).capture;
    assert_eq!((capture.frames, capture.stream.copies), (5_000, 5_000));
    assert_eq!((capture.lost, capture.restarts, capture.late), (Some(0), Some(0), Some(0)));
}

/// Data that ends like a trailer, but for its size.
#[test]
fn data_that_looks_like_a_trailer_is_no_trailer() {
    let frame =
        |n: u64| [&ADDRESSES[..], &datagram(7_000), &(n as u16 / 2).to_be_bytes(), &[0xa0, 9, 0x88, 0xfb]].concat();
    let capture = analysed(1, &(0..3_000).map(|n| seen(n, frame(n))).collect::<Vec<_>>(), &OPTIONS).capture;
    assert_eq!((capture.frames, capture.stream.copies), (3_000, 0));
}

/// A file can contain the checksums of the frames. Its link type states their length.
#[test]
fn checksums_are_no_part_of_the_protocol() {
    let frame = |n: u64| [&ADDRESSES[..], &profinet(n), &(n as u32).wrapping_mul(0x9e37_79b9).to_be_bytes()].concat();
    let frames: Vec<Seen> = (0..3_000).filter(|n| n % 1_000 != 500).map(|n| seen(n, frame(n))).collect();
    let of_ethernet_with_fcs = 2 << 28 | 1 << 26 | 1;
    let capture = analysed(of_ethernet_with_fcs, &frames, &OPTIONS).capture;
    assert_eq!((capture.numbered_by, capture.lost, capture.losses), (NumberedBy::Protocol, Some(3), Some(3)));
}

/// A talker can number all datagrams to one address together. Then no datagram of one port is lost where the others have its
/// numbers.
#[test]
fn tags_that_several_streams_share_show_no_losses() {
    let tag = |number: u64| [&[0xf1, 0xc1, 0, 0][..], &(number as u16).to_be_bytes()].concat();
    let mut frames = Vec::new();
    let mut number = 0;
    for n in 0..6_000 {
        for (port, every) in [(7_001, 1), (7_002, 3), (7_003, 10)] {
            if n % every == 0 {
                for copy in 0..2 {
                    let at_ns = u64::from(port - 7_000) * 20_000 + copy * 3_000;
                    let one = seen(n, [&ADDRESSES[..], &tag(number), &datagram(port)].concat());
                    frames.push(Seen { at_ns: one.at_ns + at_ns, ..one });
                }
                number += 1;
            }
        }
    }
    for port in [None, Some(7_001), Some(7_003)] {
        let options = Options { filter: Filter { udp: port, ..OPTIONS.filter }, ..OPTIONS };
        let capture = analysed(1, &frames, &options).capture;
        assert!(capture.streams.iter().all(|stream| stream.lost.is_none()), "{port:?}: {:?}", capture.streams);
        assert_eq!((capture.lost, capture.late, capture.skipped_slots), (None, Some(0), Some(0)), "{port:?}");
        assert_eq!((capture.stream.copies, capture.frames), (capture.frames, capture.frames), "{port:?}");
    }
    // Streams with a sequence each.
    let both = (0..3_000).flat_map(|n| [(n, 7_001), (n, 7_002)]).filter(|(n, _)| n % 1_000 != 500);
    let frames: Vec<Seen> =
        both.map(|(n, port)| seen(n, [&ADDRESSES[..], &tag(n), &datagram(port)].concat())).collect();
    let capture = analysed(1, &frames, &OPTIONS).capture;
    assert_eq!(capture.streams.iter().map(|stream| stream.lost).collect::<Vec<_>>(), [Some(3), Some(3)]);
}

#[test]
fn a_restart_over_two_ways_makes_no_frame_late() {
    let first = |n: u64| tagged(n, if n < 4_000 { n + 900 } else { n - 4_000 });
    for later_ns in [90_000, 2_300_000] {
        let second = |n: u64| Seen { at_ns: first(n).at_ns + later_ns, ..first(n) };
        let mut frames: Vec<Seen> = (0..8_000).flat_map(|n| [first(n), second(n)]).collect();
        frames.sort_by_key(|seen| seen.at_ns);
        let capture = analysed(1, &frames, &OPTIONS).capture;
        let counts = (capture.restarts, capture.late, capture.lost, capture.duplicates);
        assert_eq!(counts, (Some(1), Some(0), Some(0), Some(0)), "{later_ns}");
    }
}

#[test]
fn copies_of_a_redundant_stream_are_left_out_and_counted() {
    let tagged = |n: u64| {
        let tag = [&[0x81, 0, 0x60, 2, 0xf1, 0xc1, 0, 0][..], &(n as u16).to_be_bytes(), &[0x88, 0xb5]].concat();
        [&ADDRESSES[..], &tag, &[0x11; 46]].concat()
    };
    // The second way takes 3 us longer; each way loses other frames, and frame 700 is lost on both.
    let mut frames: Vec<Seen> = (0..5000).filter(|n| n % 10 != 0).map(|n| seen(n, tagged(n))).collect();
    frames.extend((0..5000).filter(|n| n % 7 != 0 || *n == 7).map(|n| {
        let first = seen(n, tagged(n));
        Seen { at_ns: first.at_ns + 3_000, ..first }
    }));
    frames.sort_by_key(|seen| seen.at_ns);
    let Analysis { capture, .. } = analysed(1, &frames, &OPTIONS);
    let lost = (0..5000).filter(|n| n % 10 == 0 && n % 7 == 0).count() as u64;
    assert_eq!(
        (capture.numbered_by, capture.duplicates.unwrap(), capture.restarts.unwrap()),
        (NumberedBy::RedundancyTag, 0, 0)
    );
    // A loss before the first frame is not seen.
    assert_eq!((capture.lost.unwrap(), capture.frames), (lost - 1, 5000 - lost));
    assert_eq!(capture.stream.copies, frames.len() as u64 - capture.frames);
    assert_eq!((capture.stream.vlan, capture.window_violations.unwrap(), capture.bursts), (Some(2), 0, Some(0)));
}

/// The second way takes 300 periods longer, until the first one fails.
#[test]
fn a_late_way_of_a_redundant_stream_is_no_restart() {
    let tagged = |n: u64| tagged(n, n);
    let late = |n: u64| Seen { at_ns: tagged(n).at_ns + 300 * PERIOD_NS + 200_000, ..tagged(n) };
    let lost = [1_000, 1_001, 4_000];
    let first = (0..8_000).filter(|n| !lost.contains(n)).map(tagged);
    let mut frames: Vec<Seen> = first.chain((0..8_500).filter(|n| !lost.contains(n)).map(late)).collect();
    frames.sort_by_key(|seen| seen.at_ns);
    let capture = analysed(1, &frames, &OPTIONS).capture;
    assert_eq!((capture.lost, capture.losses, capture.restarts), (Some(3), Some(2), Some(0)));
    assert_eq!((capture.stream.copies, capture.duplicates, capture.too_late), (7_997, Some(0), Some(0)));
}
