//! Reading WAV files: integers of 8 to 32 bits and floating point of 32 and 64 bits, with any number of channels.
//!
//! The layout follows Microsoft's "Multimedia Programming Interface and Data Specifications 1.0", the documentation of
//! `WAVEFORMATEXTENSIBLE` for the extensible form, and EBU Tech 3306 for RF64, and ITU-R BS.2088 for BW64, where a separate
//! chunk contains a 64-bit length. If a program that wrote a stream, or that crashed while it recorded, left the length open or at 0, the data ends with
//! the file.

mod writer;

use std::io::{Read, SeekFrom};

use thiserror::Error;

use crate::{
    convert::to_f32,
    recording::{BLOCK_FRAMES, Decode, FileFormat, Properties, RecordingError, Source, first_not_finite, length_of},
};

/// Why a WAV file cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WavError {
    /// The file has fewer bytes than its header declares.
    #[error(
        "the WAV file is truncated: it has {present} of {declared} bytes of samples; export it again, or use what is there, e.g. sox --ignore-length in.wav out.wav"
    )]
    Truncated {
        /// Number of bytes in the file.
        present: u64,
        /// Number of bytes in the header.
        declared: u64,
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
    /// The header has no channels.
    #[error("invalid WAV header: no channels; export the file again")]
    NoChannels,
    /// A kind of WAV file that is not read.
    #[error("{0} files are not supported; convert it, e.g. sox in.wav out.wav")]
    UnsupportedKind(&'static str),
    /// A sample is infinite or NaN: its frame, from 0.
    #[error("sample {0} of the recording is NaN or infinite; export it again")]
    NotFinite(usize),
}

pub use writer::WavWriter;

/// The first bytes of Wave64: the identifier of its `riff` chunk, of 16 bytes.
const W64: &[u8] = b"riff\x2e\x91\xcf\x11\xa5\xd6\x28\xdb";

const INTEGER: u16 = 1;
const FLOAT: u16 = 3;
const EXTENSIBLE: u16 = 0xfffe;

/// Minimum length that means "unknown": programs write such lengths while they record.
const OPEN: u64 = 0x7fff_0000;

#[derive(Debug, Clone, Copy)]
struct Format {
    kind: u16,
    channels: usize,
    rate_hz: u32,
    frame: usize,
    bits: u16,
}

/// A WAV file that is read block by block.
pub struct WavReader<S> {
    source: S,
    format: Format,
    /// Converts a sample of `sample_bytes` bytes.
    convert: fn(&[u8]) -> f32,
    sample_bytes: usize,
    /// Number of frames in the file, and how many were read.
    frames: u64,
    done: u64,
    bytes: Vec<u8>,
}

/// True if these bytes begin a chunk that ends within `present` bytes, or if there are none.
fn is_chunk(head: &[u8], present: u64) -> bool {
    let fits = || head.len() == 8 && u64::from(u32_at(head, 4)) + 8 <= present;
    head.is_empty() || head[..head.len().min(4)].iter().all(|byte| (b' '..=b'~').contains(byte)) && fits()
}

/// The samples of a file: offset and length, bytes.
#[derive(Debug, Clone, Copy)]
struct Data {
    offset: u64,
    length: u64,
}

impl<S: Source> WavReader<S> {
    /// Reads all chunks up to the samples and their format.
    ///
    /// # Errors
    /// [`RecordingError`].
    pub fn open(mut source: S) -> Result<Self, RecordingError> {
        let file_length = length_of(&mut source)?;
        let riff = read_up_to(&mut source, 12)?;
        match (riff.get(..4), riff.get(8..)) {
            (Some(b"RIFF" | b"RF64" | b"BW64"), Some(b"WAVE")) => {}
            (Some(b"RIFX"), Some(b"WAVE")) => return Err(WavError::UnsupportedKind("big-endian WAV (RIFX)").into()),
            _ if riff == W64 => return Err(WavError::UnsupportedKind("Sony Wave64").into()),
            _ => return Err(RecordingError::UnknownFormat),
        }
        let (mut format, mut long, mut data) = (None, None, None);
        let mut at = 12;
        while at + 8 <= file_length {
            source.seek(SeekFrom::Start(at))?;
            let head = read_up_to(&mut source, 8)?;
            if head.len() < 8 {
                break;
            }
            let length = u64::from(u32_at(&head, 4));
            let (body, present) = (at + 8, file_length - at - 8);
            match &head[..4] {
                b"fmt " => format = Some(read_format(&read_up_to(&mut source, length.min(64))?)?),
                b"ds64" => {
                    let chunk = read_up_to(&mut source, length.min(16))?;
                    long = (chunk.len() == 16).then(|| u64_at(&chunk, 8)).filter(|&long| long > 0);
                }
                b"data" => {
                    let is_open = length >= OPEN || length == 0 && !is_chunk(&read_up_to(&mut source, 8)?, present);
                    let declared = if is_open { long.unwrap_or(present) } else { length };
                    if declared > present {
                        return Err(WavError::Truncated { present, declared }.into());
                    }
                    data = Some(Data { offset: body, length: declared });
                }
                _ => {}
            }
            if let (Some(format), Some(data)) = (format, data) {
                source.seek(SeekFrom::Start(data.offset))?;
                return Self::new(source, format, data);
            }
            // Chunks begin at even offsets.
            at = body + length + length % 2;
        }
        Err(WavError::Missing(if format.is_some() { "samples" } else { "format" }).into())
    }

    /// A reader of samples that begin at the position of the source.
    fn new(source: S, format: Format, data: Data) -> Result<Self, RecordingError> {
        let convert: fn(&[u8]) -> f32 = match (format.kind, format.bits) {
            // 8-bit samples are unsigned, all others signed. Odd numbers of bits use the upper bits.
            (INTEGER, 1..=8) => |x| (f32::from(x[0]) - 128.0) / 128.0,
            (INTEGER, 9..=16) => |x| f32::from(i16::from_le_bytes([x[0], x[1]])) / 32_768.0,
            (INTEGER, 17..=24) => |x| (i32::from_le_bytes([0, x[0], x[1], x[2]]) >> 8) as f32 / 8_388_608.0,
            (INTEGER, 25..=32) => |x| to_f32(f64::from(i32::from_le_bytes([x[0], x[1], x[2], x[3]])) / 2_147_483_648.0),
            (FLOAT, 32) => |x| f32::from_le_bytes([x[0], x[1], x[2], x[3]]),
            (FLOAT, 64) => |x| to_f32(f64::from_le_bytes([x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7]])),
            (kind, bits) => return Err(WavError::UnsupportedSamples { bits, kind }.into()),
        };
        let sample_bytes = usize::from(format.bits.div_ceil(8));
        let frame = sample_bytes * format.channels;
        // Some programs leave the frame size at 0.
        if ![0, frame].contains(&format.frame) {
            return Err(WavError::FrameSize { declared: format.frame, needed: frame }.into());
        }
        let frames = data.length / frame as u64;
        Ok(Self { source, format, convert, sample_bytes, frames, done: 0, bytes: Vec::new() })
    }

    /// Properties in the header.
    pub fn properties(&self) -> Properties {
        Properties {
            format: FileFormat::Wav,
            rate_hz: self.format.rate_hz,
            channels: self.format.channels,
            bits: Some(self.format.bits.into()),
            is_float: self.format.kind == FLOAT,
            frames: Some(self.frames),
        }
    }
}

