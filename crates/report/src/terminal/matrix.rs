//! The tables of a matrix, and the recommended pair of CPUs.

use analysis::matrix::{MatrixTable, tables, why_none};
use analysis::{format_duration, format_ns};
use record::{Cell, CellThread, NOLOAD, Record, grouped};

use super::page::Page;
use super::table::Table;
use crate::blame::{in_short, main_culprit};
use crate::style::Ink;
use crate::words::sentence;

/// The number of invalid cells that are explained; more are only counted.
const REASONS: usize = 8;

/// A figure shown in the tables of a matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MatrixFigure {
    /// Largest |interval - period|.
    Jitter,
    /// Largest lateness.
    Lateness,
    /// Missed deadlines.
    Missed,
}

impl MatrixFigure {
    /// The name of the figure.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Jitter => "max jitter",
            Self::Lateness => "max lateness",
            Self::Missed => "missed deadlines",
        }
    }

    /// The figure of one thread.
    pub(crate) fn of(self, thread: &CellThread) -> String {
        match self {
            Self::Jitter => format_ns(i64::try_from(thread.jitter_ns).unwrap_or(i64::MAX)),
            Self::Lateness => thread.max_ns.map_or_else(|| "-".to_owned(), format_ns),
            Self::Missed => grouped(thread.missed),
        }
    }

    /// The figures of both threads, that of the column's thread first, without spaces.
    #[must_use]
    pub fn of_cell(self, cell: &Cell) -> String {
        let figures: Vec<String> = cell.threads.iter().rev().map(|thread| self.of(thread)).collect();
        figures.join("/").replace(' ', "")
    }
}

/// The load of a table, as the start of its title.
pub(crate) fn load_title(load: &str) -> String {
    if load == NOLOAD { "At rest (noload)".to_owned() } else { format!("With {load}") }
}

/// The explanation below the tables.
pub(crate) fn legend(record: &Record) -> String {
    let Some(cell) = record.cells.iter().find(|cell| cell.threads.len() == 2) else { return String::new() };
    let [row, column] = [0, 1].map(|thread| {
        let thread = &cell.threads[thread];
        (thread.role.as_str(), format_ns(i64::try_from(thread.period_ns).unwrap_or(i64::MAX)))
    });
    let planned = record.phases.iter().find_map(|phase| phase.planned_ns);
    let rounds = match cell.rounds.len() {
        1 => "once".to_owned(),
        rounds => format!("in each of {rounds} rounds"),
    };
    let length = planned
        .map_or_else(String::new, |ns| format!(" Each cell was measured for {}, {rounds}.", format_duration(ns)));
    format!(
        "Rows: CPU of {} (every {}). Columns: CPU of {} (every {}). Best and worst cells are chosen by missed \
                 deadlines, then by lateness, compared with the least of each role.{length}",
        row.0, row.1, column.0, column.1
    )
}

/// The tables, one per figure and load.
pub(super) fn matrix(page: &mut Page, record: &Record, figures: &[MatrixFigure]) {
    let tables = tables(record);
    for figure in figures {
        for of in &tables {
            let [row, column] = of.roles;
            page.heading(&format!("{}: {} of {column}/{row}", load_title(of.load), figure.name()));
            page.table(&table(of, *figure));
        }
    }
    page.gap();
    page.text(Ink::Quiet, &legend(record));
    invalid(page, record);
}

fn table(of: &MatrixTable, figure: MatrixFigure) -> Table {
    let [row, column] = of.roles;
    let headings = [format!("{row}\\{column}")].into_iter().chain(of.columns.iter().map(ToString::to_string));
    let mut table = Table::new(&headings.collect::<Vec<_>>());
    let marked = |column: usize| [of.best, of.worst].into_iter().flatten().any(|(_, marked)| marked == column);
    for (y, cpu) in of.rows.iter().enumerate() {
        let mut cells = vec![(Ink::Plain, cpu.to_string())];
        for (x, cell) in of.cells[y].iter().enumerate() {
            let (ink, mark) = match cell {
                _ if of.best == Some((y, x)) => (Ink::Good, "best"),
                _ if of.worst == Some((y, x)) => (Ink::Bad, "worst"),
                Some(cell) if cell.invalid.is_some() => (Ink::Alarm, ""),
                _ => (Ink::Plain, ""),
            };
            let text = match cell {
                None => "-".to_owned(),
                Some(cell) if cell.invalid.is_some() => "invalid".to_owned(),
                Some(cell) => figure.of_cell(cell),
            };
            // Marked columns are padded so that their figures stay aligned.
            let text = if marked(x) { format!("{text} {mark:5}") } else { text };
            cells.push((ink, text));
        }
        table.row(cells);
    }
    table
}

/// The reasons for invalid cells.
pub(crate) fn invalid_cells(record: &Record) -> impl Iterator<Item = String> + '_ {
    record.cells.iter().filter_map(|cell| {
        let reason = cell.invalid.as_ref()?;
        let places: Vec<String> = cell.pair().iter().map(|place| format!("{} {}", place.role, place.cpu)).collect();
        Some(format!("{}, {}: {reason}", places.join(", "), cell.load))
    })
}

fn invalid(page: &mut Page, record: &Record) {
    let reasons: Vec<String> = invalid_cells(record).collect();
    for reason in reasons.iter().take(REASONS) {
        page.item(Ink::Alarm, "invalid", 0, reason);
    }
    if reasons.len() > REASONS {
        page.remark(&format!("{} more cells are invalid", reasons.len() - REASONS));
    }
}

/// The main cause of the worst spike of the recommended pair, or of any pair if none is recommended; `None` if no spike
/// has a known cause.
pub(crate) fn cause(record: &Record) -> Option<String> {
    if record.cells.is_empty() || !record.validity.valid {
        return None;
    }
    let pair = record.recommended_pair();
    let cells = record.cells.iter().filter(|cell| pair.is_none_or(|pair| cell.pair() == pair));
    let spikes = cells.flat_map(|cell| {
        let series = record.series.iter().filter(|series| cell.phases.contains(&series.phase));
        series.flat_map(move |series| series.spikes.iter().map(move |spike| (cell, series, spike)))
    });
    let known = spikes.filter(|(_, _, spike)| !spike.culprits.is_empty());
    let (cell, series, spike) = known.max_by_key(|(_, _, spike)| spike.lateness_ns)?;
    let culprit = main_culprit(spike, in_short)?;
    let load = if cell.load == NOLOAD { "at rest".to_owned() } else { format!("with {}", cell.load) };
    let late = format_ns(spike.lateness_ns);
    Some(format!("{}, {late} late {load}: {culprit}", series.place()))
}

/// The recommended placement with reasons and facts.
pub(super) fn recommendation(page: &mut Page, record: &Record) {
    page.heading("Recommendation");
    let Some(advice) = &record.recommendation else {
        page.item(Ink::Doubt, "none", 0, &why_none(record));
        return;
    };
    let ink = if advice.certain { Ink::Good } else { Ink::Doubt };
    page.item(ink, "", 0, &advice.text);
    for why in &advice.why {
        page.fact("why", 4, &sentence(why));
    }
    for fact in &advice.facts {
        page.fact("fact", 4, &sentence(fact));
    }
}
