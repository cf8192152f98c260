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

use super::{Decode, FileFormat, Properties, RecordingError, Source, first_not_finite, length_of};
use crate::wav::WavError;

/// A file that is decoded packet by packet.
pub struct Decoded<'s> {
    format: FileFormat,
    reader: Box<dyn FormatReader + 's>,
    decoder: Box<dyn AudioDecoder>,
    declared: Option<u64>,
    present: u64,
}

/// A source of known length.
struct Sized<S> {
    source: S,
    length: u64,
}

impl<S: Read> Read for Sized<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.source.read(buffer)
    }
}

impl<S: Seek> Seek for Sized<S> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.source.seek(to)
    }
}

impl<S: Source> MediaSource for Sized<S> {
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
    pub fn flac(source: impl Source + 's) -> Result<(Properties, Self), RecordingError> {
        let format = FileFormat::Flac;
        let reader = FlacReader::try_new(stream(source)?, FormatOptions::default())
            .map_err(|error| undecodable(format, &error))?;
        Self::new(format, Box::new(reader), |codec| Ok(Box::new(FlacDecoder::try_new(codec, &options())?)))
    }

    pub fn aiff(source: impl Source + 's) -> Result<(Properties, Self), RecordingError> {
        let format = FileFormat::Aiff;
        let reader = AiffReader::try_new(stream(source)?, FormatOptions::default())
            .map_err(|error| undecodable(format, &error))?;
        Self::new(format, Box::new(reader), |codec| Ok(Box::new(PcmDecoder::try_new(codec, &options())?)))
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
            rate_hz: codec.sample_rate.filter(|rate_hz| *rate_hz > 0).ok_or_else(|| missing("sample rate"))?,
            channels: channels.filter(|channels| *channels > 0).ok_or_else(|| missing("channels"))?,
            bits: codec.bits_per_sample,
            is_float: matches!(codec.sample_format, Some(SampleFormat::F32 | SampleFormat::F64)),
            frames: track.num_frames,
        };
        let decoder = make_decoder(codec).map_err(|error| undecodable(format, &error))?;
        let declared = properties.frames;
        Ok((properties, Self { format, reader, decoder, declared, present: 0 }))
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

fn undecodable(format: FileFormat, reason: &impl ToString) -> RecordingError {
    RecordingError::Undecodable { format, reason: reason.to_string() }
}

fn stream<'s>(mut source: impl Source + 's) -> Result<MediaSourceStream<'s>, RecordingError> {
    let length = length_of(&mut source)?;
    Ok(MediaSourceStream::new(Box::new(Sized { source, length }), Default::default()))
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
