//! Parses any text as a preset: all values are in range, and writing and parsing it again returns the same preset.
#![no_main]

use amp::{Parameter, Preset};
use harmless::check_error;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let preset = match Preset::parse(text) {
        Ok(preset) => preset,
        Err(error) => return check_error(error),
    };
    for &parameter in Parameter::ALL {
        assert!(parameter.check(preset.settings.get(parameter)).is_ok());
    }
    assert_eq!(Preset::parse(&preset.to_toml()), Ok(preset));
});
