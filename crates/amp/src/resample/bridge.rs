//! Playing something at another rate than its own, in real time: there and back, with a constant delay.

use super::{Kernel, Quality, RateError};

/// What runs at a rate of its own inside a signal of another.
#[derive(Debug)]
pub struct Bridge {
    there: Stream,
    back: Stream,
    input: Vec<f32>,
    output: Vec<f32>,
    /// What is made and has not been asked for, from the beginning.
    ready: Vec<f32>,
    is_ready: usize,
    delay: usize,
}

impl Bridge {
    /// Most samples at a time.
    pub const MOST: usize = 64;

    /// From a signal of the outer rate to one of the inner and back.
    ///
    /// # Errors
    /// [`RateError`], where the rates cannot be brought together.
    pub fn new(outer_hz: u32, inner_hz: u32) -> Result<Self, RateError> {
        let there = Kernel::new(outer_hz, inner_hz, Quality::PLAYING)?;
        let back = Kernel::new(inner_hz, outer_hz, Quality::PLAYING)?;
        // After n samples, those are made that are `there.half` and, in inner samples, `back.half` before the end.
        let delay = there.half + (back.half * there.down).div_ceil(there.up);
        let most = (Self::MOST * there.up).div_ceil(there.down) + 1;
        let (there, back) = (Stream::new(there, Self::MOST), Stream::new(back, most));
        let ready = vec![0.0; delay + 2 * Self::MOST + 2 + back.kernel.up / back.kernel.down];
        Ok(Self { there, back, input: vec![0.0; most], output: vec![0.0; most], ready, is_ready: delay, delay })
    }

    /// By how many samples what comes out is later than what comes in.
    #[must_use]
    pub fn delay(&self) -> usize {
        self.delay
    }

    /// Plays at most [`Bridge::MOST`] samples through `inner`, which gets as many at its rate and makes as many.
    pub fn process(&mut self, input: &[f32], output: &mut [f32], inner: impl FnOnce(&[f32], &mut [f32])) {
        let frames = self.there.push(input, &mut self.input);
        inner(&self.input[..frames], &mut self.output[..frames]);
        self.is_ready += self.back.push(&self.output[..frames], &mut self.ready[self.is_ready..]);
        output.copy_from_slice(&self.ready[..output.len()]);
        self.ready.copy_within(output.len()..self.is_ready, 0);
        self.is_ready -= output.len();
    }
}

/// A signal on its way to another rate.
#[derive(Debug)]
struct Stream {
    kernel: Kernel,
    /// Input that is still needed, from the beginning.
    window: Vec<f32>,
    filled: usize,
    /// Place of the next output in the window, and behind that.
    place: usize,
    phase: usize,
}

impl Stream {
    fn new(kernel: Kernel, most: usize) -> Self {
        let before = kernel.half - 1;
        let room = 2 * kernel.half + kernel.down / kernel.up + 2 + most;
        Self { window: vec![0.0; room], filled: before, place: before, phase: 0, kernel }
    }

    /// Takes all of `input` in, and returns how many samples it made of it.
    fn push(&mut self, input: &[f32], output: &mut [f32]) -> usize {
        let Self { kernel, window, filled, place, phase } = self;
        window[*filled..*filled + input.len()].copy_from_slice(input);
        *filled += input.len();
        let mut made = 0;
        while *place + kernel.half < *filled {
            output[made] = kernel.at(*phase, &window[*place + 1 - kernel.half..][..2 * kernel.half]);
            made += 1;
            *phase += kernel.down;
            *place += *phase / kernel.up;
            *phase %= kernel.up;
        }
        let over = (*place + 1 - kernel.half).min(*filled);
        window.copy_within(over..*filled, 0);
        *filled -= over;
        *place -= over;
        made
    }
}

#[cfg(test)]
mod tests {
    use std::f64::consts::TAU;

    use super::*;

    fn play(bridge: &mut Bridge, input: &[f32], lengths: &[usize]) -> Vec<f32> {
        let mut output = vec![0.0; input.len()];
        let (mut at, mut lengths) = (0, lengths.iter().cycle());
        while at < input.len() {
            let end = input.len().min(at + lengths.next().unwrap());
            bridge.process(&input[at..end], &mut output[at..end], |inner, made| made.copy_from_slice(inner));
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
                let mut bridge = Bridge::new(outer, inner).unwrap();
                let output = play(&mut bridge, &input, &[64]);
                let later = &output[bridge.delay() + 500..];
                let error = later.iter().zip(&input[500..]).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
                assert!(error < 4e-4, "{outer} {inner} at {share}: {error:e}");
                let again = play(&mut Bridge::new(outer, inner).unwrap(), &input, &[1, 64, 7, 33]);
                assert!(output == again, "{outer} {inner}: it depends on how the signal is cut");
            }
        }
    }

    #[test]
    fn a_usual_pair_of_rates_costs_a_millisecond() {
        assert_eq!(Bridge::new(48_000, 44_100).unwrap().delay(), 54);
        assert_eq!(Bridge::new(44_100, 48_000).unwrap().delay(), 49);
    }
}
