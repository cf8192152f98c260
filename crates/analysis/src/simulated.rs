//! Simulated machines: heavy tails, drift, and bursts of some rounds, as real machines have them.

use extremes::Random;

/// Number of samples of a round.
pub const SAMPLES: u64 = 20_000;

/// A machine whose times have a tail of Pareto with infinite variance.
pub struct Machine {
    pub random: Random,
    /// Logarithm of the current level: it drifts.
    level: f64,
    /// Factor of the current burst; 1 without.
    burst: f64,
    /// The factor of each candidate.
    factors: Vec<f64>,
    /// A candidate that makes one in ten of its rounds 100 times worse; the machine has no bursts of its own then, which
    /// would hide this.
    pub rarely_worse: Option<usize>,
}

impl Machine {
    pub fn new(seed: u64, factors: &[f64]) -> Self {
        Self { random: Random(seed), level: 0.0, burst: 1.0, factors: factors.to_vec(), rarely_worse: None }
    }

    /// The 201 largest times of a round of 20 000 samples, ns. The k-th largest of n uniform numbers is a sum of k exponential ones.
    pub fn measure(&mut self, applied: &[usize]) -> Vec<f64> {
        self.level += 0.05 * (self.random.uniform() - 0.5);
        self.burst = match self.random.uniform() {
            begins if self.rarely_worse.is_none() && self.burst == 1.0 && begins < 0.03 => {
                3.0 + 7.0 * self.random.uniform()
            }
            ends if ends < 0.3 => 1.0,
            _ => self.burst,
        };
        let is_rare = self.random.uniform() < 0.1 && self.rarely_worse.is_some_and(|index| applied.contains(&index));
        let factor: f64 = applied.iter().map(|&index| self.factors[index]).product();
        let factor = if is_rare { 100.0 * factor } else { factor };
        let scale = 2_000.0 * self.level.exp() * factor * self.burst;
        let (mut sum, mut largest) = (0.0, Vec::new());
        while largest.len() <= 200 {
            sum -= self.random.uniform().ln();
            largest.push(scale * (sum / SAMPLES as f64).powf(-1.0 / 1.8));
        }
        largest
    }
}
