//! The tables of a matrix, and the pair of CPUs that they recommend: pure functions of a record.
//!
//! How bad a cell is follows from deadlines missed and lateness alone. A thread that missed none is as bad as its largest
//! lateness in periods, at most 1; each deadline missed in a thousand adds 1. The worse thread and the worst round stand for
//! the cell, and the worse load for the pair.

mod cells;
mod facts;
mod pairs;
mod recommend;
mod table;

pub use cells::cells;
pub use recommend::recommend;
pub use table::{MatrixTable, tables};

use record::Record;

/// Whether the record is of a matrix: each phase has two threads of its own, and there is more than one.
#[must_use]
pub fn is_matrix(record: &Record) -> bool {
    record.phases.len() > 1 && record.phases.iter().all(|phase| phase.threads.len() == 2)
}

/// Fills in cells and recommendation of a matrix, as far as it has run.
pub fn fill(record: &mut Record) {
    record.cells = cells(record);
    record.recommendation = recommend(record);
}
