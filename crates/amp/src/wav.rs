//! Reading WAV files: integers of 8 to 32 bits and floating point of 32 and 64 bits, with any number of channels.
//!
//! The layout follows Microsoft's "Multimedia Programming Interface and Data Specifications 1.0", the documentation of
//! `WAVEFORMATEXTENSIBLE` for the extensible form, and EBU Tech 3306 for RF64, where a separate chunk contains a 64-bit
//! length. If a program that wrote a stream left the length open, the data ends with the file.

use thiserror::Error;

use std::ops::RangeInclusive;

use crate::convert::to_f32;

/// The content of a WAV file.
#[derive(Debug, Clone, PartialEq)]
pub struct Wav {
    /// Sample rate, Hz.
    pub rate_hz: u32,
    /// Bits per sample, and true for floating point.
    pub sample: (u16, bool),
    /// The samples of each channel, all of the same length. Full scale is 1, and all samples are finite.
    pub channels: Vec<Vec<f32>>,
}

/// Why a WAV file cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WavError {
    /// The file does not begin like a WAV file.
    #[error("not a WAV file; convert it, e.g. sox in.flac out.wav")]
    NotWav,
    /// The file has fewer bytes than its header declares.
    #[error(
        "the WAV file is truncated: it has {present} of {declared} bytes of samples; export it again, or use what is there, e.g. sox --ignore-length in.wav out.wav"
    )]
    Truncated {
        /// Number of bytes in the file.
        present: usize,
        /// Number of bytes in the header.
        declared: usize,
    },
    /// A chunk is missing.
    #[error("the WAV file has no {0}; it is truncated: export it again")]
    Missing(&'static str),
    /// Unsupported sample format.
    #[error(
        "unsupported sample format in the WAV file ({bits} bits, format tag {kind}); convert it, e.g. sox in.wav -e float out.wav"
    )]
    UnsupportedSamples {
        /// Bits per sample.
        bits: u16,
        /// `wFormatTag`.
        kind: u16,
    },
    /// The frame size in the header does not match the samples.
    #[error(
        "the WAV header declares {declared} bytes per frame, the samples need {needed}; convert the file, e.g. sox in.wav -e float out.wav"
    )]
    FrameSize {
        /// `nBlockAlign`.
        declared: usize,
        /// Size of the samples of all channels, bytes.
        needed: usize,
    },
    /// The header has no channels, or a sample rate outside 1 Hz to 768 kHz.
    #[error("invalid WAV header: {0}; export the file again")]
    InvalidHeader(&'static str),
    /// A sample is infinite or NaN: its frame, from 0.
    #[error("sample {0} of the WAV file is NaN or infinite; export it again")]
    NotFinite(usize),
}

const INTEGER: u16 = 1;
const FLOAT: u16 = 3;
const EXTENSIBLE: u16 = 0xfffe;

/// Minimum length that means "unknown": programs write such lengths while they record.
const OPEN: usize = 0x7fff_0000;

/// Sample rates of sound cards, Hz. Resampling from 4 GHz would take gigabytes of memory.
const RATES_HZ: RangeInclusive<u32> = 1..=768_000;

struct Format {
    kind: u16,
    channels: usize,
    rate_hz: u32,
    frame: usize,
    bits: u16,
}

/// Reads a WAV file.
///
/// # Errors
/// [`WavError`]. At most a few times the size of the file is allocated.
pub fn read(bytes: &[u8]) -> Result<Wav, WavError> {
    if bytes.len() < 12 || !(bytes.starts_with(b"RIFF") || bytes.starts_with(b"RF64")) || &bytes[8..12] != b"WAVE" {
        return Err(WavError::NotWav);
    }
    let (mut format, mut long, mut data, mut rest) = (None, None, None, &bytes[12..]);
    while let Some((head, body)) = rest.split_at_checked(8) {
        let length = u32_at(head, 4) as usize;
        let chunk = &body[..length.min(body.len())];
        match &head[..4] {
            b"fmt " => format = Some(read_format(chunk)?),
            b"ds64" if chunk.len() >= 16 => {
                long = Some(usize::try_from(u64_at(chunk, 8)).unwrap_or(usize::MAX)).filter(|&long| long > 0);
            }
            // A recorder that crashed leaves both lengths at 0.
            b"data" if length >= OPEN || (length == 0 && u32_at(bytes, 4) == 0) => {
                data = Some(long.map_or(Ok(body), |long| first(long, body))?);
            }
            b"data" => data = Some(first(length, body)?),
            _ => {}
        }
        if let (Some(format), Some(data)) = (&format, data) {
            return samples(format, data);
        }
        // Chunks begin at even offsets.
        rest = body.get(length.saturating_add(length % 2)..).unwrap_or_default();
    }
    Err(WavError::Missing(if format.is_some() { "samples" } else { "format" }))
}

