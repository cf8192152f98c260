//! Writing WAV files of any length: 32-bit floating point.
//!
//! A file of 4 GiB or more is written as RF64 (EBU Tech 3306): the space for its 64-bit lengths is reserved in every
//! file.

use std::io::{self, Seek, Write};

/// Largest length that a file without 64-bit lengths can declare, bytes.
const LENGTH_MAX: u64 = u32::MAX as u64;
/// Length of the header, bytes.
const HEADER: u64 = 12 + (8 + 28) + (8 + 18) + (8 + 4) + 8;
/// Bytes of a sample.
const SAMPLE: u64 = 4;

/// Writes a file block by block.
#[derive(Debug)]
pub struct WavWriter<W> {
    out: W,
    rate_hz: u32,
    channels: u16,
    frames: u64,
    clips: u64,
    bytes: Vec<u8>,
}

impl<W: Write + Seek> WavWriter<W> {
    /// Writes the header of an empty file.
    ///
    /// # Errors
    /// If the output cannot be written.
    pub fn new(mut out: W, rate_hz: u32, channels: u16) -> io::Result<Self> {
        out.write_all(&header(rate_hz, channels, 0))?;
        Ok(Self { out, rate_hz, channels, frames: 0, clips: 0, bytes: Vec::new() })
    }

    /// Appends a block: one list for each channel, all of the same length.
    ///
    /// # Errors
    /// If the output cannot be written.
    pub fn write(&mut self, block: &[Vec<f32>]) -> io::Result<()> {
        let frames = block.first().map_or(0, Vec::len);
        self.frames += frames as u64;
        self.clips += interleave(block, frames, &mut self.bytes);
        self.out.write_all(&self.bytes)
    }

    /// Number of frames so far.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// Writes the final lengths into the header; returns the number of samples above full scale, which were not changed.
    ///
    /// # Errors
    /// If the output cannot be written.
    pub fn finish(mut self) -> io::Result<u64> {
        self.out.rewind()?;
        self.out.write_all(&header(self.rate_hz, self.channels, self.frames))?;
        self.out.flush()?;
        Ok(self.clips)
    }
}

/// Replaces `bytes` by the samples of a block; returns the number of those above full scale. Not generic, so that it is
/// compiled in this crate, which is optimised for speed.
fn interleave(block: &[Vec<f32>], frames: usize, bytes: &mut Vec<u8>) -> u64 {
    let frame_bytes = 4 * block.len();
    bytes.resize(frames * frame_bytes, 0);
    let mut clips = 0;
    for (index, channel) in block.iter().enumerate() {
        for (sample, frame) in channel.iter().zip(bytes.chunks_exact_mut(frame_bytes)) {
            frame[4 * index..4 * index + 4].copy_from_slice(&sample.to_le_bytes());
            clips += u64::from(sample.abs() > 1.0);
        }
    }
    clips
}

/// The bytes before the samples. Their number does not depend on the length.
fn header(rate_hz: u32, channels: u16, frames: u64) -> Vec<u8> {
    let frame = SAMPLE * u64::from(channels);
    let data = frames * frame;
    let riff = HEADER - 8 + data;
    let is_long = riff > LENGTH_MAX;
    let short = |length: u64| u32::try_from(length).ok().filter(|_| !is_long).unwrap_or(u32::MAX);
    let mut bytes = Vec::new();
    bytes.extend(if is_long { b"RF64" } else { b"RIFF" });
    bytes.extend(short(riff).to_le_bytes());
    bytes.extend(b"WAVE");
    bytes.extend(if is_long { b"ds64" } else { b"JUNK" });
    bytes.extend(28_u32.to_le_bytes());
    let lengths = if is_long { [riff, data, frames] } else { [0; 3] };
    lengths.iter().for_each(|length| bytes.extend(length.to_le_bytes()));
    bytes.extend([0; 4]);
    // Floating point: the format with a length of its extension, which is empty, and the number of frames.
    bytes.extend(b"fmt \x12\0\0\0\x03\0");
    bytes.extend(channels.to_le_bytes());
    bytes.extend(rate_hz.to_le_bytes());
    bytes.extend(short(u64::from(rate_hz) * frame).to_le_bytes());
    bytes.extend(u16::try_from(frame).unwrap_or(0).to_le_bytes());
    bytes.extend(b"\x20\0\0\0");
    bytes.extend(b"fact\x04\0\0\0");
    bytes.extend(short(frames).to_le_bytes());
    bytes.extend(b"data");
    bytes.extend(short(data).to_le_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Read, SeekFrom};

    use super::*;
    use crate::recording::Recording;

    #[test]
    fn what_is_written_is_read_again() {
        let blocks = [vec![vec![0.5, -1.5], vec![0.25, 1e-20]], vec![vec![0.0], vec![-0.125]]];
        let mut bytes = Cursor::new(Vec::new());
        let mut writer = WavWriter::new(&mut bytes, 44_100, 2).unwrap();
        blocks.iter().for_each(|block| writer.write(block).unwrap());
        assert_eq!((writer.frames(), writer.finish().unwrap()), (3, 1));
        let (properties, channels) = Recording::read_all(bytes.get_ref(), usize::MAX).unwrap();
        assert_eq!((properties.rate_hz, properties.is_float, properties.frames), (44_100, true, Some(3)));
        assert_eq!(channels, [vec![0.5, -1.5, 0.0], vec![0.25, 1e-20, -0.125]]);
    }

    /// A file of zeros after its header.
    struct Zeros {
        header: Vec<u8>,
        length: u64,
        at: u64,
    }

    impl Read for Zeros {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let left = usize::try_from(self.length.saturating_sub(self.at)).unwrap_or(usize::MAX);
            let count = buffer.len().min(left);
            let header = usize::try_from(self.at).ok().and_then(|at| self.header.get(at..)).unwrap_or_default();
            let of_header = header.len().min(count);
            buffer[..count].fill(0);
            buffer[..of_header].copy_from_slice(&header[..of_header]);
            self.at += count as u64;
            Ok(count)
        }
    }

    impl Seek for Zeros {
        fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
            self.at = match to {
                SeekFrom::Start(at) => at,
                SeekFrom::End(by) => self.length.saturating_add_signed(by),
                SeekFrom::Current(by) => self.at.saturating_add_signed(by),
            };
            Ok(self.at)
        }
    }

    #[test]
    fn a_file_of_more_than_4_gib_has_its_length() {
        for (frames, is_long) in [(LENGTH_MAX / 8 - 20, false), (LENGTH_MAX / 8, true), (3 << 30, true)] {
            let header = header(48_000, 2, frames);
            assert_eq!((header.len() as u64, header.starts_with(b"RF64")), (HEADER, is_long));
            let mut recording = Recording::open(Zeros { header, length: HEADER + 8 * frames, at: 0 }).unwrap();
            assert_eq!(recording.properties().frames, Some(frames));
            let mut block = Vec::new();
            recording.next_block(&mut block).unwrap();
            assert_eq!((block.len(), block[1].iter().all(|&sample| sample == 0.0)), (2, true));
        }
    }
}
