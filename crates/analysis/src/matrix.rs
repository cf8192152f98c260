//! The tables of a matrix, and the pair of CPUs that they recommend.
//!
//! The badness of a cell depends only on missed deadlines and lateness. A thread without missed deadlines has its
//! largest lateness in periods, at most 1; each missed deadline in a thousand adds 1.
//!
//! Missed deadlines count first. Then the lateness of each role is compared with the least lateness of that role under
//! the same load, so that a role with a long period counts as much as one with a short period. The worse role and the
//! worst round determine the severity of a cell, and the worse load that of a pair.

mod cells;
mod facts;
mod figures;
mod pairs;
mod recommend;
mod severity;
mod table;

pub use cells::cells;
pub use figures::{PairFigures, PairRank, ThreadFigures, ranked_pairs};
pub use recommend::{recommend, why_none};
pub use table::{MatrixTable, tables};

use record::Record;

/// True for the record of a matrix: each of several phases has two threads of its own.
#[must_use]
pub fn is_matrix(record: &Record) -> bool {
    record.phases.len() > 1 && record.phases.iter().all(|phase| phase.threads.len() == 2)
}

/// Computes cells and recommendation of a matrix. There is a recommendation only for a valid run that is complete.
pub fn fill(record: &mut Record) {
    record.cells = cells(record);
    record.recommendation = recommend(record);
}
