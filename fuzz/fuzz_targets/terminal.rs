//! Writes any bytes through the filter under the terminal, in pieces: only our own sequences pass, and the pieces are
//! shown like the whole.
#![no_main]

use std::io::Write;

use libfuzzer_sys::fuzz_target;
use record::visible::{Passes, Visible, is_hidden};

fn shown(passes: Passes, pieces: &[&[u8]]) -> String {
    let mut shown = Vec::new();
    let mut filter = Visible::new(&mut shown, passes);
    pieces.iter().for_each(|piece| filter.write_all(piece).expect("memory"));
    filter.finish().expect("memory");
    String::from_utf8(shown).expect("the filter writes UTF-8")
}

fuzz_target!(|input: (usize, &[u8])| {
    let (at, bytes) = input;
    let (first, second) = bytes.split_at(at.checked_rem(bytes.len()).unwrap_or(0));
    for passes in [Passes::Text, Passes::Colours, Passes::Drawing] {
        assert_eq!(shown(passes, &[first, second]), shown(passes, &[bytes]));
    }
    assert!(!shown(Passes::Text, &[bytes]).contains(is_hidden));
    let colours = shown(Passes::Colours, &[bytes]);
    // Each escape begins a colour, and nothing else is hidden.
    assert!(colours.split('\x1b').skip(1).all(|rest| rest.starts_with("[0")), "{colours:?}");
    assert!(!colours.contains(|c| c != '\x1b' && is_hidden(c)), "{colours:?}");
});
