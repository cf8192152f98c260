//! Engines in turn, each block timed, so that whatever the machine does besides falls on all alike.

use std::time::{Duration, Instant};

/// How much is measured.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    rounds: usize,
    /// How long one engine plays in one round.
    turn: Duration,
}

impl Effort {
    /// Few rounds.
    pub const QUICK: Self = Self { rounds: 11, turn: Duration::from_millis(4) };
}

impl Default for Effort {
    fn default() -> Self {
        Self { rounds: 41, turn: Duration::from_millis(10) }
    }
}

/// Fewest blocks of an engine in one round.
const FEWEST: usize = 12;

/// Something that plays one block each time.
pub type Engine<'a> = Box<dyn FnMut() + 'a>;

/// What one engine took, us a block.
#[derive(Debug, Default, Clone)]
pub struct Times {
    /// Median of each round.
    pub medians: Vec<f64>,
    /// All blocks, sorted.
    pub all: Vec<f64>,
}

impl Times {
    /// The shortest.
    pub fn best(&self) -> f64 {
        self.all.first().copied().unwrap_or(f64::NAN)
    }

    /// The time that a `share` of the blocks took at most.
    pub fn quantile(&self, share: f64) -> f64 {
        quantile(&self.all, share)
    }
}

/// Plays all engines in turn. Which one is first changes from round to round.
pub fn alternate(engines: &mut [Engine<'_>], effort: Effort) -> Vec<Times> {
    let count = engines.len();
    let mut times = vec![Times::default(); count];
    for round in 0..effort.rounds {
        for place in 0..count {
            let index = (round + place) % count;
            let mut turn = one_turn(&mut engines[index], effort.turn);
            turn.sort_by(f64::total_cmp);
            times[index].medians.push(quantile(&turn, 0.5));
            times[index].all.append(&mut turn);
        }
    }
    times.iter_mut().for_each(|times| times.all.sort_by(f64::total_cmp));
    times
}

/// Times of the blocks of one turn, us; without the first few, which find the caches as another left them.
fn one_turn(engine: &mut Engine<'_>, turn: Duration) -> Vec<f64> {
    let mut times = Vec::with_capacity(1024);
    (0..FEWEST / 4).for_each(|_| engine());
    let began = Instant::now();
    let mut before = began;
    while times.len() < FEWEST || before - began < turn {
        engine();
        let after = Instant::now();
        times.push((after - before).as_nanos() as f64 / 1000.0);
        before = after;
    }
    times
}

/// The value that a `share` of the sorted figures lie at or below.
pub fn quantile(sorted: &[f64], share: f64) -> f64 {
    let last = sorted.len().saturating_sub(1) as f64;
    sorted.get((share * last).round() as usize).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use std::{cell::RefCell, thread::sleep};

    use super::*;

    #[test]
    fn all_play_in_every_round_and_each_is_first_in_turn() {
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
        assert!(times.iter().all(|times| times.medians.len() == 2 && times.all.len() == 2 * FEWEST));
    }

    #[test]
    fn what_takes_longer_is_seen_to() {
        let effort = Effort { rounds: 3, turn: Duration::ZERO };
        let slow: Engine<'_> = Box::new(|| sleep(Duration::from_micros(500)));
        let times = alternate(&mut [Box::new(|| {}), slow], effort);
        assert!(times[1].best() >= 500.0 && times[1].best() > 10.0 * times[0].quantile(0.5));
    }
}
