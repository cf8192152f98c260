//! The sound card of the audio probe.

use std::{convert::Infallible, fmt, ops::RangeInclusive, str::FromStr};

use machine::{
    Root,
    sound::{self, OpenError},
};
use record::SoundCard;
use sys::pcm::{Duplex, Format, StreamConfig};

/// Range of input numbers, from 1.
pub const INPUTS: RangeInclusive<u32> = 1..=64;

/// The capture and playback device, as `hw:CARD` or `hw:CARD,DEVICE`. They may be two cards that share one clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// Name of the capture device.
    pub capture: String,
    /// Name of the playback device.
    pub playback: String,
    /// Sample format; `None` for the most exact that it has.
    pub format: Option<Format>,
    /// Number of the input, from 0.
    pub input: u32,
}

impl Device {
    /// Opens and configures the card. Also returns its record.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open(&self, root: &Root, rate_hz: u32, frames: u32, periods: u32) -> Result<(Duplex, SoundCard), OpenError> {
        let inputs = 2.max(self.input + 1);
        let config = StreamConfig { rate_hz, period_frames: frames, periods, inputs, format: self.format };
        let mut duplex = sound::open(root, &self.capture, &self.playback, &config, self.input)?;
        let card = SoundCard {
            capture: self.capture.clone(),
            playback: self.playback.clone(),
            format: duplex.playback().format().to_string(),
            asked_format: self.format.map(|format| format.to_string()),
            input: Some(self.input + 1),
            linked: duplex.is_linked(),
            ..SoundCard::default()
        };
        Ok((duplex, card))
    }
}

impl FromStr for Device {
    type Err = Infallible;

    /// Uses one card for capture and playback, its most exact format, and its first input.
    fn from_str(name: &str) -> Result<Self, Infallible> {
        Ok(Self { capture: name.to_owned(), playback: name.to_owned(), format: None, input: 0 })
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.playback)
    }
}
