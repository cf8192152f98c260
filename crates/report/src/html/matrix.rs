//! The tables of a matrix, with the pair of CPUs that it recommends.

use std::borrow::Cow;

use analysis::matrix::{MatrixTable, tables};
use record::{Cell, Record};

use super::text::sentence;
use crate::terminal::MatrixFigure;
use crate::terminal::matrix::{beside, invalid_cells, legend};

/// Steps of the colour scale above the first, as the style sheet has them.
const STEPS: f64 = 5.0;
/// The scale spans a factor of this at least, so that it does not make much of nothing.
const SPAN_AT_LEAST: f64 = 10.0;
/// What is less bad than this is drawn alike.
const LEAST_BAD: f64 = 1e-3;

/// All there is to show.
pub struct MatrixView {
    /// Where to put the threads; empty where nothing can be recommended.
    pub advice: String,
    /// Why, the figures first.
    pub why: Vec<String>,
    /// Facts about the machine.
    pub facts: Vec<String>,
    /// The tables of jitter.
    pub jitter: Vec<TableView>,
    /// Those of lateness and missed deadlines.
    pub more: Vec<TableView>,
    /// How to read them.
    pub legend: String,
    /// Why cells are invalid.
    pub invalid: Vec<String>,
}

/// One table.
pub struct TableView {
    /// What ran beside the threads, and the figure.
    pub title: String,
    /// What stands in the corner: the thread of the rows, that of the columns.
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
    /// Classes for the style sheet.
    pub class: String,
    /// `best`, `worst`, or nothing.
    pub word: &'static str,
}

/// What a matrix shows; `None` for other records.
pub fn view(record: &Record) -> Option<MatrixView> {
    let tables = tables(record);
    let scale = Scale::of(record);
    let of = |figure: MatrixFigure| tables.iter().map(move |table| (table, figure));
    let advice = record.recommendation.as_ref();
    let sentences = |list: Option<&Vec<String>>| list.into_iter().flatten().map(|text| sentence(text)).collect();
    let ours = !record.cells.is_empty() && record.published.is_none();
    ours.then(|| MatrixView {
        advice: advice.map_or_else(String::new, |advice| advice.text.clone()),
        why: sentences(advice.map(|advice| &advice.why)),
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
                CellView { text: figure.of_cell(cell), class: format!("heat{} {word}", scale.step(cell)), word }
            }
        }
    };
    let row_view = |(y, &cpu): (usize, &u32)| (cpu, (0..table.columns.len()).map(|x| cell(y, x)).collect());
    TableView {
        title: format!("{}: {} of {column}/{row}", beside(table.load), figure.name()),
        corner: format!("{row} \\ {column}"),
        columns: table.columns.clone(),
        rows: table.rows.iter().enumerate().map(row_view).collect(),
    }
}

/// From the least bad valid cell to the worst, on a logarithmic scale that all tables share.
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

    fn step(&self, cell: &Cell) -> u8 {
        ((cell.badness.max(LEAST_BAD) / self.least).ln() / self.span * STEPS).round() as u8
    }
}

/// The record as its charts show it: of a matrix the recommended pair and the worst one, since hundreds of lines tell
/// nothing; of others all of it.
pub fn of_interest(record: &Record) -> Cow<'_, Record> {
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
