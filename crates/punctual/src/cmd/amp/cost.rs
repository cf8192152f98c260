//! What a block costs on this machine.

use std::time::{Duration, Instant};

/// How long is measured.
const MEASURED: Duration = Duration::from_millis(300);
/// Fewest blocks, so that the slowest of a hundred is known.
const FEWEST: usize = 200;

/// How long a block of so many frames lasts at this sample rate, us.
pub fn budget_us(frames: usize, rate_hz: f64) -> f64 {
    frames as f64 / rate_hz * 1e6
}

/// Times of many blocks, the shortest first, ns.
pub struct Cost(Vec<u128>);

impl Cost {
    /// Of `play`, which is given `frames` of a sound and as much room, again and again. Each block is loud, so that nothing is
    /// saved on silence.
    pub fn of(frames: usize, mut play: impl FnMut(&[f32], &mut [f32])) -> Self {
        let input: Vec<f32> = (0..frames).map(|frame| (frame as f32 * 0.3).sin() * 0.2).collect();
        let mut output = vec![0.0; frames];
        let mut times = Vec::new();
        let began = Instant::now();
        while began.elapsed() < MEASURED || times.len() < FEWEST {
            let before = Instant::now();
            play(&input, &mut output);
            times.push(before.elapsed().as_nanos());
        }
        times.sort_unstable();
        Self(times)
    }

    /// The shortest: what a quiet moment gives, us.
    pub fn best_us(&self) -> f64 {
        self.0[0] as f64 / 1000.0
    }

    /// Half of the blocks took no longer, us.
    pub fn median_us(&self) -> f64 {
        self.0[self.0.len() / 2] as f64 / 1000.0
    }

    /// 99 of 100 blocks took no longer, us; what is above may be another's work.
    pub fn p99_us(&self) -> f64 {
        self.0[self.0.len() * 99 / 100] as f64 / 1000.0
    }
}

#[cfg(test)]
mod tests {
    use std::thread::sleep;

    use super::*;

    #[test]
    fn blocks_that_take_longer_are_told_apart() {
        let mut count = 0;
        let cost = Cost::of(16, |input, output| {
            assert!(input.len() == 16 && output.len() == 16);
            count += 1;
            if count % 20 == 0 {
                sleep(Duration::from_millis(2));
            }
        });
        assert!(cost.best_us() <= cost.median_us() && cost.median_us() < cost.p99_us());
        assert!(cost.p99_us() >= 2000.0, "{}", cost.p99_us());
    }
}