impl<S: Source> Decode for WavReader<S> {
    fn next_block(&mut self, channels: &mut [Vec<f32>]) -> Result<(), RecordingError> {
        let left = usize::try_from(self.frames - self.done).unwrap_or(usize::MAX);
        let frames = left.min(BLOCK_FRAMES);
        let frame = self.sample_bytes * self.format.channels;
        self.bytes.resize(frames * frame, 0);
        self.source.read_exact(&mut self.bytes)?;
        split_frames(&self.bytes, self.sample_bytes, self.convert, channels);
        if let Some(at) = first_not_finite(channels) {
            return Err(WavError::NotFinite(usize::try_from(self.done).unwrap_or(usize::MAX) + at).into());
        }
        self.done += frames as u64;
        Ok(())
    }
}

/// Replaces `channels` by the samples of whole frames. Not generic, so that it is compiled in this crate, which is
/// optimised for speed.
fn split_frames(bytes: &[u8], sample_bytes: usize, convert: fn(&[u8]) -> f32, channels: &mut [Vec<f32>]) {
    let frame = sample_bytes * channels.len();
    for (index, channel) in channels.iter_mut().enumerate() {
        let begin = index * sample_bytes;
        channel.clear();
        channel.extend(bytes.chunks_exact(frame).map(|frame| convert(&frame[begin..begin + sample_bytes])));
    }
}

