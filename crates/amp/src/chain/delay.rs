//! A delay that aligns a signal with a resampled model: the other model in parallel, or the dry input while the models
//! are switched off.

use super::tap::Tap;

/// Maximum delay, frames: more than that of two models in series that are resampled at a ratio of 64 to 1, the largest
/// supported one.
const MAX_FRAMES: usize = 8192;

/// A delayed signal whose delay can change without a step.
#[derive(Debug)]
pub struct Delay {
    ring: Vec<f32>,
    position: usize,
    frames: Tap<usize>,
}

impl Delay {
    pub fn new(rate_hz: f32) -> Self {
        Self { ring: vec![0.0; MAX_FRAMES], position: 0, frames: Tap::new(0, rate_hz) }
    }

    /// Sets the delay, immediately or with a fade.
    pub fn set(&mut self, frames: usize, at_once: bool) {
        self.frames.set(frames.min(MAX_FRAMES - 1), at_once);
    }

    pub fn process(&mut self, samples: &mut [f32]) {
        let Self { ring, position, frames } = self;
        for sample in samples {
            ring[*position] = *sample;
            [*sample] = frames.read(|frames| [ring[(*position + MAX_FRAMES - frames) % MAX_FRAMES]]);
            *position = (*position + 1) % MAX_FRAMES;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn play(delay: &mut Delay, input: &[f32]) -> Vec<f32> {
        let mut output = input.to_vec();
        output.chunks_mut(7).for_each(|chunk| delay.process(chunk));
        output
    }

    #[test]
    fn output_is_delayed_by_the_set_number_of_frames() {
        let input: Vec<f32> = (1..10_000).map(|n| n as f32).collect();
        for frames in [0, 1, 54, MAX_FRAMES - 1] {
            let mut delay = Delay::new(48_000.0);
            delay.set(frames, true);
            let output = play(&mut delay, &input);
            assert_eq!(output[frames..], input[..input.len() - frames]);
            assert!(output[..frames].iter().all(|&sample| sample == 0.0));
        }
    }

    #[test]
    fn the_delay_changes_without_a_step_even_during_a_change() {
        let sine: Vec<f32> = (0..20_000).map(|n| (n as f32 * 0.03).sin()).collect();
        let mut delay = Delay::new(48_000.0);
        let mut output = play(&mut delay, &sine[..5000]);
        for (frames, until) in [(100, 5300), (900, 8000), (0, 20_000)] {
            delay.set(frames, false);
            output.extend(play(&mut delay, &sine[output.len()..until]));
        }
        let most = output.windows(2).map(|pair| (pair[1] - pair[0]).abs()).fold(0.0, f32::max);
        assert!(most < 0.035, "{most}: the sine has steps of 0.03, a fade adds 2 in 960");
        assert_eq!(output[19_000..], sine[19_000..]);
        assert_eq!(output[7500..7900], sine[6600..7000]);
    }
}
