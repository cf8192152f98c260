//! The tables of a matrix, and the pair of CPUs that they recommend.
//!
//! The badness of a cell depends only on missed deadlines and lateness. A thread without missed deadlines has its
//! largest lateness in periods, at most 1; each missed deadline in a thousand adds 1. The worse thread and the worst
//! round determine the badness of a cell, and the worse load that of a pair.

mod cells;
mod facts;
mod pairs;
mod recommend;
mod table;

pub use cells::cells;
pub use recommend::recommend;
pub use table::{MatrixTable, tables};

use record::Record;

/// True for the record of a matrix: each of several phases has two threads of its own.
#[must_use]
pub fn is_matrix(record: &Record) -> bool {
    record.phases.len() > 1 && record.phases.iter().all(|phase| phase.threads.len() == 2)
}

/// Computes cells and recommendation of a matrix, as far as it has run.
pub fn fill(record: &mut Record) {
    record.cells = cells(record);
    record.recommendation = recommend(record);
}
