//! FLAC and AIFF files, decoded by Symphonia.

use std::io::{self, Read, Seek, SeekFrom};

use symphonia::{
    core::{
        audio::sample::SampleFormat,
        codecs::audio::{AudioCodecParameters, AudioDecoder, AudioDecoderOptions},
        errors::Error,
        formats::{FormatOptions, FormatReader, TrackType},
        io::{MediaSource, MediaSourceStream},
    },
    default::{
        codecs::{FlacDecoder, PcmDecoder},
        formats::{AiffReader, FlacReader},
    },
};

use super::{Decode, FileFormat, Properties, RecordingError, Source, begin_of, first_not_finite, length_of};
use crate::wav::WavError;

/// A file that is decoded packet by packet.
pub struct Decoded<'s> {
    format: FileFormat,
    reader: Box<dyn FormatReader + 's>,
    decoder: Box<dyn AudioDecoder>,
    declared: Option<u64>,
    present: u64,
    bits: Option<u32>,
}

/// A part of a source, without the tags around the sound.
struct Part<S> {
    source: S,
    begin: u64,
    length: u64,
    at: u64,
}

impl<S: Read> Read for Part<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = (&mut self.source).take(self.length.saturating_sub(self.at)).read(buffer)?;
        self.at += count as u64;
        Ok(count)
    }
}

impl<S: Seek> Seek for Part<S> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(offset) => self.length.checked_add_signed(offset),
            SeekFrom::Current(offset) => self.at.checked_add_signed(offset),
        };
        let at = at.ok_or(io::ErrorKind::InvalidInput)?;
        self.source.seek(SeekFrom::Start(self.begin.saturating_add(at)))?;
        self.at = at;
        Ok(at)
    }
}

impl<S: Source> MediaSource for Part<S> {
    fn is_seekable(&self) -> bool {
        true
    }

    fn byte_len(&self) -> Option<u64> {
        Some(self.length)
    }
}

/// Checks the sum of all samples at the end, if the format has one.
fn options() -> AudioDecoderOptions {
    let mut options = AudioDecoderOptions::default();
    options.verify = true;
    options
}

impl<'s> Decoded<'s> {
    /// Reads the header of a FLAC file that begins at this offset. A tag of ID3v1 after it is left out: the last 128 bytes, with
    /// "TAG" before them.
    pub fn flac(mut source: impl Source + 's, begin: u64) -> Result<(Properties, Self), RecordingError> {
        let format = FileFormat::Flac;
        let length = length_of(&mut source)?;
        let end = length.saturating_sub(128);
        let has_tag = end > begin && begin_of(&mut source, end)?.starts_with(b"TAG");
        let reader =
            FlacReader::try_new(stream(source, begin, if has_tag { end } else { length })?, FormatOptions::default())
                .map_err(|error| undecodable(format, &error))?;
        Self::new(format, Box::new(reader), |codec| Ok(Box::new(FlacDecoder::try_new(codec, &options())?)))
    }

    /// Reads the header of an AIFF file.
    pub fn aiff(mut source: impl Source + 's) -> Result<(Properties, Self), RecordingError> {
        let format = FileFormat::Aiff;
        let length = length_of(&mut source)?;
        let declared = aiff_frames(&mut source)?;
        let reader = AiffReader::try_new(stream(source, 0, length)?, FormatOptions::default())
            .map_err(|error| undecodable(format, &error))?;
        let (properties, decoded) =
            Self::new(format, Box::new(reader), |codec| Ok(Box::new(PcmDecoder::try_new(codec, &options())?)))?;
        // The decoder counts the frames in the file.
        Ok((properties, Self { declared, ..decoded }))
    }

    fn new(
        format: FileFormat,
        reader: Box<dyn FormatReader + 's>,
        make_decoder: impl FnOnce(&AudioCodecParameters) -> Result<Box<dyn AudioDecoder>, Error>,
    ) -> Result<(Properties, Self), RecordingError> {
        let missing = |what: &str| undecodable(format, &format!("it has no {what}"));
        let track = reader.default_track(TrackType::Audio).ok_or_else(|| missing("sound"))?;
        let codec = track.codec_params.as_ref().and_then(|codec| codec.audio()).ok_or_else(|| missing("sound"))?;
        let channels = codec.channels.as_ref().map(|channels| channels.count());
        let properties = Properties {
            format,
            rate_hz: codec.sample_rate.ok_or_else(|| missing("sample rate"))?,
            channels: channels.filter(|channels| *channels > 0).ok_or_else(|| missing("channels"))?,
            bits: codec.bits_per_sample,
            is_float: matches!(codec.sample_format, Some(SampleFormat::F32 | SampleFormat::F64)),
            frames: track.num_frames,
        };
        let decoder = make_decoder(codec).map_err(|error| undecodable(format, &error))?;
        let (declared, bits) = (properties.frames, properties.bits);
        Ok((properties, Self { format, reader, decoder, declared, present: 0, bits }))
    }

