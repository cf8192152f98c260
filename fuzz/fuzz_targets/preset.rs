//! Parses any text as a preset: all values are in range, and writing and parsing it again returns the same preset.
#![no_main]

use amp::{Parameter, Preset};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(preset) = Preset::parse(text) else { return };
    for &parameter in Parameter::ALL {
        assert!(parameter.check(preset.settings.get(parameter)).is_ok());
    }
    assert_eq!(Preset::parse(&preset.to_toml()), Ok(preset));
});
