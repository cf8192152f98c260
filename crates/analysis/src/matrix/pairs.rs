//! Pairs of CPUs with their results under every load, and their comparison.

use record::{Cell, Record};

use super::severity::Scale;
use crate::badness::{Badness, beats};

/// A pair of CPUs that ran as requested under every load.
#[derive(Debug)]
pub(super) struct Pair<'a> {
    /// One cell per load, in the order of the loads.
    pub cells: Vec<&'a Cell>,
    /// The severity of each round under its worst load; as many as were measured under every load.
    rounds: Vec<Badness>,
}

impl<'a> Pair<'a> {
    /// All such pairs of a record.
    pub fn all(record: &'a Record) -> Vec<Self> {
        let mut pairs: Vec<Self> = Vec::new();
        for cell in record.cells.iter().filter(|cell| cell.threads.len() == 2) {
            match pairs.iter_mut().find(|pair| pair.cells[0].pair() == cell.pair()) {
                Some(pair) => pair.cells.push(cell),
                None => pairs.push(Self { cells: vec![cell], rounds: Vec::new() }),
            }
        }
        let mut loads: Vec<&str> = record.cells.iter().map(|cell| cell.load.as_str()).collect();
        loads.sort_unstable();
        loads.dedup();
        pairs.retain(|pair| pair.cells.len() == loads.len() && pair.cells.iter().all(|cell| cell.invalid.is_none()));
        let scale = Scale::of(record);
        pairs.iter_mut().for_each(|pair| pair.rank(&scale));
        pairs
    }

    /// Computes the severity of the rounds.
    fn rank(&mut self, scale: &Scale) {
        let of_cells: Vec<Vec<Badness>> = self.cells.iter().map(|cell| scale.rounds(cell)).collect();
        let count = of_cells.iter().map(Vec::len).min().unwrap_or(0);
        let of_round = |round| of_cells.iter().map(|rounds| rounds[round]).fold(Badness::default(), Badness::worse);
        self.rounds = (0..count).map(of_round).collect();
    }

    /// The CPUs of the row and of the column.
    pub fn cpus(&self) -> [u32; 2] {
        [0, 1].map(|thread| self.cells[0].threads[thread].cpu)
    }

    /// The severity of the worst round.
    pub fn severity(&self) -> Badness {
        Badness::worst(&self.rounds)
    }

    /// The severity of each round.
    pub fn rounds(&self) -> &[Badness] {
        &self.rounds
    }

    /// The number of rounds measured under every load.
    pub fn round_count(&self) -> usize {
        self.rounds.len()
    }

    /// True if each round was better than all rounds of the other pair. False with one round each, because chance could
    /// decide.
    pub fn beats(&self, other: &Self) -> bool {
        beats(&self.rounds, &other.rounds)
    }
}
