//! The tables of a matrix, and the recommended pair of CPUs.

use std::borrow::Cow;

use analysis::{
    float::to_i32,
    format_ns,
    matrix::{MatrixTable, tables, why_none},
};
use record::{Cell, Record, grouped};

use super::figure::Key;
use crate::terminal::MatrixFigure;
use crate::terminal::matrix::{invalid_cells, legend, load_title};
use crate::words::sentence;

/// Steps of the colour scale above the first, as in the style sheet.
const STEPS: f64 = 5.0;
/// The smallest factor that the scale spans, so that it does not exaggerate small differences.
const SPAN_AT_LEAST: f64 = 10.0;
/// Smaller badness is drawn like this value.
const LEAST_BAD: f64 = 1e-3;

/// The section about a matrix, as the template sees it.
pub struct MatrixView {
    /// The recommendation; empty if there is none.
    pub advice: String,
    /// The reasons, figures first.
    pub why: Vec<String>,
    /// Facts about the machine.
    pub facts: Vec<String>,
    /// The tables of jitter.
    pub jitter: Vec<TableView>,
    /// The tables of lateness and missed deadlines.
    pub more: Vec<TableView>,
    /// The explanation below the tables.
    pub legend: String,
    /// The reasons for invalid cells.
    pub invalid: Vec<String>,
}

/// One table.
pub struct TableView {
    /// The load, and the figure.
    pub title: String,
    /// The corner cell: the threads of rows and columns.
    pub corner: String,
    /// CPUs of the columns.
    pub columns: Vec<u32>,
    /// The rows: CPU and cells.
    pub rows: Vec<(u32, Vec<CellView>)>,
}

/// One cell.
pub struct CellView {
    /// The figures.
    pub text: String,
    /// CSS classes.
    pub class: String,
    /// `best`, `worst`, or empty.
    pub word: &'static str,
}

/// The section of a matrix; `None` for other records.
pub fn view(record: &Record) -> Option<MatrixView> {
    let tables = tables(record);
    let scale = Scale::of(record);
    let of = |figure: MatrixFigure| tables.iter().map(move |table| (table, figure));
    let advice = record.recommendation.as_ref();
    let sentences = |list: Option<&Vec<String>>| list.into_iter().flatten().map(|text| sentence(text)).collect();
    let ours = !record.cells.is_empty() && record.published.is_none();
    ours.then(|| MatrixView {
        advice: advice.map_or_else(String::new, |advice| advice.text.clone()),
        why: advice.map_or_else(
            || vec![sentence(&format!("no pair is recommended: {}", why_none(record)))],
            |advice| advice.why.iter().map(|text| sentence(text)).collect(),
        ),
        facts: sentences(advice.map(|advice| &advice.facts)),
        jitter: of(MatrixFigure::Jitter).map(|(table, figure)| table_view(table, figure, &scale)).collect(),
        more: of(MatrixFigure::Lateness)
            .chain(of(MatrixFigure::Missed))
            .map(|(table, figure)| table_view(table, figure, &scale))
            .collect(),
        legend: legend(record),
        invalid: invalid_cells(record).map(|text| sentence(&text)).collect(),
    })
}

fn table_view(table: &MatrixTable, figure: MatrixFigure, scale: &Scale) -> TableView {
    let [row, column] = table.roles;
    let cell = |y: usize, x: usize| {
        let (best, worst) = (table.best == Some((y, x)), table.worst == Some((y, x)));
        let word = if best {
            "best"
        } else if worst {
            "worst"
        } else {
            ""
        };
        match table.cells[y][x] {
            None => CellView { text: "–".to_owned(), class: String::new(), word },
            Some(cell) if cell.invalid.is_some() => {
                CellView { text: "invalid".to_owned(), class: "invalid".to_owned(), word }
            }
            Some(cell) => {
                let figures: Vec<String> = cell.threads.iter().rev().map(|thread| figure.of(thread)).collect();
                CellView { text: figures.join(" / "), class: format!("heat{} {word}", scale.step(cell)), word }
            }
        }
    };
    let row_view = |(y, &cpu): (usize, &u32)| (cpu, (0..table.columns.len()).map(|x| cell(y, x)).collect());
    TableView {
        title: format!("{}: {} of {column}/{row}", load_title(table.load), figure.name()),
        corner: format!("{row} \\ {column}"),
        columns: table.columns.clone(),
        rows: table.rows.iter().enumerate().map(row_view).collect(),
    }
}

