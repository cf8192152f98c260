//! Processing at another sample rate in real time: conversion there and back, with a constant delay.

use super::{PolyphaseFilter, Quality, RateError, streaming::StreamingResampler};

/// Runs a processor at its own sample rate inside a signal of another rate.
#[derive(Debug)]
pub struct ResampledInsert {
    to_inner: StreamingResampler,
    to_outer: StreamingResampler,
    input: Vec<f32>,
    output: Vec<f32>,
    /// Output samples that have not been returned yet, at the start.
    ready: Vec<f32>,
    ready_len: usize,
    delay: usize,
}

impl ResampledInsert {
    /// Maximum number of samples per call.
    pub const MAX_FRAMES: usize = 64;

    /// Converts from the outer to the inner rate and back.
    ///
    /// # Errors
    /// [`RateError`] if the ratio of the rates is not supported.
    pub fn new(outer_hz: u32, inner_hz: u32) -> Result<Self, RateError> {
        let to_inner = PolyphaseFilter::new(outer_hz, inner_hz, Quality::REAL_TIME)?;
        let to_outer = PolyphaseFilter::new(inner_hz, outer_hz, Quality::REAL_TIME)?;
        // The last output is `to_inner.half` outer samples plus `to_outer.half` inner samples before the end of the
        // input.
        let delay = to_inner.half + (to_outer.half * to_inner.down).div_ceil(to_inner.up);
        let most = (Self::MAX_FRAMES * to_inner.up).div_ceil(to_inner.down) + 1;
        let to_inner = StreamingResampler::new(to_inner, Self::MAX_FRAMES);
        let to_outer = StreamingResampler::new(to_outer, most);
        let ready = vec![0.0; delay + 2 * Self::MAX_FRAMES + 2 + to_outer.filter.up / to_outer.filter.down];
        Ok(Self { to_inner, to_outer, input: vec![0.0; most], output: vec![0.0; most], ready, ready_len: delay, delay })
    }

    /// Delay of the output, samples of the outer rate.
    #[must_use]
    pub fn delay(&self) -> usize {
        self.delay
    }

    /// Plays silence until the state is that after long silence. Otherwise a processor with an offset would start with
    /// a step after the delay.
    pub fn prewarm(&mut self, mut inner: impl FnMut(&[f32], &mut [f32])) {
        let mut output = [0.0; Self::MAX_FRAMES];
        for _ in 0..(3 * self.delay).div_ceil(Self::MAX_FRAMES) {
            self.process(&[0.0; Self::MAX_FRAMES], &mut output, &mut inner);
        }
    }

    /// Processes at most [`ResampledInsert::MAX_FRAMES`] samples; `inner` processes them at its own rate.
    pub fn process(&mut self, input: &[f32], output: &mut [f32], inner: impl FnOnce(&[f32], &mut [f32])) {
        let frames = self.to_inner.push(input, &mut self.input);
        inner(&self.input[..frames], &mut self.output[..frames]);
        self.ready_len += self.to_outer.push(&self.output[..frames], &mut self.ready[self.ready_len..]);
        output.copy_from_slice(&self.ready[..output.len()]);
        self.ready.copy_within(output.len()..self.ready_len, 0);
        self.ready_len -= output.len();
    }
}

#[cfg(test)]
mod tests {
    use std::f64::consts::TAU;

    use super::*;
    use crate::convert::to_f32;

    fn play(insert: &mut ResampledInsert, input: &[f32], lengths: &[usize]) -> Vec<f32> {
        let mut output = vec![0.0; input.len()];
        let (mut at, mut lengths) = (0, lengths.iter().cycle());
        while at < input.len() {
            let end = input.len().min(at + lengths.next().unwrap());
            insert.process(&input[at..end], &mut output[at..end], |inner, output| output.copy_from_slice(inner));
            at = end;
        }
        output
    }

    #[test]
    fn conversion_there_and_back_is_a_constant_delay() {
        for (outer, inner) in
            [(44_100, 48_000), (48_000, 44_100), (96_000, 48_000), (44_100, 96_000), (192_000, 44_100)]
        {
            for share in [0.01, 0.2, 0.8] {
                let turn = share * 0.5 * TAU * f64::from(outer.min(inner)) / f64::from(outer);
                let input: Vec<f32> = (0..6000).map(|n| to_f32((turn * f64::from(n)).sin())).collect();
                let mut insert = ResampledInsert::new(outer, inner).unwrap();
                let output = play(&mut insert, &input, &[64]);
                let later = &output[insert.delay() + 500..];
                let error = later.iter().zip(&input[500..]).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
                assert!(error < 4e-4, "{outer} {inner} at {share}: {error:e}");
                let again = play(&mut ResampledInsert::new(outer, inner).unwrap(), &input, &[1, 64, 7, 33]);
                assert!(output == again, "{outer} {inner}: depends on how the signal is divided");
            }
        }
    }

    #[test]
    fn after_prewarming_the_output_starts_with_the_response_to_silence() {
        for (outer, inner) in [(44_100, 48_000), (48_000, 44_100), (96_000, 48_000), (44_100, 96_000)] {
            let offset = |_: &[f32], value: &mut [f32]| value.fill(0.5);
            let mut insert = ResampledInsert::new(outer, inner).unwrap();
            insert.prewarm(offset);
            let mut output = [0.0; 64];
            for _ in 0..20 {
                insert.process(&[0.0; 64], &mut output, offset);
                assert!(output.iter().all(|value| (value - 0.5).abs() < 1e-4), "{outer} {inner}: {output:?}");
            }
        }
    }

    #[test]
    fn common_ratios_delay_by_about_a_millisecond() {
        assert_eq!(ResampledInsert::new(48_000, 44_100).unwrap().delay(), 54);
        assert_eq!(ResampledInsert::new(44_100, 48_000).unwrap().delay(), 49);
    }
}
