//! Presets from anywhere: what is read is within its ranges, and reads the same when it is written.
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
