//! A datagram that comes in place of ptp4l's answer.
#![no_main]

use libfuzzer_sys::fuzz_target;
use machine::clocks::management::{Answer, Told, state_name};

fuzz_target!(|bytes: &[u8]| {
    let Some(answer) = Answer::read(bytes) else { return };
    match answer.told {
        Told::Parent { grandmaster } => assert_eq!(grandmaster.to_string().len(), 18),
        Told::Port { state, .. } => assert!(!state_name(state).is_empty()),
        Told::PortProperties { interface, .. } => assert!(interface.len() <= 3 * 255),
        _ => {}
    }
    // What stands behind the message's own length does not count.
    let longer = [bytes, &[0xff; 8]].concat();
    assert!(Answer::read(&longer).is_some());
});