/// The next bytes; fewer than `count` at the end of the source.
fn read_up_to(source: &mut impl Source, count: u64) -> Result<Vec<u8>, RecordingError> {
    let mut bytes = Vec::new();
    source.take(count).read_to_end(&mut bytes)?;
    Ok(bytes)
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
    if format.channels == 0 { Err(WavError::NoChannels) } else { Ok(format) }
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
    use crate::recording::Recording;

    fn read(bytes: &[u8]) -> Result<(Properties, Vec<Vec<f32>>), RecordingError> {
        Recording::read_all(bytes, usize::MAX)
    }

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
            let (properties, channels) = read(&file(kind, bits, 2, &data.repeat(4))).unwrap();
            let expected = Properties {
                format: FileFormat::Wav,
                rate_hz: 44_100,
                channels: 2,
                bits: Some(bits.into()),
                is_float: kind == FLOAT,
                frames: Some(2),
            };
            assert_eq!((properties, channels), (expected, vec![vec![0.5; 2]; 2]));
        }
        let lowest = read(&file(INTEGER, 24, 1, &[0, 0, 0x80, 0xff, 0xff, 0xff])).unwrap();
        assert_eq!(lowest.1[0], [-1.0, -1.0 / 8_388_608.0]);
    }

    /// The header of a recorder that crashed, and that of an empty recording with a list of names after it.
    #[test]
    fn samples_behind_a_length_of_0_are_read_and_chunks_are_not() {
        let samples = [0, 0x40].repeat(50);
        let with_length = |riff: u32, length: u32, data: &[u8]| {
            let mut bytes = file(INTEGER, 16, 1, data);
            let at = bytes.len() - data.len() - 4;
            bytes[at..at + 4].copy_from_slice(&length.to_le_bytes());
            bytes[4..8].copy_from_slice(&riff.to_le_bytes());
            bytes
        };
        for riff in [0, 36, 200] {
            for data in [&samples[..], &[0; 100]] {
                let (properties, channels) = read(&with_length(riff, 0, data)).unwrap();
                assert_eq!((properties.frames, channels[0].len()), (Some(50), 50), "{riff}");
            }
        }
        assert_eq!(read(&with_length(200, 0, b"LIST\x04\0\0\0INFO")).unwrap().0.frames, Some(0));
        assert_eq!(read(&with_length(200, 0, &[])).unwrap().0.frames, Some(0));
    }

    #[test]
    fn rejects_invalid_files() {
        let refused = |bytes: &[u8], error: WavError| assert_eq!(read(bytes), Err(error.into()));
        assert_eq!(read(b"RIFY\0\0\0\0WAVE"), Err(RecordingError::UnknownFormat));
        refused(b"RIFX\0\0\0\0WAVE", WavError::UnsupportedKind("big-endian WAV (RIFX)"));
        refused(&[W64, &[4, 0xc1, 0, 0]].concat(), WavError::UnsupportedKind("Sony Wave64"));
        refused(b"RIFF\0\0\0\0WAVE", WavError::Missing("format"));
        refused(&file(85, 0, 2, &[]), WavError::UnsupportedSamples { bits: 0, kind: 85 });
        refused(&file(INTEGER, 16, 0, &[]), WavError::NoChannels);
        refused(&file(FLOAT, 32, 1, &f32::NAN.to_le_bytes()), WavError::NotFinite(0));
        let late = [vec![0; 4 * 5000], f32::INFINITY.to_le_bytes().to_vec()].concat();
        refused(&file(FLOAT, 32, 1, &late), WavError::NotFinite(5000));
    }

    #[test]
    fn lengths_may_be_exact_or_open_but_not_too_long() {
        let frames = |riff: u32, data: u32| {
            let mut bytes = file(INTEGER, 16, 1, &[1, 0, 2, 0, 3, 0]);
            let at = bytes.len() - 10;
            bytes[4..8].copy_from_slice(&riff.to_le_bytes());
            bytes[at..at + 4].copy_from_slice(&data.to_le_bytes());
            read(&bytes).map(|(_, channels)| channels[0].len())
        };
        assert_eq!((frames(54, 6), frames(54, 4), frames(54, 0)), (Ok(3), Ok(2), Ok(3)));
        assert_eq!((frames(u32::MAX, u32::MAX), frames(0x7fff_f024, 0x7fff_f000), frames(0, 0)), (Ok(3), Ok(3), Ok(3)));
        assert_eq!(frames(56, 8), Err(WavError::Truncated { present: 6, declared: 8 }.into()));
    }

    #[test]
    fn rf64_and_bw64_read_the_length_from_a_chunk_of_their_own() {
        let frames = |length: u64| {
            let whole = file(INTEGER, 16, 1, &[1, 0, 2, 0, b'L', b'I', b'S', b'T', 2, 0, 0, 0, 3, 0]);
            let long =
                [&b"RF64\xff\xff\xff\xffWAVEds64\x1c\0\0\0"[..], &[0; 8], &length.to_le_bytes(), &[0; 12]].concat();
            let read = |long: &[u8]| read(&[long, &whole[12..]].concat()).map(|(_, channels)| channels[0].len());
            assert_eq!(read(&[b"BW64", &long[4..]].concat()), read(&long));
            read(&long)
        };
        assert_eq!((frames(4), frames(0)), (Ok(2), Ok(7)));
        assert_eq!(frames(1 << 33), Err(WavError::Truncated { present: 14, declared: 1 << 33 }.into()));
    }

    #[test]
    fn samples_may_precede_their_format() {
        let whole = file(INTEGER, 16, 1, &[1, 0, 2, 0]);
        let (begin, format) = (&whole[..24], &whole[24..48]);
        let turned = [begin, b"data\x04\0\0\0\x01\0\x02\0", format].concat();
        assert_eq!(read(&turned), read(&whole));
        assert_eq!(read(&turned[..36]), Err(WavError::Missing("format").into()));
    }

    #[test]
    fn rejects_frame_sizes_that_do_not_match_the_samples() {
        let mut bytes = file(INTEGER, 24, 1, &[0; 12]);
        let at = bytes.len() - 12 - 8 - 4;
        assert_eq!(bytes[at], 3);
        bytes[at] = 4;
        assert_eq!(read(&bytes), Err(WavError::FrameSize { declared: 4, needed: 3 }.into()));
        bytes[at] = 0;
        assert_eq!(read(&bytes).unwrap().1[0].len(), 4);
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
                if let Ok((properties, channels)) = read(&bytes) {
                    prop_assert!(channels.iter().all(|channel| Some(channel.len() as u64) == properties.frames));
                }
            }
        }
    }
}
