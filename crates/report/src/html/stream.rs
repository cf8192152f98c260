//! The ends of a stream, one section each.

use record::{Record, Series};

use super::figure::{Part, Table};
use crate::stream::{CURVE, CURVE_TITLE, TIMES, summarize};
use crate::words::capitalized;

/// The section of each end of a stream.
pub fn sections(record: &Record) -> Vec<Part> {
    record.series.iter().filter_map(view).collect()
}

fn view(series: &Series) -> Option<Part> {
    let end = summarize(series)?;
    let names: Vec<&str> = end.figures.iter().map(|figure| figure.name).collect();
    let figures = end.figures.iter().map(|figure| figure.text.clone()).collect();
    let curve = end.curve.into_iter().map(|(cells, _)| cells.to_vec());
    let measured = end.times.into_iter().filter(|[_, times @ ..]| times.iter().any(|time| time != "-"));
    let mut tables = vec![
        Table::plain("Frames", &names, vec![figures]),
        Table::plain("Times", &TIMES, measured.map(Vec::from).collect()),
    ];
    let mut more = vec![Table::plain(CURVE_TITLE.trim_end_matches(':'), &CURVE, curve.collect())];
    let is_filled = |table: &Table| !table.head.is_empty() && !table.rows.is_empty();
    tables.retain(is_filled);
    more.retain(is_filled);
    let notes = [end.remarks, end.calibration].into_iter().filter(|text| !text.is_empty()).collect();
    Some(Part { name: capitalized(&series.role), title: end.title, tables, more, notes })
}
