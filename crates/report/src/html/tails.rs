//! Larger values than a run measured.

use record::Record;

use super::figure::{Part, Row, Table};
use crate::tails::{NOTE, TITLE, sentences, table};

/// The levels of each group of threads, or why there are none; `None` for records without tails.
pub fn section(record: &Record) -> Option<Part> {
    if record.tails.is_empty() {
        return None;
    }
    let (head, rows) = table(&record.tails);
    let plain = |row: Vec<String>| Row::plain(row.into_iter().map(|cell| cell.trim().to_owned()).collect());
    let table = Table { caption: NOTE.to_owned(), head, rows: rows.into_iter().map(plain).collect() };
    Some(Part {
        name: "Tail".to_owned(),
        title: TITLE.to_owned(),
        tables: Some(table).filter(|table| !table.rows.is_empty()).into_iter().collect(),
        more: Vec::new(),
        notes: record.tails.iter().flat_map(sentences).collect(),
        only_on_screen: true,
    })
}
