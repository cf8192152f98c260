//! Playing something at another rate than its own, in real time: there and back, with a constant delay.

use super::{PolyphaseFilter, Quality, RateError, streaming::StreamingResampler};

/// What runs at a rate of its own inside a signal of another.
#[derive(Debug)]
pub struct ResampledInsert {
    to_inner: StreamingResampler,
    to_outer: StreamingResampler,
    input: Vec<f32>,
    output: Vec<f32>,
    /// What is made and has not been asked for, from the beginning.
    ready: Vec<f32>,
    is_ready: usize,
    delay: usize,
}

impl ResampledInsert {
    /// Most samples at a time.
    pub const MAX_FRAMES: usize = 64;

    /// From a signal of the outer rate to one of the inner and back.
    ///
    /// # Errors
    /// [`RateError`], where the rates cannot be brought together.
    pub fn new(outer_hz: u32, inner_hz: u32) -> Result<Self, RateError> {
        let to_inner = PolyphaseFilter::new(outer_hz, inner_hz, Quality::PLAYING)?;
        let to_outer = PolyphaseFilter::new(inner_hz, outer_hz, Quality::PLAYING)?;
        // After n samples, those are made that are `to_inner.half` and, in inner samples, `to_outer.half` before the end.
        let delay = to_inner.half + (to_outer.half * to_inner.down).div_ceil(to_inner.up);
        let most = (Self::MAX_FRAMES * to_inner.up).div_ceil(to_inner.down) + 1;
        let to_inner = StreamingResampler::new(to_inner, Self::MAX_FRAMES);
        let to_outer = StreamingResampler::new(to_outer, most);
        let ready = vec![0.0; delay + 2 * Self::MAX_FRAMES + 2 + to_outer.filter.up / to_outer.filter.down];
        Ok(Self { to_inner, to_outer, input: vec![0.0; most], output: vec![0.0; most], ready, is_ready: delay, delay })
    }

    /// By how many samples what comes out is later than what comes in.
    #[must_use]
    pub fn delay(&self) -> usize {
        self.delay
    }

    /// Plays silence through it until all that it remembers is what `inner` makes of silence: else that would begin as a step
    /// once the delay is over.
    pub fn prewarm(&mut self, mut inner: impl FnMut(&[f32], &mut [f32])) {
        let mut output = [0.0; Self::MAX_FRAMES];
        for _ in 0..(3 * self.delay).div_ceil(Self::MAX_FRAMES) {
            self.process(&[0.0; Self::MAX_FRAMES], &mut output, &mut inner);
        }
    }

    /// Plays at most [`ResampledInsert::MAX_FRAMES`] samples through `inner`, which gets as many at its rate and makes as many.
    pub fn process(&mut self, input: &[f32], output: &mut [f32], inner: impl FnOnce(&[f32], &mut [f32])) {
        let frames = self.to_inner.push(input, &mut self.input);
        inner(&self.input[..frames], &mut self.output[..frames]);
        self.is_ready += self.to_outer.push(&self.output[..frames], &mut self.ready[self.is_ready..]);
        output.copy_from_slice(&self.ready[..output.len()]);
        self.ready.copy_within(output.len()..self.is_ready, 0);
        self.is_ready -= output.len();
    }
}

#[cfg(test)]
mod tests {
    use std::f64::consts::TAU;

    use super::*;

    fn play(insert: &mut ResampledInsert, input: &[f32], lengths: &[usize]) -> Vec<f32> {
        let mut output = vec![0.0; input.len()];
        let (mut at, mut lengths) = (0, lengths.iter().cycle());
        while at < input.len() {
            let end = input.len().min(at + lengths.next().unwrap());
            insert.process(&input[at..end], &mut output[at..end], |inner, made| made.copy_from_slice(inner));
            at = end;
        }
        output
    }

    #[test]
    fn there_and_back_is_a_constant_delay() {
        for (outer, inner) in
            [(44_100, 48_000), (48_000, 44_100), (96_000, 48_000), (44_100, 96_000), (192_000, 44_100)]
        {
            for share in [0.01, 0.2, 0.8] {
                let turn = share * 0.5 * TAU * f64::from(outer.min(inner)) / f64::from(outer);
                let input: Vec<f32> = (0..6000).map(|n| (turn * f64::from(n)).sin() as f32).collect();
                let mut insert = ResampledInsert::new(outer, inner).unwrap();
                let output = play(&mut insert, &input, &[64]);
                let later = &output[insert.delay() + 500..];
                let error = later.iter().zip(&input[500..]).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
                assert!(error < 4e-4, "{outer} {inner} at {share}: {error:e}");
                let again = play(&mut ResampledInsert::new(outer, inner).unwrap(), &input, &[1, 64, 7, 33]);
                assert!(output == again, "{outer} {inner}: it depends on how the signal is cut");
            }
        }
    }

    #[test]
    fn prewarmed_it_begins_with_what_silence_makes() {
        for (outer, inner) in [(44_100, 48_000), (48_000, 44_100), (96_000, 48_000), (44_100, 96_000)] {
            let offset = |_: &[f32], made: &mut [f32]| made.fill(0.5);
            let mut insert = ResampledInsert::new(outer, inner).unwrap();
            insert.prewarm(offset);
            let mut output = [0.0; 64];
            for _ in 0..20 {
                insert.process(&[0.0; 64], &mut output, offset);
                assert!(output.iter().all(|made| (made - 0.5).abs() < 1e-4), "{outer} {inner}: {output:?}");
            }
        }
    }

    #[test]
    fn a_usual_pair_of_rates_costs_a_millisecond() {
        assert_eq!(ResampledInsert::new(48_000, 44_100).unwrap().delay(), 54);
        assert_eq!(ResampledInsert::new(44_100, 48_000).unwrap().delay(), 49);
    }
}
