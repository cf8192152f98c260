//! Sources of cabinets.

use std::{fmt, path::PathBuf, str::FromStr};

use amp::{Cabinet, Ir};

use super::{AudioError, read_part, source::BUILT_IN};

/// Most samples of a built-in response: one second at 48 kHz.
const BUILT_IN_MAX: u32 = 48_000;

/// The source of a cabinet's impulse response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CabSource {
    /// No cabinet.
    None,
    /// A WAV file.
    File(PathBuf),
    /// A random, decaying response with this number of samples. It takes as much CPU time as any response of that
    /// length.
    BuiltIn(u32),
}

impl Default for CabSource {
    /// 43 ms at 48 kHz, like most responses of cabinets.
    fn default() -> Self {
        Self::BuiltIn(2048)
    }
}

/// The text is not a source of a cabinet.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a built-in cabinet must have 1 to {BUILT_IN_MAX} samples (got `{0}`): use builtin:2048, none, or a WAV file")]
pub struct UnknownCab(String);

impl CabSource {
    /// Loads the cabinet, and resamples its response to `rate_hz`.
    ///
    /// # Errors
    /// [`AudioError`].
    pub fn load(&self, rate_hz: u32) -> Result<Option<Cabinet>, AudioError> {
        let broken = |source| AudioError::Cab { cab: self.named(), source };
        let ir = match self {
            Self::None => return Ok(None),
            Self::BuiltIn(samples) => Ir::new(rate_hz, vec![response(*samples)]).map_err(broken)?,
            Self::File(path) => {
                let bytes = read_part(path).map_err(|source| AudioError::Read { path: path.clone(), source })?;
                Ir::from_file(&bytes).map_err(broken)?
            }
        };
        let ir = ir.resampled(rate_hz).map_err(broken)?;
        Ok(Some(Cabinet::new(&ir)))
    }

    /// The name in the record; empty for no cabinet.
    pub(super) fn named(&self) -> String {
        if *self == Self::None { String::new() } else { self.to_string() }
    }
}

/// Noise that decays by 60 dB, with an overall gain of 1.
fn response(samples: u32) -> Vec<f32> {
    let mut random = 1_u32;
    let noise = |n| {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let decay = 0.001_f32.powf(n as f32 / samples as f32);
        (random as f32 / u32::MAX as f32 - 0.5) * decay
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
                let length = samples.parse().ok().filter(|samples| (1..=BUILT_IN_MAX).contains(samples));
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
    fn reads_lengths_and_files() {
        for text in ["none", "builtin:2048", "cabs/v30.wav"] {
            assert_eq!(text.parse::<CabSource>().unwrap().to_string(), text);
        }
        for text in ["builtin:0", "builtin:48001", "builtin:room"] {
            let error = text.parse::<CabSource>().unwrap_err().to_string();
            assert!(error.contains("must have 1 to 48000 samples"), "{error}");
        }
        assert!(CabSource::None.load(48_000).unwrap().is_none());
        assert!(CabSource::default().load(44_100).unwrap().is_some());
        assert!(CabSource::File("nowhere.wav".into()).load(48_000).is_err());
    }
}
