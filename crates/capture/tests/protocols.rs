//! Streams of each protocol with known losses, duplicates, restarts and copies are counted exactly.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]
#![allow(clippy::cast_possible_truncation, reason = "a protocol has the low bits of the frame number")]

mod support;

use capture::{Analysis, Filter, Options, analyse};
use record::{Capture, CapturedKind, CapturedStream, NumberedBy};
use support::{BEGIN_NS, LITTLE, OPTIONS, Seen, pcap, scatter};

const PERIOD_NS: u64 = 1_000_000;
fn analysed(link_type: u32, frames: &[Seen], options: &Options) -> Analysis {
    let file = pcap(LITTLE, true, link_type, frames);
    analyse(|| Ok(&file[..]), "test", options).unwrap()
}

fn seen(n: u64, bytes: Vec<u8>) -> Seen {
    Seen { at_ns: BEGIN_NS + n * PERIOD_NS + scatter(n).cast_unsigned(), interface: 0, bytes }
}

const ADDRESSES: [u8; 12] = [1, 0, 0x5e, 0, 0, 1, 2, 0, 0, 0, 0, 9];

/// An Ethernet frame of this EtherType, padded to 60 bytes.
fn ethernet(ethertype: u16, packet: &[u8]) -> Vec<u8> {
    let mut frame = [&ADDRESSES[..], &ethertype.to_be_bytes(), packet].concat();
    frame.resize(frame.len().max(60), 0);
    frame
}

