//! Audio in a campaign file.

use std::ops::RangeInclusive;

use record::CLOCK;
use sys::pcm::Format;

use super::{fields::Fields, mistake::Place};
use crate::probe::{
    AudioProbe,
    audio::{CabSource, Device, FRAMES, INPUTS, ModelSource, PERIODS, RATES_HZ, Through},
};

/// Reads the keys of this kind alone, and the positions of those whose values a machine may lack.
pub(super) fn audio(fields: &mut Fields<'_>) -> (AudioProbe, Vec<(&'static str, Place)>) {
    let default = AudioProbe::default();
    let mut whole = |key, range: &RangeInclusive<u32>, default: u32| {
        let value = fields.integer(key, u64::from(*range.start())..=u64::from(*range.end()));
        value.and_then(|value| u32::try_from(value).ok()).unwrap_or(default)
    };
    let rate_hz = whole("rate", &RATES_HZ, default.rate_hz);
    let frames = whole("frames", &FRAMES, default.frames);
    let periods = whole("periods", &PERIODS, default.periods);
    let input = whole("input", &INPUTS, 1) - 1;
    let model = fields.parsed("model", str::parse::<ModelSource>).unwrap_or_default();
    let cab = fields.parsed("cab", str::parse::<CabSource>).unwrap_or_default();
    let preset = fields.text("preset");
    for key in ["model", "cab"].into_iter().filter(|key| preset.is_some() && fields.has(key)) {
        fields.wrong(key, format!("{key} and preset both say what is played: leave one of them out"));
    }
    let through = preset.map_or(Through::Parts { model, cab }, |path| Through::Preset(path.into()));
    let format = fields.parsed("format", str::parse::<Format>);
    let device = match fields.parsed("device", device) {
        // Its mistake is reported already: any card serves to find the others.
        None if fields.has("device") => "hw:0".parse().ok(),
        named => named.flatten(),
    };
    let device = device.map(|device: Device| Device { input, format, ..device });
    let keys = ["model", "cab", "preset", "device"].map(|key| (key, fields.place_of(key))).to_vec();
    (AudioProbe { rate_hz, frames, periods, through, device, ..default }, keys)
}

/// What is wrong with keys that are right each by itself.
pub(super) fn check(fields: &Fields<'_>, audio: &AudioProbe) {
    let useless = |key: &&str| audio.device.is_none() && fields.has(key);
    for key in ["format", "input"].into_iter().filter(useless) {
        let text = "is a sound card's, and the clock paces: leave it out, or write device = \"hw:0\"";
        fields.wrong(key, format!("{key} {text}"));
    }
}

/// A card by its name, or none.
fn device(name: &str) -> Result<Option<Device>, String> {
    match name {
        CLOCK => Ok(None),
        name if name.starts_with("hw:") => Ok(name.parse().ok()),
        name => Err(format!("`{name}` names no sound card: write hw:CARD, hw:CARD,DEVICE or {CLOCK}")),
    }
}
