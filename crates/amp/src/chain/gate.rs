//! The gate. It measures the input, where the levels of playing and noise differ most, and attenuates the output of the
//! amplifier, whose gain brings the two closer together.

use crate::convert::{db_to_gain, whole};

/// Difference between the opening and the closing level, dB; without it the gate would chatter at the threshold.
const HYSTERESIS_DB: f32 = 6.0;
/// Decay of the measured level, s to 1/e: longer than half a period of the lowest string.
const FALL_S: f32 = 0.02;
/// Opening time, s to 1/e.
const OPEN_S: f32 = 0.0005;
/// Time that the gate stays open below the closing level, s.
const HOLD_S: f32 = 0.03;

/// A gate.
#[derive(Debug)]
pub struct Gate {
    rate_hz: f32,
    hold_samples: usize,
    fall: f32,
    open: f32,
    close: f32,
    threshold: f32,
    release_ms: f32,
    level: f32,
    hold: usize,
    gain: f32,
}

impl Gate {
    pub fn new(rate_hz: f32) -> Self {
        let decay = |seconds: f32| (-1.0 / (rate_hz * seconds)).exp();
        let (fall, open) = (decay(FALL_S), 1.0 - decay(OPEN_S));
        let hold_samples = whole(f64::from(rate_hz * HOLD_S));
        Self {
            rate_hz,
            hold_samples,
            fall,
            open,
            close: 0.0,
            threshold: 0.0,
            release_ms: 0.0,
            level: 0.0,
            hold: 0,
            gain: 0.0,
        }
    }

    pub fn set(&mut self, threshold_db: f32, release_ms: f32) {
        self.threshold = db_to_gain(threshold_db);
        if release_ms != self.release_ms {
            self.release_ms = release_ms;
            // -60 dB at the end of the release time.
            self.close = 0.001_f32.powf(1.0 / (self.rate_hz * release_ms / 1000.0));
        }
    }

    /// Measures `key` and writes the gain for each sample.
    pub fn listen(&mut self, key: &[f32], gains: &mut [f32]) {
        let close_below = self.threshold * db_to_gain(-HYSTERESIS_DB);
        for (key, gain) in key.iter().zip(gains) {
            self.level = key.abs().max(self.level * self.fall);
            if self.level >= self.threshold || (self.hold > 0 && self.level >= close_below) {
                self.hold = self.hold_samples;
            } else {
                self.hold = self.hold.saturating_sub(1);
            }
            match self.hold {
                0 => self.gain *= self.close,
                _ => self.gain += (1.0 - self.gain) * self.open,
            }
            *gain = self.gain;
        }
    }

    /// True if the gate passes the signal.
    pub fn is_open(&self) -> bool {
        self.hold > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The gain after `seconds` of a sine of this level.
    fn after(gate: &mut Gate, level_db: f32, seconds: f32) -> f32 {
        let key: Vec<f32> =
            (0..whole(f64::from(48_000.0 * seconds))).map(|n| db_to_gain(level_db) * (n as f32 * 0.02).sin()).collect();
        let mut gains = vec![0.0; key.len()];
        gate.listen(&key, &mut gains);
        gains[key.len() - 1]
    }

    #[test]
    fn opens_at_the_threshold_and_closes_below_it() {
        let mut gate = Gate::new(48_000.0);
        gate.set(-60.0, 100.0);
        assert_eq!(after(&mut gate, -61.0, 0.5), 0.0);
        assert!(after(&mut gate, -58.0, 0.02) > 0.999);
        assert!(after(&mut gate, -63.0, 1.0) > 0.999, "stays open within the hysteresis");
        assert!(after(&mut gate, -80.0, 0.03) > 0.999, "stays open for the hold time");
        let closed = after(&mut gate, -80.0, 0.2);
        assert!(closed < 0.001 && !gate.is_open(), "{closed}");
    }

    #[test]
    fn closes_within_the_release_time() {
        let mut gate = Gate::new(48_000.0);
        gate.set(-40.0, 500.0);
        after(&mut gate, -30.0, 0.1);
        // The measured level takes about 37 ms to fall by 16 dB, the hold time is 30 ms.
        let half_way = after(&mut gate, -120.0, 0.067 + 0.25);
        assert!((0.02..0.05).contains(&half_way), "{half_way}");
    }
}
