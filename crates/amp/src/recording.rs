//! Reading recordings of any length in constant memory: WAV, and FLAC and AIFF with the decoders of Symphonia.

mod decoded;

use std::{
    fmt,
    io::{self, Cursor, Read, Seek, SeekFrom},
    ops::RangeInclusive,
};

use thiserror::Error;

use self::decoded::Decoded;
use crate::wav::{WavError, WavReader};

/// Endings of the names of recordings, in lower case.
pub const EXTENSIONS: [&str; 4] = ["wav", "flac", "aif", "aiff"];
/// Frames of a block, except the last one.
pub const BLOCK_FRAMES: usize = 4096;
/// Sample rates of sound cards, Hz. Resampling from 4 GHz would take gigabytes of memory.
const RATES_HZ: RangeInclusive<u32> = 1..=768_000;
/// The largest number of channels, whose blocks take 16 MiB.
const CHANNELS_MAX: usize = 1024;

/// A file or bytes to read a recording from.
pub trait Source: Read + Seek + Send + Sync {}

impl<T: Read + Seek + Send + Sync> Source for T {}

/// Why a recording cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RecordingError {
    /// The WAV file is invalid.
    #[error(transparent)]
    Wav(#[from] WavError),
    /// The file does not begin like one of a known format.
    #[error("not a WAV, FLAC or AIFF file; convert it, e.g. sox in.mp3 out.wav")]
    UnknownFormat,
    /// The error of the operating system.
    #[error("cannot read the recording: {0}")]
    Read(String),
    /// The FLAC or AIFF file cannot be decoded; the reason of the decoder.
    #[error(
        "the {format} file is damaged or of an unsupported kind ({reason}); export it again, e.g. sox in.{} out.wav",
        format.ending()
    )]
    Undecodable {
        /// The format.
        format: FileFormat,
        /// The reason.
        reason: String,
    },
    /// The FLAC or AIFF file has fewer readable samples than its header declares.
    #[error("the {format} file is damaged or truncated: {present} of {declared} samples can be read; export it again")]
    Truncated {
        /// The format.
        format: FileFormat,
        /// Number of frames that can be read.
        present: u64,
        /// Number of frames in the header.
        declared: u64,
    },
    /// More channels than are supported.
    #[error("a recording must have at most 1024 channels (got {0}); select some, e.g. sox in.wav out.wav remix 1 2")]
    Channels(usize),
    /// A sample rate that no sound card has, Hz.
    #[error("invalid header: its sample rate is {0} Hz, not 1 to 768000; export the file again")]
    Rate(u32),
}

impl From<io::Error> for RecordingError {
    fn from(error: io::Error) -> Self {
        Self::Read(error.to_string())
    }
}

/// Format of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileFormat {
    /// Microsoft's format.
    Wav,
    /// The Free Lossless Audio Codec.
    Flac,
    /// Apple's format, also AIFF-C.
    Aiff,
}

impl FileFormat {
    fn ending(self) -> &'static str {
        match self {
            Self::Wav => "wav",
            Self::Flac => "flac",
            Self::Aiff => "aiff",
        }
    }
}

impl fmt::Display for FileFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.ending().to_uppercase())
    }
}

/// Properties of a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Properties {
    /// Format of the file.
    pub format: FileFormat,
    /// Sample rate, Hz.
    pub rate_hz: u32,
    /// Number of channels.
    pub channels: usize,
    /// Bits per sample; `None` if the file does not state them.
    pub bits: Option<u32>,
    /// True for floating point.
    pub is_float: bool,
    /// Number of frames; `None` if the file does not state it.
    pub frames: Option<u64>,
}

/// A recording that is read block by block.
pub struct Recording<'s> {
    properties: Properties,
    decoder: Box<dyn Decode + 's>,
}

/// Reads the blocks of a format.
pub(crate) trait Decode: Send {
    /// Replaces `channels` by the next block; an empty block is the end.
    fn next_block(&mut self, channels: &mut [Vec<f32>]) -> Result<(), RecordingError>;
}

impl fmt::Debug for Recording<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recording").field("properties", &self.properties).finish_non_exhaustive()
    }
}

