//! Decodes any bytes as an Ethernet frame with an AVTP stream packet.
#![no_main]

use frames::parse;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some(whole) = parse(bytes) else { return assert!(bytes.len() < 18) };
    assert!(whole.probe.is_none() || whole.avtp.is_some());
    assert!(whole.avtp.is_none() || whole.ethertype == frames::ethernet::AVTP);
    // A truncated frame has the same parts, or fewer.
    let Some(part) = parse(&bytes[..bytes.len() / 2]) else { return };
    assert_eq!((part.destination, part.source, part.vlan), (whole.destination, whole.source, whole.vlan));
    assert!(part.avtp.is_none() || part.avtp == whole.avtp);
    assert!(part.probe.is_none() || part.probe == whole.probe);
});
