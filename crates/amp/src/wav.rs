//! WAV files as bytes: integers of 8 to 32 bits and floating point of 32 and 64, of any number of channels.
//!
//! Layout from Microsoft's "Multimedia Programming Interface and Data Specifications 1.0" and, for the extensible form, the
//! documentation of `WAVEFORMATEXTENSIBLE`; of RF64, where a length beyond 32 bits stands in a part of its own, from EBU Tech 3306.
//! Lengths that were left open by what wrote a stream, or never got to write them, end with the bytes.

use thiserror::Error;

/// What a WAV file holds.
#[derive(Debug, Clone, PartialEq)]
pub struct Wav {
    /// Samples a second.
    pub rate_hz: u32,
    /// Bits of a sample, and whether it is floating point.
    pub sample: (u16, bool),
    /// One list of samples a channel, all of one length; full scale is 1. They are finite.
    pub channels: Vec<Vec<f32>>,
}

/// Why bytes are no WAV file that can be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WavError {
    /// It begins otherwise.
    #[error("the file is no WAV: convert it first, as sox in.flac out.wav")]
    NoWav,
    /// It was longer.
    #[error(
        "the WAV file is cut short, {there} of {told} bytes of its samples are there: export it again, or take what is there, as sox --ignore-length in.wav out.wav"
    )]
    Cut {
        /// Bytes that are there.
        there: usize,
        /// Bytes that there should be.
        told: usize,
    },
    /// A part of it is not there.
    #[error("the WAV file has no {0}: it is cut short; export it again")]
    Lacks(&'static str),
    /// Samples of another kind.
    #[error(
        "the WAV file's samples ({bits} bits, kind {kind}) cannot be read: convert it first, as sox in.wav -e float out.wav"
    )]
    Samples {
        /// Bits of one.
        bits: u16,
        /// `wFormatTag`.
        kind: u16,
    },
    /// Frames of another length than their samples.
    #[error(
        "the WAV file tells {told} bytes a frame, and its samples take {take}: it is damaged, or of a form that is not known; convert it first, as sox in.wav -e float out.wav"
    )]
    Frames {
        /// `nBlockAlign`.
        told: usize,
        /// Samples of all channels.
        take: usize,
    },
    /// No channel, or no rate.
    #[error("the WAV file tells {0}, which no sound has: export it again")]
    Nothing(&'static str),
    /// Infinite, or no number.
    #[error("sample {0} of the WAV file is no finite number: export it again")]
    NotFinite(usize),
}

const INTEGER: u16 = 1;
const FLOAT: u16 = 3;
const EXTENSIBLE: u16 = 0xfffe;

/// Lengths from here on are what programs write that do not know them yet.
const OPEN: usize = 0x7fff_0000;

struct Format {
    kind: u16,
    channels: usize,
    rate_hz: u32,
    frame: usize,
    bits: u16,
}

/// Reads a file.
///
/// # Errors
/// [`WavError`]. No more is allotted than a few times the bytes.
pub fn read(bytes: &[u8]) -> Result<Wav, WavError> {
    if bytes.len() < 12 || !(bytes.starts_with(b"RIFF") || bytes.starts_with(b"RF64")) || &bytes[8..12] != b"WAVE" {
        return Err(WavError::NoWav);
    }
    let (mut format, mut long, mut data, mut rest) = (None, None, None, &bytes[12..]);
    while let Some((head, body)) = rest.split_at_checked(8) {
        let told = u32_at(head, 4) as usize;
        let there = &body[..told.min(body.len())];
        match &head[..4] {
            b"fmt " => format = Some(read_format(there)?),
            b"ds64" if there.len() >= 16 => long = Some(u64_at(there, 8) as usize).filter(|length| *length > 0),
            // A recorder that crashed has left both lengths at 0.
            b"data" if told >= OPEN || (told == 0 && u32_at(bytes, 4) == 0) => {
                data = Some(long.map_or(Ok(body), |long| first(long, body))?);
            }
            b"data" => data = Some(first(told, body)?),
            _ => {}
        }
        if let (Some(format), Some(data)) = (&format, data) {
            return samples(format, data);
        }
        // Parts begin at even places.
        rest = body.get(told.saturating_add(told % 2)..).unwrap_or_default();
    }
    Err(WavError::Lacks(if format.is_some() { "samples" } else { "format" }))
}

/// So many bytes of samples.
fn first(told: usize, body: &[u8]) -> Result<&[u8], WavError> {
    body.get(..told).ok_or(WavError::Cut { there: body.len(), told })
}

fn read_format(body: &[u8]) -> Result<Format, WavError> {
    if body.len() < 16 {
        return Err(WavError::Lacks("whole format"));
    }
    let kind = match u16_at(body, 0) {
        // The kind proper begins the identifier at 24.
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
        Format { channels: 0, .. } => Err(WavError::Nothing("no channels")),
        Format { rate_hz: 0, .. } => Err(WavError::Nothing("0 samples a second")),
        format => Ok(format),
    }
}

