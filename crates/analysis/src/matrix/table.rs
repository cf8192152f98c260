//! The cells of a matrix as tables, one per load.

use record::{Cell, Record};

use super::severity::Scale;
use crate::badness::beats;

/// One table: rows by the first thread's CPU, columns by the second's.
#[derive(Debug, Clone, PartialEq)]
pub struct MatrixTable<'a> {
    /// The load.
    pub load: &'a str,
    /// The roles of the row and column threads.
    pub roles: [&'a str; 2],
    /// CPUs of the rows, ascending.
    pub rows: Vec<u32>,
    /// CPUs of the columns, ascending.
    pub columns: Vec<u32>,
    /// By row, then column; `None` if not measured.
    pub cells: Vec<Vec<Option<&'a Cell>>>,
    /// Row and column of the best valid cell. `None` if another cell is not really different from it: if any of their
    /// rounds overlap, or if there is only one. `None` also if the run is invalid or ended early.
    pub best: Option<(usize, usize)>,
    /// Row and column of the worst valid cell. `None` if it is not really different from the least bad one, or if its
    /// pair is recommended because of another load.
    pub worst: Option<(usize, usize)>,
}

/// The tables of a matrix, one per load, in the order of their first measurement.
#[must_use]
pub fn tables(record: &Record) -> Vec<MatrixTable<'_>> {
    let mut loads: Vec<&str> = Vec::new();
    for cell in &record.cells {
        if !loads.contains(&cell.load.as_str()) {
            loads.push(&cell.load);
        }
    }
    loads.into_iter().filter_map(|load| table(record, load)).collect()
}

fn table<'a>(record: &'a Record, load: &'a str) -> Option<MatrixTable<'a>> {
    let of_load = || record.cells.iter().filter(|cell| cell.load == load && cell.threads.len() == 2);
    let first = of_load().next()?;
    let cpus = |thread: usize| {
        // CPUs of all loads, so that all tables have the same shape even if the run was stopped early.
        let all = record.cells.iter().filter_map(|cell| Some(cell.threads.get(thread)?.cpu));
        let mut cpus: Vec<u32> = all.collect();
        cpus.sort_unstable();
        cpus.dedup();
        cpus
    };
    let (rows, columns) = (cpus(0), cpus(1));
    let at = |row: u32, column: u32| of_load().find(|cell| [cell.threads[0].cpu, cell.threads[1].cpu] == [row, column]);
    let cells: Vec<Vec<Option<&Cell>>> =
        rows.iter().map(|&row| columns.iter().map(|&column| at(row, column)).collect()).collect();
    let mut valid = Vec::new();
    for (row, across) in cells.iter().enumerate() {
        for (column, cell) in across.iter().enumerate() {
            valid.extend(cell.filter(|cell| cell.invalid.is_none()).map(|cell| ((row, column), cell)));
        }
    }
    let (best, worst) = marks(record, &valid);
    let roles = [first.threads[0].role.as_str(), first.threads[1].role.as_str()];
    Some(MatrixTable { load, roles, rows, columns, cells, best, worst })
}

/// A row and a column.
type Place = (usize, usize);
/// A cell and its place.
type At<'a> = (Place, &'a Cell);

/// The best and the worst of the valid cells of one load, see [`MatrixTable`].
fn marks(record: &Record, valid: &[At<'_>]) -> (Option<Place>, Option<Place>) {
    if record.run_obstacle().is_some() {
        return (None, None);
    }
    let scale = Scale::of(record);
    let order = |a: &&At, b: &&At| scale.severity(a.1).compare(&scale.severity(b.1));
    let is_better = |ours: &Cell, theirs: &Cell| beats(&scale.rounds(ours), &scale.rounds(theirs));
    let (Some(least), Some(most)) = (valid.iter().min_by(order), valid.iter().max_by(order)) else {
        return (None, None);
    };
    let is_alone = valid.len() > 1 && valid.iter().all(|other| other.0 == least.0 || is_better(least.1, other.1));
    let is_recommended = |cell: &Cell| record.recommended_pair().is_some_and(|pair| pair == cell.pair());
    let is_worst = is_better(least.1, most.1) && !is_recommended(most.1);
    (is_alone.then_some(least.0), is_worst.then_some(most.0))
}
