//! The keys of audio probes in a campaign file.

use std::ops::RangeInclusive;

use record::CLOCK;
use sys::pcm::Format;

use super::{fields::Fields, mistake::Position};
use crate::probe::{
    AudioProbe,
    audio::{CabSource, Device, FRAMES, INPUTS, ModelSource, PERIODS, RATES_HZ, Through},
};

/// Reads the keys of this kind only. Also returns the positions of keys that name files or a sound card, which a
/// machine may not have.
pub(super) fn audio(fields: &mut Fields<'_>) -> (AudioProbe, Vec<(&'static str, Position)>) {
    let default = AudioProbe::default();
    let mut integer = |key, range: &RangeInclusive<u32>, default: u32| {
        let value = fields.integer(key, u64::from(*range.start())..=u64::from(*range.end()));
        value.and_then(|value| u32::try_from(value).ok()).unwrap_or(default)
    };
    let rate_hz = integer("rate", &RATES_HZ, default.rate_hz);
    let frames = integer("frames", &FRAMES, default.frames);
    let periods = integer("periods", &PERIODS, default.periods);
    let input = integer("input", &INPUTS, 1) - 1;
    let model = fields.parsed("model", str::parse::<ModelSource>).unwrap_or_default();
    let cab = fields.parsed("cab", str::parse::<CabSource>).unwrap_or_default();
    let preset = fields.text("preset");
    for key in ["model", "cab"].into_iter().filter(|key| preset.is_some() && fields.has(key)) {
        fields.report(key, format!("{key} and preset exclude each other: leave one of them out"));
    }
    let through = preset.map_or(Through::Parts { model, cab }, |path| Through::Preset(path.into()));
    let format = fields.parsed("format", str::parse::<Format>);
    let device = match fields.parsed("device", device) {
        // The mistake is already reported: any card will do to check the other keys.
        None if fields.has("device") => "hw:0".parse().ok(),
        named => named.flatten(),
    };
    let device = device.map(|device: Device| Device { input, format, ..device });
    let keys = ["model", "cab", "preset", "device"].map(|key| (key, fields.position_of(key))).to_vec();
    (AudioProbe { rate_hz, frames, periods, through, device, ..default }, keys)
}

/// Reports keys that do not fit together.
pub(super) fn check(fields: &Fields<'_>, audio: &AudioProbe) {
    let useless = |key: &&str| audio.device.is_none() && fields.has(key);
    for key in ["format", "input"].into_iter().filter(useless) {
        let text = format!("{key} is only for a sound card: leave it out, or write device = \"hw:0\"");
        fields.report(key, text);
    }
}

/// Reads the name of a sound card; `None` for the clock.
fn device(name: &str) -> Result<Option<Device>, String> {
    match name {
        CLOCK => Ok(None),
        name if name.starts_with("hw:") => Ok(name.parse().ok()),
        name => Err(format!("`{name}` is not a sound card: write hw:CARD, hw:CARD,DEVICE or {CLOCK}")),
    }
}
