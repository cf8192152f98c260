//! Pairs of CPUs with their results under every load, and their comparison.

use std::cmp::Ordering;

use record::{Cell, CellThread, Record};

/// Severity of a result: [`Cell::badness`], then the largest lateness in periods.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Severity {
    pub badness: f64,
    pub periods_late: f64,
}

impl Severity {
    pub fn of(cell: &Cell) -> Self {
        let periods_late = cell.threads.iter().map(CellThread::periods_late).fold(0.0, f64::max);
        Self { badness: cell.badness, periods_late }
    }

    pub fn compare(&self, other: &Self) -> Ordering {
        self.badness.total_cmp(&other.badness).then(self.periods_late.total_cmp(&other.periods_late))
    }
}

/// A pair of CPUs that ran as requested under every load.
#[derive(Debug)]
pub(super) struct Pair<'a> {
    /// One cell per load, in the order of the loads.
    pub cells: Vec<&'a Cell>,
}

impl<'a> Pair<'a> {
    /// All such pairs of a record.
    pub fn all(record: &'a Record) -> Vec<Self> {
        let mut pairs: Vec<Self> = Vec::new();
        for cell in record.cells.iter().filter(|cell| cell.threads.len() == 2) {
            match pairs.iter_mut().find(|pair| pair.cells[0].pair() == cell.pair()) {
                Some(pair) => pair.cells.push(cell),
                None => pairs.push(Self { cells: vec![cell] }),
            }
        }
        let mut loads: Vec<&str> = record.cells.iter().map(|cell| cell.load.as_str()).collect();
        loads.sort_unstable();
        loads.dedup();
        pairs.retain(|pair| pair.cells.len() == loads.len() && pair.cells.iter().all(|cell| cell.invalid.is_none()));
        pairs
    }

    /// The CPUs of the row and of the column.
    pub fn cpus(&self) -> [u32; 2] {
        [0, 1].map(|thread| self.cells[0].threads[thread].cpu)
    }

    /// The worst cell over all loads.
    pub fn worst_cell(&self) -> &'a Cell {
        let order = |a: &&&Cell, b: &&&Cell| Severity::of(a).compare(&Severity::of(b));
        self.cells.iter().max_by(order).copied().unwrap_or(self.cells[0])
    }

    pub fn severity(&self) -> Severity {
        Severity::of(self.worst_cell())
    }

    /// The badness of each round under its worst load.
    fn rounds(&self) -> Vec<f64> {
        let rounds = self.cells.iter().map(|cell| cell.rounds.len()).min().unwrap_or(0);
        (0..rounds).map(|round| self.cells.iter().map(|cell| cell.rounds[round]).fold(0.0, f64::max)).collect()
    }

    /// The number of rounds measured under every load.
    pub fn round_count(&self) -> usize {
        self.rounds().len()
    }

    /// True if each round was better than all rounds of the other pair. False with one round each, because chance could
    /// decide.
    pub fn beats(&self, other: &Self) -> bool {
        let (ours, theirs) = (self.rounds(), other.rounds());
        let worst = ours.iter().copied().fold(0.0, f64::max);
        ours.len() > 1 && theirs.len() > 1 && theirs.iter().all(|&bad| bad > worst)
    }

    /// True if, under every load, both threads were later than in the other pair and missed at least as many deadlines.
    pub fn is_worse_throughout(&self, other: &Self) -> bool {
        let threads = |pair: &Self| pair.cells.iter().flat_map(|cell| cell.threads.clone()).collect::<Vec<_>>();
        threads(self)
            .iter()
            .zip(&threads(other))
            .all(|(ours, theirs)| ours.max_ns > theirs.max_ns && ours.missed_share() >= theirs.missed_share())
    }
}
