//! Sound cards through the kernel interface `/dev/snd/pcmC*D*`, without alsa-lib. Only the sample format is converted.
//!
//! | module | contents |
//! |---|---|
//! | `abi` | the kernel's PCM structures and ioctls |
//! | `params` | hardware parameters, refined until one configuration is left |
//! | `sample` | sample formats and their conversion |
//! | `stream` | one direction of a device |
//! | `duplex` | capture and playback, started together, one period at a time |

mod abi;
mod device;
mod duplex;
mod params;
mod sample;
mod stream;

use std::{fmt, io, path::PathBuf};

use thiserror::Error;

pub use device::offer;
pub use duplex::{Duplex, WaitResult, Wake};
pub use params::Offer;
pub use sample::{Format, UnknownFormat};
pub use stream::Stream;

/// The direction of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Audio output.
    Playback,
    /// Audio input.
    Capture,
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Self::Playback { "playback" } else { "capture" })
    }
}

/// A device node of a card, with the kernel's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Node {
    /// The card number.
    pub card: u32,
    /// The device number on the card.
    pub device: u32,
    /// The direction.
    pub direction: Direction,
}

impl Node {
    /// The path of the device node.
    #[must_use]
    pub fn path(self) -> PathBuf {
        let letter = if self.direction == Direction::Playback { 'p' } else { 'c' };
        format!("/dev/snd/pcmC{}D{}{letter}", self.card, self.device).into()
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "hw:{},{} ({})", self.card, self.device, self.direction)
    }
}

/// The requested configuration of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamConfig {
    /// The exact sample rate, Hz.
    pub rate_hz: u32,
    /// Frames per period. The card wakes the program after each period.
    pub period_frames: u32,
    /// Periods per buffer, at least 2.
    pub periods: u32,
    /// Minimum number of capture channels, if the card has as many. Playback uses two, or the card's minimum if that is
    /// larger.
    pub inputs: u32,
    /// The sample format; `None` selects the most precise one.
    pub format: Option<Format>,
}

impl StreamConfig {
    /// Buffer length, frames.
    #[must_use]
    pub fn buffer_frames(&self) -> u32 {
        self.period_frames.saturating_mul(self.periods)
    }

    /// Why a device with this offer does not support the configuration, if a single parameter decides it.
    fn refused_by(&self, offer: &Offer) -> Option<String> {
        let range = |what: &str, value: u32, range: &std::ops::RangeInclusive<u32>| {
            let (least, most) = (range.start(), range.end());
            (!range.contains(&value)).then(|| format!("has no {what} of {value} frames, only {least} to {most}"))
        };
        let rates = || match &offer.rates[..] {
            [] => "nor at any common rate".to_owned(),
            rates => format!("only at {}", rates.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")),
        };
        let formats = || offer.formats.iter().map(Format::to_string).collect::<Vec<_>>().join(", ");
        let refused_format = self
            .format
            .filter(|format| !offer.formats.contains(format))
            .map(|format| format!("has no {format} samples, only {}", formats()));
        (!offer.can_map)
            .then(|| "does not let programs map its buffer; choose another card".to_owned())
            .or_else(|| {
                offer
                    .formats
                    .is_empty()
                    .then(|| "has none of the sample formats FLOAT, S32, S24, S24_3 and S16".to_owned())
            })
            .or_else(|| {
                (!offer.rates.contains(&self.rate_hz))
                    .then(|| format!("does not run at {} Hz, {}", self.rate_hz, rates()))
            })
            .or(refused_format)
            .or_else(|| range("period", self.period_frames, &offer.period_frames))
            .or_else(|| range("buffer", self.buffer_frames(), &offer.buffer_frames))
    }
}

impl fmt::Display for StreamConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rate_hz, period_frames, periods, .. } = self;
        write!(f, "{periods} periods of {period_frames} frames at {rate_hz} Hz")?;
        self.format.map_or(Ok(()), |format| write!(f, " in {format}"))
    }
}

