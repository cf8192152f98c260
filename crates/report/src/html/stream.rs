//! The ends of a stream: a section each.

use record::Record;

use super::figure::{Row, Table};
use crate::stream::{CURVE, CURVE_TITLE, TIMES, Told, told};

/// One end as the template sees it.
pub struct StreamView {
    /// Which end of which stream.
    pub title: String,
    /// Figures, times, and late packets against the wake-up offset.
    pub tables: Vec<Table>,
    /// How to read them.
    pub remarks: Vec<String>,
}

/// The ends that a record tells of.
pub fn sections(record: &Record) -> Vec<StreamView> {
    record.series.iter().filter_map(told).map(view).collect()
}

fn view(told: Told) -> StreamView {
    let names: Vec<&str> = told.figures.iter().map(|figure| figure.name).collect();
    let first: Vec<String> = told.first.iter().map(|(name, text)| format!("{name} = {text}")).collect();
    let figures = told.figures.iter().map(|figure| figure.text.clone()).collect();
    let curve = told.curve.into_iter().map(|(cells, _)| cells.to_vec());
    let mut tables = vec![
        table(&first.join(", "), &names, vec![figures]),
        table("Times", &TIMES, told.times.into_iter().map(Vec::from).collect()),
        table(CURVE_TITLE.trim_end_matches(':'), &CURVE, curve.collect()),
    ];
    tables.retain(|table| !table.head.is_empty() && !table.rows.is_empty());
    let remarks = [told.remarks, told.calibration].into_iter().filter(|text| !text.is_empty()).collect();
    StreamView { title: told.title, tables, remarks }
}

/// A table of plain rows.
pub(super) fn table(caption: &str, head: &[&str], rows: Vec<Vec<String>>) -> Table {
    Table {
        caption: caption.to_owned(),
        head: head.iter().map(|&head| head.to_owned()).collect(),
        rows: rows.into_iter().map(|cells| Row { swatch: String::new(), cells }).collect(),
    }
}
