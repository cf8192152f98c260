//! Processing time of blocks on this machine.

use std::time::{Duration, Instant};

/// Minimum measuring time.
const MIN_TIME: Duration = Duration::from_millis(300);
/// Minimum number of blocks, so that the 99th percentile is known.
const MIN_BLOCKS: usize = 200;

/// Length of a block at this sample rate, us.
#[must_use]
pub fn block_us(frames: usize, rate_hz: f64) -> f64 {
    frames as f64 / rate_hz * 1e6
}

/// Processing times of many blocks, in ascending order.
#[derive(Debug)]
pub struct BlockCost(Vec<Duration>);

impl BlockCost {
    /// Measures `play`, which is called repeatedly with an input and an output block of `frames` frames. The input is
    /// loud, because silence may cost less.
    pub fn measure(frames: usize, mut play: impl FnMut(&[f32], &mut [f32])) -> Self {
        let input: Vec<f32> = (0..frames).map(|frame| (frame as f32 * 0.3).sin() * 0.2).collect();
        let mut output = vec![0.0; frames];
        let mut times = Vec::new();
        let began = Instant::now();
        while began.elapsed() < MIN_TIME || times.len() < MIN_BLOCKS {
            let before = Instant::now();
            play(&input, &mut output);
            times.push(before.elapsed());
        }
        times.sort_unstable();
        Self(times)
    }

    /// Shortest time, us: the time of an undisturbed block.
    #[must_use]
    pub fn best_us(&self) -> f64 {
        us(self.0[0])
    }

    /// Median, us.
    #[must_use]
    pub fn median_us(&self) -> f64 {
        us(self.0[self.0.len() / 2])
    }

    /// 99th percentile, us. Longer times may be caused by other programs.
    #[must_use]
    pub fn p99_us(&self) -> f64 {
        us(self.0[self.0.len() * 99 / 100])
    }
}

fn us(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

#[cfg(test)]
mod tests {
    use std::thread::sleep;

    use super::*;

    #[test]
    fn slow_blocks_show_in_the_percentile() {
        let mut count = 0;
        let cost = BlockCost::measure(16, |input, output| {
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
