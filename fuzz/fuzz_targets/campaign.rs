//! Parses any text as a campaign file; plans a valid one for machines of three sizes.
#![no_main]

use campaign::{Cpus, ExpandOptions, expand, file};
use harmless::check_error;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let file = match file::parse("fuzz.toml", text) {
        Ok(file) => file,
        Err(mistakes) => return check_error(mistakes),
    };
    for (count, isolated) in [(1, 0..0), (2, 1..2), (4, 2..4)] {
        let cpus = Cpus { usable: (0..count).collect(), isolated: isolated.collect(), isolation: machine::Isolation::default() };
        match expand(&file, &cpus, &ExpandOptions::default()) {
            Ok(scenarios) => assert!(!scenarios.list.is_empty() && scenarios.planned_ns() > 0),
            Err(mistakes) => check_error(mistakes),
        }
    }
});
