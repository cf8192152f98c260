//! Decodes any bytes as a captured frame: Ethernet, or a Linux cooked capture by the first byte, and its protocol.
#![no_main]

use frames::{
    Content, Head, Link,
    maap::{Claim, Message},
    parse,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    ethernet(bytes);
    maap(bytes);
    let Some((&first, frame)) = bytes.split_first() else { return };
    let link = match first % 3 {
        0 => Link::Ethernet,
        1 => Link::Cooked,
        _ => Link::Cooked2,
    };
    let Some(head) = Head::read(link, frame) else { return };
    let content = Content::read(&head, frame, first & 0x80 == 0);
    assert!(content.crf.is_none() || content.avtp.is_some());
    let Some(pattern) = head.pattern(frame) else { return };
    assert!(pattern.matches(frame));
    // A frame with the same pattern has the same head.
    let mut other = frame.to_vec();
    if let Some(byte) = other.get_mut(usize::from(first) % 80) {
        *byte = byte.wrapping_add(first);
    }
    assert!(!pattern.matches(&other) || Head::read(link, &other) == Some(head));
});

fn maap(bytes: &[u8]) {
    let Some((source, message)) = Message::of_frame(bytes) else { return };
    assert_eq!(Message::read(&message.to_bytes()).map(|read| read.requested), Some(message.requested));
    let mut claim = Claim::new([2; 6], message.requested, false, Vec::new(), 1, 0);
    claim.send(0);
    let is_conflict = claim.receive(1, source, &message).is_some();
    assert!(!is_conflict || claim.due_ns().is_some());
}

fn ethernet(bytes: &[u8]) {
    let Some(whole) = parse(bytes) else { return assert!(bytes.len() < 32) };
    assert!(whole.probe.is_none() || whole.avtp.is_some());
    assert!(whole.avtp.is_none() || whole.ethertype == frames::ethernet::AVTP);
    // A truncated frame has the same parts, or fewer.
    let Some(part) = parse(&bytes[..bytes.len() / 2]) else { return };
    assert_eq!((part.destination, part.source, part.vlan), (whole.destination, whole.source, whole.vlan));
    assert!(part.avtp.is_none() || part.avtp == whole.avtp);
    assert!(part.probe.is_none() || part.probe == whole.probe);
}