fn samples(format: &Format, data: &[u8]) -> Result<Wav, WavError> {
    let read: fn(&[u8]) -> f32 = match (format.kind, format.bits) {
        // 8 bits are without sign, all others with it; those of odd numbers of bits stand at the upper end.
        (INTEGER, 1..=8) => |x| (f32::from(x[0]) - 128.0) / 128.0,
        (INTEGER, 9..=16) => |x| f32::from(i16::from_le_bytes([x[0], x[1]])) / 32_768.0,
        (INTEGER, 17..=24) => |x| (i32::from_le_bytes([0, x[0], x[1], x[2]]) >> 8) as f32 / 8_388_608.0,
        (INTEGER, 25..=32) => |x| (f64::from(i32::from_le_bytes([x[0], x[1], x[2], x[3]])) / 2_147_483_648.0) as f32,
        (FLOAT, 32) => |x| f32::from_le_bytes([x[0], x[1], x[2], x[3]]),
        (FLOAT, 64) => |x| f64::from_le_bytes([x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7]]) as f32,
        (kind, bits) => return Err(WavError::Samples { bits, kind }),
    };
    let size = usize::from(format.bits.div_ceil(8));
    let frame = size * format.channels;
    // Some who write files leave it at 0.
    if ![0, frame].contains(&format.frame) {
        return Err(WavError::Frames { told: format.frame, take: frame });
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
    fn samples_of_every_kind_have_one_full_scale() {
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
    fn what_cannot_be_read_is_told() {
        assert_eq!(read(b"fLaC and so on"), Err(WavError::NoWav));
        assert_eq!(read(b"RIFF\0\0\0\0WAVE"), Err(WavError::Lacks("format")));
        assert_eq!(read(&file(85, 0, 2, &[])), Err(WavError::Samples { bits: 0, kind: 85 }));
        assert_eq!(read(&file(INTEGER, 16, 0, &[])), Err(WavError::Nothing("no channels")));
        assert_eq!(read(&file(FLOAT, 32, 1, &f32::NAN.to_le_bytes())), Err(WavError::NotFinite(0)));
    }

    #[test]
    fn a_length_is_kept_or_open_or_the_file_is_cut_short() {
        let told = |riff: u32, data: u32| {
            let mut bytes = file(INTEGER, 16, 1, &[1, 0, 2, 0, 3, 0]);
            let at = bytes.len() - 10;
            bytes[4..8].copy_from_slice(&riff.to_le_bytes());
            bytes[at..at + 4].copy_from_slice(&data.to_le_bytes());
            read(&bytes).map(|wav| wav.channels[0].len())
        };
        assert_eq!((told(54, 6), told(54, 4), told(54, 0)), (Ok(3), Ok(2), Ok(0)));
        assert_eq!((told(u32::MAX, u32::MAX), told(0x7fff_f024, 0x7fff_f000), told(0, 0)), (Ok(3), Ok(3), Ok(3)));
        assert_eq!(told(56, 8), Err(WavError::Cut { there: 6, told: 8 }));
    }

    #[test]
    fn a_long_file_tells_its_length_in_a_part_of_its_own() {
        let told = |length: u64| {
            let whole = file(INTEGER, 16, 1, &[1, 0, 2, 0, b'L', b'I', b'S', b'T', 2, 0, 0, 0, 3, 0]);
            let long =
                [&b"RF64\xff\xff\xff\xffWAVEds64\x1c\0\0\0"[..], &[0; 8], &length.to_le_bytes(), &[0; 12]].concat();
            read(&[&long, &whole[12..]].concat()).map(|wav| wav.channels[0].len())
        };
        assert_eq!((told(4), told(0)), (Ok(2), Ok(7)));
        assert_eq!(told(1 << 33), Err(WavError::Cut { there: 14, told: 1 << 33 }));
    }

    #[test]
    fn samples_may_come_before_their_format() {
        let whole = file(INTEGER, 16, 1, &[1, 0, 2, 0]);
        let (begin, format) = (&whole[..24], &whole[24..48]);
        let turned = [begin, b"data\x04\0\0\0\x01\0\x02\0", format].concat();
        assert_eq!(read(&turned), read(&whole));
        assert_eq!(read(&turned[..36]), Err(WavError::Lacks("format")));
    }

    #[test]
    fn frames_that_are_longer_than_their_samples_are_refused() {
        let mut bytes = file(INTEGER, 24, 1, &[0; 12]);
        let at = bytes.len() - 12 - 8 - 4;
        assert_eq!(bytes[at], 3);
        bytes[at] = 4;
        assert_eq!(read(&bytes), Err(WavError::Frames { told: 4, take: 3 }));
        bytes[at] = 0;
        assert_eq!(read(&bytes).unwrap().channels[0].len(), 4);
    }

    proptest! {
        /// Any bytes behind a good beginning: an answer, and as many samples in every channel.
        #[test]
        fn no_bytes_are_too_bad(bytes in prop::collection::vec(any::<u8>(), 0..200), kind in 0..5_u16, bits in 0..70_u16) {
            for bytes in [[&b"RIFF\0\0\0\0WAVE"[..], &bytes].concat(), file(kind, bits, 3, &bytes)] {
                if let Ok(wav) = read(&bytes) {
                    prop_assert!(wav.channels.iter().all(|channel| channel.len() == wav.channels[0].len()));
                }
            }
        }
    }
}
