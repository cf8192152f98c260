//! The severity of results: how cells and pairs are ranked, with all roles.

use std::cmp::Ordering;

use record::{Cell, Record};

/// Lateness below this counts as this, in periods: smaller differences do not matter to a thread with this period.
const LEAST_PERIODS: f64 = 0.01;

/// The severity of a result.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Severity {
    /// Missed deadlines of a thousand, of the worst role.
    missed: f64,
    /// Lateness as a multiple of the least lateness of the same role under the same load, of the worst role.
    relative: f64,
}

impl Severity {
    pub fn compare(&self, other: &Self) -> Ordering {
        self.missed.total_cmp(&other.missed).then(self.relative.total_cmp(&other.relative))
    }

    pub fn worse(self, other: Self) -> Self {
        if other.compare(&self).is_gt() { other } else { self }
    }
}

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

    /// The severity of each round of a cell.
    pub fn rounds(&self, cell: &Cell) -> Vec<Severity> {
        let mut rounds = vec![Severity::default(); cell.rounds.len()];
        for (thread, badness) in by_thread(cell).iter().enumerate() {
            let least = self.least.iter().find(|(load, index, _)| *load == cell.load && *index == thread);
            let least = least.map_or(LEAST_PERIODS, |(.., least)| *least);
            for (round, &badness) in rounds.iter_mut().zip(*badness) {
                let relative = periods_late(badness) / least;
                *round = Severity {
                    missed: round.missed.max((badness - 1.0).max(0.0)),
                    relative: round.relative.max(relative),
                };
            }
        }
        rounds
    }

    /// The severity of the worst round of a cell.
    pub fn severity(&self, cell: &Cell) -> Severity {
        self.rounds(cell).into_iter().fold(Severity::default(), Severity::worse)
    }
}

/// True if each of our rounds was better than all of theirs. False with one round each, because chance could decide.
pub(super) fn beats(ours: &[Severity], theirs: &[Severity]) -> bool {
    let worst = ours.iter().copied().fold(Severity::default(), Severity::worse);
    ours.len() > 1 && theirs.len() > 1 && theirs.iter().all(|bad| bad.compare(&worst).is_gt())
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