impl<'s> Recording<'s> {
    /// Reads the header of a recording.
    ///
    /// # Errors
    /// [`RecordingError`].
    pub fn open(mut source: impl Source + 's) -> Result<Self, RecordingError> {
        let begin = begin_of(&mut source, 0)?;
        let tag = id3_length(&begin);
        let (properties, decoder): (_, Box<dyn Decode>) = match &begin[..] {
            _ if begin.starts_with(b"fLaC") || tag > 0 && begin_of(&mut source, tag)?.starts_with(b"fLaC") => {
                let (properties, decoded) = Decoded::flac(source, tag)?;
                (properties, Box::new(decoded))
            }
            [b'F', b'O', b'R', b'M', _, _, _, _, b'A', b'I', b'F', b'F' | b'C'] => {
                let (properties, decoded) = Decoded::aiff(source)?;
                (properties, Box::new(decoded))
            }
            _ => {
                let wav = WavReader::open(source)?;
                (wav.properties(), Box::new(wav))
            }
        };
        match properties {
            Properties { channels, .. } if channels > CHANNELS_MAX => Err(RecordingError::Channels(channels)),
            Properties { rate_hz, .. } if !RATES_HZ.contains(&rate_hz) => Err(RecordingError::Rate(rate_hz)),
            properties => Ok(Self { properties, decoder }),
        }
    }

    /// Properties in the header.
    #[must_use]
    pub fn properties(&self) -> &Properties {
        &self.properties
    }

    /// Replaces `channels` by the next block, one list for each channel, all of the same length. An empty block is the
    /// end. Full scale is 1, and all samples are finite.
    ///
    /// # Errors
    /// [`RecordingError`].
    pub fn next_block(&mut self, channels: &mut Vec<Vec<f32>>) -> Result<(), RecordingError> {
        channels.resize_with(self.properties.channels, Vec::new);
        self.decoder.next_block(channels)
    }

    /// Reads a whole recording, or its first blocks until it has more than `most` frames: a small FLAC file can contain any
    /// number of them.
    ///
    /// # Errors
    /// [`RecordingError`].
    pub fn read_all(bytes: &[u8], most: usize) -> Result<(Properties, Vec<Vec<f32>>), RecordingError> {
        let mut recording = Recording::open(Cursor::new(bytes))?;
        let (mut block, mut channels) = (Vec::new(), vec![Vec::new(); recording.properties.channels]);
        loop {
            recording.next_block(&mut block)?;
            if block[0].is_empty() || channels[0].len() > most {
                return Ok((recording.properties, channels));
            }
            channels.iter_mut().zip(&block).for_each(|(channel, block)| channel.extend_from_slice(block));
        }
    }
}

/// The bytes from an offset on that show the format of a file. The position returns to the start.
fn begin_of(source: &mut impl Source, offset: u64) -> io::Result<Vec<u8>> {
    let mut begin = Vec::new();
    source.seek(SeekFrom::Start(offset))?;
    source.take(12).read_to_end(&mut begin)?;
    source.rewind()?;
    Ok(begin)
}

/// The length of a tag of ID3v2 at the begin of a file, bytes, 0 if there is none: a header of 10 bytes, with the length of the rest
/// in the low 7 bits of four bytes, and perhaps a footer (ID3v2.4, 3.1 and 3.4).
fn id3_length(begin: &[u8]) -> u64 {
    let &[b'I', b'D', b'3', _, _, flags, a, b, c, d, ..] = begin else { return 0 };
    let footer = if flags & 0x10 == 0 { 0 } else { 10 };
    10 + footer + [a, b, c, d].iter().fold(0, |length, &byte| length << 7 | u64::from(byte & 0x7f))
}

/// The first frame with a sample that is NaN or infinite.
pub(crate) fn first_not_finite(channels: &[Vec<f32>]) -> Option<usize> {
    channels.iter().filter_map(|channel| channel.iter().position(|sample| !sample.is_finite())).min()
}

/// Length of a source, bytes. The position returns to the start.
pub(crate) fn length_of(source: &mut impl Seek) -> io::Result<u64> {
    let length = source.seek(SeekFrom::End(0))?;
    source.rewind()?;
    Ok(length)
}

