//! Compares encoded frames with expected bytes and with the decoder.

use proptest::prelude::*;

use super::*;
use crate::{Class, Parsed, parse, stream_id};

const SOURCE: Mac = [0x30, 0x64, 0x3e, 0x54, 0xee, 0x01];
const DESTINATION: Mac = [0x91, 0xe0, 0xf0, 0x00, 0x12, 0x34];
const ADDRESSES: [u8; 12] = [0x91, 0xe0, 0xf0, 0, 0x12, 0x34, 0x30, 0x64, 0x3e, 0x54, 0xee, 0x01];

fn stream(class: Class, format: Format) -> Stream {
    let stream_id = stream_id(SOURCE, 1);
    Stream {
        source: SOURCE,
        destination: DESTINATION,
        tci: class.tci(),
        stream_id,
        format,
        channels: STEREO,
        samples: class.samples(),
    }
}

fn patched(stream: Stream) -> Vec<u8> {
    let mut frame = stream.frame();
    let payload =
        Payload { run: 0x0102_0304, seq: 0x1_0203, scheduled_ns: 0x0a_0000_0000, woke_ns: 0x0a_0000_0001, sent_ns: 0 };
    frame.patch(&payload, 2_000_000);
    frame.patch_sent(0x0a_0000_0002);
    frame.bytes().to_vec()
}

#[rustfmt::skip]
const PAYLOAD: [u8; 48] = [
    b'P', b'N', b'C', b'T', 1, 0, 0, 0,
    1, 2, 3, 4,
    0, 0, 0, 0, 0, 1, 2, 3,
    0, 0, 0, 0x0a, 0, 0, 0, 0,
    0, 0, 0, 0x0a, 0, 0, 0, 1,
    0, 0, 0, 0x0a, 0, 0, 0, 2,
    0, 0, 0, 0,
];

#[test]
fn encodes_aaf() {
    #[rustfmt::skip]
    let header = [
        0x81, 0x00, 0x60, 0x02, 0x22, 0xf0, // tag: priority 3, VLAN 2; AVTP
        0x02, 0x81, 0x03, 0x00,             // AAF; stream id and timestamp valid; number 3
        0x30, 0x64, 0x3e, 0x54, 0xee, 0x01, 0x00, 0x01,
        0x00, 0x1e, 0x84, 0x80,             // 2 ms after the slot
        0x02, 0x50, 0x02, 0x20,             // INT32, 48 kHz, 2 channels, 32 bits
        0x00, 0x30, 0x00, 0x00,             // 48 bytes
    ];
    assert_eq!(patched(stream(Class::A, Format::Aaf)), [&ADDRESSES[..], &header, &PAYLOAD].concat());
}

#[test]
fn encodes_iec_61883() {
    #[rustfmt::skip]
    let header = [
        0x81, 0x00, 0x60, 0x02, 0x22, 0xf0,
        0x00, 0x81, 0x03, 0x00,             // IEC 61883
        0x30, 0x64, 0x3e, 0x54, 0xee, 0x01, 0x00, 0x01,
        0x00, 0x1e, 0x84, 0x80,
        0x00, 0x00, 0x00, 0x00,             // no gateway
        0x00, 0x38, 0x5f, 0xa0,             // 56 bytes; tag 1, channel 31; 0xA
        0x3f, 0x02, 0x00, 0x12,             // 2 quadlets a block; 3 * 6 blocks before this one
        0x90, 0x02, 0xff, 0xff,             // audio; 48 kHz; no time
    ];
    assert_eq!(patched(stream(Class::A, Format::Iec61883)), [&ADDRESSES[..], &header, &PAYLOAD].concat());
}

#[test]
fn class_b_has_another_tag_and_twice_the_samples() {
    let bytes = patched(stream(Class::B, Format::Aaf));
    assert_eq!((&bytes[12..18], &bytes[38..40]), (&[0x81, 0, 0x40, 2, 0x22, 0xf0][..], &[0, 96][..]));
    assert_eq!(bytes.len(), 138);
}

#[test]
fn too_few_samples_are_raised_to_the_minimum() {
    let few = Stream { samples: 1, ..stream(Class::A, Format::Aaf) };
    assert_eq!(few.frame().bytes().len(), 90);
}

fn payloads() -> impl Strategy<Value = Payload> {
    let times = (0..i64::MAX / 2, any::<i64>(), any::<i64>());
    (any::<u32>(), any::<u64>(), times).prop_map(|(run, seq, (scheduled_ns, woke_ns, sent_ns))| Payload {
        run,
        seq,
        scheduled_ns,
        woke_ns,
        sent_ns,
    })
}

proptest! {
    #[test]
    fn frames_round_trip(
        payload in payloads(), class_a in any::<bool>(), aaf in any::<bool>(), transit_ns in 0..100_000_000u64
    ) {
        let class = if class_a { Class::A } else { Class::B };
        let format = if aaf { Format::Aaf } else { Format::Iec61883 };
        let stream = stream(class, format);
        let mut frame = stream.frame();
        // An earlier patch must not affect the result.
        frame.patch(&Payload { seq: u64::MAX, run: u32::MAX, ..Payload::default() }, 1);
        frame.patch(&payload, transit_ns);
        frame.patch_sent(payload.sent_ns);
        let Parsed { destination, source, vlan, ethertype, avtp, probe, .. } = parse(frame.bytes()).expect("a frame");
        prop_assert_eq!((destination, source, vlan, ethertype), (DESTINATION, SOURCE, Some(class.tci()), AVTP));
        let avtp = avtp.expect("an AVTP stream packet");
        prop_assert_eq!((avtp.subtype, avtp.version, avtp.stream_valid), (format.subtype(), 0, true));
        prop_assert_eq!((avtp.stream_id, avtp.sequence), (stream.stream_id, payload.seq.to_le_bytes()[0]));
        let due_ns = payload.scheduled_ns + transit_ns.cast_signed();
        prop_assert_eq!(avtp.timestamp.map(|time| crate::nearest_ns(time, due_ns)), Some(due_ns));
        prop_assert_eq!(usize::from(avtp.data_length), frame.bytes().len() - PACKET - AVTP_HEADER);
        prop_assert!(!avtp.media_restart && !avtp.timestamp_uncertain);
        prop_assert_eq!(probe, Some(payload));
    }

    #[test]
    fn decodes_the_present_part_of_truncated_frames(payload in payloads(), keep in 0..90usize) {
        let mut frame = stream(Class::A, Format::Aaf).frame();
        frame.patch(&payload, 0);
        let read = parse(&frame.bytes()[..keep]);
        prop_assert_eq!(read.is_some(), keep >= 18);
        prop_assert_eq!(read.and_then(|read| read.avtp).is_some(), keep >= 18 + 22);
        prop_assert_eq!(read.and_then(|read| read.probe).is_some(), keep >= 18 + 24 + LENGTH);
    }
}
