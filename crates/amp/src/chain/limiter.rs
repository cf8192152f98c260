//! The limiter: no sample above its ceiling, without delay. It falls at once and rises slowly, on both sides alike.

use super::smooth::Smooth;

/// How long it takes to rise again, s to 1/e.
const RISE_S: f32 = 0.08;

/// A limiter.
#[derive(Debug)]
pub struct Limiter {
    rise: f32,
    /// What its gain is below 1. Kept in this form because `f32` is too coarse close below 1: the gain would stop short of it.
    reduction: f32,
    /// Least gain since it was last asked.
    least: f32,
}

impl Limiter {
    pub fn new(rate_hz: f32) -> Self {
        Self { rise: 1.0 - (-1.0 / (rate_hz * RISE_S)).exp(), reduction: 0.0, least: 1.0 }
    }

    /// Brings both sides below `ceiling`.
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

    /// Least gain since it was last asked.
    pub fn take_least(&mut self) -> f32 {
        std::mem::replace(&mut self.least, 1.0 - self.reduction)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn nothing_is_above_the_ceiling(samples in prop::collection::vec(-900.0_f32..900.0, 1..300), ceiling in 0.06_f32..=1.0) {
            let mut left = samples.clone();
            let mut right: Vec<f32> = samples.into_iter().rev().collect();
            Limiter::new(48_000.0).process(&mut Smooth::new(ceiling, 48_000.0), &mut left, &mut right);
            prop_assert!(left.iter().chain(&right).all(|sample| sample.abs() <= ceiling));
        }
    }

    #[test]
    fn both_sides_fall_alike_whichever_is_loud() {
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
    fn it_recovers_in_the_time_that_it_is_to_take() {
        let mut limiter = Limiter::new(48_000.0);
        let mut ceiling = Smooth::new(1.0, 48_000.0);
        limiter.process(&mut ceiling, &mut [4.0], &mut [0.0]);
        let (mut left, mut right) = (vec![0.1; 96_000], vec![0.1; 96_000]);
        limiter.process(&mut ceiling, &mut left, &mut right);
        let missing = |seconds: f32| 1.0 - left[(seconds * 48_000.0) as usize - 1] / 0.1;
        assert!((missing(RISE_S) - 0.75 / std::f32::consts::E).abs() < 1e-3, "{}", missing(RISE_S));
        assert!(missing(5.0 * RISE_S) < 0.01, "{}", missing(5.0 * RISE_S));
        assert_eq!(left[90_000..], [0.1; 6000], "in the end it does nothing");
        limiter.take_least();
        assert_eq!(limiter.take_least(), 1.0);
    }

    #[test]
    fn what_is_below_stays_to_the_bit() {
        let input: Vec<f32> = (0..1000).map(|n| (n as f32 * 0.1).sin()).collect();
        let (mut left, mut right) = (input.clone(), vec![0.0; 1000]);
        let mut limiter = Limiter::new(48_000.0);
        limiter.process(&mut Smooth::new(1.0, 48_000.0), &mut left, &mut right);
        assert_eq!(left, input);
        assert_eq!(limiter.take_least(), 1.0);
    }
}
