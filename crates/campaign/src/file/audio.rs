//! Audio in a campaign file.

use record::CLOCK;
use sys::pcm::Format;

use super::{Fields, Place};
use crate::{
    AudioPlan, CabSource, ModelSource, Through,
    audio::{Device, FRAMES, INPUTS, PERIODS, RATES_HZ},
};

/// Audio played in periods.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AudioProbe {
    /// Samples of a period.
    pub frames: u32,
    /// What is played, and how.
    pub plan: AudioPlan,
    /// Where the keys stand whose values a machine may lack.
    pub places: Vec<(&'static str, Place)>,
}

impl AudioProbe {
    /// Time between two deadlines, ns, rounded down.
    #[must_use]
    pub fn period_ns(&self) -> u64 {
        self.plan.period_ns(self.frames)
    }
}

/// Reads what this kind alone has, but for [`format()`].
pub(super) fn audio(fields: &mut Fields<'_>) -> AudioProbe {
    let mut whole = |key, range: &std::ops::RangeInclusive<u32>, default: u32| {
        let value = fields.integer(key, u64::from(*range.start())..=u64::from(*range.end()));
        value.map_or(default, |value| value as u32)
    };
    let rate_hz = whole("rate", &RATES_HZ, 48_000);
    let frames = whole("frames", &FRAMES, 64);
    let periods = whole("periods", &PERIODS, 2);
    let input = whole("input", &INPUTS, 1) - 1;
    let model = fields.parsed("model", str::parse::<ModelSource>).unwrap_or_default();
    let cab = fields.parsed("cab", str::parse::<CabSource>).unwrap_or_default();
    let preset = fields.text("preset");
    for key in ["model", "cab"].into_iter().filter(|key| preset.is_some() && fields.has(key)) {
        fields.wrong(key, format!("{key} and preset both say what is played: leave one of them out"));
    }
    let through = preset.map_or(Through::Parts { model, cab }, |path| Through::Preset(path.into()));
    let device = match fields.parsed("device", device) {
        // What is wrong with it has been told: a card stands in.
        None if fields.has("device") => "hw:0".parse().ok(),
        named => named.flatten(),
    };
    let device = device.map(|device| Device { input, ..device });
    let places = ["model", "cab", "preset", "device"].map(|key| (key, fields.place_of(key))).to_vec();
    AudioProbe { frames, places, plan: AudioPlan { rate_hz, periods, through, device, find: false } }
}

/// How the samples of its card look: `format` is a stream's where the kind is another.
pub(super) fn format(fields: &mut Fields<'_>, audio: &mut AudioProbe) {
    let format = fields.parsed("format", str::parse::<Format>);
    if let Some(device) = &mut audio.plan.device {
        device.format = format;
    }
}

/// What is wrong with keys that are right each by itself.
pub(super) fn check(fields: &Fields<'_>, audio: &AudioProbe) {
    let useless = |key: &&str| audio.plan.device.is_none() && fields.has(key);
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
