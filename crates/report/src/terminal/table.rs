//! Tables that fit into a given width.

use std::iter::{once, repeat_n};

use textwrap::core::display_width;

use crate::style::{Ink, Spans};
use record::visible::one_line;

/// Spaces between two columns.
const GAP: usize = 2;

/// Columns of text under headings. The first column, the row's name, is left-aligned; figures are right-aligned.
#[derive(Default)]
pub(crate) struct Table {
    headings: Vec<String>,
    rows: Vec<Spans>,
    left: Vec<usize>,
}

impl Table {
    pub(crate) fn new<S: AsRef<str>>(headings: &[S]) -> Self {
        let headings = headings.iter().map(|heading| one_line(heading.as_ref())).collect();
        Self { headings, rows: Vec::new(), left: vec![0] }
    }

    /// Left-aligns the column `index`, for text.
    pub(crate) fn words(mut self, index: usize) -> Self {
        self.left.push(index);
        self
    }

    /// Right-aligns every column, for rows without names.
    pub(crate) fn figures(mut self) -> Self {
        self.left.clear();
        self
    }

    /// The first rows; the last of `rows` is the number of the others if there are more. `rows` is at least 1.
    pub(crate) fn at_most(mut self, rows: usize) -> Self {
        if self.rows.len() > rows {
            let others = format!("{} others", self.rows.len() + 1 - rows);
            self.rows.truncate(rows - 1);
            let blanks = repeat_n(String::new(), self.headings.len() - 1);
            self.rows.push(once(others).chain(blanks).map(|text| (Ink::Plain, text)).collect());
        }
        self
    }

    /// Adds a row with one cell per heading.
    pub(crate) fn row(&mut self, cells: Spans) {
        debug_assert_eq!(cells.len(), self.headings.len());
        self.rows.push(cells.into_iter().map(|(ink, text)| (ink, one_line(&text))).collect());
    }

    /// The lines. If the columns do not fit, the table is split: the remaining columns follow below, each part with the
    /// rows' names. A table without rows has no lines.
    pub(crate) fn lines(&self, width: usize) -> Vec<Spans> {
        let widths: Vec<usize> = (0..self.headings.len()).map(|column| self.width_of(column)).collect();
        let mut lines = Vec::new();
        let mut next = if self.rows.is_empty() { widths.len() } else { 1 };
        while next < widths.len() {
            let mut used = widths[0];
            let mut part = vec![0];
            while next < widths.len() && (part.len() == 1 || used + GAP + widths[next] <= width) {
                used += GAP + widths[next];
                part.push(next);
                next += 1;
            }
            self.part(&part, &widths, &mut lines);
        }
        lines
    }

    fn width_of(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column)).map(|(_, text)| display_width(text));
        cells.chain([display_width(&self.headings[column])]).max().unwrap_or(0)
    }

    fn part(&self, columns: &[usize], widths: &[usize], lines: &mut Vec<Spans>) {
        let place = |column: usize, text: &str| {
            let blanks = " ".repeat(widths[column] - display_width(text));
            let gap = if column == 0 { "" } else { "  " };
            if self.left.contains(&column) { format!("{gap}{text}{blanks}") } else { format!("{gap}{blanks}{text}") }
        };
        lines.push(columns.iter().map(|&c| (Ink::Quiet, place(c, &self.headings[c]))).collect());
        for row in &self.rows {
            lines.push(columns.iter().map(|&c| (row[c].0, place(c, &row[c].1))).collect());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(lines: &[Spans]) -> Vec<String> {
        lines.iter().map(|line| line.iter().map(|(_, text)| text.as_str()).collect()).collect()
    }

    fn plain(cells: &[&str]) -> Spans {
        cells.iter().map(|cell| (Ink::Plain, (*cell).to_owned())).collect()
    }

    #[test]
    fn aligns_columns_and_splits_wide_tables() {
        let mut table = Table::new(&["CPU", "samples", "max"]);
        table.row(plain(&["0", "12", "4.1 us"]));
        table.row(plain(&["all", "12345678", "11 ms"]));
        assert_eq!(text(&table.lines(80)), ["CPU   samples     max", "0          12  4.1 us", "all  12345678   11 ms"]);
        assert_eq!(
            text(&table.lines(15)),
            ["CPU   samples", "0          12", "all  12345678", "CPU     max", "0    4.1 us", "all   11 ms"]
        );
        assert_eq!(table.lines(0).len(), 6);
    }

    #[test]
    fn counts_the_rows_that_are_left_out() {
        let table = || {
            let mut table = Table::new(&["", "max"]);
            (0..5).for_each(|row| table.row(plain(&[&format!("CPU {row}"), "1 us"])));
            table
        };
        assert_eq!(table().at_most(5).rows.len(), 5);
        let short = text(&table().at_most(3).lines(80));
        assert_eq!(short, ["           max", "CPU 0     1 us", "CPU 1     1 us", "3 others      "]);
    }
}
