//! Sample formats and their conversion to floating point with full scale 1.

use std::{fmt, str::FromStr};

/// A sample format; all are signed and little-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// 32-bit floating point.
    Float,
    /// 32-bit integers.
    S32,
    /// 24-bit integers in the low three of four bytes.
    S24,
    /// 24-bit integers in three bytes.
    S24In3,
    /// 16-bit integers.
    S16,
}

/// The name is not that of a format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown sample format `{0}`: use FLOAT, S32, S24, S24_3 or S16")]
pub struct UnknownFormat(String);

impl Format {
    /// All formats, the most precise first.
    pub const ALL: [Self; 5] = [Self::Float, Self::S32, Self::S24, Self::S24In3, Self::S16];

    /// The kernel's number (`SNDRV_PCM_FORMAT_*`).
    #[must_use]
    pub const fn number(self) -> u32 {
        match self {
            Self::S16 => 2,
            Self::S24 => 6,
            Self::S32 => 10,
            Self::Float => 14,
            Self::S24In3 => 32,
        }
    }

    /// The format name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Float => "FLOAT",
            Self::S32 => "S32",
            Self::S24 => "S24",
            Self::S24In3 => "S24_3",
            Self::S16 => "S16",
        }
    }

    /// Bytes of a sample.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            Self::Float | Self::S32 | Self::S24 => 4,
            Self::S24In3 => 3,
            Self::S16 => 2,
        }
    }

    /// Decodes the sample in the first bytes, full scale 1.
    #[inline]
    #[must_use]
    pub fn read(self, bytes: [u8; 4]) -> f32 {
        let [a, b, c, _] = bytes;
        match self {
            Self::Float => f32::from_le_bytes(bytes),
            Self::S32 => i32::from_le_bytes(bytes) as f32 / 2_147_483_648.0,
            // The fourth byte is undefined.
            Self::S24 | Self::S24In3 => (i32::from_le_bytes([0, a, b, c]) >> 8) as f32 / 8_388_608.0,
            Self::S16 => f32::from(i16::from_le_bytes([a, b])) / 32_768.0,
        }
    }

    /// Encodes a sample in the first [`bytes`](Self::bytes) bytes. Rounds to nearest and saturates at full scale. NaN
    /// becomes silence.
    #[inline]
    #[must_use]
    pub fn write(self, sample: f32) -> [u8; 4] {
        #[expect(clippy::cast_possible_truncation, reason = "the cast saturates and converts NaN to 0")]
        let scaled = |full_scale: f64| (f64::from(sample) * full_scale).round_ties_even() as i32;
        match self {
            Self::Float => if sample.is_nan() { 0.0 } else { sample.clamp(-1.0, 1.0) }.to_le_bytes(),
            Self::S32 => scaled(2_147_483_648.0).to_le_bytes(),
            Self::S24 | Self::S24In3 => scaled(8_388_608.0).clamp(-8_388_608, 8_388_607).to_le_bytes(),
            Self::S16 => scaled(32_768.0).clamp(-32_768, 32_767).to_le_bytes(),
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(text: &str) -> Result<Self, UnknownFormat> {
        let is_named = |format: &Self| format.name().eq_ignore_ascii_case(text);
        Self::ALL.into_iter().find(is_named).ok_or_else(|| UnknownFormat(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn integers_round_trip_exactly(value in -8_388_608_i32..8_388_608) {
            let [a, b, c, _] = value.to_le_bytes();
            for format in [Format::S24, Format::S24In3] {
                for rest in [0, 0x7f, 0xff] {
                    prop_assert_eq!(&format.write(format.read([a, b, c, rest]))[..3], &[a, b, c]);
                }
            }
            prop_assert_eq!(Format::S32.write(Format::S32.read([0, a, b, c])), [0, a, b, c]);
            prop_assert_eq!(&Format::S16.write(Format::S16.read([b, c, 9, 9]))[..2], &[b, c]);
        }

        #[test]
        fn every_number_saturates_at_full_scale(bits: u32) {
            let sample = f32::from_bits(bits);
            for format in Format::ALL {
                let back = format.read(format.write(sample));
                let expected = if sample.is_nan() { 0.0 } else { sample.clamp(-1.0, 1.0) };
                prop_assert!((back - expected).abs() <= 1.0 / 32_768.0, "{} of {}: {}", format, sample, back);
            }
        }
    }

    #[test]
    fn converts_full_scale_and_names() {
        assert_eq!(Format::S16.write(1.0)[..2], i16::MAX.to_le_bytes());
        assert_eq!(Format::S16.write(-1.0)[..2], i16::MIN.to_le_bytes());
        assert_eq!(Format::S32.write(2.0), i32::MAX.to_le_bytes());
        for format in Format::ALL {
            assert_eq!(format.to_string().parse(), Ok(format));
        }
        assert!("S20".parse::<Format>().unwrap_err().to_string().contains("FLOAT"));
    }
}
