//! The limiter: no sample exceeds the ceiling, without delay. The gain falls immediately and recovers slowly, equally
//! on both sides.

use super::smooth::Smooth;

/// Recovery time of the gain, s to 1/e.
const RISE_S: f32 = 0.08;

/// A limiter.
#[derive(Debug)]
pub struct Limiter {
    rise: f32,
    /// 1 - gain. Stored in this form because `f32` is too coarse just below 1: the gain would never reach 1.
    reduction: f32,
    /// Minimum gain since the last reading.
    least: f32,
}

impl Limiter {
    pub fn new(rate_hz: f32) -> Self {
        Self { rise: 1.0 - (-1.0 / (rate_hz * RISE_S)).exp(), reduction: 0.0, least: 1.0 }
    }

    /// Limits both sides to `ceiling`.
    pub fn process(&mut self, ceiling: &mut Smooth, left: &mut [f32], right: &mut [f32]) {
        for (left, right) in left.iter_mut().zip(right) {
            let ceiling = ceiling.next();
            let peak = left.abs().max(right.abs());
            self.reduction -= self.reduction * self.rise;
            let mut gain = 1.0 - self.reduction;
            if peak * gain > ceiling {
                gain = ceiling / peak;
                self.reduction = 1.0 - gain;
            }
            // The product may be rounded up.
            *left = (*left * gain).clamp(-ceiling, ceiling);
            *right = (*right * gain).clamp(-ceiling, ceiling);
            self.least = self.least.min(gain);
        }
    }

    /// Minimum gain since the last reading.
    pub fn take_least(&mut self) -> f32 {
        std::mem::replace(&mut self.least, 1.0 - self.reduction)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::convert::whole;

    proptest! {
        #[test]
        fn no_sample_exceeds_the_ceiling(samples in prop::collection::vec(-900.0_f32..900.0, 1..300), ceiling in 0.06_f32..=1.0) {
            let mut left = samples.clone();
            let mut right: Vec<f32> = samples.into_iter().rev().collect();
            Limiter::new(48_000.0).process(&mut Smooth::new(ceiling, 48_000.0), &mut left, &mut right);
            prop_assert!(left.iter().chain(&right).all(|sample| sample.abs() <= ceiling));
        }
    }

    #[test]
    fn both_sides_get_the_same_gain() {
        for loud_side in 0..2 {
            let mut sides = [vec![0.1; 10], vec![0.1; 10]];
            sides[loud_side][5] = 4.0;
            let [left, right] = &mut sides;
            Limiter::new(48_000.0).process(&mut Smooth::new(1.0, 48_000.0), left, right);
            assert_eq!((sides[loud_side][5], sides[1 - loud_side][5]), (1.0, 0.1 * 0.25));
            assert_eq!(sides[0][..5], [0.1; 5]);
            assert_eq!(sides[0][6..], sides[1][6..]);
        }
    }

    #[test]
    fn recovers_within_the_recovery_time() {
        let mut limiter = Limiter::new(48_000.0);
        let mut ceiling = Smooth::new(1.0, 48_000.0);
        limiter.process(&mut ceiling, &mut [4.0], &mut [0.0]);
        let (mut left, mut right) = (vec![0.1; 96_000], vec![0.1; 96_000]);
        limiter.process(&mut ceiling, &mut left, &mut right);
        let missing = |seconds: f32| 1.0 - left[whole(f64::from(seconds * 48_000.0)) - 1] / 0.1;
        assert!((missing(RISE_S) - 0.75 / std::f32::consts::E).abs() < 1e-3, "{}", missing(RISE_S));
        assert!(missing(5.0 * RISE_S) < 0.01, "{}", missing(5.0 * RISE_S));
        assert_eq!(left[90_000..], [0.1; 6000], "the gain returns to exactly 1");
        limiter.take_least();
        assert_eq!(limiter.take_least(), 1.0);
    }

    #[test]
    fn samples_below_the_ceiling_do_not_change() {
        let input: Vec<f32> = (0..1000).map(|n| (n as f32 * 0.1).sin()).collect();
        let (mut left, mut right) = (input.clone(), vec![0.0; 1000]);
        let mut limiter = Limiter::new(48_000.0);
        limiter.process(&mut Smooth::new(1.0, 48_000.0), &mut left, &mut right);
        assert_eq!(left, input);
        assert_eq!(limiter.take_least(), 1.0);
    }
}
