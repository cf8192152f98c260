//! A signal kept back, so that it keeps step with a model of another rate: that of the other model beside it, or of the input where
//! models are switched off.

use super::smooth::Smooth;

/// Longest delay, frames: more than two models take, one behind the other, that are resampled between rates of 64 to 1, the most
/// that there is.
const MAX_FRAMES: usize = 8192;

/// A signal on its way, and how late it is to come out.
#[derive(Debug)]
pub struct Delay {
    ring: Vec<f32>,
    position: usize,
    frames: usize,
    /// How late it was before, and how far that has given way.
    previous: usize,
    fade: Smooth,
    target: usize,
}

impl Delay {
    pub fn new(rate_hz: f32) -> Self {
        Self {
            ring: vec![0.0; MAX_FRAMES],
            position: 0,
            frames: 0,
            previous: 0,
            fade: Smooth::new(1.0, rate_hz),
            target: 0,
        }
    }

    /// How late it is to be, at once, or smoothly.
    pub fn set(&mut self, frames: usize, at_once: bool) {
        self.target = frames.min(MAX_FRAMES - 1);
        if at_once {
            (self.frames, self.previous) = (self.target, self.target);
            self.fade.set_now(1.0);
        }
    }

    pub fn process(&mut self, samples: &mut [f32]) {
        for sample in samples {
            if self.target != self.frames && !self.fade.is_ramping() {
                (self.previous, self.frames) = (self.frames, self.target);
                self.fade.set_now(0.0);
                self.fade.set(1.0);
            }
            self.ring[self.position] = *sample;
            *sample = self.ago(self.frames);
            if self.fade.is_ramping() {
                let previous = self.ago(self.previous);
                *sample = previous + self.fade.next() * (*sample - previous);
            }
            self.position = (self.position + 1) % MAX_FRAMES;
        }
    }

    fn ago(&self, frames: usize) -> f32 {
        self.ring[(self.position + MAX_FRAMES - frames) % MAX_FRAMES]
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
    fn what_goes_in_comes_so_much_later() {
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
    fn another_delay_comes_without_a_step_also_while_one_is_coming() {
        let sine: Vec<f32> = (0..20_000).map(|n| (n as f32 * 0.03).sin()).collect();
        let mut delay = Delay::new(48_000.0);
        let mut output = play(&mut delay, &sine[..5000]);
        for (frames, until) in [(100, 5300), (900, 8000), (0, 20_000)] {
            delay.set(frames, false);
            output.extend(play(&mut delay, &sine[output.len()..until]));
        }
        let most = output.windows(2).map(|pair| (pair[1] - pair[0]).abs()).fold(0.0, f32::max);
        assert!(most < 0.035, "{most}: a sine of that pitch has steps of 0.03, a fade adds 2 in 960");
        assert_eq!(output[19_000..], sine[19_000..]);
        assert_eq!(output[7500..7900], sine[6600..7000]);
    }
}
