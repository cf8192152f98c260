//! Sample rate conversion of a signal that arrives in pieces.

use super::PolyphaseFilter;

/// Converts a signal that arrives in pieces.
#[derive(Debug)]
pub struct StreamingResampler {
    pub filter: PolyphaseFilter,
    /// Input samples that are still needed, at the start.
    window: Vec<f32>,
    filled: usize,
    /// Position of the next output in the window, and its phase.
    position: usize,
    phase: usize,
}

impl StreamingResampler {
    /// A converter for at most `most` input samples per call.
    pub fn new(filter: PolyphaseFilter, most: usize) -> Self {
        let before = filter.half - 1;
        let len = 2 * filter.half + filter.down / filter.up + 2 + most;
        Self { window: vec![0.0; len], filled: before, position: before, phase: 0, filter }
    }

    /// Consumes all of `input` and returns the number of output samples.
    pub fn push(&mut self, input: &[f32], output: &mut [f32]) -> usize {
        let Self { filter, window, filled, position, phase } = self;
        window[*filled..*filled + input.len()].copy_from_slice(input);
        *filled += input.len();
        let mut count = 0;
        while *position + filter.half < *filled {
            output[count] = filter.output(*phase, &window[*position + 1 - filter.half..][..2 * filter.half]);
            count += 1;
            *phase += filter.down;
            *position += *phase / filter.up;
            *phase %= filter.up;
        }
        let over = (*position + 1 - filter.half).min(*filled);
        window.copy_within(over..*filled, 0);
        *filled -= over;
        *position -= over;
        count
    }
}
