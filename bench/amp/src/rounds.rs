//! Alternates between engines and times each block, so that disturbances by the machine affect all engines equally.

use std::time::{Duration, Instant};

/// Number and length of the rounds.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    rounds: usize,
    /// Time that each engine plays in one round.
    turn: Duration,
}

impl Effort {
    /// Few short rounds.
    pub const QUICK: Self = Self { rounds: 11, turn: Duration::from_millis(4) };
}

impl Default for Effort {
    fn default() -> Self {
        Self { rounds: 41, turn: Duration::from_millis(10) }
    }
}

/// Minimum number of blocks of an engine in one round.
const MIN_BLOCKS: usize = 12;

/// Plays one block at each call.
pub type Engine<'a> = Box<dyn FnMut() + 'a>;

/// Times of one engine, us a block.
#[derive(Debug, Default, Clone)]
pub struct Times {
    /// Median of each round.
    pub medians: Vec<f64>,
    /// 99th percentile of each round.
    pub p99s: Vec<f64>,
    /// The times of all blocks, sorted.
    pub all: Vec<f64>,
}

impl Times {
    /// The shortest time.
    pub fn best(&self) -> f64 {
        self.all.first().copied().unwrap_or(f64::NAN)
    }

    /// The 99th percentiles of the rounds in place of their medians.
    pub fn late(&self) -> Self {
        Self { medians: self.p99s.clone(), ..self.clone() }
    }

    /// The mean time.
    pub fn mean(&self) -> f64 {
        self.all.iter().sum::<f64>() / self.all.len() as f64
    }

    /// The quantile of the times of all blocks.
    pub fn quantile(&self, share: f64) -> f64 {
        quantile(&self.all, share)
    }
}

/// Plays all engines in turn. The first one changes with each round.
pub fn alternate(engines: &mut [Engine<'_>], effort: Effort) -> Vec<Times> {
    let count = engines.len();
    let mut times = vec![Times::default(); count];
    for round in 0..effort.rounds {
        for offset in 0..count {
            let index = (round + offset) % count;
            let mut turn = one_turn(&mut engines[index], effort.turn);
            turn.sort_by(f64::total_cmp);
            times[index].medians.push(quantile(&turn, 0.5));
            times[index].p99s.push(quantile(&turn, 0.99));
            times[index].all.append(&mut turn);
        }
    }
    times.iter_mut().for_each(|times| times.all.sort_by(f64::total_cmp));
    times
}

/// Times the blocks of one turn, us. The first few are not timed, because the caches still contain data of another
/// engine.
fn one_turn(engine: &mut Engine<'_>, turn: Duration) -> Vec<f64> {
    let mut times = Vec::with_capacity(1024);
    (0..MIN_BLOCKS / 4).for_each(|_| engine());
    let began = Instant::now();
    let mut before = began;
    while times.len() < MIN_BLOCKS || before - began < turn {
        engine();
        let after = Instant::now();
        times.push((after - before).as_nanos() as f64 / 1000.0);
        before = after;
    }
    times
}

/// The quantile of sorted figures, without interpolation.
pub fn quantile(sorted: &[f64], share: f64) -> f64 {
    let last = sorted.len().saturating_sub(1) as f64;
    sorted.get(index((share * last).round())).copied().unwrap_or(f64::NAN)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a position between 0 and the number of figures"
)]
fn index(position: f64) -> usize {
    position as usize
}

#[cfg(test)]
mod tests {
    use std::{cell::RefCell, thread::sleep};

    use super::*;

    #[test]
    fn each_engine_plays_in_every_round_and_is_first_in_turn() {
        let order = RefCell::new(Vec::new());
        let engine = |name: char| -> Engine<'_> {
            let order = &order;
            Box::new(move || {
                let mut order = order.borrow_mut();
                if order.last() != Some(&name) {
                    order.push(name);
                }
            })
        };
        let effort = Effort { rounds: 2, turn: Duration::ZERO };
        let times = alternate(&mut [engine('a'), engine('b'), engine('c')], effort);
        assert_eq!(*order.borrow(), ['a', 'b', 'c', 'b', 'c', 'a']);
        assert!(
            times
                .iter()
                .all(|times| times.medians.len() == 2 && times.p99s.len() == 2 && times.all.len() == 2 * MIN_BLOCKS)
        );
    }

    #[test]
    fn a_slow_engine_takes_longer() {
        let effort = Effort { rounds: 3, turn: Duration::ZERO };
        let slow: Engine<'_> = Box::new(|| sleep(Duration::from_micros(500)));
        let times = alternate(&mut [Box::new(|| {}), slow], effort);
        assert!(times[1].best() >= 500.0 && times[1].best() > 10.0 * times[0].quantile(0.5));
    }
}
