//! A profile from a file of the user's.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let _ = analysis::Profile::from_toml("fuzz", text);
});
