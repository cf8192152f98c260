//! Tables that fit into a given width.

use std::iter::{once, repeat_n};

use textwrap::core::display_width;

use crate::style::{Ink, Spans};
use record::visible::one_line;

/// Spaces between two columns.
const GAP: usize = 2;
/// The most parts that a table with few rows is split into.
const PARTS_OF_FEW: usize = 2;
/// Rows of a table with few rows.
const FEW: usize = 8;
/// Columns of the widest name that shares a line with the figures of its block.
const SHORT_NAME: usize = 3;

/// Columns of text under headings. The first column, the row's name, is left-aligned; figures are right-aligned.
#[derive(Default)]
pub(crate) struct Table {
    headings: Vec<String>,
    rows: Vec<Spans>,
    left: Vec<usize>,
    /// The first columns, which name a row.
    names: usize,
}

impl Table {
    pub(crate) fn new<S: AsRef<str>>(headings: &[S]) -> Self {
        let headings = headings.iter().map(|heading| one_line(heading.as_ref())).collect();
        Self { headings, rows: Vec::new(), left: vec![0], names: 1 }
    }

    /// Left-aligns the column `index`, for text.
    pub(crate) fn words(mut self, index: usize) -> Self {
        self.left.push(index);
        self
    }

    /// Right-aligns every column, for rows without names.
    pub(crate) fn figures(mut self) -> Self {
        self.left.clear();
        self.names = 0;
        self
    }

    /// Rows are named by this many columns instead of the first one.
    pub(crate) fn named_by(mut self, columns: usize) -> Self {
        self.names = columns;
        self
    }

    /// True if columns name the rows.
    pub(crate) fn has_names(&self) -> bool {
        self.names > 0
    }

    /// Number of rows.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
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
    /// rows' names. If the names leave no space, or a few rows would become many parts, each row is a block of lines. A
    /// table without rows has no lines.
    pub(crate) fn lines(&self, width: usize) -> Vec<Spans> {
        if let Some(lines) = self.whole(width) {
            return lines;
        }
        let widths = self.widths();
        let names = self.names.max(1).min(widths.len());
        let of_names: usize = widths[..names].iter().map(|width| width + GAP).sum();
        let widest = widths[names..].iter().max().copied().unwrap_or_default();
        if of_names + widest > width || names == widths.len() {
            return self.blocks(width).concat();
        }
        let mut parts = Vec::new();
        let mut next = names;
        while next < widths.len() {
            let mut used = of_names + widths[next];
            let mut part: Vec<usize> = (0..names).chain([next]).collect();
            next += 1;
            while next < widths.len() && used + GAP + widths[next] <= width {
                used += GAP + widths[next];
                part.push(next);
                next += 1;
            }
            parts.push(part);
        }
        if parts.len() > PARTS_OF_FEW && self.rows.len() <= FEW {
            return self.blocks(width).concat();
        }
        let mut lines = Vec::new();
        parts.iter().for_each(|part| self.part(part, &widths, &mut lines));
        lines
    }

    /// The headings and a line for each row; `None` if they do not fit.
    pub(crate) fn whole(&self, width: usize) -> Option<Vec<Spans>> {
        let widths = self.widths();
        let used = widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1);
        if self.rows.is_empty() {
            return Some(Vec::new());
        }
        if used > width {
            return None;
        }
        let mut lines = Vec::new();
        self.part(&(0..widths.len()).collect::<Vec<_>>(), &widths, &mut lines);
        Some(lines)
    }

    /// The lines of each row: its names, and below them each figure after its heading.
    pub(crate) fn blocks(&self, width: usize) -> Vec<Vec<Spans>> {
        let block = |row: &Spans| {
            let (names, figures) = row.split_at(self.names.min(row.len()));
            let names = names.iter().zip(&self.headings).filter(|((_, text), _)| !text.trim().is_empty());
            // A number alone is no name.
            let named: Spans = names
                .map(|((ink, text), heading)| match text.trim().parse::<u64>() {
                    Ok(_) if !heading.is_empty() => (*ink, format!("{heading} {}", text.trim())),
                    _ => (*ink, text.clone()),
                })
                .collect();
            let name_width: usize = named.iter().map(|(_, text)| display_width(text)).sum();
            let headings = self.headings[row.len() - figures.len()..].iter();
            let figures = figures.iter().zip(headings).filter(|((_, text), _)| !text.trim().is_empty());
            let figures = figures.map(|((ink, text), heading)| (*ink, format!("{heading} {text}").trim().to_owned()));
            let is_short = named.len() == 1 && name_width <= SHORT_NAME;
            // Names of parts begin with spaces.
            let level = named.first().map_or(0, |(_, text)| text.len() - text.trim_start().len());
            let indent = " ".repeat(match named.is_empty() {
                _ if is_short => name_width + GAP,
                true => 0,
                false => level + GAP,
            });
            let mut of_figures = flow(figures, ", ", &indent, width);
            if let Some(first) = of_figures.first_mut().filter(|_| is_short) {
                let gap = [(Ink::Plain, " ".repeat(GAP))];
                first.splice(..1, named.into_iter().chain(gap));
                return of_figures;
            }
            let mut lines = flow(named.into_iter(), "  ", "", width);
            lines.append(&mut of_figures);
            lines
        };
        self.rows.iter().map(block).collect()
    }

    fn widths(&self) -> Vec<usize> {
        (0..self.headings.len()).map(|column| self.width_of(column)).collect()
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

/// Texts one after the other, in lines of this width that begin with `indent`.
fn flow(items: impl Iterator<Item = (Ink, String)>, separator: &str, indent: &str, width: usize) -> Vec<Spans> {
    let mut lines: Vec<Spans> = Vec::new();
    let mut used = 0;
    let available = width.saturating_sub(indent.len() + separator.trim().len()).max(1);
    for (number, (ink, text)) in items.enumerate() {
        let whole = display_width(&text);
        let after = display_width(separator);
        match lines.last_mut() {
            Some(line) if number > 0 && used + after + whole <= available => {
                line.extend([(Ink::Plain, separator.to_owned()), (ink, text)]);
                used += after + whole;
            }
            last => {
                if let Some(line) = last
                    && !separator.trim().is_empty()
                {
                    line.push((Ink::Plain, separator.trim_end().to_owned()));
                }
                for piece in textwrap::wrap(&text, available) {
                    used = display_width(&piece);
                    lines.push(vec![(Ink::Plain, indent.to_owned()), (ink, piece.into_owned())]);
                }
            }
        }
    }
    lines
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
    }

    #[test]
    fn rows_are_blocks_if_names_leave_no_space() {
        let mut table = Table::new(&["CPU", "samples", "max"]);
        table.row(plain(&["0", "12", "4.1 us"]));
        table.row(plain(&["every one", "12345678", "11 ms"]));
        let expected =
            ["CPU 0", "  samples 12,", "  max 4.1 us", "every one", "  samples", "  12345678,", "  max 11 ms"];
        assert_eq!(text(&table.lines(16)), expected);
    }

    #[test]
    fn each_part_has_all_names_of_its_rows() {
        let mut table = Table::new(&["", "use", "limit", "worst", "missed"]).words(1).named_by(2);
        table.row(plain(&["yes", "AVB", "50 us", "11.5 us", "0"]));
        assert_eq!(
            text(&table.lines(26)),
            ["     use  limit    worst", "yes  AVB  50 us  11.5 us", "     use  missed", "yes  AVB       0"]
        );
        assert_eq!(text(&table.lines(16)), ["yes  AVB", "  limit 50 us,", "  worst 11.5 us,", "  missed 0"]);
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
