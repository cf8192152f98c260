//! Audio in a campaign file.

use record::CLOCK;

use super::Fields;
use crate::{
    AudioPlan, CabSource, ModelSource, Through,
    audio::{Device, FRAMES, PERIODS, RATES_HZ},
};

/// Audio played in periods.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AudioProbe {
    /// Samples of a period.
    pub frames: u32,
    /// What is played, and how.
    pub plan: AudioPlan,
}

impl AudioProbe {
    /// Time between two deadlines, ns, rounded down.
    #[must_use]
    pub fn period_ns(&self) -> u64 {
        self.plan.period_ns(self.frames)
    }
}

/// Reads what this kind alone has.
pub(super) fn audio(fields: &mut Fields<'_>) -> AudioProbe {
    let mut whole = |key, range: &std::ops::RangeInclusive<u32>, default: u32| {
        let value = fields.integer(key, u64::from(*range.start())..=u64::from(*range.end()));
        value.map_or(default, |value| value as u32)
    };
    let rate_hz = whole("rate", &RATES_HZ, 48_000);
    let frames = whole("frames", &FRAMES, 64);
    let periods = whole("periods", &PERIODS, 2);
    let model = fields.parsed("model", str::parse::<ModelSource>).unwrap_or_default();
    let cab = fields.parsed("cab", str::parse::<CabSource>).unwrap_or_default();
    let preset = fields.text("preset");
    for key in ["model", "cab"].into_iter().filter(|key| preset.is_some() && fields.has(key)) {
        fields.wrong(key, format!("{key} and preset both say what is played: leave one of them out"));
    }
    let through = preset.map_or(Through::Parts { model, cab }, |path| Through::Preset(path.into()));
    let device = fields.parsed("device", device).flatten();
    AudioProbe { frames, plan: AudioPlan { rate_hz, periods, through, device, find: false } }
}

/// A card by its name, or none.
fn device(name: &str) -> Result<Option<Device>, String> {
    match name {
        CLOCK => Ok(None),
        name if name.starts_with("hw:") => Ok(name.parse().ok()),
        name => Err(format!("`{name}` names no sound card: write hw:CARD, hw:CARD,DEVICE or {CLOCK}")),
    }
}
