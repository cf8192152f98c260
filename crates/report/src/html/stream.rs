//! The ends of a stream, one section each.

use record::Record;

use super::figure::Table;
use crate::stream::{CURVE, CURVE_TITLE, EndSummary, TIMES, summarize};

/// One end of a stream, as the template sees it.
pub struct StreamView {
    /// The end and its stream.
    pub title: String,
    /// Figures, times, and late packets against the wake-up offset.
    pub tables: Vec<Table>,
    /// Explanations below the tables.
    pub remarks: Vec<String>,
}

/// The section of each end of a stream.
pub fn sections(record: &Record) -> Vec<StreamView> {
    record.series.iter().filter_map(summarize).map(view).collect()
}

fn view(end: EndSummary) -> StreamView {
    let names: Vec<&str> = end.figures.iter().map(|figure| figure.name).collect();
    let first: Vec<String> = end.first.iter().map(|(name, text)| format!("{name} = {text}")).collect();
    let figures = end.figures.iter().map(|figure| figure.text.clone()).collect();
    let curve = end.curve.into_iter().map(|(cells, _)| cells.to_vec());
    let mut tables = vec![
        Table::plain(&first.join(", "), &names, vec![figures]),
        Table::plain("Times", &TIMES, end.times.into_iter().map(Vec::from).collect()),
        Table::plain(CURVE_TITLE.trim_end_matches(':'), &CURVE, curve.collect()),
    ];
    tables.retain(|table| !table.head.is_empty() && !table.rows.is_empty());
    let remarks = [end.remarks, end.calibration].into_iter().filter(|text| !text.is_empty()).collect();
    StreamView { title: end.title, tables, remarks }
}
