//! Parses any bytes as a netlink answer: its messages, their attributes, and nested attributes.
#![no_main]

use harmless::check_error;
use libfuzzer_sys::fuzz_target;
use sys::{
    link::Link,
    netlink::{Answer, Attributes},
};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(attributes) = Attributes::read(bytes) {
        read_all(&attributes, 0);
    }
    let answer = Answer::from_bytes(bytes.to_vec());
    let messages = match answer.messages() {
        Ok(messages) => messages,
        Err(error) => return check_error(error),
    };
    assert!(messages.iter().map(|message| message.payload.len()).sum::<usize>() <= bytes.len());
    for message in messages {
        let _ = Link::read(&message);
        if let Ok((_, attributes)) = message.generic() {
            read_all(&attributes, 0);
        }
        if let Ok((_, attributes)) = message.with_header::<16>() {
            read_all(&attributes, 0);
        }
    }
});

fn read_all(attributes: &Attributes, depth: usize) {
    for attribute in attributes.iter() {
        let kind = attribute.kind;
        let _ = (attributes.u8(kind), attributes.u16(kind), attributes.u32(kind), attributes.uint(kind));
        let _ = attributes.text(kind);
        if let Ok(nested) = attribute.nested() {
            if depth < 8 {
                read_all(&nested, depth + 1);
            }
        }
    }
}
