//! Larger values than a run measured.

use record::Record;

use super::{cell, page::Page, table::Table};
use crate::{
    cause_bound,
    style::Ink,
    tails::{TITLE, notes, sentences, table},
};

/// The levels of each group of threads, or why there are none; nothing for records without tails.
pub(super) fn section(page: &mut Page, record: &Record) {
    if record.tails.is_empty() {
        return;
    }
    page.heading(TITLE);
    let (headings, rows) = table(&record.tails);
    if !rows.is_empty() {
        let mut table = Table::new(&headings);
        rows.into_iter().for_each(|row| table.row(row.into_iter().map(cell).collect()));
        page.table(&table);
        page.text(Ink::Quiet, &notes(&record.tails));
    }
    let of_causes = cause_bound::sentences(record);
    record.tails.iter().flat_map(sentences).chain(of_causes).for_each(|sentence| page.text(Ink::Plain, &sentence));
}
