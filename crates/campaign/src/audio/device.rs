//! Which sound card paces.

use std::{convert::Infallible, fmt, str::FromStr};

use machine::{
    Root,
    sound::{self, OpenError},
};
use record::SoundCard;
use sys::pcm::{Asked, Duplex};

/// Both ends of a sound card, or of two that run from one clock, by their names: `hw:CARD` or `hw:CARD,DEVICE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// What is captured from.
    pub capture: String,
    /// What is played on.
    pub playback: String,
}

impl Device {
    /// The card, set as `measure audio` plays on it, and what is known of it.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open(&self, root: &Root, rate_hz: u32, frames: u32, periods: u32) -> Result<(Duplex, SoundCard), OpenError> {
        let asked = Asked { rate_hz, period_frames: frames, periods, channels: 2, format: None };
        let mut duplex = sound::open(root, &self.capture, &self.playback, &asked)?;
        let card = SoundCard {
            capture: self.capture.clone(),
            playback: self.playback.clone(),
            format: duplex.playback().format().to_string(),
            linked: duplex.is_linked(),
            ..SoundCard::default()
        };
        Ok((duplex, card))
    }
}

impl FromStr for Device {
    type Err = Infallible;

    /// One card for both ends.
    fn from_str(name: &str) -> Result<Self, Infallible> {
        Ok(Self { capture: name.to_owned(), playback: name.to_owned() })
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.playback)
    }
}
