//! A signal kept back, so that two models of different rates keep step when they play side by side.

use super::smooth::Smooth;

/// Longest wait, frames: more than resampling between rates of 64 to 1 takes, the most that there is.
const MOST: usize = 4096;

/// A signal on its way, and how late it is to come out.
#[derive(Debug)]
pub struct Wait {
    /// A ring.
    kept: Vec<f32>,
    at: usize,
    frames: usize,
    /// How late it was before, and how far that has given way.
    before: usize,
    moved: Smooth,
    target: usize,
}

impl Wait {
    pub fn new(rate_hz: f32) -> Self {
        Self { kept: vec![0.0; MOST], at: 0, frames: 0, before: 0, moved: Smooth::new(1.0, rate_hz), target: 0 }
    }

    /// How late it is to be, at once, or smoothly.
    pub fn set(&mut self, frames: usize, at_once: bool) {
        self.target = frames.min(MOST - 1);
        if at_once {
            (self.frames, self.before) = (self.target, self.target);
            self.moved.jump(1.0);
        }
    }

    pub fn process(&mut self, samples: &mut [f32]) {
        for sample in samples {
            if self.target != self.frames && !self.moved.moves() {
                (self.before, self.frames) = (self.frames, self.target);
                self.moved.jump(0.0);
                self.moved.set(1.0);
            }
            self.kept[self.at] = *sample;
            *sample = self.ago(self.frames);
            if self.moved.moves() {
                let before = self.ago(self.before);
                *sample = before + self.moved.next() * (*sample - before);
            }
            self.at = (self.at + 1) % MOST;
        }
    }

    fn ago(&self, frames: usize) -> f32 {
        self.kept[(self.at + MOST - frames) % MOST]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn play(wait: &mut Wait, input: &[f32]) -> Vec<f32> {
        let mut output = input.to_vec();
        output.chunks_mut(7).for_each(|chunk| wait.process(chunk));
        output
    }

    #[test]
    fn what_goes_in_comes_so_much_later() {
        let input: Vec<f32> = (1..10_000).map(|n| n as f32).collect();
        for frames in [0, 1, 54, MOST - 1] {
            let mut wait = Wait::new(48_000.0);
            wait.set(frames, true);
            let output = play(&mut wait, &input);
            assert_eq!(output[frames..], input[..input.len() - frames]);
            assert!(output[..frames].iter().all(|&sample| sample == 0.0));
        }
    }

    #[test]
    fn another_wait_comes_without_a_step_also_while_one_is_coming() {
        let sine: Vec<f32> = (0..20_000).map(|n| (n as f32 * 0.03).sin()).collect();
        let mut wait = Wait::new(48_000.0);
        let mut output = play(&mut wait, &sine[..5000]);
        for (frames, until) in [(100, 5300), (900, 8000), (0, 20_000)] {
            wait.set(frames, false);
            output.extend(play(&mut wait, &sine[output.len()..until]));
        }
        let most = output.windows(2).map(|pair| (pair[1] - pair[0]).abs()).fold(0.0, f32::max);
        assert!(most < 0.035, "{most}: a sine of that pitch has steps of 0.03, a fade adds 2 in 960");
        assert_eq!(output[19_000..], sine[19_000..]);
        assert_eq!(output[7500..7900], sine[6600..7000]);
    }
}
