//! Values that change without a step.

use crate::convert::whole;

/// Duration of a ramp, s.
const RAMP_S: f32 = 0.02;

/// A value that changes with linear ramps.
#[derive(Debug, Clone)]
pub struct Smooth {
    now: f32,
    target: f32,
    step: f32,
    left: usize,
    ramp: usize,
}

impl Smooth {
    pub fn new(value: f32, rate_hz: f32) -> Self {
        Self { now: value, target: value, step: 0.0, left: 0, ramp: whole(f64::from(rate_hz * RAMP_S)).max(1) }
    }

    pub fn set(&mut self, target: f32) {
        if target != self.target {
            self.target = target;
            self.left = self.ramp;
            self.step = (target - self.now) / self.ramp as f32;
        }
    }

    /// Sets the value immediately.
    pub fn set_now(&mut self, value: f32) {
        (self.now, self.target, self.left) = (value, value, 0);
    }

    /// Sets the value immediately or with a ramp.
    pub fn change_to(&mut self, target: f32, at_once: bool) {
        match at_once {
            true => self.set_now(target),
            false => self.set(target),
        }
    }

    /// True if the value is and stays 0.
    pub fn is_off(&self) -> bool {
        self.now == 0.0 && !self.is_ramping()
    }

    /// True during a ramp.
    pub fn is_ramping(&self) -> bool {
        self.left > 0
    }

    /// The value for the next sample.
    #[inline]
    pub fn next(&mut self) -> f32 {
        if self.left > 0 {
            self.left -= 1;
            self.now = if self.left == 0 { self.target } else { self.now + self.step };
        }
        self.now
    }

    /// Multiplies the samples of simultaneous signals.
    pub fn apply<const N: usize>(&mut self, mut signals: [&mut [f32]; N]) {
        if self.is_ramping() {
            for n in 0..signals[0].len() {
                let gain = self.next();
                signals.iter_mut().for_each(|signal| signal[n] *= gain);
            }
        } else if self.now != 1.0 {
            signals.into_iter().flatten().for_each(|sample| *sample *= self.now);
        }
    }

    /// Mixes `dry` into `wet`, for simultaneous signals: a value of 1 leaves `wet` as it is, 0 replaces it by `dry`.
    pub fn blend<const N: usize>(&mut self, dry: [&[f32]; N], mut wet: [&mut [f32]; N]) {
        if self.is_ramping() {
            for n in 0..dry[0].len() {
                let share = self.next();
                for (wet, dry) in wet.iter_mut().zip(dry) {
                    wet[n] = dry[n] + share * (wet[n] - dry[n]);
                }
            }
        } else if self.now == 0.0 {
            wet.into_iter().zip(dry).for_each(|(wet, dry)| wet.copy_from_slice(dry));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ramps_in_equal_steps_and_stays_at_the_target() {
        let mut value = Smooth::new(1.0, 1000.0);
        value.set(3.0);
        let mut samples = [1.0; 25];
        value.apply([&mut samples]);
        assert!((samples[0] - 1.1).abs() < 1e-6 && (samples[9] - 2.0).abs() < 1e-5);
        assert_eq!(samples[19..], [3.0; 6]);
    }
}
