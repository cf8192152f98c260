//! A netlink answer from anywhere: its messages, their attributes, and the nests in them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sys::{
    link::Link,
    netlink::{Answer, Attributes},
};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(attributes) = Attributes::read(bytes) {
        look(&attributes, 0);
    }
    let answer = Answer::from_bytes(bytes.to_vec());
    let Ok(messages) = answer.messages() else { return };
    assert!(messages.iter().map(|message| message.payload.len()).sum::<usize>() <= bytes.len());
    for message in messages {
        let _ = Link::read(&message);
        if let Ok((_, attributes)) = message.generic() {
            look(&attributes, 0);
        }
        if let Ok((_, attributes)) = message.with_header::<16>() {
            look(&attributes, 0);
        }
    }
});

fn look(attributes: &Attributes, depth: usize) {
    for attribute in attributes.iter() {
        let kind = attribute.kind;
        let _ = (attributes.u8(kind), attributes.u16(kind), attributes.u32(kind), attributes.uint(kind));
        let _ = attributes.text(kind);
        if let Ok(nested) = attribute.nested() {
            if depth < 8 {
                look(&nested, depth + 1);
            }
        }
    }
}