    /// The end of the file: all declared samples must be there, with the right sum.
    fn finish(&mut self) -> Result<(), RecordingError> {
        match self.declared {
            Some(declared) if self.present < declared => {
                return Err(RecordingError::Truncated { format: self.format, present: self.present, declared });
            }
            _ => {}
        }
        match self.decoder.finalize().verify_ok {
            Some(false) => Err(undecodable(self.format, &"wrong check sum of all samples")),
            _ => Ok(()),
        }
    }
}

/// True if a frame of FLAC has the difference of two channels in place of one of them (RFC 9639, section 9.1.3). That of samples of
/// 32 bits has 33, and the decoder computes with 32.
fn has_side(frame: &[u8]) -> bool {
    frame.get(3).is_some_and(|byte| (8..=10).contains(&(byte >> 4)))
}

fn undecodable(format: FileFormat, reason: &impl ToString) -> RecordingError {
    RecordingError::Undecodable { format, reason: reason.to_string() }
}

/// The bytes of a source between two offsets.
fn stream<'s>(mut source: impl Source + 's, begin: u64, end: u64) -> io::Result<MediaSourceStream<'s>> {
    source.seek(SeekFrom::Start(begin))?;
    let part = Part { source, begin, length: end - begin, at: 0 };
    Ok(MediaSourceStream::new(Box::new(part), Default::default()))
}

/// The number of frames that an AIFF file declares in its chunk COMM, after the number of channels; `None` if it has no such chunk,
/// or 0 frames, as a recorder leaves that crashed. The position returns to the start.
fn aiff_frames(source: &mut impl Source) -> io::Result<Option<u64>> {
    /// More chunks than in any file; a damaged one can have one every 8 bytes.
    const CHUNKS_MAX: usize = 1000;
    let (mut at, mut frames) = (12, None);
    for _ in 0..CHUNKS_MAX {
        source.seek(SeekFrom::Start(at))?;
        let mut head = [0; 14];
        if source.read_exact(&mut head).is_err() {
            break;
        }
        let word = |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        if head.starts_with(b"COMM") {
            frames = Some(u64::from(word(10))).filter(|&frames| frames > 0);
            break;
        }
        // Chunks begin at even offsets.
        at += 8 + u64::from(word(4)).next_multiple_of(2);
    }
    source.rewind()?;
    Ok(frames)
}

impl Decode for Decoded<'_> {
    fn next_block(&mut self, channels: &mut [Vec<f32>]) -> Result<(), RecordingError> {
        channels.iter_mut().for_each(Vec::clear);
        loop {
            let packet = match self.reader.next_packet() {
                Ok(packet) => packet,
                // The decoder reports the end of a truncated file in this way.
                Err(Error::IoError(error)) if error.kind() == io::ErrorKind::UnexpectedEof => None,
                Err(error) => return Err(undecodable(self.format, &error)),
            };
            let Some(packet) = packet else { return self.finish() };
            // The reader skips damaged frames. Without a declared length, only the numbers of the next ones show that.
            let is_next = packet.pts.get() == i64::try_from(self.present).unwrap_or(i64::MAX);
            if self.format == FileFormat::Flac && self.declared.is_none() && !is_next {
                return Err(undecodable(self.format, &format!("samples are missing after the first {}", self.present)));
            }
            if self.format == FileFormat::Flac && self.bits == Some(32) && has_side(&packet.data) {
                let reason =
                    "its differences of two channels have 33 bits; encode it with 24 bits, or with --no-mid-side";
                return Err(undecodable(self.format, &reason));
            }
            let block = self.decoder.decode(&packet).map_err(|error| undecodable(self.format, &error))?;
            if block.num_planes() != channels.len() {
                return Err(undecodable(self.format, &"the number of channels changes"));
            }
            if block.frames() == 0 {
                continue;
            }
            let mut planes = Vec::new();
            block.copy_to_vecs_planar(&mut planes);
            channels.iter_mut().zip(planes).for_each(|(channel, plane)| *channel = plane);
            if let Some(at) = first_not_finite(channels) {
                return Err(WavError::NotFinite(usize::try_from(self.present).unwrap_or(usize::MAX) + at).into());
            }
            self.present += channels[0].len() as u64;
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_with_a_difference_are_known_by_their_header() {
        let frame = |channels: u8| [0xff, 0xf8, 0xc9, channels << 4 | 0x08];
        assert!([8, 9, 10].into_iter().all(|channels| has_side(&frame(channels))));
        assert!([0, 1, 5, 7].into_iter().all(|channels| !has_side(&frame(channels))));
        assert!(!has_side(&[]));
    }
}
