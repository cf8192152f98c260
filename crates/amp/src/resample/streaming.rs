//! A signal that comes piece by piece, at another rate.

use super::PolyphaseFilter;

/// A signal on its way to another rate.
#[derive(Debug)]
pub struct StreamingResampler {
    pub filter: PolyphaseFilter,
    /// Input that is still needed, from the beginning.
    window: Vec<f32>,
    filled: usize,
    /// Place of the next output in the window, and behind that.
    place: usize,
    phase: usize,
}

impl StreamingResampler {
    /// For at most `most` samples at a time.
    pub fn new(filter: PolyphaseFilter, most: usize) -> Self {
        let before = filter.half - 1;
        let room = 2 * filter.half + filter.down / filter.up + 2 + most;
        Self { window: vec![0.0; room], filled: before, place: before, phase: 0, filter }
    }

    /// Takes all of `input` in, and returns how many samples it made of it.
    pub fn push(&mut self, input: &[f32], output: &mut [f32]) -> usize {
        let Self { filter, window, filled, place, phase } = self;
        window[*filled..*filled + input.len()].copy_from_slice(input);
        *filled += input.len();
        let mut made = 0;
        while *place + filter.half < *filled {
            output[made] = filter.output(*phase, &window[*place + 1 - filter.half..][..2 * filter.half]);
            made += 1;
            *phase += filter.down;
            *place += *phase / filter.up;
            *phase %= filter.up;
        }
        let over = (*place + 1 - filter.half).min(*filled);
        window.copy_within(over..*filled, 0);
        *filled -= over;
        *place -= over;
        made
    }
}
