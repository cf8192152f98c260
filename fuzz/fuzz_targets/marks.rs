//! Reads any bytes as an ELF file with marks of cycles.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let marks = blame::marks::find(bytes);
    assert!(marks.len() <= 256, "more marks than are used");
});
