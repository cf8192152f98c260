//! Sample rate conversion of recordings of any length, in constant memory.

use super::{PolyphaseFilter, Quality, RateError, streaming::StreamingResampler};

/// Number of samples that are converted at a time.
const PIECE: usize = 4096;

/// Converts a recording that arrives in pieces. The first sample keeps its position. The output has the same duration,
/// rounded up, and does not depend on the pieces.
#[derive(Debug)]
pub struct RecordingResampler {
    /// `None` if both rates are the same.
    resampler: Option<StreamingResampler>,
    piece: Vec<f32>,
    consumed: u64,
    produced: u64,
}

impl RecordingResampler {
    /// A converter between these rates.
    ///
    /// # Errors
    /// [`RateError`] if the ratio of the rates is not supported.
    pub fn new(from_hz: u32, to_hz: u32) -> Result<Self, RateError> {
        let resampler = match from_hz == to_hz && from_hz > 0 {
            true => None,
            false => Some(StreamingResampler::new(PolyphaseFilter::new(from_hz, to_hz, Quality::OFFLINE)?, PIECE)),
        };
        let ratio = |filter: &PolyphaseFilter| (PIECE * filter.up).div_ceil(filter.down) + 1;
        let most = resampler.as_ref().map_or(0, |resampler| ratio(&resampler.filter));
        Ok(Self { resampler, piece: vec![0.0; most], consumed: 0, produced: 0 })
    }

    /// Converts the next samples, and appends those that are ready to `output`.
    pub fn push(&mut self, input: &[f32], output: &mut Vec<f32>) {
        self.consumed += input.len() as u64;
        self.convert(input, output);
    }

    /// Appends the samples up to the end of the recording.
    pub fn finish(&mut self, output: &mut Vec<f32>) {
        let Some(StreamingResampler { filter, .. }) = &self.resampler else { return };
        let due = (self.consumed * filter.up as u64).div_ceil(filter.down as u64);
        // The last output is computed from half a kernel after the end.
        let silence = vec![0.0; filter.half + 1];
        self.convert(&silence, output);
        let over = usize::try_from(self.produced.saturating_sub(due)).unwrap_or(usize::MAX);
        output.truncate(output.len().saturating_sub(over));
    }

    fn convert(&mut self, input: &[f32], output: &mut Vec<f32>) {
        let Some(resampler) = &mut self.resampler else {
            output.extend_from_slice(input);
            return;
        };
        for input in input.chunks(PIECE) {
            let count = resampler.push(input, &mut self.piece);
            output.extend_from_slice(&self.piece[..count]);
            self.produced += count as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_do_not_change_the_output() {
        let input: Vec<f32> = (0..20_000).map(|n| ((n * n) as f32 * 0.001).sin()).collect();
        for (from, to) in [(44_100, 48_000), (48_000, 44_100), (96_000, 48_000), (48_000, 48_000), (8000, 192_000)] {
            let convert = |pieces: &[usize]| {
                let mut resampler = RecordingResampler::new(from, to).unwrap();
                let (mut output, mut rest, mut pieces) = (Vec::new(), &input[..], pieces.iter().cycle());
                while !rest.is_empty() {
                    let (piece, after) = rest.split_at(rest.len().min(*pieces.next().unwrap()));
                    resampler.push(piece, &mut output);
                    rest = after;
                }
                resampler.finish(&mut output);
                output
            };
            let whole = convert(&[input.len()]);
            assert_eq!(whole.len() as u64, (20_000 * u64::from(to)).div_ceil(u64::from(from)));
            for pieces in [&[1][..], &[4096], &[5000, 3]] {
                assert!(convert(pieces) == whole, "{from} to {to} Hz in pieces of {pieces:?}");
            }
        }
    }

    #[test]
    fn a_short_recording_keeps_its_duration() {
        for frames in 0..5 {
            let mut resampler = RecordingResampler::new(44_100, 48_000).unwrap();
            let mut output = Vec::new();
            resampler.push(&vec![1.0; frames], &mut output);
            resampler.finish(&mut output);
            assert_eq!(output.len(), (frames * 480).div_ceil(441));
        }
    }
}
