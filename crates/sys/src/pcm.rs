//! Sound cards through the kernel's own interface, `/dev/snd/pcmC*D*`: no library between, and nothing converted but samples.
//!
//! | module | holds |
//! |---|---|
//! | `abi` | how the kernel and a program talk |
//! | `params` | what a card can do, narrowed until one choice is left |
//! | `sample` | samples as cards have them, and as numbers |
//! | `stream` | one direction of a device |
//! | `duplex` | both directions, started together, a period at a time |

mod abi;
mod device;
mod duplex;
mod params;
mod sample;
mod stream;

use std::{fmt, io, path::PathBuf};

use thiserror::Error;

pub use device::offer;
pub use duplex::{Duplex, Turn, Wake};
pub use params::Offer;
pub use sample::{Format, UnknownFormat};
pub use stream::Stream;

/// One of two ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Out of the machine.
    Playback,
    /// Into the machine.
    Capture,
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Self::Playback { "playback" } else { "capture" })
    }
}

/// A direction of a card's device, by the kernel's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Node {
    /// The card.
    pub card: u32,
    /// Its device.
    pub device: u32,
    /// The direction.
    pub direction: Direction,
}

impl Node {
    /// Its file.
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

/// What a device is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// Sample rate, Hz: exactly that or none.
    pub rate_hz: u32,
    /// Frames of a period: the card wakes us after each.
    pub period_frames: u32,
    /// Periods of the buffer, 2 or more.
    pub periods: u32,
    /// At least so many channels to capture, where the card has them. What is played has two, or as many as the card demands.
    pub inputs: u32,
    /// The format of samples; `None` for the most exact one.
    pub format: Option<Format>,
}

impl Asked {
    /// Frames of the buffer.
    #[must_use]
    pub fn buffer_frames(&self) -> u32 {
        self.period_frames.saturating_mul(self.periods)
    }

    /// Why a device that offers this cannot do it, if one figure alone tells.
    fn refused_by(&self, offer: &Offer) -> Option<String> {
        let range = |what: &str, value: u32, range: &std::ops::RangeInclusive<u32>| {
            let (least, most) = (range.start(), range.end());
            (!range.contains(&value)).then(|| format!("has no {what} of {value} frames, only {least} to {most}"))
        };
        let rates = || match &offer.rates[..] {
            [] => "nor at a usual rate".to_owned(),
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

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rate_hz, period_frames, periods, .. } = self;
        write!(f, "{periods} periods of {period_frames} frames at {rate_hz} Hz")?;
        self.format.map_or(Ok(()), |format| write!(f, " in {format}"))
    }
}

/// Why a device cannot be played on.
#[derive(Debug, Error)]
pub enum PcmError {
    /// There is no such device.
    #[error("there is no {0}: `punctual amp devices` lists what there is")]
    Absent(Node),
    /// It is another user's.
    #[error("{0} is not for this user: `sudo usermod -aG audio $USER`, and log in again")]
    Forbidden(Node),
    /// Another program has it.
    #[error("{0} is held by another program: end that program")]
    Busy(Node),
    /// It does not do what was asked, whatever the rest is.
    #[error("{node} {refusal}")]
    NotOffered {
        /// The device.
        node: Node,
        /// What it has not, and what it has.
        refusal: String,
    },
    /// It does each of what was asked, but not together.
    #[error(
        "{node} does not do {asked} together: of its periods of {} to {} frames and buffers of {} to {} choose others",
        offer.period_frames.start(), offer.period_frames.end(), offer.buffer_frames.start(), offer.buffer_frames.end()
    )]
    NotTogether {
        /// The device.
        node: Node,
        /// What was asked.
        asked: String,
        /// What it can do.
        offer: Offer,
    },
    /// The kernel refused something else.
    #[error("{node} {step}: {source}; see `dmesg`")]
    Failed {
        /// The device.
        node: Node,
        /// What it did not do.
        step: &'static str,
        /// What the kernel answered.
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

    fn a_card() -> Offer {
        Offer {
            formats: vec![Format::S32, Format::S16],
            channels: 2..=8,
            rates: vec![44_100, 48_000],
            period_frames: 16..=4096,
            buffer_frames: 64..=16_384,
            can_map: true,
        }
    }

    fn asked() -> Asked {
        Asked { rate_hz: 48_000, period_frames: 64, periods: 2, inputs: 2, format: None }
    }

    #[test]
    fn what_a_card_has_not_is_refused_with_what_it_has() {
        let refusal = |asked: Asked| asked.refused_by(&a_card()).unwrap_or_default();
        assert_eq!(refusal(asked()), "");
        for (asked, expected) in [
            (Asked { rate_hz: 96_000, ..asked() }, "does not run at 96000 Hz, only at 44100, 48000"),
            (Asked { period_frames: 8, ..asked() }, "no period of 8 frames, only 16 to 4096"),
            (Asked { period_frames: 16, ..asked() }, "no buffer of 32 frames, only 64 to 16384"),
            (Asked { format: Some(Format::Float), ..asked() }, "no FLOAT samples, only S32, S16"),
        ] {
            assert!(refusal(asked.clone()).contains(expected), "{}", refusal(asked));
        }
        let odd = asked().refused_by(&Offer { rates: vec![], ..a_card() });
        assert_eq!(odd.as_deref(), Some("does not run at 48000 Hz, nor at a usual rate"));
    }

    #[test]
    fn what_is_not_there_is_said_with_the_remedy() {
        let node = Node { card: 31, device: 9, direction: Direction::Capture };
        assert_eq!(node.path(), PathBuf::from("/dev/snd/pcmC31D9c"));
        let error = offer(node).unwrap_err().to_string();
        assert_eq!(error, "there is no hw:31,9 (capture): `punctual amp devices` lists what there is");
        let busy = PcmError::opening(node, io::Error::from_raw_os_error(libc::EBUSY)).to_string();
        assert!(busy.contains("held by another program"), "{busy}");
        let forbidden = PcmError::opening(node, io::Error::from_raw_os_error(libc::EACCES)).to_string();
        assert!(forbidden.contains("usermod -aG audio"), "{forbidden}");
    }
}
