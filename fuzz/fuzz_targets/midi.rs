//! Parses any bytes as a stream of MIDI messages.
#![no_main]

use libfuzzer_sys::fuzz_target;
use play::midi::{Event, Parser};

fuzz_target!(|bytes: &[u8]| {
    let mut parser = Parser::default();
    let mut events = 0;
    for event in bytes.iter().filter_map(|&byte| parser.push(byte)) {
        events += 1;
        let [channel, first, second] = match event {
            Event::Program { channel, program } => [channel, program, 0],
            Event::Control { channel, controller, value } => [channel, controller, value],
        };
        assert!(channel < 16 && first < 128 && second < 128, "{event:?}");
    }
    assert!(events <= bytes.len(), "more messages than bytes");
});
