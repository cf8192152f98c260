//! Larger values than a run measured.

use record::Record;

use super::figure::{Part, Row, Table};
use crate::{
    cause_bound,
    tails::{TITLE, notes, sentences, table},
};

/// The levels of each group of threads, or why there are none; `None` for records without tails.
pub fn section(record: &Record) -> Option<Part> {
    if record.tails.is_empty() {
        return None;
    }
    let (head, rows) = table(&record.tails);
    let plain = |row: Vec<String>| Row::plain(row.into_iter().map(|cell| cell.trim().to_owned()).collect());
    let table = Table { caption: notes(&record.tails), head, rows: rows.into_iter().map(plain).collect() };
    Some(Part {
        name: "Tail".to_owned(),
        title: TITLE.to_owned(),
        tables: Some(table).filter(|table| !table.rows.is_empty()).into_iter().collect(),
        more: Vec::new(),
        notes: record.tails.iter().flat_map(sentences).chain(cause_bound::sentences(record)).collect(),
        only_on_screen: true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::{LevelInterval, Tail, TailLevel, TailRefusal};

    #[test]
    fn a_record_with_levels_has_a_table_and_another_one_only_the_reason() {
        assert!(section(&Record::default()).is_none());
        let level = LevelInterval { estimate_ns: 70_200, low_ns: 60_100, high_ns: None };
        let levels = vec![TailLevel { once_in_ns: 86_400_000_000_000, by_blocks: level, by_peaks: None }];
        let with = |tail: Tail| section(&Record { tails: vec![tail], ..Record::default() }).unwrap();
        let part = with(Tail { phase: "load".into(), max_ns: 52_100, levels, ..Tail::default() });
        assert_eq!(part.tables[0].head, ["", "measured", "in a day"]);
        assert_eq!(part.tables[0].rows[0].cells, ["under load", "52.1 us", "70.2 us (60.1 us to unknown)"]);
        let refused = with(Tail { refused: Some(TailRefusal::SecondCause), ..Tail::default() });
        assert!(refused.tables.is_empty() && refused.notes[0].contains("a rare cause of their own"));
    }
}
