//! The tables of a matrix, and the recommended pair of CPUs.

use std::borrow::Cow;

use analysis::{
    float::to_u64,
    format_ns,
    matrix::{MatrixTable, tables, why_none},
};
use record::{Cell, Record, grouped};

use super::figure::Key;
use crate::terminal::MatrixFigure;
use crate::terminal::matrix::{invalid_cells, legend, load_title};
use crate::words::sentence;

/// The largest lateness of the first colours, of cells without missed deadlines, in periods.
const LATE_PERIODS: [f64; 2] = [0.01, 0.1];
/// The most missed deadlines of a thousand of the next colours. A cell with missed deadlines never has a colour of a cell
/// without.
const MISSED_OF_1000: [f64; 2] = [1.0, 100.0];

/// The number of undecided pairs in the charts.
const UNDECIDED: usize = 2;

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
    /// The colours with their meanings.
    pub colours: Vec<(usize, String)>,
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
        jitter: of(MatrixFigure::Jitter).map(|(table, figure)| table_view(table, figure)).collect(),
        more: of(MatrixFigure::Lateness)
            .chain(of(MatrixFigure::Missed))
            .map(|(table, figure)| table_view(table, figure))
            .collect(),
        legend: legend(record),
        colours: colours(),
        invalid: invalid_cells(record).map(|text| sentence(&text)).collect(),
    })
}

fn table_view(table: &MatrixTable, figure: MatrixFigure) -> TableView {
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
                CellView { text: figures.join(" / "), class: format!("heat{} {word}", colour(cell)), word }
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

/// The key figures: those of the recommended pair, if there is one, under all loads, and those of the worst pair; empty
/// for other records.
pub fn keys(record: &Record) -> Vec<Key> {
    let max_of = |cell: &Cell| cell.threads.iter().filter_map(|thread| thread.max_ns).max();
    let mut keys = Vec::new();
    if let Some(pair) = record.recommended_pair() {
        let recommended: Vec<&Cell> = record.cells.iter().filter(|cell| cell.pair() == pair).collect();
        let latest =
            recommended.iter().filter_map(|cell| Some((cell, max_of(cell)?))).max_by_key(|(_, max_ns)| *max_ns);
        keys.extend(latest.map(|(cell, max_ns)| key("recommended pair, largest lateness", max_ns, cell)));
        let threads = || recommended.iter().flat_map(|cell| &cell.threads);
        let missed: u64 = threads().map(|thread| thread.missed).sum();
        let all: u64 = threads().map(|thread| thread.missed + thread.samples).sum();
        let detail = format!("of {} deadlines", grouped(all));
        keys.push(Key { label: "recommended pair, missed", value: grouped(missed), detail });
    }
    let worst = record.cells.iter().filter_map(|cell| Some((cell, max_of(cell)?))).max_by_key(|(_, max_ns)| *max_ns);
    keys.extend(worst.map(|(cell, max_ns)| key("all pairs, largest lateness", max_ns, cell)));
    keys
}

fn key(label: &'static str, max_ns: i64, cell: &Cell) -> Key {
    let pair: Vec<String> = cell.threads.iter().map(|thread| format!("{} {}", thread.role, thread.cpu)).collect();
    let detail = format!("{}, {}", pair.join(", "), cell.load);
    Key { label, value: format_ns(max_ns), detail }
}

/// The colour of a cell, from 0 to 5: lateness, or, from 3 on, missed deadlines.
fn colour(cell: &Cell) -> usize {
    let steps = |value: f64, limits: [f64; 2]| limits.iter().filter(|&&limit| value > limit).count();
    match cell.threads.iter().any(|thread| thread.missed > 0) {
        false => steps(cell.badness, LATE_PERIODS),
        true => 3 + steps(cell.badness - 1.0, MISSED_OF_1000),
    }
}

/// The colours with their meanings.
fn colours() -> Vec<(usize, String)> {
    let [little, tenth] = LATE_PERIODS;
    let [few, many] = MISSED_OF_1000;
    let missed = |of_1000: f64| format!("up to 1 of {} missed", grouped(to_u64(1000.0 / of_1000)));
    let late = |periods: f64| format!("up to {periods} periods late");
    let rest = ["later".to_owned(), missed(few), missed(many), "more missed".to_owned()];
    [late(little), late(tenth)].into_iter().chain(rest).enumerate().collect()
}

/// The record to draw charts of. Of a matrix, only the recommended and the worst pairs, or the first undecided ones,
/// because hundreds of lines would be unreadable.
pub fn shown_in_charts(record: &Record) -> Cow<'_, Record> {
    if record.cells.is_empty() {
        return Cow::Borrowed(record);
    }
    let worst = tables(record).into_iter().filter_map(|table| {
        let (y, x) = table.worst?;
        Some(table.cells[y][x]?.pair())
    });
    let undecided = record.recommendation.iter().filter(|advice| advice.pair.is_empty());
    let undecided = undecided.flat_map(|advice| advice.equal.iter().take(UNDECIDED).cloned());
    let pairs: Vec<_> =
        record.recommended_pair().map(<[_]>::to_vec).into_iter().chain(undecided).chain(worst).collect();
    let shown = |phase: &str| {
        let of_phase = |cell: &&Cell| cell.phases.iter().any(|name| name == phase);
        record.cells.iter().find(of_phase).is_some_and(|cell| pairs.contains(&cell.pair()))
    };
    let mut short = record.clone();
    short.phases.retain(|phase| shown(&phase.name));
    short.series.retain(|series| shown(&series.phase));
    Cow::Owned(short)
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::CellThread;

    #[test]
    fn missed_deadlines_come_first_in_the_colours() {
        let colour_of = |badness: f64, missed: u64| {
            let threads = vec![CellThread { missed, ..CellThread::default() }, CellThread::default()];
            colour(&Cell { badness, threads, ..Cell::default() })
        };
        assert_eq!([0.002, 0.05, 0.9, 1.0].map(|periods| colour_of(periods, 0)), [0, 1, 2, 2]);
        assert_eq!([1.0, 2.0, 50.0, 526.0].map(|badness| colour_of(badness, 7)), [3, 3, 4, 5]);
        let meanings: Vec<String> = colours().into_iter().map(|(_, meaning)| meaning).collect();
        assert_eq!(meanings[..2], ["up to 0.01 periods late", "up to 0.1 periods late"]);
        assert_eq!(meanings[3..5], ["up to 1 of 1,000 missed", "up to 1 of 10 missed"]);
    }
}