/// Replaces `mono` by the mean of all channels, whatever loudspeakers they are for; with `channel`, counted from 0, by
/// that channel. A channel that does not exist is silent.
pub fn to_mono(channels: &[Vec<f32>], channel: Option<usize>, mono: &mut Vec<f32>) {
    let frames = channels.first().map_or(0, Vec::len);
    mono.clear();
    mono.resize(frames, 0.0);
    let (chosen, share) = match channel {
        Some(channel) => (channels.get(channel..).and_then(|rest| rest.get(..1)).unwrap_or_default(), 1.0),
        None => (channels, 1.0 / channels.len().max(1) as f32),
    };
    for channel in chosen {
        mono.iter_mut().zip(channel).for_each(|(sum, sample)| *sum += sample);
    }
    mono.iter_mut().for_each(|sample| *sample *= share);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::convert::whole;

    /// Samples of 16 bits that a linear predictor compresses well, and one of full scale.
    fn expected() -> Vec<Vec<f32>> {
        let wave = |channel: usize| -> Vec<f32> {
            let level = |n: usize| ((n * (3 + channel)) % 200) as f32 * 100.0 - 10_000.0;
            let mut samples: Vec<f32> = (0..5000).map(|n| level(n) / 32_768.0).collect();
            samples[17] = -1.0;
            samples
        };
        vec![wave(0), wave(1)]
    }

    /// The file that the reference encoder (`flac` 1.4.2) made of these samples, at 44.1 kHz.
    const FLAC: &[u8] = include_bytes!("../tests/recordings/stereo.flac");

    fn aiff(kind: &[u8; 4], declared: u32, samples: &[u8]) -> Vec<u8> {
        let mut common = b"\0\x02".to_vec();
        common.extend(declared.to_be_bytes());
        common.extend(b"\0\x10");
        // 44100 Hz as a float of 80 bits.
        common.extend([0x40, 0x0e, 0xac, 0x44, 0, 0, 0, 0, 0, 0]);
        if kind == b"AIFC" {
            common.extend(b"NONE\0\0");
        }
        let chunk =
            |name: &[u8; 4], body: &[u8]| [&name[..], &u32::try_from(body.len()).unwrap().to_be_bytes(), body].concat();
        let version = if kind == b"AIFC" { chunk(b"FVER", &0xa280_5140_u32.to_be_bytes()) } else { Vec::new() };
        let body =
            [&kind[..], &version, &chunk(b"COMM", &common), &chunk(b"SSND", &[&[0; 8], samples].concat())].concat();
        chunk(b"FORM", &body)
    }

    fn big_endian(channels: &[Vec<f32>]) -> Vec<u8> {
        #[expect(clippy::cast_possible_truncation, reason = "the samples have 16 bits")]
        let sample = |sample: &f32| ((sample * 32_768.0) as i16).to_be_bytes();
        let frame = |(left, right): (&f32, &f32)| [sample(left), sample(right)].concat();
        channels[0].iter().zip(&channels[1]).flat_map(frame).collect()
    }

    #[test]
    fn flac_and_aiff_have_the_samples_of_the_encoder() {
        let expected = expected();
        let samples = big_endian(&expected);
        for (format, bytes) in [
            (FileFormat::Flac, FLAC.to_vec()),
            (FileFormat::Aiff, aiff(b"AIFF", 5000, &samples)),
            (FileFormat::Aiff, aiff(b"AIFC", 5000, &samples)),
        ] {
            let (properties, channels) = Recording::read_all(&bytes, usize::MAX).unwrap();
            let of_file = Properties {
                format,
                rate_hz: 44_100,
                channels: 2,
                bits: Some(16),
                is_float: false,
                frames: Some(5000),
            };
            assert_eq!(properties, of_file);
            assert!(channels == expected, "{format}");
        }
    }

    #[test]
    fn tags_around_flac_are_left_out() {
        let before = [&b"ID3\x04\0\0\0\0\x01\x02"[..], &[0x41; 130]].concat();
        let after = [&b"TAG"[..], &[0x20; 125]].concat();
        for bytes in [[&before, FLAC].concat(), [FLAC, &after].concat(), [&before, FLAC, &after].concat()] {
            let (properties, channels) = Recording::read_all(&bytes, usize::MAX).unwrap();
            assert_eq!(properties.frames, Some(5000));
            assert!(channels == expected());
        }
    }

    #[test]
    fn truncated_and_damaged_files_are_refused() {
        let refused = |bytes: &[u8]| Recording::read_all(bytes, usize::MAX).unwrap_err().to_string();
        let cut = aiff(b"AIFF", 5000, &big_endian(&expected()));
        // A wrong bit in the middle makes the check sum of its frame wrong, so that frame cannot be read.
        let mut damaged = FLAC.to_vec();
        damaged[FLAC.len() / 2] ^= 0x10;
        for bytes in [&FLAC[..FLAC.len() / 2], &cut[..cut.len() / 2], &damaged] {
            let text = refused(bytes);
            assert!(text.contains(" file is damaged or ") && text.contains("export it again"), "{text}");
        }
        // A stream of an encoder that knew neither the number of samples nor their sum.
        let mut unknown = FLAC.to_vec();
        unknown[21] &= 0xf0;
        unknown[22..42].fill(0);
        assert!(Recording::read_all(&unknown, usize::MAX).unwrap().1 == expected());
        unknown[FLAC.len() / 2] ^= 0x10;
        let text = refused(&unknown);
        assert!(text.contains("samples are missing after the first"), "{text}");
        // A wrong sum of all samples.
        let mut damaged = FLAC.to_vec();
        damaged[30] ^= 1;
        let text = refused(&damaged);
        assert!(text.contains("(wrong check sum of all samples)"), "{text}");
        // The frames of AIFF are declared apart from the samples.
        let cut = aiff(b"AIFF", 5001, &big_endian(&expected()));
        assert!(refused(&cut).contains("5000 of 5001 samples"), "{}", refused(&cut));
        let mut renamed = aiff(b"AIFF", 5000, &big_endian(&expected()));
        let at = renamed.windows(4).position(|name| name == b"SSND").unwrap();
        renamed[at] = b'X';
        assert!(refused(&renamed).contains(" file is damaged or "), "{}", refused(&renamed));
        for unknown in [&b"ID3\x04 and so on"[..], b"ID3\x04\0\0\x7f\x7f\x7f\x7f", b"", b"OggS\0\x02\0\0\0\0\0\0\0\0"] {
            assert_eq!(refused(unknown), "not a WAV, FLAC or AIFF file; convert it, e.g. sox in.mp3 out.wav");
        }
    }

    #[test]
    fn reading_stops_after_the_wanted_length() {
        let frames = |most: usize| Recording::read_all(FLAC, most).unwrap().1[0].len();
        // The encoder made blocks of 1152 frames.
        assert_eq!([frames(1000), frames(2000), frames(5000)], [1152, 2304, 5000]);
    }

    proptest! {
        /// Damaged files return a result, with equal lengths of all channels.
        #[test]
        fn no_bytes_panic(changes in prop::collection::vec((0.0..1.0_f64, any::<u8>()), 1..6), keep in 0.0..1.0_f64) {
            for mut bytes in [FLAC.to_vec(), aiff(b"AIFF", 5000, &big_endian(&expected()))] {
                for &(place, value) in &changes {
                    // Most changes hit the headers.
                    let at = whole(place.powi(4) * bytes.len() as f64);
                    bytes[at] = value;
                }
                let end = bytes.len() - whole(keep.powi(3) * bytes.len() as f64);
                if let Ok((properties, channels)) = Recording::read_all(&bytes[..end], usize::MAX) {
                    prop_assert_eq!(channels.len(), properties.channels);
                    prop_assert!(channels.iter().all(|channel| channel.len() == channels[0].len()));
                }
            }
        }
    }

    #[test]
    fn every_layout_becomes_the_mean_of_its_channels() {
        let mut mono = vec![9.0];
        for (channels, expected) in [
            (vec![vec![0.5, -1.0]], [0.5, -1.0]),
            (vec![vec![0.5, 1.0], vec![0.0, -1.0]], [0.25, 0.0]),
            // Six channels, e.g. 5.1: all count the same.
            ((0..6_u8).map(|n| vec![f32::from(n), 0.0]).collect(), [2.5, 0.0]),
        ] {
            to_mono(&channels, None, &mut mono);
            assert_eq!(mono, expected);
            to_mono(&channels, Some(channels.len() - 1), &mut mono);
            assert_eq!(mono, channels[channels.len() - 1]);
        }
        to_mono(&[vec![1.0]], Some(1), &mut mono);
        assert_eq!(mono, [0.0]);
        to_mono(&[], None, &mut mono);
        assert!(mono.is_empty());
    }
}