/// Why a device cannot be used.
#[derive(Debug, Error)]
pub enum PcmError {
    /// There is no such device.
    #[error("no such sound device: {0}; `punctual amp devices` lists the devices")]
    Absent(Node),
    /// The user has no permission.
    #[error("no permission to open {0}: run `sudo usermod -aG audio $USER` and log in again")]
    Forbidden(Node),
    /// Another program uses the device.
    #[error("{0} is in use by another program: end that program")]
    Busy(Node),
    /// The device does not support one of the parameters at all.
    #[error("{node} {refusal}")]
    NotOffered {
        /// The device.
        node: Node,
        /// The unsupported parameter and the supported values.
        refusal: String,
    },
    /// The device supports each parameter, but not this combination.
    #[error(
        "{node} does not support {asked} in combination: choose another period ({} to {} frames) or buffer ({} to {} frames)",
        offer.period_frames.start(), offer.period_frames.end(), offer.buffer_frames.start(), offer.buffer_frames.end()
    )]
    NotTogether {
        /// The device.
        node: Node,
        /// The requested configuration.
        asked: String,
        /// The supported values.
        offer: Offer,
    },
    /// Another request to the kernel failed.
    #[error("{node} {step}: {source}; see `dmesg`")]
    Failed {
        /// The device.
        node: Node,
        /// The failed step.
        step: &'static str,
        /// The kernel's error.
        source: io::Error,
    },
}

impl PcmError {
    fn opening(node: Node, source: io::Error) -> Self {
        match source.raw_os_error() {
            Some(libc::ENOENT | libc::ENODEV | libc::ENXIO) => Self::Absent(node),
            Some(libc::EACCES | libc::EPERM) => Self::Forbidden(node),
            Some(libc::EBUSY | libc::EAGAIN) => Self::Busy(node),
            _ => Self::Failed { node, step: "cannot be opened", source },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card() -> Offer {
        Offer {
            formats: vec![Format::S32, Format::S16],
            channels: 2..=8,
            rates: vec![44_100, 48_000],
            period_frames: 16..=4096,
            buffer_frames: 64..=16_384,
            can_map: true,
        }
    }

    fn asked() -> StreamConfig {
        StreamConfig { rate_hz: 48_000, period_frames: 64, periods: 2, inputs: 2, format: None }
    }

    #[test]
    fn refusals_list_the_supported_values() {
        let refusal = |asked: StreamConfig| asked.refused_by(&card()).unwrap_or_default();
        assert_eq!(refusal(asked()), "");
        for (asked, expected) in [
            (StreamConfig { rate_hz: 96_000, ..asked() }, "does not run at 96000 Hz, only at 44100, 48000"),
            (StreamConfig { period_frames: 8, ..asked() }, "no period of 8 frames, only 16 to 4096"),
            (StreamConfig { period_frames: 16, ..asked() }, "no buffer of 32 frames, only 64 to 16384"),
            (StreamConfig { format: Some(Format::Float), ..asked() }, "no FLOAT samples, only S32, S16"),
        ] {
            assert!(refusal(asked.clone()).contains(expected), "{}", refusal(asked));
        }
        let odd = asked().refused_by(&Offer { rates: vec![], ..card() });
        assert_eq!(odd.as_deref(), Some("does not run at 48000 Hz, nor at any common rate"));
    }

    #[test]
    fn errors_include_a_remedy() {
        let node = Node { card: 31, device: 9, direction: Direction::Capture };
        assert_eq!(node.path(), PathBuf::from("/dev/snd/pcmC31D9c"));
        let error = offer(node).unwrap_err().to_string();
        assert_eq!(error, "no such sound device: hw:31,9 (capture); `punctual amp devices` lists the devices");
        let busy = PcmError::opening(node, io::Error::from_raw_os_error(libc::EBUSY)).to_string();
        assert!(busy.contains("in use by another program"), "{busy}");
        let forbidden = PcmError::opening(node, io::Error::from_raw_os_error(libc::EACCES)).to_string();
        assert!(forbidden.contains("usermod -aG audio"), "{forbidden}");
    }
}
