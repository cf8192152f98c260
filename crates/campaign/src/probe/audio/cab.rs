//! Where a cabinet comes from.

use std::{fmt, path::PathBuf, str::FromStr};

use amp::{Cabinet, Ir};

use super::{AudioError, source::BUILT_IN};

/// Samples of a response that needs no file, at most: a second at 48 kHz.
const MAX: u32 = 48_000;

/// A cabinet's response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CabSource {
    /// None: the chain's work without one.
    None,
    /// A WAV file.
    File(PathBuf),
    /// So many samples at random that die away: it costs what a response of that length costs.
    BuiltIn(u32),
}

impl Default for CabSource {
    /// 43 ms at 48 kHz, as most responses of cabinets.
    fn default() -> Self {
        Self::BuiltIn(2048)
    }
}

/// There is no such cabinet.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no length of 1 to {MAX} samples: use builtin:2048, none, or a WAV file")]
pub struct UnknownCab(String);

impl CabSource {
    /// The cabinet at a sample rate, Hz, to which a file's response is resampled.
    ///
    /// # Errors
    /// [`AudioError`].
    pub fn load(&self, rate_hz: u32) -> Result<Option<Cabinet>, AudioError> {
        let cab = || self.named();
        let broken = |source| AudioError::Cab { cab: cab(), source };
        let ir = match self {
            Self::None => return Ok(None),
            Self::BuiltIn(samples) => Ir::new(rate_hz, vec![response(*samples)]).map_err(broken)?,
            Self::File(path) => {
                let bytes = sys::file::read(path).map_err(|source| AudioError::Read { path: path.clone(), source })?;
                Ir::from_wav(&bytes).map_err(broken)?
            }
        };
        let ir = ir.resampled(rate_hz).map_err(|source| AudioError::CabRate { cab: cab(), source })?;
        Ok(Some(Cabinet::new(&ir)))
    }

    /// What the record calls it; empty for none.
    pub(super) fn named(&self) -> String {
        if *self == Self::None { String::new() } else { self.to_string() }
    }
}

/// Noise that falls by 60 dB to its end, as loud as what goes in.
fn response(samples: u32) -> Vec<f32> {
    let mut random = 1_u32;
    let noise = |n| {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let fallen = 0.001_f32.powf(n as f32 / samples as f32);
        (random as f32 / u32::MAX as f32 - 0.5) * fallen
    };
    let response: Vec<f32> = (0..samples).map(noise).collect();
    let gain = response.iter().map(|sample| sample * sample).sum::<f32>().sqrt();
    response.iter().map(|sample| sample / gain).collect()
}

impl FromStr for CabSource {
    type Err = UnknownCab;

    fn from_str(text: &str) -> Result<Self, UnknownCab> {
        match text.strip_prefix(BUILT_IN) {
            _ if text == "none" => Ok(Self::None),
            None => Ok(Self::File(text.into())),
            Some(samples) => {
                let length = samples.parse().ok().filter(|samples| (1..=MAX).contains(samples));
                length.map(Self::BuiltIn).ok_or_else(|| UnknownCab(samples.to_owned()))
            }
        }
    }
}

impl fmt::Display for CabSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::File(path) => write!(f, "{}", path.display()),
            Self::BuiltIn(samples) => write!(f, "{BUILT_IN}{samples}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cabinets_by_length_and_by_file() {
        for text in ["none", "builtin:2048", "cabs/v30.wav"] {
            assert_eq!(text.parse::<CabSource>().unwrap().to_string(), text);
        }
        for text in ["builtin:0", "builtin:48001", "builtin:room"] {
            let error = text.parse::<CabSource>().unwrap_err().to_string();
            assert!(error.contains("is no length of 1 to 48000 samples"), "{error}");
        }
        assert!(CabSource::None.load(48_000).unwrap().is_none());
        assert!(CabSource::default().load(44_100).unwrap().is_some());
        assert!(CabSource::File("nowhere.wav".into()).load(48_000).is_err());
    }
}
