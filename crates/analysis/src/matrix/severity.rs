//! The severity of results: how cells and pairs are ranked, with all roles.

use record::{Cell, Record};

use crate::badness::{Badness, LEAST_PERIODS};

/// The least lateness of each role under each load: the measure of the others.
#[derive(Debug, Default)]
pub(super) struct Scale<'a> {
    /// Load, index of the thread, and lateness of the cell with the least, in periods.
    least: Vec<(&'a str, usize, f64)>,
}

impl<'a> Scale<'a> {
    /// The scale of a record's valid cells.
    pub fn of(record: &'a Record) -> Self {
        let mut scale = Self::default();
        for cell in record.cells.iter().filter(|cell| cell.invalid.is_none()) {
            for (thread, rounds) in by_thread(cell).iter().enumerate() {
                let periods = rounds.iter().copied().map(periods_late).fold(LEAST_PERIODS, f64::max);
                let same = |(load, index, _): &&mut (&str, usize, f64)| *load == cell.load && *index == thread;
                match scale.least.iter_mut().find(same) {
                    Some((.., least)) => *least = least.min(periods),
                    None => scale.least.push((&cell.load, thread, periods)),
                }
            }
        }
        scale
    }

    /// The severity of each round of a cell: that of the worse thread.
    pub fn rounds(&self, cell: &Cell) -> Vec<Badness> {
        let mut rounds = vec![Badness::default(); cell.rounds.len()];
        for (thread, badness) in by_thread(cell).iter().enumerate() {
            let least = self.least.iter().find(|(load, index, _)| *load == cell.load && *index == thread);
            let least = least.map_or(LEAST_PERIODS, |(.., least)| *least);
            for (round, &badness) in rounds.iter_mut().zip(*badness) {
                let lost = (badness - 1.0).max(0.0) / 1000.0;
                let of_thread = Badness { lost, periods: periods_late(badness), ..Badness::default() };
                *round = round.worse(of_thread.relative_to(least));
            }
        }
        rounds
    }

    /// The severity of the worst round of a cell.
    pub fn severity(&self, cell: &Cell) -> Badness {
        Badness::worst(&self.rounds(cell))
    }
}

/// The badness of each round by thread. Records of versions up to 0.2 contain only that of the worse thread.
fn by_thread(cell: &Cell) -> Vec<&[f64]> {
    match cell.thread_rounds.as_slice() {
        [] => vec![&cell.rounds],
        threads => threads.iter().map(Vec::as_slice).collect(),
    }
}

/// The lateness in a badness, periods: 1 for a thread that missed deadlines.
fn periods_late(badness: f64) -> f64 {
    badness.clamp(LEAST_PERIODS, 1.0)
}