/// The key figures: those of the recommended pair, under all loads, and the worst pair; empty for other records.
pub fn keys(record: &Record) -> Vec<Key> {
    let Some(advice) = &record.recommendation else { return Vec::new() };
    let max_of = |cell: &Cell| cell.threads.iter().filter_map(|thread| thread.max_ns).max();
    let recommended: Vec<&Cell> = record.cells.iter().filter(|cell| cell.pair() == advice.pair).collect();
    let mut keys = Vec::new();
    let latest = recommended.iter().filter_map(|cell| Some((cell, max_of(cell)?))).max_by_key(|(_, max_ns)| *max_ns);
    keys.extend(latest.map(|(cell, max_ns)| key("recommended pair, largest lateness", max_ns, cell)));
    let threads = || recommended.iter().flat_map(|cell| &cell.threads);
    let missed: u64 = threads().map(|thread| thread.missed).sum();
    let all: u64 = threads().map(|thread| thread.missed + thread.samples).sum();
    let detail = format!("of {} deadlines", grouped(all));
    keys.push(Key { label: "recommended pair, missed", value: grouped(missed), detail });
    let worst = record.cells.iter().filter_map(|cell| Some((cell, max_of(cell)?))).max_by_key(|(_, max_ns)| *max_ns);
    keys.extend(worst.map(|(cell, max_ns)| key("all pairs, largest lateness", max_ns, cell)));
    keys
}

fn key(label: &'static str, max_ns: i64, cell: &Cell) -> Key {
    let pair: Vec<String> = cell.threads.iter().map(|thread| format!("{} {}", thread.role, thread.cpu)).collect();
    let detail = format!("{}, {}", pair.join(", "), cell.load);
    Key { label, value: format_ns(max_ns), detail }
}

/// A logarithmic scale of badness from the best valid cell to the worst, shared by all tables.
struct Scale {
    least: f64,
    span: f64,
}

impl Scale {
    fn of(record: &Record) -> Self {
        let bad = || record.cells.iter().filter(|cell| cell.invalid.is_none()).map(|cell| cell.badness.max(LEAST_BAD));
        let (least, most) = (bad().fold(f64::INFINITY, f64::min), bad().fold(LEAST_BAD, f64::max));
        Self { least, span: (most / least).max(SPAN_AT_LEAST).ln() }
    }

    fn step(&self, cell: &Cell) -> i32 {
        to_i32(((cell.badness.max(LEAST_BAD) / self.least).ln() / self.span * STEPS).round())
    }
}

/// The record to draw charts of. Of a matrix, only the recommended and the worst pairs, because hundreds of lines would
/// be unreadable.
pub fn shown_in_charts(record: &Record) -> Cow<'_, Record> {
    if record.cells.is_empty() {
        return Cow::Borrowed(record);
    }
    let worst = tables(record).into_iter().filter_map(|table| {
        let (y, x) = table.worst?;
        Some(table.cells[y][x]?.pair())
    });
    let pairs: Vec<_> = record.recommendation.iter().map(|advice| advice.pair.clone()).chain(worst).collect();
    let shown = |phase: &str| {
        let of_phase = |cell: &&Cell| cell.phases.iter().any(|name| name == phase);
        record.cells.iter().find(of_phase).is_some_and(|cell| pairs.contains(&cell.pair()))
    };
    let mut short = record.clone();
    short.phases.retain(|phase| shown(&phase.name));
    short.series.retain(|series| shown(&series.phase));
    Cow::Owned(short)
}
