//! Parses any text as a user's profile.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(profile) = analysis::profile::parse("fuzz", text) {
        assert!(profile.limit_ns > 0 && (profile.limit_ns as u64) <= profile.period_ns && !profile.sources.is_empty());
    }
});