/// An IPv4 packet with a datagram to this port.
fn ipv4(port: u16, payload: &[u8]) -> Vec<u8> {
    let header = [0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    [&header[..], &[0x03, 0xe8], &port.to_be_bytes(), &[0; 4], payload].concat()
}

/// An IPv6 packet with a datagram to this port.
fn ipv6(port: u16, payload: &[u8]) -> Vec<u8> {
    let header = [&[0x60, 0, 0, 0, 0, 0, 17, 64][..], &[0xfd; 16], &[0xff; 16]].concat();
    [&header[..], &[0x03, 0xe8], &port.to_be_bytes(), &[0; 4], payload].concat()
}

fn rtp(n: u64) -> Vec<u8> {
    let (sequence, time) = (n as u16, (n * 48) as u32);
    [&[0x80, 98][..], &sequence.to_be_bytes(), &time.to_be_bytes(), &[0, 0, 0, 7], &[0x55; 48]].concat()
}

fn ptp(message: u8, n: u64) -> Vec<u8> {
    let mut packet = vec![0; 44];
    (packet[0], packet[1]) = (message, 2);
    packet[30..32].copy_from_slice(&(n as u16).to_be_bytes());
    packet
}

fn profinet(n: u64) -> Vec<u8> {
    let cycle = (n * 32) as u16;
    [&[0x80, 0x01][..], &[0; 40], &cycle.to_be_bytes(), &[0x35, 0]].concat()
}

fn ethercat(n: u64) -> Vec<u8> {
    [&[0x2c, 0x10, 0x0c, n as u8][..], &[0; 42]].concat()
}

fn sampled_values(n: u64) -> Vec<u8> {
    let count = ((n % 4000) as u16).to_be_bytes();
    let asdu = [&[0x80, 3, b'M', b'U', b'1', 0x82, 2], &count[..], &[0x83, 4, 0, 0, 0, 1, 0x87, 8], &[0; 8]].concat();
    let asdus = [&[0x30, asdu.len() as u8][..], &asdu].concat();
    let pdu = [&[0x80, 1, 1, 0xa2, asdus.len() as u8][..], &asdus].concat();
    [&[0x40, 0, 0, 60, 0, 0, 0, 0, 0x60, pdu.len() as u8][..], &pdu].concat()
}

fn uadp(n: u64) -> Vec<u8> {
    let sequence = (n as u16).to_le_bytes();
    [&[0x80 | 0x30 | 1, 1, 0xdd, 0xcc, 0b1001, 7, 0], &sequence[..], &[0; 30]].concat()
}

/// A protocol: its name, its kind, and the frame with this number.
type Protocol = (&'static str, CapturedKind, fn(u64) -> Vec<u8>);

fn protocols() -> Vec<Protocol> {
    vec![
        ("RTP", CapturedKind::Udp, |n| ethernet(0x0800, &ipv4(5004, &rtp(n)))),
        ("RTP", CapturedKind::Udp, |n| ethernet(0x86dd, &ipv6(5004, &rtp(n)))),
        ("PTP Sync, domain 0", CapturedKind::Ethertype, |n| ethernet(0x88f7, &ptp(0, n))),
        ("PTP Sync, domain 0", CapturedKind::Udp, |n| ethernet(0x0800, &ipv4(319, &ptp(0, n)))),
        ("PROFINET 0x8001", CapturedKind::Ethertype, |n| ethernet(0x8892, &profinet(n))),
        ("EtherCAT", CapturedKind::Ethertype, |n| ethernet(0x88a4, &ethercat(n))),
        ("sampled values 0x4000, MU1", CapturedKind::Ethertype, |n| ethernet(0x88ba, &sampled_values(n))),
        ("OPC UA PubSub, publisher 52445, group 7", CapturedKind::Ethertype, |n| ethernet(0xb62c, &uadp(n))),
        ("OPC UA PubSub, publisher 52445, group 7", CapturedKind::Udp, |n| ethernet(0x0800, &ipv4(4840, &uadp(n)))),
    ]
}

#[test]
fn losses_and_duplicates_of_each_protocol_are_counted() {
    for (name, kind, frame) in protocols() {
        // From number 60,000 on, all of them start again. Frames 500 and 4,000 to 4,019 are lost, and 900 comes twice.
        let mut frames: Vec<Seen> =
            (0..9000).filter(|n| *n != 500 && !(4000..4020).contains(n)).map(|n| seen(n, frame(60_000 + n))).collect();
        let again = Seen { at_ns: frames[899].at_ns + 50_000, ..frames[899].clone() };
        frames.insert(900, again);
        let Analysis { capture, .. } = analysed(1, &frames, &OPTIONS);
        assert_eq!((capture.stream.protocol.as_str(), capture.stream.kind), (name, kind));
        assert_eq!(capture.numbered_by, NumberedBy::Protocol, "{name}");
        let counts = [
            capture.lost.unwrap(),
            capture.losses.unwrap(),
            capture.longest_loss.unwrap(),
            capture.duplicates.unwrap(),
            capture.restarts.unwrap(),
        ];
        assert_eq!(counts, [21, 2, 20, 1, 0], "{name}: {capture:?}");
        assert_eq!(
            (
                capture.late.unwrap(),
                capture.skipped_slots.unwrap(),
                capture.surplus.unwrap(),
                &capture.lateness_unknown
            ),
            (0, 0, 0, &None)
        );
        assert!((capture.period.fitted_ns - PERIOD_NS as f64).abs() < 1.0, "{name}");
    }
}

#[test]
fn a_restart_of_each_protocol_is_one() {
    for (name, _, frame) in protocols() {
        let again = (3000..6000).map(|n| seen(n + 2, frame(n + 20_000)));
        let frames: Vec<Seen> = (0..3000).map(|n| seen(n, frame(n))).chain(again).collect();
        let Analysis { capture, .. } = analysed(1, &frames, &OPTIONS);
        // The number of EtherCAT has 8 bits, that of sampled values less than 4000 values: a restart can look like a loss.
        if !name.starts_with("EtherCAT") && !name.starts_with("sampled") {
            assert_eq!((capture.restarts.unwrap(), capture.lost.unwrap(), capture.late.unwrap()), (1, 0, 0), "{name}");
        }
        assert!(capture.lost.unwrap() < 256, "{name}: {}", capture.lost.unwrap());
    }
}

#[test]
fn a_restart_with_a_number_a_little_behind_is_one() {
    let narrow = |name: &str| name.starts_with("EtherCAT") || name.starts_with("sampled");
    for (name, _, frame) in protocols().into_iter().filter(|(name, ..)| !narrow(name)) {
        for behind in [16, 17, 40, 255, 256] {
            let again = (3000..6000).map(|n| seen(n, frame(n - behind)));
            let frames: Vec<Seen> = (0..3000).map(|n| seen(n, frame(n))).chain(again).collect();
            let capture = analysed(1, &frames, &OPTIONS).capture;
            let counts = (capture.restarts, capture.duplicates, capture.lost, capture.late, capture.skipped_slots);
            assert_eq!(counts, (Some(1), Some(0), Some(0), Some(0), Some(0)), "{name}, {behind} behind");
        }
    }
}

#[test]
fn frames_that_each_come_several_times_are_counted() {
    for times in [2, 3] {
        for (name, _, frame) in protocols() {
            let copies = |n: u64| {
                (0..times)
                    .map(move |copy| Seen { at_ns: seen(n, Vec::new()).at_ns + copy * 2_000, ..seen(n, frame(n)) })
            };
            let frames: Vec<Seen> = (0..3000).filter(|n| *n != 2_000).flat_map(copies).collect();
            let capture = analysed(1, &frames, &OPTIONS).capture;
            assert_eq!(
                (capture.numbered_by, capture.stream.protocol.as_str()),
                (NumberedBy::Protocol, name),
                "{times}"
            );
            let counts = (capture.lost, capture.duplicates, capture.restarts, capture.late, capture.bursts);
            assert_eq!(counts, (Some(1), Some(2_999 * (times - 1)), Some(0), Some(0), Some(0)), "{name}, {times}");
        }
    }
}

#[test]
fn sources_of_rtp_whose_frames_each_come_twice_are_streams() {
    let of = |source: u8, n: u64| {
        let mut packet = rtp(n + 1_000 * u64::from(source));
        packet[11] = source;
        let first = seen(n, ethernet(0x0800, &ipv4(5004, &packet)));
        let at_ns = first.at_ns + u64::from(source) * 20_000;
        [Seen { at_ns, ..first.clone() }, Seen { at_ns: at_ns + 2_000, ..first }]
    };
    let frames: Vec<Seen> = (0..3000).flat_map(|n| [of(1, n), of(2, n)].concat()).collect();
    let capture = analysed(1, &frames, &OPTIONS).capture;
    assert_eq!((capture.streams.len(), capture.duplicates, capture.lost), (2, Some(3_000), Some(0)));
}

/// Frames of a file whose parts are in another order than their stamps were not lost, but counted as such where they are missing.
#[test]
fn frames_at_another_place_of_the_file_are_no_restart() {
    let mut frames: Vec<Seen> = (0..8000).map(|n| seen(n, ethernet(0x0800, &ipv4(5004, &rtp(n))))).collect();
    let moved: Vec<Seen> = frames.drain(2_000..2_100).collect();
    frames.splice(2_900..2_900, moved);
    let capture = analysed(1, &frames, &OPTIONS).capture;
    let counts = (capture.restarts, capture.lost, capture.too_late, capture.clock_steps);
    assert_eq!(counts, (Some(0), None, Some(100), Some(0)));
}

/// Copies come in a row where the first way fails, or where the sender repeats frames.
#[test]
fn copies_in_a_row_are_no_restart() {
    let frame = |n: u64| seen(n, ethernet(0x0800, &ipv4(5004, &rtp(n))));
    let first = (0..3000).map(frame);
    let second = (0..6000).map(|n| Seen { at_ns: frame(n + 40).at_ns + 300_000, ..frame(n) });
    let mut two_ways: Vec<Seen> = first.chain(second).collect();
    two_ways.sort_by_key(|seen| seen.at_ns);
    let repeated = (2_980..3_000).map(|n| Seen { at_ns: frame(2_999).at_ns + (n - 2_979) * 10_000, ..frame(n) });
    let burst: Vec<Seen> = (0..3000).map(frame).chain(repeated).chain((3000..6000).map(frame)).collect();
    for (frames, duplicates) in [(two_ways, 3000), (burst, 20)] {
        let capture = analysed(1, &frames, &OPTIONS).capture;
        assert_eq!((capture.restarts, capture.duplicates, capture.lost), (Some(0), Some(duplicates), Some(0)));
    }
}

#[test]
fn frames_that_only_look_like_rtp_have_no_numbers() {
    let frames: Vec<Seen> = (0..3000)
        .map(|n| seen(n, ethernet(0x0800, &ipv4(7000, &[&[0x80, 96, 1, 2], &[0; 40][..]].concat()))))
        .collect();
    let Analysis { capture, .. } = analysed(1, &frames, &OPTIONS);
    assert_eq!((capture.numbered_by, capture.stream.protocol.as_str()), (NumberedBy::Nothing, ""));
    assert_eq!((capture.lost, capture.duplicates, capture.restarts), (None, None, None));
    assert_eq!((capture.late.unwrap(), capture.skipped_slots.unwrap(), capture.surplus.unwrap()), (0, 0, 0));
}

#[test]
fn rtcp_between_rtp_has_no_slot() {
    let mut frames: Vec<Seen> = (0..3000).map(|n| seen(n, ethernet(0x0800, &ipv4(5004, &rtp(n))))).collect();
    for n in (0..3000).step_by(100) {
        let report = ethernet(0x0800, &ipv4(5004, &[&[0x80, 200, 0, 6][..], &[0; 24]].concat()));
        frames.push(Seen { at_ns: BEGIN_NS + n * PERIOD_NS + 300_000, ..seen(n, report) });
    }
    frames.sort_by_key(|seen| seen.at_ns);
    let Analysis { capture, caveats, .. } = analysed(1, &frames, &OPTIONS);
    assert_eq!((capture.stream.protocol.as_str(), capture.numbered_by), ("RTP", NumberedBy::Protocol));
    assert_eq!((capture.frames, capture.unnumbered), (3030, 30));
    assert_eq!(
        (capture.lost.unwrap(), capture.duplicates.unwrap(), capture.late.unwrap(), capture.surplus.unwrap()),
        (0, 0, 0, 0)
    );
    assert!(caveats.iter().any(|caveat| caveat.text.ends_with(": 30 frames")), "{caveats:?}");
}

#[test]
fn a_few_frames_of_avtp_do_not_hide_a_stream() {
    let mut frames: Vec<Seen> = (0..3000).map(|n| seen(n, ethernet(0x0800, &ipv4(5004, &rtp(n))))).collect();
    frames.insert(7, seen(7, ethernet(0x22f0, &[&[0x02, 0x80, 1, 0][..], &[0; 40]].concat())));
    let Analysis { capture, .. } = analysed(1, &frames, &OPTIONS);
    assert_eq!((capture.stream.protocol.as_str(), capture.streams.len()), ("RTP", 2));
}

#[test]
fn messages_of_ptp_are_streams_of_their_own() {
    let both = (0..2000).flat_map(|n| {
        let follow_up = Seen { at_ns: BEGIN_NS + n * PERIOD_NS + 40_000, ..seen(n, ethernet(0x88f7, &ptp(8, n))) };
        [seen(n, ethernet(0x88f7, &ptp(0, n))), follow_up]
    });
    let Analysis { capture, .. } = analysed(1, &both.collect::<Vec<_>>(), &OPTIONS);
    let names: Vec<&str> = capture.streams.iter().map(|stream| stream.protocol.as_str()).collect();
    assert_eq!(names, ["PTP Sync, domain 0", "PTP Follow_Up, domain 0"]);
    assert_eq!((capture.frames, capture.lost.unwrap(), capture.late.unwrap()), (2000, 0, 0));
}

/// A master answers each of three slaves with the number of its request, which are 0 or 100 apart.
#[test]
fn responses_of_ptp_to_several_ports_are_streams_of_their_own() {
    for (message, apart) in [(0x9, 0), (0x9, 100), (0x3, 7), (0xa, 0)] {
        let response = |slave: u64, n: u64| {
            let mut packet = ptp(message, n + slave * apart);
            packet.extend([0, 0, 0, 0, 0, 0, 0, 0, 0, slave as u8]);
            let at_ns = BEGIN_NS + n * PERIOD_NS + slave * 100_000;
            Seen { at_ns, ..seen(n, ethernet(0x88f7, &packet)) }
        };
        // Slave 1 gets no answer to two requests.
        let frames = (0..2000).flat_map(|n| (0..3).map(move |slave| (slave, n)));
        let frames = frames.filter(|one| ![(1, 500), (1, 501)].contains(one));
        let frames: Vec<Seen> = frames.map(|(slave, n)| response(slave, n)).collect();
        let Analysis { capture, .. } = analysed(1, &frames, &OPTIONS);
        let port = |stream: &CapturedStream| stream.protocol.rsplit_once("domain 0, for ").unwrap().1.to_owned();
        let mut lost: Vec<(String, u64)> =
            capture.streams.iter().map(|stream| (port(stream), stream.lost.unwrap())).collect();
        lost.sort();
        let expected = [0, 1, 2].map(|slave| (format!("000000.0000.000000-{slave}"), 2 * u64::from(slave == 1)));
        assert_eq!(lost, expected, "{message:#x}");
    }
}

/// A slave that does not change the source address changes the working counter; it loses four frames.
#[test]
fn frames_of_ethercat_with_a_working_counter_were_returned() {
    let both = (0..2000).flat_map(|n| {
        let mut returned = ethernet(0x88a4, &ethercat(n));
        returned[14 + 12] = 3;
        let returned = Seen { at_ns: BEGIN_NS + n * PERIOD_NS + 30_000, ..seen(n, returned) };
        let is_lost = (700..704).contains(&n);
        [Some(seen(n, ethernet(0x88a4, &ethercat(n)))), Some(returned).filter(|_| !is_lost)]
    });
    let Analysis { capture, .. } = analysed(1, &both.flatten().collect::<Vec<_>>(), &OPTIONS);
    let streams = capture.streams.iter().map(|stream| (stream.protocol.as_str(), stream.frames, stream.lost));
    let expected = [("EtherCAT", 2000, Some(0)), ("EtherCAT, returned by a slave", 1996, Some(4))];
    assert_eq!(streams.collect::<Vec<_>>(), expected);
}

#[test]
fn frames_that_a_slave_returned_are_a_stream_of_their_own() {
    let of = |n: u64, first: u8| {
        let mut frame = ethernet(0x88a4, &ethercat(n));
        frame[6] = first;
        frame
    };
    let both = (0..2000).flat_map(|n| {
        let returned = Seen { at_ns: BEGIN_NS + n * PERIOD_NS + 30_000, ..seen(n, of(n, 0x02)) };
        [seen(n, of(n, 0x00)), returned]
    });
    let Analysis { capture, .. } = analysed(1, &both.collect::<Vec<_>>(), &OPTIONS);
    let names: Vec<&str> = capture.streams.iter().map(|stream| stream.protocol.as_str()).collect();
    assert_eq!(names, ["EtherCAT", "EtherCAT, returned by a slave"]);
    assert_eq!((capture.lost.unwrap(), capture.duplicates.unwrap(), capture.late.unwrap()), (0, 0, 0));
}

/// Slaves that do not answer leave the working counter at 0, also that of the first frame of a capture. The source address shows
/// that the frames returned.
#[test]
fn returned_frames_without_a_working_counter_are_not_lost() {
    for source in [[0, 0], [2, 0], [0, 2]] {
        let frame = |n: u64, first: u8, counter: u8| {
            let mut frame = ethernet(0x88a4, &ethercat(n));
            (frame[6], frame[14 + 12]) = (first, counter);
            frame
        };
        let [sent, returned] = source;
        let both = (0..2000).flat_map(|n| {
            let counter = if n == 0 || (700..703).contains(&n) { 0 } else { 3 };
            let returned = Seen { at_ns: BEGIN_NS + n * PERIOD_NS + 30_000, ..seen(n, frame(n, returned, counter)) };
            [Some(seen(n, frame(n, sent, 0))).filter(|_| n > 0), Some(returned)]
        });
        let frames: Vec<Seen> = both.flatten().collect();
        let streams = |frames: &[Seen]| {
            let capture = analysed(1, frames, &OPTIONS).capture;
            let of = |stream: &CapturedStream| (stream.protocol.clone(), stream.frames, stream.lost);
            capture.streams.iter().map(of).collect::<Vec<_>>()
        };
        let named = |frames, lost| ("EtherCAT, returned by a slave".to_owned(), frames, Some(lost));
        let found = streams(&frames);
        if source == [0, 2] {
            assert_eq!(found, [named(2000, 0), ("EtherCAT".to_owned(), 1999, Some(0))]);
        } else {
            // Another address than that of the master with this bit shows no direction.
            assert!(found.contains(&named(1996, 3)), "{found:?}");
        }
    }
}

#[test]
fn two_tags_and_cooked_captures_show_the_same_stream() {
    let double = |n| {
        let tags = [0x88, 0xa8, 0x00, 100, 0x81, 0, 0x60, 2, 0x08, 0];
        [&ADDRESSES[..], &tags, &ipv4(5004, &rtp(n))].concat()
    };
    let frames: Vec<Seen> = (0..3000).filter(|n| *n != 77).map(|n| seen(n, double(n))).collect();
    let capture = analysed(1, &frames, &OPTIONS).capture;
    assert_eq!((capture.stream.outer_vlan, capture.stream.vlan, capture.stream.pcp), (Some(100), Some(2), Some(3)));
    assert_eq!((capture.lost.unwrap(), capture.stream.protocol.as_str()), (1, "RTP"));
    for vlan in [100, 2] {
        let options = Options { filter: Filter { vlan: Some(vlan), ..OPTIONS.filter }, ..OPTIONS };
        assert_eq!(analysed(1, &frames, &options).capture.frames, 2999);
    }
    let cooked = |n| [&[0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 9, 0, 0, 8, 0][..], &ipv4(5004, &rtp(n))].concat();
    let cooked2 =
        |n| [&[8, 0, 0, 0, 0, 0, 0, 3, 0, 1, 0, 6, 2, 0, 0, 0, 0, 9, 0, 0][..], &ipv4(5004, &rtp(n))].concat();
    let of = |link_type, frame: &dyn Fn(u64) -> Vec<u8>| {
        let frames: Vec<Seen> = (0..3000).filter(|n| *n != 77).map(|n| seen(n, frame(n))).collect();
        analysed(link_type, &frames, &OPTIONS).capture
    };
    for capture in [of(113, &cooked), of(276, &cooked2)] {
        assert_eq!((capture.lost.unwrap(), capture.frames, capture.stream.protocol.as_str()), (1, 2999, "RTP"));
        assert_eq!((capture.stream.source.as_str(), capture.stream.destination.as_str()), ("02:00:00:00:00:09", ""));
    }
    let on_two = |n: u64| {
        let on = |index: u8| [&cooked2(n)[..7], &[index], &cooked2(n)[8..]].concat();
        [2, 3].map(|index| seen(n, on(index)))
    };
    let capture = analysed(276, &(0..500).flat_map(on_two).collect::<Vec<_>>(), &OPTIONS).capture;
    let names: Vec<String> = capture.streams.iter().map(|stream| capture.name_of(stream)).collect();
    assert_eq!(capture.streams.iter().map(|stream| stream.kernel_interface).collect::<Vec<_>>(), [Some(2), Some(3)]);
    assert!(names[0].ends_with("interface 0, index 2 in the kernel") && names[0] != names[1], "{names:?}");
}

/// The protocol of the second stream, and the frames of both with their number.
type Pair = (&'static str, [fn(u64) -> Vec<u8>; 2]);

/// Two interleaved streams of each kind that differ in one field of their headers, each with its own numbers. The second one
/// starts later.
fn pairs() -> Vec<Pair> {
    fn patched(mut frame: Vec<u8>, at: usize, value: u8) -> Vec<u8> {
        frame[at] = value;
        frame
    }
    vec![
        (
            "RTP 0x00000008",
            [
                |n| ethernet(0x0800, &ipv4(5004, &rtp(n))),
                |n| patched(ethernet(0x0800, &ipv4(5004, &rtp(n + 30_000))), 14 + 28 + 11, 8),
            ],
        ),
        (
            "PTP Sync, domain 24",
            [|n| ethernet(0x88f7, &ptp(0, n)), |n| patched(ethernet(0x88f7, &ptp(0, n + 30_000)), 14 + 4, 24)],
        ),
        ("PTP Follow_Up, domain 0", [|n| ethernet(0x88f7, &ptp(0, n)), |n| ethernet(0x88f7, &ptp(8, n + 30_000))]),
        (
            "PROFINET 0x8002",
            [|n| ethernet(0x8892, &profinet(n)), |n| patched(ethernet(0x8892, &profinet(n + 30_000)), 14 + 1, 2)],
        ),
        (
            "sampled values 0x4001, MU1",
            [
                |n| ethernet(0x88ba, &sampled_values(n)),
                |n| patched(ethernet(0x88ba, &sampled_values(n + 1_000)), 14 + 1, 1),
            ],
        ),
        (
            "AVTP AAF",
            [
                |n| ethernet(0x22f0, &[&[0x02, 0x80, n as u8, 0, 0, 0, 0, 0, 0, 0, 0, 1][..], &[0; 40]].concat()),
                |n| {
                    ethernet(0x22f0, &[&[0x02, 0x80, (n + 99) as u8, 0, 0, 0, 0, 0, 0, 0, 0, 2][..], &[0; 40]].concat())
                },
            ],
        ),
    ]
}

#[test]
fn streams_that_share_addresses_are_selected_by_their_number() {
    for (name, [first, second]) in pairs() {
        let mut frames: Vec<Seen> = (0..4000).filter(|n| n % 1000 != 7).map(|n| seen(n, first(n))).collect();
        let later = |n: u64| Seen {
            at_ns: BEGIN_NS + n * PERIOD_NS + 400_000 + scatter(n).cast_unsigned(),
            ..seen(n, second(n))
        };
        frames.extend((10..4000).filter(|n| n % 500 != 30).map(later));
        frames.sort_by_key(|seen| seen.at_ns);
        let of = |number| analysed(1, &frames, &Options { number: Some(number), ..OPTIONS }).capture;
        for (number, lost, count) in [(1, 4, 3996), (2, 8, 3982)] {
            let capture = of(number);
            assert_eq!((capture.frames, capture.lost, capture.restarts), (count, Some(lost), Some(0)), "{name}");
            assert_eq!((capture.late, capture.duplicates, capture.streams.len()), (Some(0), Some(0), 2), "{name}");
            assert_eq!(capture.stream, capture.streams[number - 1], "{name}");
            assert_eq!([capture.streams[0].lost, capture.streams[1].lost], [Some(4), Some(8)], "{name}");
        }
        assert_eq!(of(2).stream.protocol, name);
        let file = pcap(LITTLE, true, 1, &frames);
        let error = analyse(|| Ok(&file[..]), "test", &Options { number: Some(3), ..OPTIONS }).unwrap_err().to_string();
        assert!(error.starts_with("no stream 3: the file has 2 such streams"), "{error}");
    }
}

#[test]
fn a_source_of_rtp_that_sends_rarely_is_a_stream() {
    let other = |n: u64| {
        let mut frame = ethernet(0x0800, &ipv4(5004, &rtp(n)));
        frame[14 + 28 + 8..14 + 28 + 12].copy_from_slice(&[1, 2, 3, 4]);
        Seen { at_ns: BEGIN_NS + n * 100 * PERIOD_NS + 500_000, ..seen(n, frame) }
    };
    let mut frames: Vec<Seen> = (0..3000).map(|n| seen(n, ethernet(0x0800, &ipv4(5004, &rtp(n))))).collect();
    frames.extend((0..20).map(other));
    frames.sort_by_key(|seen| seen.at_ns);
    let capture = analysed(1, &frames, &OPTIONS).capture;
    let names: Vec<_> = capture.streams.iter().map(|stream| (stream.protocol.as_str(), stream.frames)).collect();
    assert_eq!(names, [("RTP 0x00000007", 3000), ("RTP 0x01020304", 20)]);
    assert_eq!((capture.lost, capture.restarts, capture.late), (Some(0), Some(0), Some(0)));
}

/// A frame of RTP with this number and media time, in slots from the first one.
fn media(number: u64, time: u64, marker: bool, slot: u64) -> Seen {
    let mut packet = rtp(number);
    packet[1] |= u8::from(marker) << 7;
    packet[4..8].copy_from_slice(&((time * 48) as u32).to_be_bytes());
    seen(slot, ethernet(0x0800, &ipv4(5004, &packet)))
}

#[test]
fn media_times_distinguish_a_pause_of_rtp_from_a_loss() {
    for slots in [1_000, 32_768, 40_000, 65_535, 65_536, 70_000, 2 * 65_536, 1_000_000] {
        let of = |lost: u64, time: u64, marker: bool| {
            let after = |n: u64| media(3000 + lost + n, 3000 + time + n, marker && n == 0, 3000 + slots + n);
            let frames: Vec<Seen> = (0..3000).map(|n| media(n, n, false, n)).chain((0..3000).map(after)).collect();
            let capture = analysed(1, &frames, &OPTIONS).capture;
            (capture.lost, capture.losses, capture.restarts, capture.clock_steps)
        };
        let pause = (Some(0), Some(0), Some(0), Some(1));
        let loss = |lost| (Some(lost), Some(1), Some(0), Some(0));
        assert_eq!(of(slots, slots, false), loss(slots), "both advance: a loss of {slots}");
        assert_eq!(of(0, 0, false), pause, "neither advances: a pause of {slots}");
        assert_eq!(of(0, slots, true), pause, "marked, and only the media advances: a pause of {slots}");
        if slots % 65_536 != 0 {
            assert_eq!(of(0, slots, false), pause, "only the media advances: a pause of {slots}");
        }
        if slots > 30_000 {
            assert_eq!(of(7, slots, false).0, Some(7), "a pause of {slots} with a loss");
        }
    }
}

/// A frame of GOOSE with this state and number; the next one must follow within 2 s.
fn goose(appid: u8, state: u8, number: u8, at_ns: u64) -> Seen {
    let pdu = [&[0x80, 3][..], b"gcb", &[0x81, 2, 7, 0xd0, 0x85, 1, state, 0x86, 1, number]].concat();
    let packet = [&[0, appid, 0, 60, 0, 0, 0, 0, 0x61, pdu.len() as u8][..], &pdu].concat();
    Seen { at_ns: BEGIN_NS + at_ns + scatter(at_ns).cast_unsigned(), ..seen(0, ethernet(0x88b8, &packet)) }
}

/// Frames of 20 states: each is repeated after 2, 4, 8 ms ..., and then every second.
fn events(appid: u8) -> Vec<(u8, u8, Seen)> {
    let times_ms = |number: u64| if number < 10 { (1 << number) - 1 } else { 1_000 * (number - 9) + 511 };
    let state = |state: u64| {
        (0..18).map(move |number| {
            let frame = goose(appid, state as u8, number as u8, (state * 9_600 + times_ms(number)) * 1_000_000);
            (state as u8, number as u8, frame)
        })
    };
    (1..21).flat_map(state).collect()
}

#[test]
fn losses_of_goose_are_counted_over_its_states() {
    let of = |keep: &dyn Fn(u8, u8) -> bool| {
        let frames = events(1).into_iter().filter(|(state, number, _)| keep(*state, *number)).map(|(.., seen)| seen);
        analysed(1, &frames.collect::<Vec<_>>(), &OPTIONS).capture
    };
    let counts = |capture: &Capture| (capture.lost, capture.losses, capture.restarts, capture.expired);
    let clean = of(&|_, _| true);
    assert_eq!((clean.stream.protocol.as_str(), clean.numbered_by), ("GOOSE 0x0001, gcb", NumberedBy::Protocol));
    assert_eq!(counts(&clean), (Some(0), Some(0), Some(0), Some(0)));
    assert_eq!((clean.late, clean.skipped_slots), (None, None));
    assert!(clean.lateness_unknown.unwrap().starts_with("frames of a new state are repeated"));
    // In state 3, number 5; in state 8, the first one; in state 12, the heartbeats 13 to 15, which is 4 s without a frame.
    let lossy = of(&|state, number| ![(3, 5), (8, 0), (12, 13), (12, 14), (12, 15)].contains(&(state, number)));
    assert_eq!(counts(&lossy), (Some(5), Some(3), Some(0), Some(1)));
    assert!((lossy.worst_expired[0].ns - 2_000_000_000).abs() < 1_000, "{:?}", lossy.worst_expired);
    assert_eq!(counts(&of(&|state, _| state != 5)).0, Some(1), "of a whole state, at least one frame");
}

#[test]
fn applications_of_goose_are_selected_by_their_number() {
    let later = events(2).into_iter().filter(|(state, number, _)| (*state, *number) != (4, 3));
    let mut frames: Vec<Seen> = events(1).into_iter().chain(later).map(|(.., seen)| seen).collect();
    frames.sort_by_key(|seen| seen.at_ns);
    for (number, lost, name) in [(1, 0, "GOOSE 0x0001, gcb"), (2, 1, "GOOSE 0x0002, gcb")] {
        let capture = analysed(1, &frames, &Options { number: Some(number), ..OPTIONS }).capture;
        assert_eq!((capture.stream.protocol.as_str(), capture.lost, capture.duplicates), (name, Some(lost), Some(0)));
    }
}

#[test]
fn numbers_count_even_if_most_frames_are_lost() {
    for (name, _, frame) in protocols() {
        for percent in [50, 60, 80] {
            let is_kept = |n: &u64| *n == 0 || *n == 9_999 || scatter(*n) * 100 / 201 >= percent;
            let frames: Vec<Seen> = (0..10_000).filter(is_kept).map(|n| seen(n, frame(n))).collect();
            let capture = analysed(1, &frames, &OPTIONS).capture;
            assert_eq!(capture.numbered_by, NumberedBy::Protocol, "{name} {percent}");
            assert_eq!(
                (capture.lost, capture.restarts),
                (Some(10_000 - frames.len() as u64), Some(0)),
                "{name} {percent}"
            );
        }
    }
}

/// Publishers that share addresses and application id are streams of their own.
#[test]
fn publishers_behind_the_same_addresses_are_streams() {
    type Frame<'a> = &'a dyn Fn(&[u8], u16) -> Vec<u8>;
    let length = |bytes: &[u8]| u8::try_from(bytes.len()).unwrap();
    let ethernet = |ethertype: u16, packet: &[u8]| {
        [&[1, 12, 205, 1, 0, 1, 2, 0, 0, 0, 0, 1][..], &ethertype.to_be_bytes(), packet].concat()
    };
    let goose = |name: &[u8], number: u16| {
        let [high, low] = number.to_be_bytes();
        let pdu = [&[0x80, 1][..], name, &[0x81, 2, 7, 208, 0x85, 1, 1, 0x86, 3, 0, high, low]].concat();
        ethernet(0x88b8, &[&[16, 0, 0, 60, 0, 0, 0, 0, 0x61, length(&pdu)][..], &pdu].concat())
    };
    let samples = |name: &[u8], number: u16| {
        let [high, low] = (number % 4000).to_be_bytes();
        let asdu = [&[0x80, 1][..], name, &[0x82, 2, high, low]].concat();
        let asdus = [&[0x30, length(&asdu)][..], &asdu].concat();
        let pdu = [&[0x80, 1, 1, 0xa2, length(&asdus)][..], &asdus].concat();
        ethernet(0x88ba, &[&[64, 0, 0, 60, 0, 0, 0, 0, 0x60, length(&pdu)][..], &pdu].concat())
    };
    let pubsub = |name: &[u8], number: u16| {
        let [low, high] = number.to_le_bytes();
        ethernet(0xb62c, &[0xb1, 1, 7, 0, 0b1001, name[0], 0, low, high])
    };
    let of: [(Frame, &str, &str); 3] = [
        (&goose, "GOOSE 0x1000, A", "GOOSE 0x1000, B"),
        (&samples, "sampled values 0x4000, A", "sampled values 0x4000, B"),
        (&pubsub, "OPC UA PubSub, publisher 7, group 65", "OPC UA PubSub, publisher 7, group 66"),
    ];
    for (frame, first, second) in of {
        let mut all = Vec::new();
        for n in (0..3000u16).filter(|n| *n != 2000) {
            let at_ns = BEGIN_NS + u64::from(n) * 1_000_000;
            all.push(Seen { at_ns, interface: 0, bytes: frame(b"A", n) });
            all.push(Seen { at_ns: at_ns + 300_000, interface: 0, bytes: frame(b"B", n + 5000) });
        }
        all.remove(2000);
        let file = pcap(LITTLE, true, 1, &all);
        let found = analyse(|| Ok(&file[..]), "made", &OPTIONS).expect("an analysis").capture;
        let streams: Vec<_> =
            found.streams.iter().map(|one| (one.protocol.as_str(), one.frames, one.lost.unwrap())).collect();
        assert_eq!(streams, [(second, 2999, 1), (first, 2998, 2)]);
        assert_eq!((found.restarts.unwrap(), found.duplicates.unwrap()), (0, 0), "{first}");
    }
}

/// RTP between which the talker sends frames of another kind, with numbers of the same sequence.
#[test]
fn numbered_frames_between_the_cyclic_ones_have_no_slot() {
    for every in [50, 11] {
        let mut frames = Vec::new();
        let mut number = 0;
        for n in 0..6000u64 {
            frames.push(seen(n, ethernet(0x0800, &ipv4(7000, &rtp(number)))));
            number += 1;
            if n % every == every / 2 {
                let between = seen(n, ethernet(0x0800, &ipv4(7000, &rtp(number))));
                frames.push(Seen { at_ns: between.at_ns + PERIOD_NS * (1 + n % 7) / 9, ..between });
                number += 1;
            }
        }
        frames.retain({
            let mut place = 0;
            move |_| (place, place += 1).0 != 3000
        });
        let capture = analysed(1, &frames, &OPTIONS).capture;
        let why = capture.lateness_unknown.as_deref().unwrap_or_default();
        assert!(why.contains("are between those that come every"), "{why}");
        assert!(capture.period.nominal_ns.abs_diff(PERIOD_NS) < PERIOD_NS / 100, "{:?}", capture.period);
        assert_eq!((capture.late, capture.skipped_slots, capture.lost), (None, None, Some(1)), "{every}");
    }
}

/// Few of them have no slot each, and change nothing else.
#[test]
fn few_numbered_frames_between_the_cyclic_ones_are_counted() {
    for (n_between, from, apart) in [
        (1, 5000, 1),
        (1, 9980, 1),
        (1, 70, 1),
        (5, 1000, 700),
        (12, 300, 700),
        (2, 3000, 1),
        (2, 3000, 12),
        (3, 3000, 40),
        (40, 400, 210),
    ] {
        let between = |n: u64| n >= from && (n - from).is_multiple_of(apart) && (n - from) / apart < n_between;
        let (mut frames, mut number) = (Vec::new(), 0);
        for n in 0..10_000u64 {
            frames.push(seen(n, ethernet(0x88a4, &ethercat(number))));
            number += 1;
            if between(n) {
                let one = seen(n, ethernet(0x88a4, &ethercat(number)));
                frames.push(Seen { at_ns: one.at_ns + PERIOD_NS * (1 + n % 7) / 9, ..one });
                number += 1;
            }
        }
        let capture = analysed(1, &frames, &OPTIONS).capture;
        assert_eq!(
            (capture.late, capture.surplus, capture.lost, capture.skipped_slots, capture.steps_total),
            (Some(0), Some(n_between), Some(0), Some(0), Some(0)),
            "{n_between} from {from}, {apart} apart: {:?}",
            capture.lateness_unknown
        );
    }
}

/// A talker that changes its period is not late, and leaves out no slots.
#[test]
fn a_change_of_the_period_is_found() {
    for (tenths, numbered) in [(13, true), (13, false), (20, true), (20, false), (5, true)] {
        let at_ns = |n: u64| (n.min(5000) * 10 + n.saturating_sub(5000) * tenths) * PERIOD_NS / 10;
        let frame = |n: u64| {
            let payload = if numbered { rtp(n) } else { vec![7; 60] };
            let at_ns = BEGIN_NS + at_ns(n) + scatter(n).cast_unsigned();
            Seen { at_ns, interface: 0, bytes: ethernet(0x0800, &ipv4(7000, &payload)) }
        };
        let capture = analysed(1, &(0..9000).map(frame).collect::<Vec<_>>(), &OPTIONS).capture;
        let why = capture.lateness_unknown.as_deref().unwrap_or_default();
        assert!(why.starts_with("the talker changed its period from"), "{tenths} {numbered}: {why}");
        let near: u64 =
            why.split("near frame ").nth(1).unwrap().split(", after").next().unwrap().replace(',', "").parse().unwrap();
        assert!(near.abs_diff(5001) < 60, "{why}");
        assert_eq!((capture.late, capture.skipped_slots), (None, None), "{tenths} {numbered}");
    }
}

/// Lost frames are counted by the period that the talker has where they are lost.
#[test]
fn losses_after_a_change_of_the_period_are_no_restart() {
    let avtp: Protocol = ("AVTP", CapturedKind::Avtp, |n| {
        let mut talker = support::Talker::plain(1);
        talker.seen(n, 0).bytes
    });
    for (name, _, frame) in protocols().into_iter().chain([avtp]) {
        for percent in [30, 50, 60, 75, 80, 90, 110, 120, 150, 200] {
            for length in [1, 2, 3, 7, 15, 30] {
                let at_ns = |n: u64| (n.min(4_000) * 100 + n.saturating_sub(4_000) * percent) * PERIOD_NS / 100;
                // Two of these are 255 frames apart, and two others 256.
                let begins = [100, 4_060, 4_500, 4_755, 5_300, 5_556, 6_500];
                let is_kept = |n: &u64| !begins.iter().any(|from| (*from..from + length).contains(n));
                let seen =
                    |n: u64| Seen { at_ns: BEGIN_NS + at_ns(n) + scatter(n).cast_unsigned(), ..seen(n, frame(n)) };
                let frames: Vec<Seen> = (0..8_000).filter(is_kept).map(seen).collect();
                let Capture { lost, losses, duplicates, reordered, restarts, .. } =
                    analysed(1, &frames, &OPTIONS).capture;
                let expected = [7 * length, 7, 0, 0, 0].map(Some);
                assert_eq!([lost, losses, duplicates, reordered, restarts], expected, "{name} {percent} {length}");
            }
        }
    }
}

/// A stream of 1 ms whose talker pauses for `pause_ms` after 20,000 frames, and then sends so many frames each `after_us`.
fn resumed(pause_ms: u64, frames: u64, after_us: u64, numbered: bool) -> Capture {
    let frame = |n: u64| {
        let payload = if numbered { rtp(n) } else { vec![7; 60] };
        let after = n.checked_sub(20_000).map_or(0, |after| pause_ms * PERIOD_NS + after * after_us * 1_000);
        let at_ns = BEGIN_NS + n.min(20_000) * PERIOD_NS + after + scatter(n).cast_unsigned();
        Seen { at_ns, interface: 0, bytes: ethernet(0x0800, &ipv4(7000, &payload)) }
    };
    analysed(1, &(0..20_000 + frames).map(frame).collect::<Vec<_>>(), &OPTIONS).capture
}

#[test]
fn a_change_of_the_period_after_a_pause_is_found() {
    for numbered in [true, false] {
        for (pause_ms, frames, after_us) in
            [(60_000, 3_000, 500), (1_000, 3_000, 800), (1_000, 20_000, 1_100), (101, 3_000, 1_100), (1, 3_000, 4_000)]
        {
            let capture = resumed(pause_ms, frames, after_us, numbered);
            let why = capture.lateness_unknown.as_deref().unwrap_or_default();
            let context = format!("{pause_ms} {frames} {after_us} {numbered}: {why}");
            assert!(why.starts_with("the talker changed its period from"), "{context}");
            assert_eq!((capture.late, capture.skipped_slots), (None, None), "{context}");
        }
        // A pause without a change, and a stall whose frames catch up, slowly or at once.
        assert_eq!(resumed(1_000, 3_000, 1_000, numbered).lateness_unknown, None, "{numbered}");
        assert_eq!(resumed(600, 3_000, 800, numbered).lateness_unknown, None, "{numbered}");
        assert_eq!(resumed(3_000, 2_000, 10, numbered).lateness_unknown, None, "{numbered}");
    }
}

/// A period that the stream does not have gives neither a drift nor a reservation.
#[test]
fn a_given_period_that_differs_gives_no_drift() {
    let frames: Vec<Seen> = (0..3000).map(|n| seen(n, ethernet(0x0800, &ipv4(7000, &[7; 60])))).collect();
    for period_ns in [2 * PERIOD_NS, PERIOD_NS * 3 / 2] {
        let capture = analysed(1, &frames, &Options { period_ns: Some(period_ns), ..OPTIONS }).capture;
        assert!(capture.lateness_unknown.is_some(), "{period_ns}");
        assert_eq!((capture.period.clock_ppm, capture.shaper.is_none()), (None, true), "{period_ns}");
    }
    let right = analysed(1, &frames, &Options { period_ns: Some(PERIOD_NS), ..OPTIONS }).capture;
    assert!(right.lateness_unknown.is_none() && right.shaper.is_some() && right.period.clock_ppm.is_some());
}

#[test]
fn many_streams_of_one_frame_are_an_error_with_a_remedy() {
    let mut frames = Vec::new();
    for n in 0..5000u64 {
        let mut bytes = ethernet(0x0800, &ipv4(7000, &[7; 60]));
        // The source port.
        bytes[34..36].copy_from_slice(&u16::try_from(n + 1024).unwrap().to_be_bytes());
        frames.push(seen(n, bytes));
    }
    let file = pcap(LITTLE, true, 1, &frames);
    let error = analyse(|| Ok(&file[..]), "test", &OPTIONS).unwrap_err().to_string();
    assert!(error.starts_with("the stream has 1 frame,") && error.contains("--ethertype"), "{error}");
    let filter = Filter { ethertype: Some(0x0800), ..OPTIONS.filter };
    assert_eq!(analysed(1, &frames, &Options { filter, ..OPTIONS }).capture.frames, 5000);
}

/// The cycle counter of PROFINET starts again after 2048 frames of 1 ms. It continues after pauses of any length.
#[test]
fn numbers_that_continue_after_pauses_are_no_losses() {
    for pauses_ms in [&[2_000][..], &[1_500], &[10_000], &[500; 5], &[300; 8], &[3_000, 7_000]] {
        let (mut frames, mut number, mut slot) = (Vec::new(), 60_000, 0);
        for pause_ms in pauses_ms.iter().chain([&0]) {
            for _ in 0..1_500 {
                frames.push(seen(slot, ethernet(0x8892, &profinet(number))));
                (number, slot) = (number + 1, slot + 1);
            }
            slot += pause_ms;
        }
        let capture = analysed(1, &frames, &OPTIONS).capture;
        let counts = (capture.lost, capture.duplicates, capture.restarts, capture.too_late);
        assert_eq!(counts, (Some(0), Some(0), Some(0), Some(0)), "{pauses_ms:?}");
    }
}

/// The clock of the capture is set back while frames are lost.
#[test]
fn losses_where_the_clock_is_set_back_are_no_restart() {
    for (name, _, frame) in protocols().into_iter().filter(|(name, ..)| !name.starts_with("EtherCAT")) {
        for (step_ns, lost) in [(-3_600_000_000_000, 1), (-5_000_000_000, 3), (-300_000_000, 200)] {
            let set =
                |n: u64| Seen { at_ns: seen(n, Vec::new()).at_ns.wrapping_add_signed(step_ns), ..seen(n, frame(n)) };
            let frames: Vec<Seen> = (0..3000).map(|n| seen(n, frame(n))).chain((3000 + lost..6000).map(set)).collect();
            let capture = analysed(1, &frames, &OPTIONS).capture;
            assert_eq!(
                (capture.lost, capture.losses, capture.duplicates, capture.restarts, capture.clock_steps),
                (Some(lost), Some(1), Some(0), Some(0), Some(1)),
                "{name} {step_ns} {lost}"
            );
        }
    }
}

/// The clock of the capture is set forward, or the talker pauses, for so long that the numbers could have started again any number
/// of times.
#[test]
fn losses_are_unknown_if_the_time_shows_nothing() {
    // Not a multiple of the frames after which any of the numbers start again.
    const HOUR: u64 = 3_600_500;
    // The number of EtherCAT has 8 bits as that of AVTP, and RTP has the time of its media.
    let is_other = |name: &str| !name.starts_with("EtherCAT") && !name.starts_with("RTP");
    for (name, _, frame) in protocols().into_iter().filter(|(name, ..)| is_other(name)) {
        // With 16 bits at 1 ms, the time shows something for half an hour.
        let slots = if name.starts_with("PROFINET") || name.starts_with("sampled") { HOUR } else { 50 * HOUR };
        for lost in [0, 1, 17, 900, 1_500] {
            let after = (5_000 + lost..8_000 + lost).map(|n| seen(n + slots, frame(n)));
            let frames: Vec<Seen> = (0..5_000).map(|n| seen(n, frame(n))).chain(after).collect();
            let Analysis { capture, caveats, .. } = analysed(1, &frames, &OPTIONS);
            let is_known = lost < 256;
            let expected = is_known.then_some(lost);
            let counts = (capture.lost, capture.stream.lost, capture.duplicates, capture.restarts, capture.clock_steps);
            assert_eq!(counts, (expected, expected, Some(0), Some(0), Some(1)), "{name} {lost}");
            let says =
                caveats.iter().any(|caveat| caveat.text.contains("lost frames is not known: their numbers repeat"));
            assert_eq!(says, !is_known, "{name} {lost}: {caveats:?}");
        }
        // A talker that restarts usually begins with 0.
        let again = (0..3_000).map(|n| seen(5_000 + slots + n, frame(n)));
        let first = if name.starts_with("sampled") { 7_500 } else { 100_000 };
        let frames: Vec<Seen> = (0..5_000).map(|n| seen(n, frame(first + n))).chain(again).collect();
        let capture = analysed(1, &frames, &OPTIONS).capture;
        assert_eq!((capture.lost, capture.restarts), (Some(0), Some(1)), "{name}");
    }
}

/// A cable is unplugged for so long that the numbers start again several times. The period is known from all other frames.
#[test]
fn long_losses_that_number_and_time_show_are_counted() {
    for (name, _, frame) in protocols() {
        for lost in [65_535, 65_536, 65_537, 160_005, 1_000_031] {
            let slots = (0..5_000).chain(5_000 + lost..10_000 + lost);
            let frames: Vec<Seen> = slots.map(|n| seen(n, frame(n))).collect();
            let capture = analysed(1, &frames, &OPTIONS).capture;
            let counts = (capture.lost, capture.losses, capture.duplicates, capture.restarts, capture.steps_total);
            assert_eq!(counts, (Some(lost), Some(1), Some(0), Some(0), Some(0)), "{name}");
        }
    }
    // After 50 minutes, the error of the time is more than a part of 256 frames.
    let slots = (0..5_000).chain(3_005_000..3_010_000);
    let frames: Vec<Seen> = slots.map(|n| seen(n, ethernet(0x88a4, &ethercat(n)))).collect();
    let capture = analysed(1, &frames, &OPTIONS).capture;
    assert_eq!((capture.lost, capture.duplicates, capture.restarts), (None, Some(0), Some(0)));
}

/// The copies of a second tap come later, so that the numbers of consecutive frames alternate.
#[test]
fn later_copies_are_duplicates() {
    let avtp = |n: u64| {
        let header = [2, 0x80, n as u8, 0, 2, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 2, 0x50, 2, 32, 0, 48, 0, 0];
        ethernet(0x22f0, &[&header[..], &[0; 48]].concat())
    };
    let all =
        protocols().into_iter().map(|(name, _, frame)| (name, frame)).chain([("AVTP", avtp as fn(u64) -> Vec<u8>)]);
    for (name, frame) in all {
        for delay in [400_000, 1_400_000, 2_400_000, 8_400_000, 26_400_000] {
            let later = |n: u64| Seen { at_ns: seen(n, Vec::new()).at_ns + delay, ..seen(n, frame(n)) };
            let sent = |n: &u64| *n != 3_000;
            let mut frames: Vec<Seen> = (0..5_000).filter(sent).flat_map(|n| [seen(n, frame(n)), later(n)]).collect();
            frames.sort_by_key(|seen| seen.at_ns);
            let capture = analysed(1, &frames, &OPTIONS).capture;
            let counts = (capture.lost, capture.duplicates, capture.restarts, capture.reordered, capture.late);
            assert_eq!(counts, (Some(1), Some(4_999), Some(0), Some(0), Some(0)), "{name} {delay}");
        }
    }
}

/// A talker that starts again can begin with any number.
#[test]
fn a_restart_with_any_number_after_a_pause_is_no_loss() {
    for pause in [1_900, 30_000, 300_000] {
        for number in [9_000, 45_000] {
            let after = |n: u64| media(number + n, 77_777 + n, false, 5_000 + pause + n);
            let frames: Vec<Seen> = (0..5_000).map(|n| media(n, n, false, n)).chain((0..5_000).map(after)).collect();
            let capture = analysed(1, &frames, &OPTIONS).capture;
            let counts = (capture.lost, capture.restarts, capture.late, &capture.lateness_unknown);
            assert_eq!(counts, (Some(0), Some(1), Some(0), &None), "RTP {pause} {number}");
        }
        // Without a time of the media, the number does not show which of them.
        for (name, frame, number) in
            [("PROFINET", profinet as fn(u64) -> Vec<u8>, 6_777), ("SV", sampled_values, 6_234)]
        {
            let ethertype = if name == "SV" { 0x88ba } else { 0x8892 };
            let frame = |n: u64, slot: u64| seen(slot, ethernet(ethertype, &frame(n)));
            let after = |n: u64| frame(number + n, 5_000 + pause + n);
            let frames: Vec<Seen> = (0..5_000).map(|n| frame(n, n)).chain((0..5_000).map(after)).collect();
            let capture = analysed(1, &frames, &OPTIONS).capture;
            assert_eq!((capture.lost, capture.late), (None, Some(0)), "{name} {pause}");
        }
    }
}

/// A loss with a stall after it is none, and neither is one of a stream with jitter.
#[test]
fn a_long_loss_of_each_protocol_is_counted() {
    for (name, _, frame) in protocols().into_iter().filter(|(name, ..)| *name != "EtherCAT") {
        for (lost, late, jitter) in [(300, 0, 1), (1_400, 20, 1), (1_400, 0, 1_500)] {
            let seen = |n: u64| {
                let slot = if (3_000 + lost..3_000 + lost + late).contains(&n) { 3_000 + lost + late } else { n };
                let at_ns = BEGIN_NS + slot * PERIOD_NS + scatter(n).cast_unsigned() * jitter + (n % 100) * 1_000;
                Seen { at_ns, interface: 0, bytes: frame(n) }
            };
            let frames: Vec<Seen> = (0..9_000).filter(|n| !(3_000..3_000 + lost).contains(n)).map(seen).collect();
            let capture = analysed(1, &frames, &OPTIONS).capture;
            assert_eq!((capture.lost, capture.restarts), (Some(lost), Some(0)), "{name} {lost} {late} {jitter}");
        }
    }
}

/// Twice as much time between two frames of PROFINET makes their numbers twice as far apart, as if each second one was lost.
#[test]
fn another_step_of_the_numbers_is_another_period() {
    for (pause, before, after) in [(0, 1, 2), (5_000, 1, 2), (0, 2, 1), (5_000, 2, 1)] {
        let slot = |n: u64| n.min(5_000) * before + n.saturating_sub(5_000) * after;
        let frame = |n: u64| {
            let paused = if n < 5_000 { 0 } else { pause };
            seen(slot(n) + paused, ethernet(0x8892, &profinet(slot(n) + paused / 3)))
        };
        let capture = analysed(1, &(0..10_000).map(frame).collect::<Vec<_>>(), &OPTIONS).capture;
        let why = capture.lateness_unknown.as_deref().unwrap_or_default();
        let expected = format!("the talker probably changed its period from {before} ms to {after} ms");
        assert!(why.contains(&expected), "{pause}: {why}");
        assert_eq!((capture.lost, capture.late, capture.too_late), (None, None, None), "{pause} {before} {after}");
    }
}

/// smpCnt starts again each second, even if the frames before a silence did not show it.
#[test]
fn sampled_values_can_be_lost_before_their_numbers_started_again() {
    let rate = |period_ns: u64, n: u64, slot: u64| {
        let at_ns = BEGIN_NS + slot * period_ns + scatter(slot).cast_unsigned();
        Seen { at_ns, interface: 0, bytes: ethernet(0x88ba, &sampled_values(n)) }
    };
    let lost = |period_ns: u64, number: u64, slots: u64| {
        let after = |n: u64| rate(period_ns, number + n, 1_000 + slots + n);
        let frames: Vec<Seen> = (0..1_000).map(|n| rate(period_ns, n, n)).chain((0..2_000).map(after)).collect();
        analysed(1, &frames, &OPTIONS).capture.lost
    };
    assert_eq!(lost(250_000, 1_000, 8_000), Some(8_000), "4000 a second");
    assert_eq!(lost(250_000, 1_500, 14_400_000), None, "an hour");
    assert_eq!(lost(300_000, 1_000, 12_000), None, "no usual rate");
}

/// A talker with several samples a frame counts samples.
fn samples_of(asdus: u8, n: u64) -> Vec<u8> {
    let mut frame = sampled_values(n * u64::from(asdus));
    let at = frame.windows(3).position(|three| three == [0x80, 1, 1]).unwrap();
    frame[at + 2] = asdus;
    frame
}

/// The protocol states by how much its numbers advance, so frames that are missing from the first one on are lost ones.
#[test]
fn each_second_frame_can_be_lost_where_the_step_is_known() {
    let known: [Protocol; 4] = [
        ("RTP", CapturedKind::Udp, |n| ethernet(0x0800, &ipv4(5004, &rtp(n)))),
        ("PTP", CapturedKind::Ethertype, |n| ethernet(0x88f7, &ptp(0, n))),
        ("1 sample", CapturedKind::Ethertype, |n| ethernet(0x88ba, &sampled_values(n))),
        ("2 samples", CapturedKind::Ethertype, |n| ethernet(0x88ba, &samples_of(2, n))),
    ];
    for (name, _, frame) in known {
        for begin in [0, 4_000] {
            let is_lost = |n: &u64| *n >= begin && n % 2 == 1;
            let frames: Vec<Seen> = (0..12_000).filter(|n| !is_lost(n)).map(|n| seen(n, frame(n))).collect();
            let capture = analysed(1, &frames, &OPTIONS).capture;
            let lost = (12_000 - begin) / 2;
            // The last one has no frame after it.
            assert_eq!((capture.lost, capture.restarts), (Some(lost - 1), Some(0)), "{name} from {begin}");
            assert_eq!(capture.late, Some(0), "{name} from {begin}: {:?}", capture.lateness_unknown);
        }
        let frames: Vec<Seen> = (0..12_000).map(|n| seen(n, frame(n))).collect();
        let capture = analysed(1, &frames, &OPTIONS).capture;
        assert_eq!((capture.lost, capture.restarts, capture.late), (Some(0), Some(0), Some(0)), "{name}");
    }
}

/// A part of the stream is in the file again, e.g. because two files overlap.
#[test]
fn frames_that_are_in_the_file_again_are_duplicates() {
    for (name, _, frame) in protocols().into_iter().filter(|(name, ..)| *name != "EtherCAT") {
        for again in [5, 20, 100, 250] {
            let mut frames: Vec<Seen> = (0..8_000).map(|n| seen(n, frame(n))).collect();
            let part = frames[4_000 - again..4_000].to_vec();
            frames.splice(4_000..4_000, part);
            let capture = analysed(1, &frames, &OPTIONS).capture;
            let counts = (capture.lost, capture.duplicates, capture.restarts, capture.too_late);
            assert_eq!(counts, (Some(0), Some(again as u64), Some(0), Some(0)), "{name} {again}");
        }
    }
}

/// Numbers that start again within the parts of a file do not show how many frames are between the parts.
#[test]
fn parts_in_another_order_have_no_false_losses() {
    for (name, _, frame) in protocols().into_iter().filter(|(name, ..)| *name != "EtherCAT") {
        for first in [3_000, 5_000, 7_777] {
            let mut frames: Vec<Seen> = (0..11_000).map(|n| seen(n, frame(n))).collect();
            frames.rotate_left(first);
            let lost = analysed(1, &frames, &OPTIONS).capture.lost;
            assert!(matches!(lost, None | Some(0)), "{name} {first}: {lost:?}");
        }
    }
}

/// A frame that others overtook before the capture began was not captured before.
#[test]
fn overtaken_frames_at_the_start_are_reordered() {
    for (name, _, frame) in protocols() {
        for overtaken_by in [1, 5, 20] {
            let mut frames: Vec<Seen> = (0..5_000).map(|n| seen(n, frame(60_000 + n))).collect();
            let first = Seen { at_ns: frames[overtaken_by].at_ns + 1_000, ..frames.remove(0) };
            frames.insert(overtaken_by, first);
            let capture = analysed(1, &frames, &OPTIONS).capture;
            let counts = (capture.lost, capture.duplicates, capture.reordered, capture.restarts);
            assert_eq!(counts, (Some(0), Some(0), Some(1), Some(0)), "{name} {overtaken_by}");
        }
    }
}

/// A clock that counts seconds shows no order of frames, but their numbers do as long as they do not start again within a step.
#[test]
fn losses_with_stamps_of_a_second_are_counted_by_numbers() {
    let lost = |n: &u64| [100, 101, 4_000, 6_001].contains(n);
    for (name, _, frame) in protocols() {
        let coarse =
            |n: u64| Seen { at_ns: BEGIN_NS + n * 2_000_000 / 1_000_000_000 * 1_000_000_000, ..seen(n, frame(n)) };
        let frames: Vec<Seen> = (0..8_000).filter(|n| !lost(n)).map(coarse).collect();
        let capture = analysed(1, &frames, &OPTIONS).capture;
        let counts = [capture.lost, capture.losses, capture.longest_loss];
        let is_known = !name.starts_with("EtherCAT");
        assert_eq!(counts, if is_known { [4, 3, 2].map(Some) } else { [None; 3] }, "{name}");
        assert!(capture.restarts.is_none_or(|restarts| restarts == 0), "{name}");
        assert!((capture.period.fitted_ns / 2e6 - 1.0).abs() < 0.02, "{name}: {}", capture.period.fitted_ns);
    }
}

/// A merging unit that is synchronised again sets its counter: no sample is missing in time.
#[test]
fn a_jump_of_the_samples_is_a_restart_and_no_loss() {
    for by in [1, 3, 20] {
        let count = |n: u64| if n < 5_000 { n } else { n + by };
        let frames: Vec<Seen> = (0..9_000)
            .filter(|n| ![2_000, 7_000].contains(n))
            .map(|n| {
                let at_ns = BEGIN_NS + n * 250_000 + scatter(n).cast_unsigned();
                Seen { at_ns, interface: 0, bytes: ethernet(0x88ba, &sampled_values(count(n))) }
            })
            .collect();
        let capture = analysed(1, &frames, &OPTIONS).capture;
        let counts = (capture.lost, capture.losses, capture.restarts, capture.duplicates, capture.late);
        assert_eq!(counts, (Some(2), Some(2), Some(1), Some(0), Some(0)), "{by}");
    }
}
