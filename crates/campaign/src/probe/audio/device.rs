//! Which sound card paces.

use std::{convert::Infallible, fmt, ops::RangeInclusive, str::FromStr};

use machine::{
    Root,
    sound::{self, OpenError},
};
use record::SoundCard;
use sys::pcm::{Duplex, Format, StreamConfig};

/// Inputs to choose from, counted from 1.
pub const INPUTS: RangeInclusive<u32> = 1..=64;

/// Both ends of a sound card, or of two that run from one clock, by their names: `hw:CARD` or `hw:CARD,DEVICE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// What is captured from.
    pub capture: String,
    /// What is played on.
    pub playback: String,
    /// How its samples look; the most exact that it has where `None`.
    pub format: Option<Format>,
    /// The input that is read, counted from 0.
    pub input: u32,
}

impl Device {
    /// The card, set as `measure audio` plays on it, and what is known of it.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open(&self, root: &Root, rate_hz: u32, frames: u32, periods: u32) -> Result<(Duplex, SoundCard), OpenError> {
        let inputs = 2.max(self.input + 1);
        let asked = StreamConfig { rate_hz, period_frames: frames, periods, inputs, format: self.format };
        let mut duplex = sound::open(root, &self.capture, &self.playback, &asked, self.input)?;
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

    /// One card for both ends, in its most exact format, with its first input.
    fn from_str(name: &str) -> Result<Self, Infallible> {
        Ok(Self { capture: name.to_owned(), playback: name.to_owned(), format: None, input: 0 })
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.playback)
    }
}
