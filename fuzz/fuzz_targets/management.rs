//! Parses any datagram as an answer of ptp4l.
#![no_main]

use libfuzzer_sys::fuzz_target;
use machine::clocks::management::{Contents, Response, state_name};

fuzz_target!(|bytes: &[u8]| {
    let Some(response) = Response::read(bytes) else { return };
    match response.contents {
        Contents::Parent { grandmaster } => assert_eq!(grandmaster.to_string().len(), 18),
        Contents::Port { state, .. } => assert!(!state_name(state).is_empty()),
        Contents::PortProperties { interface, .. } => assert!(interface.len() <= 3 * 255),
        _ => {}
    }
    // Bytes after the message's own length are ignored.
    let longer = [bytes, &[0xff; 8]].concat();
    assert!(Response::read(&longer).is_some());
});
