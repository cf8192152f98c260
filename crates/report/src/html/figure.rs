//! What every chart comes with: a title, how to read it, and the same figures as a table.

use super::lines::Line;

/// A chart in its setting.
pub struct Figure {
    /// Its `id` in the document.
    pub id: &'static str,
    /// Its heading.
    pub title: &'static str,
    /// How to read it, in a sentence or two.
    pub lead: String,
    /// The drawing: trusted SVG; empty when there is nothing to draw.
    pub svg: String,
    /// The same figures for those who cannot see it, or want to copy them.
    pub table: Table,
}

/// A table of figures. The first column is the row's heading.
#[derive(Default)]
pub struct Table {
    /// What it holds.
    pub caption: String,
    /// Headings of the columns.
    pub head: Vec<String>,
    /// The rows.
    pub rows: Vec<Row>,
}

/// A row of a table.
pub struct Row {
    /// A sample of the series' line, trusted SVG; empty when the row is not about a series.
    pub swatch: String,
    /// The row's cells.
    pub cells: Vec<String>,
}

impl Table {
    /// A table with a row a series: the name, then what `cells` says.
    pub fn of_series(caption: &str, head: &[&str], lines: &[Line], cells: impl Fn(&Line) -> Vec<String>) -> Self {
        let row = |line: &Line| {
            let mut all = vec![line.name.clone()];
            all.extend(cells(line));
            Row { swatch: line.swatch(), cells: all }
        };
        let head = head.iter().map(|&h| h.to_owned()).collect();
        Self { caption: caption.to_owned(), head, rows: lines.iter().map(row).collect() }
    }

    /// Whether it is so long that it scrolls on a screen.
    pub fn is_long(&self) -> bool {
        self.rows.len() > 24
    }
}
