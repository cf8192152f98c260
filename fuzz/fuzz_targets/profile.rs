//! Parses any text as a user's profile.
#![no_main]

use harmless::check_error;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match analysis::profile::parse("fuzz", text) {
        Ok(profile) => {
            assert!(profile.limit_ns > 0 && (profile.limit_ns as u64) <= profile.period_ns);
            assert!(!profile.sources.is_empty());
        }
        Err((_, error)) => check_error(error),
    }
});
