//! Reads any text as the console of a guest: kernel messages and frames. A line `H CONTENT`, with the letter of a kind,
//! is sent as a valid frame first, because no fuzzer guesses a checksum.
#![no_main]

use guest::frame::{Frame, Kind, Receiver, Sender};
use harmless::check_error;
use libfuzzer_sys::fuzz_target;

fn frame(line: &str) -> Option<Frame> {
    let (letter, content) = line.split_once(' ')?;
    let kind = match letter {
        "H" => Kind::Hello,
        "O" => Kind::Out,
        "E" => Kind::Err,
        "F" => Kind::Files,
        "X" => Kind::Failure,
        "Z" => Kind::End,
        _ => return None,
    };
    Some(Frame { kind, content: content.as_bytes().to_vec() })
}

fn send(frames: &[Frame]) -> String {
    let mut console = Vec::new();
    let mut sender = Sender::new(&mut console);
    for frame in frames {
        sender.send(frame.kind, &frame.content).expect("memory");
    }
    String::from_utf8(console).expect("frames are text")
}

fuzz_target!(|text: &str| {
    let sent: Vec<Frame> = text.lines().filter_map(frame).collect();
    let console = send(&sent) + text;
    let mut receiver = Receiver::default();
    let mut received = Vec::new();
    for line in console.lines() {
        match receiver.read(line) {
            Ok(read) => {
                assert!(read.text.len() <= line.len());
                received.extend(read.frame);
            }
            Err(error) => {
                check_error(error);
                break;
            }
        }
    }
    assert!(received.starts_with(&sent), "every frame arrives");
});
