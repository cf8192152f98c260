//! A chart with title, reading instructions and a table of its figures.

use super::lines::Line;
use crate::compare::JitterTable;

/// A chart, as the template sees it.
pub struct Figure {
    /// Its `id` in the document.
    pub id: String,
    /// Its heading.
    pub title: String,
    /// A sentence or two on reading the chart.
    pub lead: String,
    /// The drawing: trusted SVG; empty if there is nothing to draw.
    pub svg: String,
    /// The same figures as a table, for screen readers and copying.
    pub table: Table,
}

/// A table of figures. The first column is the row's heading.
#[derive(Default)]
pub struct Table {
    /// The caption.
    pub caption: String,
    /// Headings of the columns.
    pub head: Vec<String>,
    /// The rows.
    pub rows: Vec<Row>,
}

/// A part of the measurement with its own section, e.g. one end of a stream.
pub struct Part {
    /// Its name in the list of contents.
    pub name: String,
    /// The title of the section.
    pub title: String,
    /// The main tables.
    pub tables: Vec<Table>,
    /// Further tables, which are folded.
    pub more: Vec<Table>,
    /// Explanations below the tables.
    pub notes: Vec<String>,
    /// True if paper leaves it out, because another part has its most important figures.
    pub only_on_screen: bool,
}

/// A key figure.
pub struct Key {
    /// The name.
    pub label: &'static str,
    /// The figure.
    pub value: String,
    /// Place and time.
    pub detail: String,
}

/// A row of a table.
pub struct Row {
    /// A sample of the series' line, trusted SVG; empty for rows that are not about a series.
    pub swatch: String,
    /// The row's cells.
    pub cells: Vec<String>,
}

impl Row {
    /// A row that is not about a series.
    pub fn plain(cells: Vec<String>) -> Self {
        Self { swatch: String::new(), cells }
    }
}

impl Table {
    /// A table with one row per series: the name, then the result of `cells`.
    pub fn of_series(caption: &str, head: &[&str], lines: &[Line], cells: impl Fn(&Line) -> Vec<String>) -> Self {
        let row = |line: &Line| {
            let mut all = vec![line.name.clone()];
            all.extend(cells(line));
            Row { swatch: line.swatch(), cells: all }
        };
        let head = head.iter().map(|&h| h.to_owned()).collect();
        Self { caption: caption.to_owned(), head, rows: lines.iter().map(row).collect() }
    }

    /// A table of rows that are not about series.
    pub fn plain(caption: &str, head: &[&str], rows: Vec<Vec<String>>) -> Self {
        let head = head.iter().map(|&h| h.to_owned()).collect();
        Self { caption: caption.to_owned(), head, rows: rows.into_iter().map(Row::plain).collect() }
    }

    /// The table of a matrix under one load.
    pub fn of_jitter(of: JitterTable) -> Self {
        Self { caption: of.caption, head: of.head, rows: of.rows.into_iter().map(Row::plain).collect() }
    }

    /// True if the table is long enough to scroll on screen.
    pub fn is_long(&self) -> bool {
        self.rows.len() > 24
    }
}