/// The first `declared` bytes of the samples.
fn first(declared: usize, body: &[u8]) -> Result<&[u8], WavError> {
    body.get(..declared).ok_or(WavError::Truncated { present: body.len(), declared })
}

fn read_format(body: &[u8]) -> Result<Format, WavError> {
    if body.len() < 16 {
        return Err(WavError::Missing("whole format"));
    }
    let kind = match u16_at(body, 0) {
        // The identifier at offset 24 begins with the actual format.
        EXTENSIBLE if body.len() >= 26 => u16_at(body, 24),
        kind => kind,
    };
    let format = Format {
        kind,
        channels: u16_at(body, 2).into(),
        rate_hz: u32_at(body, 4),
        frame: u16_at(body, 12).into(),
        bits: u16_at(body, 14),
    };
    match format {
        Format { channels: 0, .. } => Err(WavError::InvalidHeader("no channels")),
        Format { rate_hz, .. } if !RATES_HZ.contains(&rate_hz) => {
            Err(WavError::InvalidHeader("its sample rate is not 1 Hz to 768 kHz"))
        }
        format => Ok(format),
    }
}

fn samples(format: &Format, data: &[u8]) -> Result<Wav, WavError> {
    let read: fn(&[u8]) -> f32 = match (format.kind, format.bits) {
        // 8-bit samples are unsigned, all others signed. Odd numbers of bits use the upper bits.
        (INTEGER, 1..=8) => |x| (f32::from(x[0]) - 128.0) / 128.0,
        (INTEGER, 9..=16) => |x| f32::from(i16::from_le_bytes([x[0], x[1]])) / 32_768.0,
        (INTEGER, 17..=24) => |x| (i32::from_le_bytes([0, x[0], x[1], x[2]]) >> 8) as f32 / 8_388_608.0,
        (INTEGER, 25..=32) => |x| to_f32(f64::from(i32::from_le_bytes([x[0], x[1], x[2], x[3]])) / 2_147_483_648.0),
        (FLOAT, 32) => |x| f32::from_le_bytes([x[0], x[1], x[2], x[3]]),
        (FLOAT, 64) => |x| to_f32(f64::from_le_bytes([x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7]])),
        (kind, bits) => return Err(WavError::UnsupportedSamples { bits, kind }),
    };
    let size = usize::from(format.bits.div_ceil(8));
    let frame = size * format.channels;
    // Some programs leave the frame size at 0.
    if ![0, frame].contains(&format.frame) {
        return Err(WavError::FrameSize { declared: format.frame, needed: frame });
    }
    let mut channels: Vec<_> = (0..format.channels).map(|_| Vec::with_capacity(data.len() / frame)).collect();
    for (at, values) in data.chunks_exact(frame).enumerate() {
        for (channel, value) in channels.iter_mut().zip(values.chunks_exact(size)) {
            let value = read(value);
            if !value.is_finite() {
                return Err(WavError::NotFinite(at));
            }
            channel.push(value);
        }
    }
    Ok(Wav { rate_hz: format.rate_hz, sample: (format.bits, format.kind == FLOAT), channels })
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at + 4)) << 32 | u64::from(u32_at(bytes, at))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn file(kind: u16, bits: u16, channels: u16, data: &[u8]) -> Vec<u8> {
        let frame = channels * bits.div_ceil(8);
        let mut bytes = b"RIFF\0\0\0\0WAVELIST\x03\0\0\0abc\0fmt \x10\0\0\0".to_vec();
        bytes.extend([kind, channels].map(u16::to_le_bytes).concat());
        bytes.extend([44_100, 44_100 * u32::from(frame)].map(u32::to_le_bytes).concat());
        bytes.extend([frame, bits].map(u16::to_le_bytes).concat());
        bytes.extend(b"data");
        bytes.extend(u32::MAX.to_le_bytes());
        bytes.extend(data);
        bytes
    }

    #[test]
    fn all_formats_have_the_same_full_scale() {
        let half = [
            (INTEGER, 8, vec![192]),
            (INTEGER, 16, vec![0, 0x40]),
            (INTEGER, 24, vec![0, 0, 0x40]),
            (INTEGER, 32, vec![0, 0, 0, 0x40]),
            (FLOAT, 32, 0.5_f32.to_le_bytes().to_vec()),
            (FLOAT, 64, 0.5_f64.to_le_bytes().to_vec()),
        ];
        for (kind, bits, data) in half {
            let wav = read(&file(kind, bits, 2, &data.repeat(4))).unwrap();
            let expected = Wav { rate_hz: 44_100, sample: (bits, kind == FLOAT), channels: vec![vec![0.5; 2]; 2] };
            assert_eq!(wav, expected);
        }
        let lowest = read(&file(INTEGER, 24, 1, &[0, 0, 0x80, 0xff, 0xff, 0xff])).unwrap();
        assert_eq!(lowest.channels[0], [-1.0, -1.0 / 8_388_608.0]);
    }

    #[test]
    fn rejects_invalid_files() {
        assert_eq!(read(b"fLaC and so on"), Err(WavError::NotWav));
        assert_eq!(read(b"RIFF\0\0\0\0WAVE"), Err(WavError::Missing("format")));
        assert_eq!(read(&file(85, 0, 2, &[])), Err(WavError::UnsupportedSamples { bits: 0, kind: 85 }));
        assert_eq!(read(&file(INTEGER, 16, 0, &[])), Err(WavError::InvalidHeader("no channels")));
        assert_eq!(read(&file(FLOAT, 32, 1, &f32::NAN.to_le_bytes())), Err(WavError::NotFinite(0)));
    }

    #[test]
    fn lengths_may_be_exact_or_open_but_not_too_long() {
        let frames = |riff: u32, data: u32| {
            let mut bytes = file(INTEGER, 16, 1, &[1, 0, 2, 0, 3, 0]);
            let at = bytes.len() - 10;
            bytes[4..8].copy_from_slice(&riff.to_le_bytes());
            bytes[at..at + 4].copy_from_slice(&data.to_le_bytes());
            read(&bytes).map(|wav| wav.channels[0].len())
        };
        assert_eq!((frames(54, 6), frames(54, 4), frames(54, 0)), (Ok(3), Ok(2), Ok(0)));
        assert_eq!((frames(u32::MAX, u32::MAX), frames(0x7fff_f024, 0x7fff_f000), frames(0, 0)), (Ok(3), Ok(3), Ok(3)));
        assert_eq!(frames(56, 8), Err(WavError::Truncated { present: 6, declared: 8 }));
    }

    #[test]
    fn rf64_reads_the_length_from_its_own_chunk() {
        let frames = |length: u64| {
            let whole = file(INTEGER, 16, 1, &[1, 0, 2, 0, b'L', b'I', b'S', b'T', 2, 0, 0, 0, 3, 0]);
            let long =
                [&b"RF64\xff\xff\xff\xffWAVEds64\x1c\0\0\0"[..], &[0; 8], &length.to_le_bytes(), &[0; 12]].concat();
            read(&[&long, &whole[12..]].concat()).map(|wav| wav.channels[0].len())
        };
        assert_eq!((frames(4), frames(0)), (Ok(2), Ok(7)));
        assert_eq!(frames(1 << 33), Err(WavError::Truncated { present: 14, declared: 1 << 33 }));
    }

    #[test]
    fn samples_may_precede_their_format() {
        let whole = file(INTEGER, 16, 1, &[1, 0, 2, 0]);
        let (begin, format) = (&whole[..24], &whole[24..48]);
        let turned = [begin, b"data\x04\0\0\0\x01\0\x02\0", format].concat();
        assert_eq!(read(&turned), read(&whole));
        assert_eq!(read(&turned[..36]), Err(WavError::Missing("format")));
    }

    #[test]
    fn rejects_frame_sizes_that_do_not_match_the_samples() {
        let mut bytes = file(INTEGER, 24, 1, &[0; 12]);
        let at = bytes.len() - 12 - 8 - 4;
        assert_eq!(bytes[at], 3);
        bytes[at] = 4;
        assert_eq!(read(&bytes), Err(WavError::FrameSize { declared: 4, needed: 3 }));
        bytes[at] = 0;
        assert_eq!(read(&bytes).unwrap().channels[0].len(), 4);
    }

    #[test]
    fn rejects_sample_rates_that_no_card_has() {
        let mut bytes = file(INTEGER, 16, 1, &[0; 2]);
        let at = bytes.windows(4).position(|field| field == 44_100_u32.to_le_bytes()).unwrap();
        for (rate_hz, fits) in [(0, false), (1, true), (768_000, true), (768_001, false), (u32::MAX, false)] {
            bytes[at..at + 4].copy_from_slice(&u32::to_le_bytes(rate_hz));
            assert_eq!(read(&bytes).is_ok(), fits, "{rate_hz}");
        }
    }

    proptest! {
        /// Any bytes after a valid start return a result, with equal lengths of all channels.
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), kind in 0..5_u16, bits in 0..70_u16) {
            for bytes in [[&b"RIFF\0\0\0\0WAVE"[..], &bytes].concat(), file(kind, bits, 3, &bytes)] {
                if let Ok(wav) = read(&bytes) {
                    prop_assert!(wav.channels.iter().all(|channel| channel.len() == wav.channels[0].len()));
                }
            }
        }
    }
}
